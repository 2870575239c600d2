//! Files of instructions: found by folder, each once, followed into imports, within bounds.

use haft_agent::{
    ImportAnswer, Instructions, Memory, Outside, Places, ReadFiles, UserFolder, Why, at_start,
    by_rule, in_folders, let_in,
};
use haft_host::Memory as Host;
use haft_types::{EntryKind, HostPath};

use crate::world::path;

/// Room that no test but those of bounds comes to.
const ROOM: usize = 32 << 10;

/// Why no import may lead to a path.
type Barred = dyn Fn(&HostPath) -> Option<&'static str> + Send + Sync;

/// What of a host may be read.
struct World {
    host: Host,
    root: HostPath,
    home: HostPath,
    further: Vec<HostPath>,
    allowed: Box<dyn Fn(&HostPath) -> bool + Send + Sync>,
    barred: Box<Barred>,
    answer: Box<dyn Fn(&HostPath) -> ImportAnswer + Send + Sync>,
    user: Vec<UserFolder>,
}

impl World {
    fn new<N: AsRef<str>, C: Into<Vec<u8>>>(files: impl IntoIterator<Item = (N, C)>) -> Self {
        let host = Host::with_files(
            files.into_iter().map(|(name, content)| (name.as_ref().to_owned(), content.into())),
        );
        let user = |folder, names| UserFolder { folder: path(folder), names };
        Self {
            host: host.unwrap(),
            root: path("/home/me/p"),
            home: path("/home/me"),
            further: Vec::new(),
            allowed: Box::new(|_| true),
            barred: Box::new(|path| path.text().contains(".ssh").then_some("keys")),
            answer: Box::new(|_| ImportAnswer::Unasked),
            user: vec![
                user("/home/me/.haft", &["AGENTS.override.md", "AGENTS.md"]),
                user("/home/me/.claude", &["CLAUDE.md"]),
            ],
        }
    }

    fn places(&self) -> Places<'_> {
        Places {
            host: &self.host,
            root: &self.root,
            further: &self.further,
            home: &self.home,
            allowed: &*self.allowed,
            barred: &*self.barred,
            answer: &*self.answer,
        }
    }

    async fn within(&self, cwd: &str, room: usize) -> Instructions {
        at_start(self.places(), &self.user, &path(cwd), room).await.0
    }

    async fn found(&self) -> Instructions {
        self.within("/home/me/p", ROOM).await
    }

    /// The files that are read, by their paths.
    async fn paths(&self) -> Vec<String> {
        paths(&self.found().await)
    }
}

fn paths(found: &Instructions) -> Vec<String> {
    found.files.iter().map(|file| file.path.clone()).collect()
}

/// A file of the project.
fn p(name: &str) -> String {
    format!("/home/me/p/{name}")
}

#[tokio::test]
async fn the_nearest_stands_last_and_an_override_stands_for_what_it_overrides() {
    let world = World::new([
        ("/home/me/.haft/AGENTS.md", "mine"),
        ("/home/me/.haft/rules/r.md", "my rule"),
        ("/home/me/.claude/CLAUDE.md", "mine, other"),
        ("/home/me/AGENTS.md", "above the project"),
        ("/home/me/p/AGENTS.md", "root"),
        ("/home/me/p/CLAUDE.md", "root, other"),
        ("/home/me/p/CLAUDE.local.md", "mine, here"),
        ("/home/me/p/.claude/CLAUDE.md", "root, hidden"),
        ("/home/me/p/.claude/rules/x/z.md", "rule z"),
        ("/home/me/p/.claude/rules/b.md", "rule b"),
        ("/home/me/p/.claude/rules/c.txt", "no rule"),
        ("/home/me/p/.haft/rules/a.md", "rule a"),
        ("/home/me/p/a/AGENTS.md", "overridden"),
        ("/home/me/p/a/AGENTS.override.md", "in a"),
        ("/home/me/p/a/CLAUDE.md", "see @AGENTS.md"),
        ("/home/me/p/a/b/AGENTS.override.md", " \n"),
        ("/home/me/p/a/b/AGENTS.md", "in b"),
        ("/home/me/p/a/b/c/AGENTS.md", "below"),
        ("/home/me/p/x/AGENTS.md", "beside"),
    ]);
    let found = world.within("/home/me/p/a/b", ROOM).await;
    let expected = [
        ("~/.haft/AGENTS.md", Memory::User),
        ("~/.haft/rules/r.md", Memory::User),
        ("~/.claude/CLAUDE.md", Memory::User),
        ("AGENTS.md", Memory::Project),
        ("CLAUDE.md", Memory::Project),
        (".claude/CLAUDE.md", Memory::Project),
        ("CLAUDE.local.md", Memory::Local),
        (".haft/rules/a.md", Memory::Project),
        (".claude/rules/b.md", Memory::Project),
        (".claude/rules/x/z.md", Memory::Project),
        ("a/AGENTS.override.md", Memory::Project),
        ("a/CLAUDE.md", Memory::Project),
        ("a/b/AGENTS.md", Memory::Project),
    ];
    let read: Vec<_> = found.files.iter().map(|file| (&*file.path, file.memory)).collect();
    assert_eq!(read, expected);
    assert!(found.files.iter().all(|file| file.why == Why::Start), "{found:?}");
    assert_eq!(found.left_out, [""; 0]);
    // The root that is not above the folder has nothing to say there.
    assert_eq!(paths(&world.within("/elsewhere", ROOM).await).len(), 3);
}

