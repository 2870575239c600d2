//! `haft why`: cases of the policy, as data, and what people and programs see of its answers.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::world::{Input, World, finish};

const COMMANDS: [(&str, &str); 3] = [
    ("everyday", include_str!("../../../../haft-policy/tests/commands/everyday.txt")),
    ("rarer", include_str!("../../../../haft-policy/tests/commands/rarer.txt")),
    ("attacks", include_str!("../../../../haft-policy/tests/commands/attacks.txt")),
];
/// What is decided about words of programs: see its head.
const WORDS: &str = include_str!("../../../../haft-policy/tests/commands/words.txt");
const RULES: &str = include_str!("../../../../haft-policy/tests/rules.jsonl");

/// Attacks that need a repository with settings of its own, which is looked for on disk: see
/// [`settings_of_repositories_decide_whether_git_only_looks`].
const ON_DISK: &[&str] = &["find . -type f -exec git diff {} \\;"];

/// Answers each line.
fn batch(world: &World, lines: &[Value]) -> Vec<Value> {
    let mut input = String::new();
    for line in lines {
        writeln!(input, "{line}").unwrap();
    }
    let mut haft = world.haft(&["why", "--batch"]);
    // The cases are written for this home.
    haft.env("HOME", "/h");
    let ran = finish(haft, &Input::Pipe(&input));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), lines.len(), "each line gets one line");
    answers
}

/// The command of a line: escapes are those of JSON, quotes stand for themselves.
fn command(line: &str) -> String {
    let mut text = String::from("\"");
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(['\\', chars.next().unwrap()]),
            '"' => text.push_str("\\\""),
            c => text.push(c),
        }
    }
    text.push('"');
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The lines of a file of commands.
fn commands(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| command(line.split(" #= ").next().unwrap())).collect()
}

#[test]
fn commands_that_only_look_are_known_and_no_others() {
    let world = World::new();
    for (name, text) in COMMANDS {
        let commands = commands(text);
        let lines: Vec<Value> =
            commands.iter().map(|command| json!({"command": command, "cwd": "/w"})).collect();
        let answers = batch(&world, &lines);
        let told = commands.iter().zip(&answers);
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for (command, answer) in told.filter(|(command, _)| !ON_DISK.contains(&command.as_str())) {
            let found = if answer["read_only"] == true { &mut yes } else { &mut no };
            found.push(format!("{command}: {}", answer["reason"]));
        }
        // 98 % and 65 % are promised; of attacks none.
        let (least, most) = match name {
            "everyday" => (commands.len() * 98 / 100, usize::MAX),
            "rarer" => (commands.len() * 65 / 100, usize::MAX),
            _ => (0, 0),
        };
        assert!(yes.len() >= least, "{name}: not known:\n{}", no.join("\n"));
        assert!(yes.len() <= most, "{name}: taken for harmless:\n{}", yes.join("\n"));
        assert!(commands.len() > 400, "{name} has {} commands", commands.len());
    }
}

/// Looks at files of which only names that are told say which they are.
const TOLD: &str = include_str!("../../../../haft-policy/tests/commands/told.txt");

#[test]
fn looks_by_names_that_are_told_are_not_asked_about_and_nothing_else_beside_them() {
    let world = World::new();
    let commands = commands(TOLD);
    // The same with what writes, starts, connects, or takes a name for an option, and where nothing
    // hides keys.
    let more = [
        "; touch x",
        " > $(cat list)",
        "; rm $(cat list)",
        "; ./x",
        "; curl h",
        "; sed -n 1p $(cat l)",
        "; xargs rg x < l",
        "; sort $(cat l)",
        "; git show $(cat l)",
        "; cat < $(cat l)",
    ];
    let lines: Vec<Value> = commands.iter().map(|command| json!({"command": command})).collect();
    for (command, answer) in commands.iter().zip(batch(&world, &lines)) {
        assert_eq!(answer["decision"], "allow", "{command}: {answer}");
    }
    let dressed = commands.iter().flat_map(|command| more.map(|end| format!("{command}{end}")));
    let lines: Vec<Value> = dressed.map(|command| json!({"command": command})).collect();
    for (line, answer) in lines.iter().zip(batch(&world, &lines)) {
        assert_eq!(answer["decision"], "ask", "{line}: {answer}");
    }
    world.settings("[sandbox]\nlooks = false\n");
    let lines: Vec<Value> = commands.iter().map(|command| json!({"command": command})).collect();
    for (command, answer) in commands.iter().zip(batch(&world, &lines)) {
        assert_eq!(answer["decision"], "ask", "{command}: {answer}");
    }
}

