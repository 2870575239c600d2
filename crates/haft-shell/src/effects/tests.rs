//! What parts are told to do.

use super::*;
use crate::LOOKING;

fn setting() -> Setting {
    let facts =
        GitFacts { no_fetches: true, no_filters: true, no_drivers: true, no_signatures: true };
    Setting {
        cwd: "/w".into(),
        home: "/h".into(),
        git: ["/w", "/w/sub"].map(|folder| (folder.to_owned(), facts)).into(),
        git_is_held: true,
        variables: LOOKING.map(|(name, value)| (name.into(), value.into())).into(),
        ..Setting::default()
    }
}

fn reading(text: &str) -> Reading {
    read(text, &setting(), &mut || true).unwrap_or_default()
}

/// Scripts, and what of each part is told: its program, whether it only reads, what it does.
#[test]
fn parts_say_what_they_do() {
    let cases: &[(&str, &[&str])] = &[
        ("ls -la", &["ls true [Reads(Path(\"/w\"))]"]),
        (
            "cd sub && cat x",
            &["cd true [Reads(Path(\"/w/sub\"))]", "cat true [Reads(Path(\"/w/sub/x\"))]"],
        ),
        (
            "cd sub; cat ../x",
            &[
                "cd true [Reads(Path(\"/w/sub\"))]",
                "cat true [Reads(Path(\"/w/../x\")), Reads(Path(\"/w/sub/../x\"))]",
            ],
        ),
        ("x=~/a; cat \"$x\"", &["- true []", "cat true [Reads(Path(\"/h/a\"))]"]),
        ("cat src/*.rs", &["cat true [Reads(Below(\"/w/src\"))]"]),
        ("echo a > b", &["echo false [Writes(Path(\"/w/b\"))]"]),
        ("cat <> b", &["cat false [Writes(Path(\"/w/b\"))]"]),
        ("echo '<>' 3<>\"c d\"", &["echo false [Writes(Path(\"/w/c d\"))]"]),
        (
            "timeout 5 env rm -r a",
            &["timeout false []", "env false []", "rm false [Destroys(Path(\"/w/a\"))]"],
        ),
        (
            "find a -exec rm {} +",
            &[
                "find false [Reads(Path(\"/w/a\"))]",
                "rm false [Destroys(Below(\"/w/a\")), Destroys(Below(\"/w/a\"))]",
            ],
        ),
        (
            "bash -c 'ls; rm x'",
            &[
                "bash false []",
                "ls true [Reads(Path(\"/w\"))]",
                "rm false [Destroys(Path(\"/w/x\"))]",
            ],
        ),
        ("f() { rm x; }; f", &["rm false [Destroys(Path(\"/w/x\"))]", "f true []"]),
        // Where it is a folder, what is made is in it.
        (
            "cp a b/c",
            &["cp false [Reads(Path(\"/w/a\")), Writes(Path(\"/w/b/c\")), \
               Writes(Path(\"/w/b/c/a\"))]"],
        ),
        ("\"$x\" y", &["- false [Anything]"]),
    ];
    for (text, wanted) in cases {
        let told = |part: &Part| {
            let name = part.program.as_deref().unwrap_or("-");
            format!("{name} {} {:?}", part.read_only, part.effects)
        };
        let found: Vec<String> = reading(text).parts.iter().map(told).collect();
        assert_eq!(found, *wanted, "{text}");
    }
}

#[test]
fn git_asks_what_is_known_of_its_folder() {
    let found = reading("cd /x/y && git status");
    assert!(!found.read_only);
    assert_eq!(found.git_folders, ["/x/y".to_owned()].into());
    assert!(reading("cd sub && git status").read_only);
    // A configuration may include other files.
    for text in
        ["config --list", "config -l", "config list", "config get a.b", "config a.b", "var -l"]
    {
        assert!(reading(&format!("git {text}")).read_only, "{text}");
        let found = reading(&format!("git -C /x {text}"));
        assert!(!found.read_only && found.git_folders.contains("/x"), "{text}");
    }
}