#[tokio::test]
async fn the_same_file_and_the_same_text_are_taken_once() {
    let world = World::new([
        (p("AGENTS.md"), "same\n@b.md @CLAUDE.md"),
        (p("b.md"), "b\n@AGENTS.md"),
        (p("c.md"), "b\n@AGENTS.md\n\n"),
        (p("CLAUDE.md"), "@c.md and @./AGENTS.md"),
        (p("CLAUDE.local.md"), "local @link.md"),
    ]);
    world.host.add_link(&p("link.md"), "b.md").unwrap();
    assert_eq!(world.paths().await, ["AGENTS.md", "b.md", "CLAUDE.md", "CLAUDE.local.md"]);
    // The override is what there is, whatever else leads to the other one.
    let world = World::new([(p("AGENTS.md"), "old"), (p("AGENTS.override.md"), "new")]);
    world.host.add_link(&p("CLAUDE.md"), "AGENTS.md").unwrap();
    world.host.add_file(&p("CLAUDE.local.md"), "old").unwrap();
    assert_eq!(world.paths().await, ["AGENTS.override.md"]);
}

#[tokio::test]
async fn imports_come_behind_their_file_to_a_depth_of_four() {
    let chain = |n: usize| (p(&format!("d{n}.md")), format!("{n} @d{}.md", n + 1));
    let mut files: Vec<(String, String)> = (1..=6).map(chain).collect();
    files.extend([
        (
            p("AGENTS.md"),
            "top @docs/one.md, `@no.md` and @AGENTS.md\n```\n@no.md\n```\n@d1.md".into(),
        ),
        (p("docs/one.md"), "one @sub/two.md @missing.md @someone".into()),
        (p("docs/sub/two.md"), "two @../one.md".into()),
        (p("no.md"), "no".into()),
    ]);
    let found = World::new(files).found().await;
    let wanted =
        ["AGENTS.md", "docs/one.md", "docs/sub/two.md", "d1.md", "d2.md", "d3.md", "d4.md"];
    assert_eq!(paths(&found), wanted);
    let of = |file: &str| Why::Import { of: file.to_owned() };
    let why: Vec<_> = found.files.iter().map(|file| file.why.clone()).collect();
    assert_eq!(why[1..4], [of("AGENTS.md"), of("docs/one.md"), of("AGENTS.md")]);
    assert_eq!(
        found.left_out,
        ["d5.md is left out of the instructions: it is imported over more than 4 files"]
    );
}

#[tokio::test]
async fn an_import_leads_outside_only_where_a_person_said_so() {
    let root =
        "@/etc/x.md @../y.md @~/z.md @~/.ssh/key @link.md @folder/in.md @sub/../../../../w.md";
    let mut world = World::new([
        (p("AGENTS.md"), root),
        ("/etc/x.md".into(), "x @/etc/deeper.md"),
        ("/etc/deeper.md".into(), "deeper"),
        ("/home/me/y.md".into(), "y"),
        ("/home/me/z.md".into(), "z"),
        ("/home/me/.ssh/key".into(), "KEY"),
        ("/w.md".into(), "w"),
        ("/elsewhere/in.md".into(), "in"),
    ]);
    world.host.add_link(&p("link.md"), "/etc/x.md").unwrap();
    world.host.add_link(&p("folder"), "/elsewhere").unwrap();
    world.host.add_link(&p("CLAUDE.md"), "/home/me/z.md").unwrap();
    let found = world.found().await;
    assert_eq!(paths(&found), ["AGENTS.md"]);
    let asked: Vec<String> = found.outside.iter().map(|one| one.at.text().into_owned()).collect();
    let wanted = ["/etc/x.md", "/home/me/y.md", "/home/me/z.md", "/elsewhere/in.md", "/w.md"];
    assert_eq!(asked, wanted, "each once");
    assert_eq!(
        found.left_out,
        [
            "~/.ssh/key is left out of the instructions: keys",
            "CLAUDE.md is left out of the instructions: it leads out of the project",
        ]
    );
    world.answer = Box::new(|path| match &*path.text() {
        "/etc/x.md" => ImportAnswer::Yes,
        "/home/me/y.md" => ImportAnswer::No,
        _ => ImportAnswer::Unasked,
    });
    let found = world.found().await;
    assert_eq!(paths(&found), ["AGENTS.md", "/etc/x.md"]);
    // What one file is allowed leads to no other.
    assert_eq!(found.outside[0].at, path("/etc/deeper.md"));
    assert!(found.left_out[0].contains("~/y.md") && found.left_out[0].contains("you said"));
    // One that is let in later is read then, and nothing that it imports.
    let (place, of) = (path("/home/me/z.md"), "AGENTS.md".to_owned());
    let outside = Outside { at: place.clone(), path: place, of, memory: Memory::Project };
    let (late, _) = let_in(world.places(), &outside, (ROOM, ReadFiles::default())).await;
    assert_eq!((paths(&late), late.outside), (vec!["~/z.md".to_owned()], Vec::new()));
}

