//! Search on disk and over `Fs`, beside each other and beside ripgrep itself.
//!
//! Without ripgrep the comparison fails.

use std::{
    fs,
    ops::ControlFlow,
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use haft_host::{
    FindQuery, FoundLines, FsSearch, GrepMode, GrepQuery, Host, Local, Located, NameMatch, Search,
    SearchError, Skip, Skipped, Walk,
};
use haft_testkit::machine;
use haft_types::{EntryKind, FileMatches, Follow};
use tokio_util::sync::CancellationToken;

mod encodings;

fn walk() -> Walk {
    let all = || Arc::new(|_: &_| true);
    Walk { allowed: all(), excludes: all(), stop: CancellationToken::new() }
}

async fn at(local: &Local, path: &Path) -> Located {
    let path = Local::path(path).unwrap();
    local.fs().locate(&path, Follow::Yes).await.unwrap()
}

type Grepped = Result<(Vec<FileMatches>, Skipped), SearchError>;

async fn grep(search: &dyn Search, at: &Located, query: &GrepQuery, walk: Walk) -> Grepped {
    let mut files = Vec::new();
    let sink = &mut |found: FoundLines| {
        files.push(found.file);
        ControlFlow::Continue(())
    };
    let skipped = search.grep(at, query, walk, sink).await?;
    Ok((files, skipped))
}

async fn find(
    search: &dyn Search,
    at: &Located,
    query: &FindQuery,
    walk: Walk,
) -> (Vec<NameMatch>, Skipped) {
    let mut found = Vec::new();
    let sink = &mut |one| {
        found.push(one);
        ControlFlow::Continue(())
    };
    let skipped = search.find(at, query, walk, sink).await.unwrap();
    (found, skipped)
}

fn query(pattern: &str) -> GrepQuery {
    GrepQuery { pattern: pattern.into(), hidden: true, max_line: 2000, ..GrepQuery::default() }
}

fn all(pattern: &str) -> FindQuery {
    FindQuery { pattern: pattern.into(), hidden: true, ..FindQuery::default() }
}

/// A small generator of numbers, so that every failure can be had again by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

const NAMES: [&str; 14] = [
    "a", "b.rs", "c.txt", ".hidden", "src", "target", "lib.rs", "x-y", "Z.RS", "é.txt", "out.log",
    "d", "a.b", ".github",
];
const GLOBS: [&str; 16] = [
    "*.rs",
    "!lib.rs",
    "target/",
    "/a",
    "src/*.txt",
    "**/d",
    ".hidden",
    "*.log",
    "!*.log",
    "a/**",
    "# note",
    "x-?",
    "b.rs",
    "[z",
    "!.hidden",
    "src/**/a",
];
const LINES: [&[u8]; 9] = [
    b"needle\n",
    b"a needle here\r\n",
    b"nothing\n",
    b"NEEDLE\n",
    b"needle needle\n",
    b"\xff needle\n",
    b"\n",
    b"no end",
    b"a\0b\n",
];

fn grow(random: &mut Random, folder: &Path, depth: usize) {
    for _ in 0..random.below(7) + 2 {
        let path = folder.join(random.pick(&NAMES));
        if path.exists() {
            continue;
        }
        if depth < 4 && random.below(3) == 0 {
            fs::create_dir(&path).unwrap();
            grow(random, &path, depth + 1);
        } else {
            let lines: Vec<&[u8]> = (0..random.below(6)).map(|_| random.pick(&LINES)).collect();
            fs::write(&path, lines.concat()).unwrap();
        }
    }
    for name in [".gitignore", ".ignore", ".rgignore"] {
        if random.below(4) == 0 {
            let globs: Vec<&str> = (0..=random.below(4)).map(|_| random.pick(&GLOBS)).collect();
            fs::write(folder.join(name), globs.join("\n")).unwrap();
        }
    }
    if random.below(6) == 0 {
        fs::create_dir_all(folder.join(".git/info")).unwrap();
        fs::write(folder.join(".git/info/exclude"), random.pick(&GLOBS)).unwrap();
        fs::write(folder.join(".git/config"), "needle\n").unwrap();
    }
    if random.below(5) == 0 {
        std::os::unix::fs::symlink("..", folder.join("up")).unwrap();
    }
}

fn rg(folder: &Path, args: &[String]) -> Vec<String> {
    let output = Command::new(machine::rg())
        .current_dir(folder)
        .args(["--no-config", "--no-require-git", "--sort", "path"])
        .args(args)
        .args(["-g", "!.git"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| line.trim_start_matches("./").to_owned()).collect()
}

fn flags(query: &GrepQuery) -> Vec<String> {
    let mut args = Vec::new();
    for glob in &query.globs {
        args.extend(["-g".to_owned(), glob.clone()]);
    }
    for kind in &query.types {
        args.extend(["-t".to_owned(), kind.clone()]);
    }
    for (on, flag) in
        [(query.hidden, "--hidden"), (query.no_ignore, "--no-ignore"), (query.ignore_case, "-i")]
    {
        if on {
            args.push(flag.to_owned());
        }
    }
    args
}

fn any_query(random: &mut Random) -> GrepQuery {
    let mut query = query(random.pick(&["needle", "^needle", "n.*e$", "no"]));
    query.hidden = random.below(3) > 0;
    query.no_ignore = random.below(4) == 0;
    query.ignore_case = random.below(3) == 0;
    if random.below(3) == 0 {
        query.globs.push(random.pick(&["*.rs", "!*.txt", "src/**", "/a", "!target", "*"]).into());
    }
    if random.below(4) == 0 {
        query.types.push(random.pick(&["rust", "txt"]).into());
    }
    query
}

/// Compares one query in every mode; gives in how many of its forms something was found.
async fn compare(local: &Local, root: &Path, random: &mut Random, seed: u64) -> usize {
    let mut found = 0;
    let base = any_query(random);
    let place = at(local, root).await;
    let over = FsSearch(local.fs());
    for mode in [GrepMode::Content, GrepMode::Files, GrepMode::Count] {
        let query = GrepQuery { mode, ..base.clone() };
        let here = grep(local, &place, &query, walk()).await.unwrap();
        let there = grep(&over, &place, &query, walk()).await.unwrap();
        assert_eq!(here, there, "seed {seed} {query:?}");
        let mut args = flags(&query);
        let flag = match mode {
            GrepMode::Content => "-Hn",
            GrepMode::Files => "-l",
            GrepMode::Count => "-c",
        };
        if query.pattern.ends_with('$') {
            args.push("--crlf".to_owned());
        }
        args.extend([flag.into(), "-e".into(), query.pattern.clone(), "./".into()]);
        let theirs = rg(root, &args);
        found += usize::from(!theirs.is_empty());
        let ours: Vec<String> = match mode {
            GrepMode::Files => here.0.iter().map(|file| file.path.clone()).collect(),
            GrepMode::Count => here.0.iter().map(|f| format!("{}:{}", f.path, f.count)).collect(),
            GrepMode::Content => {
                let place = |file: &FileMatches, n: u64| format!("{}:{n}", file.path);
                here.0.iter().flat_map(|f| f.lines.iter().map(|l| place(f, l.number))).collect()
            }
        };
        let theirs: Vec<String> = match mode {
            GrepMode::Content => theirs
                .iter()
                .map(|l| l.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"))
                .collect(),
            _ => theirs,
        };
        assert_eq!(ours, theirs, "seed {seed} {query:?} in {}", root.display());
    }
    let query = FindQuery {
        pattern: "*".into(),
        hidden: base.hidden,
        no_ignore: base.no_ignore,
        follow: false,
        times: random.below(2) == 0,
    };
    let here = find(local, &place, &query, walk()).await;
    assert_eq!(here, find(&over, &place, &query, walk()).await, "seed {seed}");
    let names = |found: &[NameMatch]| -> Vec<String> {
        let files = found.iter().filter(|found| found.kind == EntryKind::File);
        files.map(|found| String::from_utf8(found.path.clone()).unwrap()).collect()
    };
    let wanted = GrepQuery { globs: Vec::new(), types: Vec::new(), ..base };
    let args = [flags(&wanted), vec!["--files".into()]].concat();
    assert_eq!(names(&here.0), rg(root, &args), "seed {seed}");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_any_fs_and_ripgrep_find_the_same() {
    let local = Local::new();
    let mut found = 0;
    for seed in 0..60 {
        let mut random = Random(seed);
        let folder = tempfile::tempdir().unwrap();
        // Ignore files above the searched folder count, too.
        let root = folder.path().join("w");
        fs::create_dir(&root).unwrap();
        fs::write(folder.path().join(".gitignore"), "w/src/a\n*.log\n").unwrap();
        grow(&mut random, &root, 0);
        for _ in 0..3 {
            found += compare(&local, &root, &mut random, seed).await;
        }
        let inner = root.join("src");
        if inner.is_dir() {
            found += compare(&local, &inner, &mut random, seed).await;
        }
    }
    assert!(found > 200, "in only {found} comparisons there was something to find");
}

/// A tree of some thousand names, with deep, empty and wide folders.
fn grow_much(random: &mut Random, root: &Path) {
    for outer in 0..5 {
        for inner in 0..20 {
            let folder = root.join(format!("{outer}/{inner:02}"));
            fs::create_dir_all(&folder).unwrap();
            grow(random, &folder, 1);
        }
    }
    for number in 0..200 {
        fs::create_dir_all(root.join(format!("2/wide/{number}"))).unwrap();
        fs::write(root.join(format!("4/07/x{number}.rs")), "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_threads_find_what_one_does_in_its_order() {
    let local = Local::new();
    let over = FsSearch(local.fs());
    for seed in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        grow_much(&mut Random(seed), folder.path());
        let place = at(&local, folder.path()).await;
        let closed = place.real.join("3/11").unwrap();
        let allowed = move |path: &haft_types::HostPath| !path.is_within(&closed);
        let walk = || Walk { allowed: Arc::new(allowed.clone()), ..walk() };
        for pattern in ["*", "*/0*/**"] {
            let one = find(&over, &place, &all(pattern), walk()).await;
            assert!(one.0.len() > 100 && one.1.denied == 1 && one.1.ignored > 10, "{:?}", one.1);
            for _ in 0..5 {
                let several = find(&local, &place, &all(pattern), walk()).await;
                assert!(several == one, "seed {seed}, {pattern}: {:?}, {:?}", several.1, one.1);
            }
            // Who wants no more gets the first ones.
            let most = one.0.len() / 2;
            let mut first = Vec::new();
            let sink = &mut |found| {
                first.push(found);
                if first.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let skipped = local.find(&place, &all(pattern), walk(), sink).await.unwrap();
            assert!(skipped.stopped && first == one.0[..most], "seed {seed}, {pattern}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_paths_are_never_opened_and_counted() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    for name in ["open/a", "closed/deep/b", "c", ".gitignore"] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "needle\nc\n").unwrap();
    }
    let place = at(&local, folder.path()).await;
    let closed = place.real.join("closed").unwrap();
    let rules = place.real.join(".gitignore").unwrap();
    let allowed = move |path: &haft_types::HostPath| !path.is_within(&closed) && *path != rules;
    let walk = || Walk { allowed: Arc::new(allowed.clone()), ..walk() };
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        let (files, skipped) = grep(search, &place, &query("needle"), walk()).await.unwrap();
        let names: Vec<&str> = files.iter().map(|file| &*file.path).collect();
        // The rules that would have hidden `c` may not be read, so they do not count.
        assert_eq!(names, ["c", "open/a"]);
        assert_eq!((skipped.denied, skipped.ignored, skipped.searched), (2, 0, 2));
        let (found, skipped) = find(search, &place, &all("*"), walk()).await;
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(skipped.denied, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_links_and_endless_lines_hold_nothing_up() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    machine::make_fifo(&root.join("fifo"));
    machine::make_fifo(&root.join(".ignore"));
    std::os::unix::fs::symlink("/etc/passwd", root.join("link")).unwrap();
    std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
    fs::write(root.join("long"), vec![b'r'; 20 << 20]).unwrap();
    fs::write(root.join("short"), "root\n").unwrap();
    let place = at(&local, root).await;
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        let (files, skipped) = grep(search, &place, &query("root"), walk()).await.unwrap();
        assert_eq!(files.len(), 1);
        let counts = (skipped.unreadable, skipped.searched, skipped.parts);
        assert_eq!(counts, (0, 2, 1), "{skipped:?}");
        let (found, skipped) = find(search, &place, &all("*o*"), walk()).await;
        let names: Vec<_> = found.iter().map(|found| (&*found.path, found.kind)).collect();
        let kinds = [
            (&b".ignore"[..], EntryKind::Fifo),
            (b"fifo", EntryKind::Fifo),
            (b"long", EntryKind::File),
            (b"loop", EntryKind::Link),
            (b"short", EntryKind::File),
        ];
        assert_eq!(names, kinds);
        assert_eq!(skipped.loops, 0);
        let follow = FindQuery { follow: true, ..all("*o*") };
        let (followed, skipped) = find(search, &place, &follow, walk()).await;
        assert_eq!((followed.len(), skipped.loops), (5, 1), "{followed:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn matching_lines_are_skipped_in_the_one_file_that_is_meant() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deep")).unwrap();
    // Read at once, and in pieces.
    for (name, lines) in [("deep/a.txt", 5), ("deep/b.txt", 400_000), ("z.txt", 5)] {
        fs::write(folder.path().join(name), "needle\n".repeat(lines)).unwrap();
    }
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        for (root, name, lines, count) in [
            (".", Some("deep/a.txt"), 3, 5),
            (".", Some("deep/b.txt"), 399_998, 400_000),
            ("deep/a.txt", None, 3, 5),
            ("deep/b.txt", None, 399_998, 400_000),
        ] {
            let skip = Skip { path: name.map(str::to_owned), lines };
            let place = at(&local, &folder.path().join(root)).await;
            let mut found: Vec<FoundLines> = Vec::new();
            let sink = &mut |one| {
                found.push(one);
                ControlFlow::Continue(())
            };
            let query = GrepQuery { skip, ..query("needle") };
            search.grep(&place, &query, walk(), sink).await.unwrap();
            for one in &found {
                let meant = root != "." || Some(&*one.file.path) == name;
                assert_eq!(one.skipped, if meant { lines } else { 0 }, "{}", one.file.path);
                assert_eq!(one.file.lines[0].number, one.skipped + 1);
                if meant {
                    assert_eq!((one.file.lines.len(), one.file.count), (2, count));
                }
            }
            assert_eq!(found.len(), if root == "." { 3 } else { 1 });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_named_file_is_searched_whatever_ignores_it() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".gitignore"), "*").unwrap();
    fs::write(folder.path().join(".secret.log"), "x\nneedle\n").unwrap();
    let place = at(&local, &folder.path().join(".secret.log")).await;
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        let hidden = GrepQuery { hidden: false, ..query("needle") };
        let (files, skipped) = grep(search, &place, &hidden, walk()).await.unwrap();
        assert_eq!((&*files[0].path, files[0].lines[0].number), (".secret.log", 2));
        assert_eq!(skipped.searched, 1);
    }
    let missing = at(&local, &folder.path().join("none")).await;
    for search in search {
        let error = grep(search, &missing, &query("needle"), walk()).await.unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
    let bad = GrepQuery { types: vec!["rs".into()], ..query("x") };
    assert!(matches!(grep(&local, &place, &bad, walk()).await, Err(SearchError::Type(_))));
    assert!(matches!(
        grep(&local, &place, &query("("), walk()).await,
        Err(SearchError::Pattern(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn break_stop_and_drop_end_the_walk_at_once() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    for number in 0..3000 {
        fs::write(folder.path().join(format!("f{number:04}")), "needle\n").unwrap();
    }
    let big = fs::File::create(folder.path().join("zz")).unwrap();
    big.set_len(1 << 40).unwrap();
    let place = at(&local, folder.path()).await;
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        let mut count = 0;
        let sink = &mut |_| {
            count += 1;
            if count == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let skipped = search.grep(&place, &query("needle"), walk(), sink).await.unwrap();
        assert!(skipped.stopped && count == 7);
    }
    // A file of a terabyte that holds no line end and no NUL would take for ever; this one is all
    // NULs, so it is searched as text in the file that was named.
    let huge = at(&local, &folder.path().join("zz")).await;
    for search in search {
        // The middle one of three, since a busy machine may hold up any one of them.
        let mut took = Vec::new();
        for _ in 0..3 {
            took.push(until_stopped(search, &huge).await);
        }
        took.sort_unstable();
        assert!(took[1] < Duration::from_millis(200), "{took:?}");
    }
}

/// How long a search answers after it was cancelled in the middle of this file.
async fn until_stopped(search: &dyn Search, file: &Located) -> Duration {
    let walk = walk();
    let stop = walk.stop.clone();
    let needle = query("needle");
    let before = machine::read_so_far();
    let cancel = async {
        while machine::read_so_far() < before + (8 << 20) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        stop.cancel();
        Instant::now()
    };
    let (cancelled, result) = tokio::join!(cancel, grep(search, file, &needle, walk));
    let (_, skipped) = result.unwrap();
    assert!(skipped.stopped && skipped.unreadable == 0, "{skipped:?}");
    cancelled.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_nested_too_deep_are_told() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    let deep = ["d"; 300].join("/");
    fs::create_dir_all(folder.path().join(deep)).unwrap();
    let place = at(&local, folder.path()).await;
    let over = FsSearch(local.fs());
    let search: [&dyn Search; 2] = [&local, &over];
    for search in search {
        let (found, skipped) = find(search, &place, &all("d"), walk()).await;
        assert_eq!((found.len(), skipped.unreadable), (256, 1));
        assert!(skipped.cause.unwrap().contains("deep"));
    }
}

/// One answer within this time, whatever the pattern is.
const AT_ONCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn long_patterns_and_globs_are_answered_at_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("one.txt"), "x".repeat(30 << 20)).unwrap();
    let local = Local::new();
    let root = at(&local, folder.path()).await;
    let refused = |grepped: Grepped| match grepped {
        Err(SearchError::Pattern(text) | SearchError::Glob(text)) => text,
        other => panic!("{other:?}"),
    };
    let began = machine::own_time();
    for pattern in ["x".repeat(64 << 10), "x".repeat(30 << 20), "(x{0,300}y?){300}".into()] {
        for literal in [false, true] {
            let query = GrepQuery { literal, ..query(&pattern) };
            if literal && pattern.len() < 100 {
                continue;
            }
            let text = refused(grep(&local, &root, &query, walk()).await);
            assert!(text.contains("at most 2048") && text.len() < 400, "{text}");
        }
    }
    let globs = [vec!["*a".repeat(3 << 10)], vec!["[".repeat(1 << 20)], vec!["*.rs".into(); 101]];
    for globs in globs {
        let text = refused(grep(&local, &root, &GrepQuery { globs, ..query("x") }, walk()).await);
        assert!(text.contains("at most") && text.len() < 400, "{text}");
    }
    let sink = &mut |_| ControlFlow::Continue(());
    let found = local.find(&root, &all(&"*a".repeat(1 << 19)), walk(), sink).await;
    assert!(matches!(found, Err(SearchError::Glob(text)) if text.contains("at most 4096")));
    let sink = &mut |_| ControlFlow::Continue(());
    local.find(&root, &all(&"?".repeat(4 << 10)), walk(), sink).await.unwrap();
    grep(&local, &root, &query(&format!("{}y", "x".repeat(2_000))), walk()).await.unwrap();
    let took = machine::own_time().saturating_sub(began);
    assert!(took < AT_ONCE, "{took:?}");
}