#[test]
fn what_the_shell_evaluates_is_no_reading() {
    let odd = [
        "declare -a a; declare a=\"$v\"",
        "a=(1); declare a=\"$v\"",
        "read -a a < f; local a=\"$v\"",
        "declare PIPESTATUS=\"$v\"",
        "mapfile a < f; readonly a=\"$v\"",
        "x[y]=1",
        "a=([y]=1)",
        "a=($x)",
        "[[ $x -eq 0 ]]",
        "x=$(cat f); [[ x -eq 0 ]]",
        "i=0; i=$x; [[ $i -eq 0 ]]",
        "for ((i=0;i<3;i++)); do i=$x; done",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); read i; done",
        "echo $((x))",
        "test -v \"$x\"",
        "[ -n a -a -v \"$x\" ]",
        "printf \"$x\" y",
        "printf %n y",
        "echo ${x@P}",
        "echo ${x:y}",
        "echo ${x[y]}",
    ];
    for text in odd {
        assert!(!reading(text).read_only, "{text}");
    }
    let fine = [
        "i=0; i=$((i+1)); echo $i",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
        "for ((i=0;i<3;i++)); do echo $i; done",
        "n=$(ls | wc -l); [[ $n -gt 3 ]]",
        "a=(x y); for f in \"${a[@]}\"; do echo \"$f\"; done",
        "[[ ${#x} -gt 3 ]]",
        "echo ${x:0:7} ${x:-y} ${x%.rs}",
        "f() { local x=\"$1\"; echo \"$x\"; }; f a",
    ];
    for text in fine {
        let found = reading(text);
        assert!(found.read_only, "{text} {found:?}");
    }
}

/// What is known of variables and folders holds on every way.
#[test]
fn a_path_is_only_known_where_it_is_certain() {
    let gone = reading("cd s && cd ../t").parts.pop().map(|part| part.effects);
    assert_eq!(gone, Some(vec![Effect::Reads(Operand::Path("/w/t".into()))]));
    let cases = [
        ("x=a; cat $x", "[Path(\"/w/a\")]"),
        ("if b; then x=a; fi; cat $x", "[Unknown]"),
        ("x=a; x=b; cat $x", "[Path(\"/w/b\")]"),
        ("x=a; true && x=b; cat $x", "[Path(\"/w/a\"), Path(\"/w/b\")]"),
        ("x=a; (x=b); cat $x", "[Path(\"/w/a\")]"),
        ("x=a; f() { x=b; }; f; cat $x", "[Unknown]"),
        ("for x in a b; do cat $x; done", "[Path(\"/w/a\"), Path(\"/w/b\")]"),
        ("x=a; for i in 1; do cat $x; x=b; done", "[Unknown]"),
        ("x=a; while read x; do cat \"$x\"; done", "[Unknown]"),
        ("x=a; eval x=b; cat \"$x\"", "[Unknown]"),
        ("cd s && cat a", "[Path(\"/w/s/a\")]"),
        ("cd s; cat a", "[Path(\"/w/a\"), Path(\"/w/s/a\")]"),
        ("cd s || exit; cat a", "[Path(\"/w/a\"), Path(\"/w/s/a\")]"),
        ("(cd s && cat a)", "[Path(\"/w/s/a\")]"),
        ("(cd s); cat a", "[Path(\"/w/a\")]"),
        ("cd \"$x\" && cat a", "[Unknown]"),
        ("cd / && cat a", "[Path(\"/a\")]"),
        ("! cd s && cat a", "[Path(\"/w/a\"), Path(\"/w/s/a\")]"),
        ("for d in a b; do cd $d; done; cat a", "[Unknown]"),
        ("cd s | cat a", "[Path(\"/w/a\")]"),
        ("cat ~/a $HOME/b", "[Path(\"/h/a\"), Path(\"/h/b\")]"),
        ("cat \"$(pwd)/a\"", "[Path(\"/w/a\")]"),
        ("find s -type f -print0 | xargs -0 cat", "[Below(\"/w/s\"), Below(\"/w/s\")]"),
        ("find s | xargs cat", "[Unknown, Unknown]"),
        ("find s t -print0 | xargs -0 cat", "[Unknown, Unknown]"),
        ("find s -print0 | tr a b | xargs -0 cat", "[Unknown, Unknown]"),
        ("cat y | { find s -print0 & xargs -0 cat & }", "[Unknown, Unknown]"),
        ("cat y | { (find s -print0); (xargs -0 cat); }", "[Unknown, Unknown]"),
        ("find s -print0 | xargs -0 -a y cat", "[Unknown, Unknown]"),
        ("find s -print0 | xargs -0 cat < y", "[Unknown, Unknown]"),
        ("cat s/*.rs /x/y*", "[Below(\"/w/s\"), Below(\"/x\")]"),
    ];
    for (text, wanted) in cases {
        let parts = reading(text).parts;
        let part = parts.iter().rfind(|part| part.program.as_deref() == Some("cat"));
        let effects = part.map(|part| part.effects.clone()).unwrap_or_default();
        let reads = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reads(operand) => Some(operand),
            _ => None,
        });
        assert_eq!(format!("{:?}", reads.collect::<Vec<_>>()), wanted, "{text}");
    }
}