#[tokio::test]
async fn files_of_the_person_lead_to_others_in_the_home_folder_but_a_project_gets_nothing_by_that()
{
    let world = World::new([
        ("/home/me/.claude/CLAUDE.md", "@~/notes.md @/etc/x.md @~/.ssh/key @~/p/docs.md"),
        ("/home/me/notes.md", "notes @more.md"),
        ("/home/me/more.md", "more"),
        ("/etc/x.md", "x"),
        ("/home/me/.ssh/key", "KEY"),
        ("/home/me/p/docs.md", "docs @~/private.md"),
        ("/home/me/private.md", "private"),
    ]);
    let found = world.found().await;
    assert_eq!(paths(&found), ["~/.claude/CLAUDE.md", "~/notes.md", "~/more.md", "docs.md"]);
    let asked: Vec<_> = found.outside.iter().map(|one| one.at.text().into_owned()).collect();
    assert_eq!(asked, ["/etc/x.md", "/home/me/private.md"]);
}

#[tokio::test]
async fn what_may_not_be_read_is_left_out_under_every_name() {
    let mut world = World::new([
        (p("AGENTS.md"), "root @alias.md @secret/a.md"),
        (p("secret/a.md"), "SECRET"),
        (p(".claude/rules/s.md"), "rule"),
    ]);
    world.host.add_link(&p("alias.md"), "secret/a.md").unwrap();
    let secret = path(&p("secret"));
    world.allowed =
        Box::new(move |path| !path.is_within(&secret) && !path.text().ends_with("s.md"));
    let found = world.found().await;
    assert_eq!(paths(&found), ["AGENTS.md"]);
    assert_eq!(found.left_out.len(), 3, "{found:?}");
    assert!(found.left_out.iter().all(|told| told.contains("a rule keeps it from being read")));
    world.allowed = Box::new(|_| false);
    assert_eq!(world.paths().await, [""; 0]);
}