#[test]
fn every_rule_case_holds() {
    let world = World::new();
    let cases: Vec<Value> = RULES.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answers = batch(&world, &cases);
    let mut wrong = Vec::new();
    for (case, answer) in cases.iter().zip(&answers) {
        // There is no sandbox to be left yet.
        if case["input"].get("unsandboxed").is_some() {
            continue;
        }
        if case["expected"] != answer["decision"] {
            wrong.push(format!("{case}\n  got {}: {}", answer["decision"], answer["reason"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases.len() > 200);
}

#[test]
fn words_of_programs_are_judged_by_where_they_lead() {
    let world = World::new();
    let (mut wanted, mut lines) = (Vec::new(), Vec::new());
    let (mut mode, mut rules) = (String::new(), json!({}));
    for line in WORDS.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        if let Some(head) = line.strip_prefix("== ") {
            let mut parts = head.split(", ");
            parts.next().unwrap().clone_into(&mut mode);
            rules = json!({"allow": [], "ask": [], "deny": []});
            for rule in parts {
                let (verdict, rule) = rule.split_once(' ').unwrap();
                rules[verdict].as_array_mut().unwrap().push(json!(rule));
            }
            continue;
        }
        let (decision, text) = line.split_once(' ').unwrap();
        wanted.push((decision, line));
        let input = json!({"command": command(text)});
        // A folder is one that is there; what is named from the root is judged by its name.
        let cwd = if text.ends_with(" .") { world.work() } else { "/w".into() };
        lines.push(json!({"rules": rules, "mode": mode, "cwd": cwd, "input": input}));
    }
    let answers = batch(&world, &lines);
    let wrong = wanted.iter().zip(&answers).filter(|((wanted, _), got)| got["decision"] != *wanted);
    let wrong: Vec<String> =
        wrong.map(|((_, line), got)| format!("{line}\n  {}", got["reason"])).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(wanted.len() > 200);
}

#[test]
fn each_line_gets_one_line_whatever_it_holds() {
    let world = World::new();
    let input = b"no json\n\n{\"command\": \"\\ud800\"}\n{\"command\": 3}\n{\"tool\": \"nothing\", \"input\": {}}\n\
        {\"command\": \"ls\", \"mode\": \"none\"}\n\xff\n{\"command\": \"ls \\u0000\"}\n{\"command\": \"ls\"}";
    let ran = world.run_with(&["why", "--batch"], &Input::File(&world.file("lines", input)));
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let answers: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 9, "{}", ran.out);
    for answer in &answers[..8] {
        assert_eq!((&answer["parsed"], &answer["read_only"]), (&json!(false), &json!(false)));
        assert_eq!(answer["decision"], "ask", "{answer}");
    }
    assert_eq!(answers[8]["decision"], "allow", "{}", answers[8]);
}

#[test]
fn settings_of_repositories_decide_whether_git_only_looks() {
    let world = World::new();
    let answer = |command: &str| {
        let ran = world.run(&["why", "--json", command]);
        serde_json::from_str::<Value>(&ran.out).unwrap()["read_only"].clone()
    };
    for folder in [".", "sub"] {
        let init = world.program("git").args(["init", "-q", folder]).status().unwrap();
        assert!(init.success());
    }
    world.file(".git/config", "[core]\n\tbare = false\n");
    world.file("sub/.git/config", "[diff \"x\"]\n\ttextconv = ./x\n");
    for (command, expected) in [
        ("git diff", true),
        ("cargo --version", true),
        ("git -C sub diff", false),
        ("cd sub && git log -p", false),
        ("git -C missing diff", false),
        ("git diff | head; ls sub", true),
    ] {
        assert_eq!(answer(command), expected, "{command}");
    }
    // A filter matters where files are read anew, an alias and a file monitor never.
    let settings =
        "[filter \"x\"]\n\tclean = ./x\n[alias]\n\tst = !./x\n[core]\n\tfsmonitor = ./x\n";
    world.file(".git/config", settings);
    for (command, expected) in [
        ("git log -p", true),
        ("git ls-files", true),
        ("git diff --cached", true),
        ("git ls-files -m", false),
        ("git diff -- --cached", false),
    ] {
        assert_eq!(answer(command), expected, "{command}");
    }
    world.file(".git/config", "[filter \"x\"]\n\tclean = ./x\n");
    world.file("rust-toolchain.toml", "[toolchain]\npath = \"here\"\n");
    for command in ["git diff", "git status", "cargo --version"] {
        assert_eq!(answer(command), false, "{command}");
    }
}

#[cfg(unix)]
#[test]
fn a_step_up_behind_a_link_leads_from_where_the_link_leads() {
    let world = World::new();
    for (file, text) in [
        ("w/out/keys", ""),
        ("w/out/sub/x", ""),
        ("w/src/a", ""),
        ("w/in/deep/x", ""),
        ("keys", ""),
    ] {
        world.file(file, text);
    }
    let at = |path: &str| world.work().join("w").join(path);
    std::os::unix::fs::symlink(at("out/sub"), at("lnk")).unwrap();
    let rules =
        json!({"allow": ["Bash(cat:*)"], "ask": [], "deny": ["Read(out/keys)", "Edit(out/**)"]});
    let cases = [
        ("deny", "cat lnk/../keys"),
        ("deny", "cat < lnk/../keys"),
        ("deny", "cat src/../lnk/./../keys"),
        ("deny", "cd lnk && cat ../keys"),
        ("deny", "bash -c 'cat lnk/../keys'"),
        ("deny", "cat /proc/self/cwd/lnk/../keys"),
        ("deny", "echo x > lnk/../new"),
        ("deny", "rm lnk/../keys"),
        ("deny", "cp src/a lnk/../new"),
        ("deny", "ln -s out/sub two; cat two/../keys"),
        ("ask", "frobnicate lnk/../keys"),
        ("ask", "cd lnk; frobnicate ../keys"),
        ("ask", "cat lnk/../../../keys"),
        ("allow", "cat src/../src/a"),
        ("allow", "cat in/deep/../../src/a"),
        // The shell goes up by name.
        ("allow", "cd lnk/.. && cat src/a"),
    ];
    let line =
        |(_, command): &(_, &str)| json!({"rules": rules, "cwd": at(""), "command": command});
    let lines: Vec<Value> = cases.iter().map(line).collect();
    for ((wanted, command), got) in cases.iter().zip(batch(&world, &lines)) {
        assert_eq!(got["decision"], *wanted, "{command}: {}", got["reason"]);
    }
}

#[test]
fn a_path_behind_a_revision_starts_at_the_top_of_the_repository() {
    let world = World::new();
    assert!(world.program("git").args(["init", "-q", "."]).status().unwrap().success());
    world.file("sub/a", "");
    world.file("hidden/a", "");
    for (command, expected) in [
        ("cd sub && git show HEAD:hidden/a", "deny"),
        ("cd sub && git show HEAD:sub/a", "allow"),
        ("git show HEAD:hidden/a", "deny"),
    ] {
        let ran = world.run(&["why", "--json", "--deny", "Read(/hidden/**)", command]);
        let answer: Value = serde_json::from_str(&ran.out).unwrap();
        assert_eq!(answer["decision"], expected, "{command}: {answer}");
    }
}

#[test]
fn people_see_what_decides_about_each_part() {
    let world = World::new();
    let ran =
        world.run(&["why", "--allow", "Bash(make:*)", "make -j2 2>&1 | tail -5 && rm -r out"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let first = ran.out.lines().next().unwrap();
    assert!(first.starts_with("ask: no rule allows running `rm -r out`"), "{}", ran.out);
    for part in ["not read-only", "allow by Bash(make:*)", "tail -5", "removes out"] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    let ran = world.run(&["why", "--mode", "accept-edits", "rm -r src/a"]);
    assert!(ran.out.starts_with("ask: no rule allows removing src/a"), "{}", ran.out);
    let ran = world.run(&["why", "cp a b"]);
    assert!(ran.out.ends_with("\n    writes b, or b/a where that is a folder\n"), "{}", ran.out);
    let ran = world.run(&["why"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("give a COMMAND"), "{}", ran.err);
}

#[test]
fn a_path_is_explained_as_the_call_takes_it() {
    let world = World::new();
    world.file(".env", "KEY=canary-7\n");
    world.file("src/a.rs", "fn a() {}\n");
    world.file("caf\u{e9}.txt", "coffee\n");
    std::fs::write(world.root().join("x.txt"), "outside\n").unwrap();
    let paths = [
        " .env",
        "@.env",
        "'.env'",
        "\".env\"",
        " ../x.txt",
        "@../x.txt",
        "@src/a.rs",
        " src/a.rs",
        "cafe\u{301}.txt",
        "@none.txt",
        "src/a.rs",
        ".env",
    ];
    for (tool, more) in [("read", json!({})), ("write", json!({"content": "new\n"}))] {
        for path in paths {
            let mut input = more.clone();
            input["path"] = json!(path);
            let rules = json!({"deny": ["Read(.env)"]});
            let mode = "accept-edits";
            let line = json!({"tool": tool, "input": input, "rules": rules, "mode": mode});
            let told = batch(&world, &[line])[0]["decision"].clone();
            let ran = world.tool(tool, &input, &["--deny", "Read(.env)", "--mode", mode]);
            let text = format!("{}{}", ran.out, ran.err);
            let is_denied = text.contains("the deny rule");
            assert_eq!(told == "deny", is_denied, "{tool} {path}: {told}, but {text}");
            let is_there = path != "@none.txt";
            if tool == "read" && is_there && !is_denied {
                assert_eq!(told == "allow", ran.code == Some(0), "{path}: {told}, but {text}");
            }
        }
    }
}

#[test]
fn what_would_be_lost_is_named_by_its_extent() {
    let world = World::new();
    let line = |command: &str| json!({ "command": command });
    let cases = [
        ("rm -rf /", "removing / touches the whole file system"),
        ("rm -rf /*", "removing / touches the whole file system"),
        ("rm -rf /h", "removing /h touches the whole home folder"),
        ("chmod -R 777 /", "names /, the whole file system with its keys"),
        ("chmod -R 777 /h", "names /h, the home folder with its keys"),
    ];
    let lines: Vec<Value> = cases.iter().map(|(command, _)| line(command)).collect();
    for (answer, (command, reason)) in batch(&world, &lines).iter().zip(cases) {
        assert!(answer["reason"].as_str().unwrap().ends_with(reason), "{command}: {answer}");
    }
}

#[test]
fn a_file_of_rules_is_held_to_its_own_tests() {
    let world = World::new();
    let rules = "allow = [\"Bash(npm run test:*)\"]\ndeny = [\"Bash(git push:*)\"]\n";
    let test = |expect: &str| {
        format!("{rules}[[tests]]\ncommand = \"git push origin\"\nexpect = \"{expect}\"\n")
    };
    world.file("good.toml", test("deny"));
    let ran = world.run(&["why", "--rules", "good.toml", "npm run test a"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(ran.out.starts_with("allow: "), "{}", ran.out);
    world.file("bad.toml", test("allow"));
    let ran = world.run(&["why", "--rules", "bad.toml", "ls"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("test 1") && ran.err.contains("deny"), "{}", ran.err);
    world.file("broken.json", "{\"allow\": [\"Bash(\"]}");
    let ran = world.run(&["why", "--rules", "broken.json", "ls"]);
    assert_eq!(ran.code, Some(2), "{}", ran.out);
    assert!(ran.err.contains("bracket"), "{}", ran.err);
}

#[test]
fn what_is_denied_as_a_whole_is_denied_and_no_unknown_tool() {
    let world = World::new();
    for (rule, flags) in [
        ("Bash", vec!["rm a"]),
        ("Bash", vec!["ls"]),
        ("Read", vec!["--tool", "read", "--input", "{\"path\": \"a\"}"]),
        ("Edit", vec!["--tool", "write", "--input", "{\"path\": \"a\", \"content\": \"\"}"]),
        ("Edit", vec!["--tool", "Edit", "--input", "3"]),
    ] {
        let args = [&["why", "--deny", rule][..], &flags].concat();
        let ran = world.run(&args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let wanted = format!("deny: the deny rule {rule} (command line)");
        assert!(ran.out.starts_with(&wanted), "{args:?}: {ran:?}");
    }
    // So it is where the settings say it, and where they are tried with it.
    world.settings(
        "[permissions]\ndeny = ['Bash']\n[[permissions.tests]]\ncommand = 'ls'\nexpect = 'deny'\n",
    );
    let ran = world.run(&["why", "rm a"]);
    assert!(ran.out.starts_with("deny: the deny rule Bash (user settings)"), "{ran:?}");
}

/// Files of rules that cannot be taken, and what is said of them.
const BAD_FILES: &[(&str, &str, &str)] = &[
    (
        "a.toml",
        "permissions.deny = ['Bash(ls)']\n[[permissions.tests]]\ncommand = 'ls'\nexpect = 'allow'\n",
        "a.toml:2: test 1: ",
    ),
    (
        "b.toml",
        "\ndeney = ['Bash(ls)']\n",
        "b.toml:2: deney: there is no key \"deney\"; did you mean \"deny\"?",
    ),
    (
        "b.toml",
        "[permissions]\nalow = []\n",
        "b.toml:2: permissions.alow: there is no key \"alow\"; did you mean \"allow\"?",
    ),
    (
        "b.toml",
        "nonsense = 1\n",
        "there is no key \"nonsense\"; known here: allow, ask, deny, tests, permissions",
    ),
    (
        "b.toml",
        "allow = []\n\ndeny = ['Bash(ls']\n",
        "b.toml:3: permissions.deny: the deny rule \"Bash(ls\" (given rules) does not count",
    ),
    (
        "b.toml",
        "deny = 'Bash(ls)'\n",
        "b.toml:1: permissions.deny: \"Bash(ls)\" does not fit, wanted: a list",
    ),
    ("b.toml", "deny = [\n", "b.toml:"),
    (
        "c.json",
        "{\"deny\": [\"Bash(ls)\"],\n\"deny\": []}",
        "c.json:2: deny: this key stands a second time",
    ),
    ("c.json", "{\n\"Denied\": [\"Bash(ls)\"]}", "c.json:2: Denied: there is no key \"Denied\""),
    (
        "c.json",
        "{\"permissions\": {\n\"denny\": []}}",
        "c.json:2: permissions.denny: there is no key \"denny\"; did you mean \"deny\"?",
    ),
    ("c.json", "[[\"Bash\"]]", "c.json: it holds [[\"Bash\"]], wanted: an object"),
    ("c.json", "{\"deny\": [}", "c.json:1: "),
];

#[test]
fn a_file_of_rules_loses_none_of_them() {
    let world = World::new();
    let why = |name: &str, text: &str, command: &str| {
        world.file(name, text);
        world.run(&["why", "--rules", name, command])
    };
    let both = "\u{feff}deny = ['Bash(ls)']\n[permissions]\nallow = ['Bash']\n";
    let ran = why("both.toml", both, "ls");
    assert!(ran.out.starts_with("deny: the deny rule Bash(ls) (given rules)"), "{ran:?}");
    let ran = why("both.toml", both, "touch a");
    assert!(ran.out.starts_with("allow: "), "{ran:?}");
    for (name, text, wanted) in BAD_FILES {
        let ran = why(name, text, "ls");
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(ran.err.contains(wanted), "{text}: {ran:?}");
    }
    // Settings files, haft's and Claude Code's, are files of rules as they are.
    let own =
        "model = 'a/b'\nmode = 'plan'\n[permissions]\ndeny = ['Bash(ls)']\n[tools]\noff = []\n";
    let theirs = json!({"model": "x", "enabledPlugins": {}, "permissions":
        {"deny": ["Bash(ls)"], "defaultMode": "plan", "additionalDirectories": ["/none"]}});
    for (name, text) in [("own.toml", own), ("theirs.json", &theirs.to_string())] {
        let ran = why(name, text, "ls");
        assert!(ran.out.starts_with("deny: the deny rule Bash(ls) (given rules)"), "{ran:?}");
    }
    // What the settings are tried with is not meant for other rules.
    world.settings("[[permissions.tests]]\ncommand = 'touch a'\nexpect = 'ask'\n");
    let ran = why("all.toml", "allow = ['Bash']", "touch a");
    assert!(ran.out.starts_with("allow: "), "{ran:?}");
}

/// Lines of a batch that cannot be taken, and what is said of them.
const BAD_LINES: &[(&str, &str)] = &[
    (r#"{"command":"ls","rules":{"denied":["Bash"]}}"#, "rules: there is no key \"denied\""),
    (r#"{"command":"ls","rules":{"Deny":["Bash"]}}"#, "did you mean \"deny\"?"),
    (
        r#"{"command":"ls","rule":{"deny":["Bash"]}}"#,
        "there is no key \"rule\"; did you mean \"rules\"?",
    ),
    (r#"{"command":"ls","deny":["Bash"]}"#, "deny stands in rules"),
    (
        r#"{"command":"ls","permissions":{"deny":["Bash"]}}"#,
        "permissions: the lists stand in rules",
    ),
    (
        r#"{"command":"ls","rules":{"permissions":{"deny":["Bash"]}}}"#,
        "rules: there is no key \"permissions\"",
    ),
    (r#"{"command":"ls","rules":[["Bash"]]}"#, "rules is [[\"Bash\"]], wanted: an object"),
    (
        r#"{"command":"ls","rules":{"deny":"Bash"}}"#,
        "rules.deny is \"Bash\", wanted: a list of rules",
    ),
    (r#"{"command":"ls","rules":{"deny":[3]}}"#, "rules.deny is 3, wanted: rules"),
    (r#"{"command":"ls","rules":{"deny":["Bash"]},"rules":{}}"#, "rules stands a second time"),
    (r#"{"command":"ls","rules":{"deny":["Bash"],"deny":[]}}"#, "deny stands a second time"),
    (r#"{"command":3}"#, "command is 3, wanted: text in quotes"),
    (r#"["ls"]"#, "the line is [\"ls\"]; write an object such as"),
    ("", "the line is empty; write an object such as"),
    (
        r#"{"command":"ls""#,
        "the line is no JSON at its byte 15: EOF while parsing an object; write",
    ),
    (r#"{"mode":"plan"}"#, "give command, or tool and input"),
];

#[test]
fn a_line_that_may_mean_a_denial_is_never_passed_over() {
    let world = World::new();
    let answers = |lines: &[&str]| {
        let ran = finish(world.haft(&["why", "--batch"]), &Input::Pipe(&lines.join("\n")));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let answers: Vec<Value> =
            ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(answers.len(), lines.len(), "{ran:?}");
        answers
    };
    let lines: Vec<&str> = BAD_LINES.iter().map(|(line, _)| *line).collect();
    for ((line, wanted), answer) in BAD_LINES.iter().zip(answers(&lines)) {
        assert_eq!(
            (&answer["parsed"], &answer["decision"]),
            (&json!(false), &json!("ask")),
            "{line}"
        );
        let reason = answer["reason"].as_str().unwrap();
        assert!(reason.contains(wanted), "{line}: {reason}");
        assert!(!reason.contains("struct") && !reason.contains("line 1"), "{line}: {reason}");
    }
    let good = answers(&[
        "\u{feff}{\"command\":\"ls\"}\r",
        r#"{"command":"ls","rules":{"deny":["Bash"]},"expected":"deny","id":7,"why":"a note"}"#,
    ]);
    assert_eq!(good[0]["decision"], "allow", "{}", good[0]);
    assert_eq!(good[1]["decision"], "deny", "{}", good[1]);
}

#[test]
fn hooks_that_would_be_asked_are_named() {
    let world = World::new();
    let said = world.run(&["why", "ls"]);
    assert!(!said.out.contains("hook"), "{said:?}");
    let hooks = [
        crate::hooks::calls::hook("PreToolUse", "Bash", "touch asked", ""),
        crate::hooks::calls::hook("PreToolUse", "Edit", "touch asked", ""),
        crate::hooks::calls::hook("PostToolUse", "Bash", "touch asked", ""),
    ];
    world.settings(&hooks.concat());
    let place = format!("{}:3", world.state().join("settings.toml").display());
    let said = world.run(&["why", "ls"]);
    assert!(said.out.contains(&format!("not asked here: {place}; before a call")), "{said:?}");
    let json = world.run(&["why", "--json", "ls"]).json();
    assert_eq!(json["hooks"], json!([place]), "{json}");
    let read = world.run(&["why", "--json", "--tool", "read", "--input", r#"{"path": "a"}"#]);
    assert!(read.json().get("hooks").is_none(), "{read:?}");
    assert_eq!(batch(&world, &[json!({"command": "ls"})])[0]["hooks"], json!([place]));
    assert!(!world.work().join("asked").exists(), "a hook was run");
}