/// What stands behind a name that is not known may lead anywhere.
#[test]
fn a_path_that_climbs_out_of_a_pattern_is_not_known() {
    let unknown = [
        "cat src*/../../home/.ssh/id_rsa",
        "cat < s*/../../x",
        "x=$(< s*/../..)",
        "cat s*\"/..\"/x",
        "cat s*/.\".\"/x",
        "cat s*/\".\"*/x",
        "cat s/.*/x",
        "cat s/\".\"*/x",
        "cat .*",
        "cat s/.?/x",
        "cat s/..*/x",
        "for d in s*; do cat \"$d/../../home/.ssh/id_rsa\"; done",
        "for d in s/*/; do cat \"$d\"..; done",
        "for d in s/*/; do cat \"$d\".*; done",
        "find src -maxdepth 0 -exec cat {}/../../x \\;",
        "find src* -exec cat {}/../x \\;",
        "find s*/../.. -exec cat {} \\;",
        "find s -exec cat {}/../{} \\;",
        "find s /x -exec cat {} +",
        "find s .. -exec cat {} +",
        "find s -print0 | xargs -0 -I% cat %/../../x",
        "truncate -s 0 src*/../../out/o.txt",
        "echo x > src*/../../o",
        "cp a.txt sr*/../../out/",
        "grep -r C s*/../../home",
        "sed -i/tmp/x/* s/a/b/ f",
        "sed --in-place='*.o' s/a/b/ f",
        "sed -i\"$x\" s/a/b/ f",
    ];
    for text in unknown {
        let found = reading(text);
        let mut effects = found.parts.iter().flat_map(|part| &part.effects);
        let is_told = |effect: &Effect| {
            matches!(effect, Effect::Reads(Operand::Unknown) | Effect::Writes(Operand::Unknown))
        };
        assert!(effects.any(is_told), "{text} {found:?}");
    }
    let below = [
        ("cat l*/id_rsa", "/w"),
        ("cat s/.e*/x", "/w/s"),
        ("find s -exec cat {}/id_rsa \\;", "/w/s"),
        ("find s* -exec cat {} \\;", "/w"),
        ("find s/a s/b -exec cat {} +", "/w/s"),
        ("find s t -exec cat {} +", "/w"),
        ("for d in s/*; do cat \"$d/x\"; done", "/w/s"),
    ];
    for (text, folder) in below {
        let parts = reading(text).parts;
        let part = parts.iter().rfind(|part| part.program.as_deref() == Some("cat")).unwrap();
        let wanted = Effect::Reads(Operand::Below(folder.to_owned()));
        assert!(part.effects.iter().all(|effect| *effect == wanted), "{text}");
        assert!(!part.effects.is_empty(), "{text}");
    }
}