#[tokio::test]
async fn what_is_no_text_or_no_file_is_named() {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    let world = World::new([
        (p("AGENTS.md"), utf16("Grüße\n@src @pipe @bad.md\n")),
        (p("CLAUDE.md"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec()),
        (p("bad.md"), [&b"\xff "[..], "Grüße ".repeat(80).as_bytes()].concat()),
        (p("src/x"), Vec::new()),
    ]);
    world.host.add_special(&p("pipe"), EntryKind::Fifo).unwrap();
    world.host.add_special(&p("a/AGENTS.md"), EntryKind::Fifo).unwrap();
    world.host.add_folder(&p("a/CLAUDE.md")).unwrap();
    let found = world.within(&p("a"), ROOM).await;
    assert!(found.files[0].text.starts_with("Grüße"), "{found:?}");
    for (name, why) in [
        ("src", "it is a folder"),
        ("pipe", "no regular file"),
        ("CLAUDE.md", "PNG"),
        ("a/AGENTS.md", "no regular file"),
        ("a/CLAUDE.md", "it is a folder"),
        ("bad.md", "no UTF-8"),
    ] {
        let told = found.left_out.iter().filter(|told| told.starts_with(name));
        assert!(told.clone().count() == 1 && told.clone().all(|t| t.contains(why)), "{found:#?}");
    }
}

#[tokio::test]
async fn however_much_there_is_it_stays_within_the_room_and_each_cut_is_told() {
    let world = World::new([
        (p("AGENTS.md"), format!("small @big.md x{}", "é".repeat(50_000))),
        (p("big.md"), "big ".repeat(100_000)),
        (p("CLAUDE.md"), "short".to_owned()),
    ]);
    let found = world.found().await;
    let marks = 2 * 100;
    assert!(found.bytes() > ROOM - 10 && found.bytes() < ROOM + marks, "{}", found.bytes());
    let [first, big, short] = &found.files[..] else { panic!("{:?}", paths(&found)) };
    assert_eq!((short.left_out, &*short.text), (0, "short"));
    for file in [first, big] {
        let mark = format!(
            "[{} bytes more are left out here: read {} for all of it]",
            file.left_out, file.path
        );
        assert!(file.left_out > 80_000 && file.text.ends_with(&mark), "{mark}");
        let told = format!("{} bytes of {} are left out", file.left_out, file.path);
        assert_eq!(found.left_out.iter().filter(|text| text.starts_with(&told)).count(), 1);
    }
    let (text, _) = first.text.rsplit_once('\n').unwrap();
    assert!(text.ends_with('é'), "the character at the cut is whole or gone");
    assert_eq!(world.within(&p(""), 0).await.files[0].text.lines().next(), Some(""));

    let many = (0..3_000).map(|n| format!("@f{n}.md")).collect::<Vec<_>>().join("\n");
    let mut files = vec![(p("AGENTS.md"), many)];
    files.extend((0..3_000).map(|n| (p(&format!("f{n}.md")), format!("{n}"))));
    let found = World::new(files).found().await;
    assert_eq!((found.files.len(), found.left_out.len()), (50, 1));
    assert!(found.left_out[0].contains("50 files are the most"), "{found:?}");
}

#[tokio::test]
async fn rules_with_paths_wait_and_others_count_from_the_start() {
    let rule = "---\npaths: [\"src/**\"]\n---\nrule @more.md";
    let world = World::new([
        (p(".claude/rules/a.md"), rule),
        (p(".claude/rules/more.md"), "more"),
        (p(".claude/rules/bad.md"), "---\npaths: [x\n---\nbad"),
        (p(".claude/rules/empty.md"), "---\npaths: x\n---\n"),
    ]);
    world.host.add_link(&p(".claude/rules/out.md"), "/etc/x.md").unwrap();
    world.host.add_file("/etc/x.md", "x").unwrap();
    let (found, seen) = at_start(world.places(), &[], &path(&p("")), ROOM).await;
    assert_eq!(paths(&found), [".claude/rules/bad.md", ".claude/rules/more.md"]);
    let [waits] = &found.rules[..] else { panic!("{:?}", found.rules) };
    assert_eq!((&*waits.file.path, &*waits.globs[0]), (".claude/rules/a.md", "src/**"));
    assert_eq!(waits.base, path("/home/me/p"));
    assert!(found.left_out.iter().any(|told| told.contains("counts for every file")), "{found:?}");
    assert!(found.left_out.iter().any(|told| told.starts_with(".claude/rules/out.md is left out")));
    let why = Why::Rule { of: "src/x".into(), globs: waits.globs.clone() };
    let (due, _) = by_rule(world.places(), waits, why.clone(), (ROOM, seen)).await;
    // What it imports was read already.
    assert_eq!((paths(&due), &due.files[0].why), (vec![".claude/rules/a.md".to_owned()], &why));
}

#[tokio::test]
async fn a_folder_gives_what_it_has_once() {
    let mut world = World::new([
        (p("AGENTS.md"), "root"),
        (p("a/AGENTS.md"), "in a @more.md @../AGENTS.md"),
        (p("a/more.md"), "more"),
        (p("a/.claude/rules/r.md"), "---\npaths: '*.rs'\n---\nrule of a"),
        ("/more/AGENTS.md".into(), "further"),
    ]);
    world.further = vec![path("/more")];
    let (_, seen) = at_start(world.places(), &[], &path(&p("")), ROOM).await;
    let folders = [path(&p("a")), path(&p("b")), path("/more")];
    let read = in_folders(world.places(), &folders, "a/x.rs", (ROOM, seen)).await;
    assert_eq!(paths(&read.0), ["a/AGENTS.md", "a/more.md", "/more/AGENTS.md"]);
    assert_eq!(read.0.files[0].why, Why::Touch { of: "a/x.rs".into() });
    assert_eq!(read.0.rules[0].base, path(&p("a")));
    let again = in_folders(world.places(), &folders, "a/x.rs", (ROOM, read.1)).await.0;
    assert_eq!(paths(&again), [""; 0]);
}

#[tokio::test]
async fn a_project_that_is_reached_through_a_link_is_read_all_the_same() {
    let world = World::new([("/real/AGENTS.md", "root\n@docs/a.md"), ("/real/docs/a.md", "a")]);
    world.host.add_link("/home/me/p", "/real").unwrap();
    assert_eq!(world.paths().await, ["AGENTS.md", "docs/a.md"]);
}