/// Commands, and what they read.
const READ: &[(&str, &str)] = &[
    ("grep -r x", "[Path(\"/w\")]"),
    ("grep -R x", "[Path(\"/w\")]"),
    ("grep --recursive -e x", "[Path(\"/w\")]"),
    ("grep -r x s", "[Path(\"/w/s\")]"),
    ("grep x", "[]"),
    ("look x f", "[Path(\"/w/f\")]"),
    ("[[ -f ~/.ssh/x ]]", "[Path(\"/h/.ssh/x\")]"),
    ("[[ ~/.ssh/x -nt y ]]", "[Path(\"/h/.ssh/x\"), Path(\"/w/y\")]"),
    ("[[ y -nt ~/.ssh/x ]]", "[Path(\"/w/y\"), Path(\"/h/.ssh/x\")]"),
    ("[[ ! -f ~/.ssh/x && -n a ]]", "[Path(\"/h/.ssh/x\")]"),
    ("[ -f ~/.bashrc ]", "[Path(\"/h/.bashrc\")]"),
    ("test -f ~/.bashrc", "[Path(\"/h/.bashrc\")]"),
    ("[ -x /usr/bin/git ]", "[]"),
    ("[[ -x /usr/bin/git ]]", "[]"),
    ("[ -f /usr/bin/../../h/x ]", "[Path(\"/usr/bin/../../h/x\")]"),
    ("[ -f /usr/bin/.. ]", "[Path(\"/usr/bin/..\")]"),
    ("cat /proc/$PPID/environ", "[Below(\"/proc\"), Unknown]"),
    ("cat /proc/$$/environ", "[Below(\"/proc\"), Unknown]"),
    ("cat /root/$((1))", "[Below(\"/root\"), Unknown]"),
    ("cat \"$PWD/$x\"", "[Unknown]"),
    ("cat \"src/$x\"", "[Unknown]"),
    ("cat \"../$x\"", "[Below(\"/w/..\"), Unknown]"),
    ("echo /root/*", "[Below(\"/root\")]"),
    ("echo ~/.ssh/*", "[Below(\"/h/.ssh\")]"),
    ("for f in ~/.ssh/*; do :; done | echo ~/.ssh/*", "[Below(\"/h/.ssh\")]"),
    ("echo ../*", "[Below(\"/w/..\")]"),
    ("echo src/*", "[]"),
    ("for f in /w/src/*; do echo $f; done", "[]"),
    ("diff a /dev/null", "[Path(\"/w/a\")]"),
    ("tail -f /dev/null", "[]"),
    ("cat /dev/stdin/x", "[Path(\"/dev/stdin/x\")]"),
    ("users ~/.ssh/x", "[Path(\"/h/.ssh/x\")]"),
    ("who ~/.ssh/x", "[Path(\"/h/.ssh/x\")]"),
    ("uptime ~/.ssh/x", "[Path(\"/h/.ssh/x\")]"),
    ("git show HEAD:s/f", "[Path(\"/w/s/f\")]"),
    ("git show :s/f", "[Path(\"/w/s/f\")]"),
    ("git show", "[Path(\"/w\")]"),
    ("git show \"$x\"", "[Path(\"/w\")]"),
    ("git show HEAD", "[Path(\"/w/HEAD\"), Path(\"/w\")]"),
    ("git show --stat HEAD", "[]"),
    ("git show HEAD -- f", "[Path(\"/w/HEAD\"), Path(\"/w/f\")]"),
    ("git blame s/f", "[Path(\"/w/s/f\")]"),
    ("git annotate -L 1,2 f", "[Path(\"/w/f\")]"),
    ("git log -p -- f", "[Path(\"/w/f\")]"),
    ("git log -p -- 's/*.rs'", "[Below(\"/w/s\")]"),
    ("git log -p -- :/f", "[Unknown]"),
    ("git log -p -- . ':!f'", "[Path(\"/w\"), Path(\"/w\")]"),
    ("git log -p", "[Path(\"/w\")]"),
    ("git log --oneline -- f", "[]"),
    ("git cat-file -p HEAD:f", "[Path(\"/w/f\")]"),
    ("git cat-file -t HEAD:f", "[]"),
    ("git cat-file blob HEAD:f", "[Path(\"/w/blob\"), Path(\"/w/f\"), Path(\"/w\")]"),
    ("git -C sub blame f", "[Path(\"/w/sub\"), Path(\"/w/sub/f\")]"),
    ("cargo metadata --no-deps", "[Path(\"/w/Cargo.toml\")]"),
    ("cd s && cargo read-manifest", "[Path(\"/w/s/Cargo.toml\")]"),
    ("cargo locate-project", "[Path(\"/w/Cargo.toml\")]"),
];

/// What programs read without being told so in an operand.
#[test]
fn what_is_read_is_told() {
    for (text, wanted) in READ {
        let parts = reading(text).parts;
        let effects = parts.last().map(|part| part.effects.clone()).unwrap_or_default();
        let reads = effects.into_iter().filter_map(|effect| match effect {
            Effect::Reads(operand) => Some(operand),
            _ => None,
        });
        assert_eq!(format!("{:?}", reads.collect::<Vec<_>>()), *wanted, "{text}");
    }
    let listed = Effect::Reads(Operand::Below("/h/.ssh".into()));
    assert!(reading("for f in ~/.ssh/*; do echo $f; done").parts[0].effects.contains(&listed));
    for text in
        ["git diff -- s/f", "git diff HEAD s/f", "git grep x -- s/f", "git grep x HEAD -- s/f"]
    {
        let file = Effect::Reads(Operand::Path("/w/s/f".into()));
        assert!(reading(text).parts[0].effects.contains(&file), "{text}");
    }
}

/// A name of a file that begins with a dash does no harm where no option of the program does.
#[test]
fn a_pattern_may_be_options_of_programs_that_have_no_harmful_ones() {
    for text in [
        "ls *.txt",
        "ls -d */",
        "head -n 5 *.md",
        "cat *.txt",
        "stat *",
        "tail -5 *.log",
        "wc -l *.rs",
        "du -sh *",
        "md5sum *",
        "cat $x",
        "head -n $x f",
    ] {
        assert!(reading(text).read_only, "{text}");
    }
    for text in ["sort *.txt", "file *", "tree *", "rg x *", "sort $x", "lspci *", "uniq $x"] {
        assert!(!reading(text).read_only, "{text}");
    }
}

/// What is known of a repository, by letters: fetches, filters, drivers, signatures ruled out.
fn with_git(text: &str, ruled_out: &str) -> bool {
    let has = |letter| ruled_out.contains(letter);
    let facts = GitFacts {
        no_fetches: has('o'),
        no_filters: has('f'),
        no_drivers: has('d'),
        no_signatures: has('s'),
    };
    let setting = Setting { git: [("/w".to_owned(), facts)].into(), ..setting() };
    read(text, &setting, &mut || true).is_ok_and(|reading| reading.read_only)
}

#[test]
fn a_setting_of_git_counts_for_what_it_makes_git_start() {
    for (text, needed) in [
        ("git log --oneline --no-textconv --no-ext-diff", "os"),
        ("git log -p", "ods"),
        ("git range-diff --no-textconv --no-ext-diff a b", "ods"),
        ("git rev-parse HEAD", "o"),
        ("git ls-files", "o"),
        ("git ls-files -m", "of"),
        ("git ls-files --cached -om", "of"),
        ("git status", "of"),
        ("git diff --cached", "od"),
        ("git diff", "ofd"),
        ("git diff -- --cached", "ofd"),
        ("git diff -- --no-textconv --no-ext-diff", "ofd"),
        ("git blame x", "ofd"),
    ] {
        assert!(with_git(text, needed), "{text}: {needed} is enough");
        for left in needed.chars() {
            let others: String = "ofds".chars().filter(|c| *c != left).collect();
            assert!(!with_git(text, &others), "{text} with {left} not ruled out");
        }
    }
}

#[test]
fn paths_behind_revisions_are_told() {
    let found = reading("cd sub && git show HEAD:a/b").revisions;
    assert_eq!(found, [("/w/sub".to_owned(), "a/b".to_owned())].into());
}

#[test]
fn what_a_program_reads_through_words_that_may_be_options_is_not_known() {
    for (text, read) in [
        ("wc -l *", "[Reads(Below(\"/w\"))]"),
        ("wc -l */*", "[Reads(Below(\"/w\")), Reads(Unknown)]"),
        ("grep x $(cat list)", "[Reads(Unknown)]"),
        ("cat *", "[Reads(Below(\"/w\"))]"),
        ("ls -d .*", "[Reads(Below(\"/w\"))]"),
        ("ls .*", "[Reads(Unknown)]"),
        ("git diff $(git merge-base a b)", "[Reads(Below(\"/w\")), Reads(Path(\"/w\"))]"),
    ] {
        let reading = reading(text);
        let last = reading.parts.iter().find(|part| part.text == text);
        let told = last.map(|part| format!("{:?}", part.effects));
        assert!(reading.read_only, "{text}");
        assert_eq!(told.as_deref(), Some(read), "{text}");
    }
}

#[test]
fn lists_and_links_are_told_of_programs() {
    for (text, lists, follows) in [
        ("ls -la", true, false),
        ("cat x", false, false),
        ("cd x", true, false),
        ("[ -f x ]", true, false),
        ("find . -name x", true, false),
        ("find -L .", true, true),
        ("grep -rn x .", false, false),
        ("grep -nR x .", false, true),
        ("grep --dereference-recursive x", false, true),
        ("rg -L x", false, true),
        ("du -sL .", true, true),
        ("diff -r a b", false, true),
    ] {
        let part = &reading(text).parts[0];
        assert_eq!((part.lists, part.follows), (lists, follows), "{text}");
    }
    assert!(reading("find . -exec cat {} +").parts[1].follows);
}

#[test]
fn what_a_part_does_tells_more_than_where_its_output_goes() {
    for (text, why) in [
        ("npm test > f", "it runs this project's tests"),
        ("rm x > f", "it removes x"),
        ("ls > f", "it writes /w/f"),
        // What is not there but for a redirect is not said.
        ("git branch > f", "it writes /w/f"),
        ("ls", "it only reads"),
    ] {
        assert_eq!(reading(text).parts[0].why, why, "{text}");
    }
}

#[test]
fn what_a_script_makes_of_its_values_is_known() {
    for (text, path) in [
        ("x=a:~/k; cat ${x#a:}", "/h/k"),
        ("x=~/kk; cat \"${x%k}\"", "/h/k"),
        ("x=~/Xk; cat \"${x/X}\"", "/h/k"),
        ("x=~/k.txt; cat \"${x%.*}\"", "/h/k"),
        ("x=aa/h/k; cat \"${x:2}\"", "/h/k"),
        ("x=/h/K; cat \"${x,,}\"", "/h/k"),
    ] {
        let parts = reading(text).parts;
        let wanted = [Effect::Reads(Operand::Path(path.into()))];
        assert_eq!(parts.last().unwrap().effects, wanted, "{text}");
    }
    for text in ["cat \"${x#a:}\"", "x=/h/k; cat \"${x#\"/h\"}\"", "x=/h/K; cat \"${x/k/a}\""] {
        let parts = reading(text).parts;
        let unknown = [Effect::Reads(Operand::Unknown)];
        assert_eq!(parts.last().unwrap().effects, unknown, "{text}");
    }
}
