//! What a refusal says, and that what it advises is enough.

use haft_testkit::machine;
use serde_json::json;

use crate::world::{Input, Ran, World, finish};

#[test]
fn a_refusal_is_one_sentence_with_its_full_stop() {
    let world = World::new();
    world.file("a.txt", "alpha\n");
    let model = world.script(&[
        json!({"calls": [{"name": "write", "input": {"path": "a.txt", "content": "x"}}]}),
        json!({"text": "End."}),
    ]);
    let ran = world.run(&["-p", "go", "--model", &model]);
    let line = "haft: not allowed: no rule allows changing a.txt, and nobody can be asked here.\n";
    assert!(ran.err.contains(line), "{ran:?}");
}

#[test]
fn a_refusal_tells_a_person_what_allows_it() {
    let world = World::new();
    for name in ["it's.txt", "n\nl 5%d\\n it's\t.txt"] {
        let write = json!({"path": name, "content": "x"});
        let ran = world.tool("write", &write, &[]);
        let (_, rule) = ran.err.split_once("add --allow ").unwrap_or_else(|| panic!("{ran:?}"));
        let rule = rule.trim();
        let (rule, other) = rule.split_once(" or ").unwrap_or_else(|| panic!("{rule}"));
        assert_eq!(other, "--mode accept-edits");
        world.file("input.json", write.to_string());
        let ran = world.shell(&format!("haft tool write --allow {rule} --input - <input.json"));
        assert_eq!((ran.code, world.read(name).as_str()), (Some(0), "x"), "{rule} {ran:?}");
    }

    let write = json!({"path": "it's.txt", "content": "x"});
    let ran = world.tool("bash", &json!({"command": "touch a"}), &[]);
    assert!(ran.err.contains("--allow 'Bash(touch a)'\n"), "{ran:?}");
    // No flag helps against a rule that denies.
    let ran = world.tool("write", &write, &["--deny", "Edit(/it's.txt)", "--mode", "bypass"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");

    world.settings("tools.off = ['ls']");
    for (name, flags, wanted) in [
        ("read", &["--deny", "Read"][..], "a deny rule takes it away"),
        ("Bash", &["--tools", "read"], "--tools does not name it"),
        ("ls", &[], "`tools.off` in the settings"),
    ] {
        let ran = world.tool(name, &json!({}), flags);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{ran:?}");
        assert!(ran.err.contains(wanted) && !ran.err.contains("no tool named"), "{ran:?}");
    }
}

/// The flags of the hint.
fn hinted(ran: &Ran) -> &str {
    let (_, flags) = ran.err.split_once("to allow it, add ").unwrap_or_else(|| panic!("{ran:?}"));
    flags.trim()
}

#[test]
fn what_a_refusal_advises_is_enough() {
    let world = World::new();
    let outside = world.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.txt"), "alpha\n").unwrap();
    std::os::unix::fs::symlink(&outside, world.work().join("link")).unwrap();
    let there = outside.join("new.txt").display().to_string();
    for (tool, input, mode) in [
        ("read", json!({"path": "link/a.txt"}), ""),
        ("grep", json!({"path": "link", "pattern": "alpha"}), ""),
        ("write", json!({"path": "link/b.txt", "content": "b"}), "--mode accept-edits"),
        ("write", json!({"path": there, "content": "c"}), "--mode accept-edits"),
        ("write", json!({"path": "plain.txt", "content": "d"}), ""),
        (
            "bash",
            json!({"command": format!("touch {}/e", outside.display()), "needs": {"write": [outside]}}),
            "--mode auto",
        ),
        ("bash", json!({"command": format!("echo x > {}/f", outside.display())}), "--mode auto"),
    ] {
        let call = format!("haft tool {tool} {mode} --input '{input}'");
        let refused = world.shell(&call);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        let flags = hinted(&refused);
        let (rules, other) = flags.split_once(" or ").unwrap_or((flags, ""));
        assert_eq!(other.is_empty(), input["path"] != "plain.txt", "{flags}");
        let ran = world.shell(&format!("{call} {rules}"));
        assert_eq!(ran.code, Some(0), "{flags}: {ran:?}");
        // One form alone allows neither.
        for rule in rules.split(" --allow ").filter(|_| rules.matches("--allow").count() > 1) {
            let rule = rule.trim_start_matches("--allow ");
            let ran = world.shell(&format!("{call} --allow {rule}"));
            assert_eq!(ran.code, Some(1), "{rule}: {ran:?}");
        }
    }
}

#[test]
fn a_command_that_would_end_haft_is_refused_in_every_mode() {
    let world = World::new();
    let commands = [
        "pkill -9 haft",
        "cd /tmp; killall -r '^ha'",
        "kill -9 -1",
        "pk\"ill\" haft",
        "pkill -f bypass",
        "echo haft | xargs pkill",
        "f() { pkill \"$1\"; }; f haft",
        "kill -9 $PPID",
    ];
    let call = |command: &&str| json!({"name": "bash", "input": {"command": command}});
    let calls: Vec<_> = commands.iter().map(call).collect();
    for (command, told) in commands.iter().zip(world.tool_results(&calls, &["--mode", "bypass"])) {
        let told = told.to_string();
        assert!(told.contains("this would end haft"), "{command}: {told}");
        // One way on, and nothing against it.
        assert!(told.contains("the one process that you mean."), "{command}: {told}");
        assert!(!told.contains("by other means"), "{command}: {told}");
    }
    let ran = world.tool("bash", &json!({"command": "pkill -x haft"}), &["--allow", "Bash"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("Give kill the number"), "{ran:?}");
    // Its own words on a command line are what a pattern may match by accident.
    let ran =
        world.tool("bash", &json!({"command": "pkill -f no-such-server"}), &["--allow", "Bash"]);
    assert!(ran.out.contains("matches haft itself"), "{ran:?}");
    let input = Input::Pipe("{\"command\": \"pkill -f no-such-server; echo $?\"}");
    let ran = world.run_with(&["tool", "bash", "--allow", "Bash", "--input", "-"], &input);
    assert!(ran.out.contains('1') && ran.code == Some(0), "{ran:?}");
}

#[test]
fn a_command_that_would_end_what_haft_runs_below_is_refused_and_says_what_that_is() {
    let world = World::new();
    // A shell of a name that nothing else has; what is asked about is judged and never run.
    let shell = world.work().join("outer-shell");
    std::fs::copy(machine::program("bash"), &shell).unwrap();
    let asks = |command: &str| {
        let mut asked = world.program(&shell);
        // Not its last word, so that the shell stays.
        let script = "\"$0\" why --mode bypass \"$1\"; exit $?";
        asked.args(["-c", script, env!("CARGO_BIN_EXE_haft"), command]);
        finish(asked, &Input::Nothing)
    };
    for (command, wanted) in [
        ("pkill outer-shell", true),
        ("pkill -9 -x outer-shell", true),
        ("killall -q outer-shell", true),
        ("kill $(pgrep outer-sh)", true),
        ("echo outer-shell | xargs pkill", true),
        ("pkill -P $$ outer-shell", false),
        ("pkill -x outer-shel", false),
        ("killall no-such-program", false),
    ] {
        let ran = asks(command);
        let is_refused = ran.out.contains("this would end outer-shell (process ")
            && ran.out.contains("below which haft runs");
        assert_eq!(is_refused, wanted, "{command}: {ran:?}");
    }
    // The same refusal for who runs it, with the way on, before anything of it runs.
    let input = json!({"command": "touch begun; pkill -x outer-shell"});
    let script = "\"$0\" tool bash --mode bypass --input \"$1\"; exit $?";
    let mut asked = world.program(&shell);
    asked.args(["-c", script, env!("CARGO_BIN_EXE_haft"), &input.to_string()]);
    let ran = finish(asked, &Input::Nothing);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    for part in [
        "this would end outer-shell (process ",
        "), below which haft runs: pkill -x outer-shell: ",
        "that is the name of outer-shell (process ",
        "Give kill the number of the one process that you mean. What runs as a job is ended by job \
         stop.",
    ] {
        assert!(ran.out.contains(part), "{part}: {ran:?}");
    }
    assert!(!world.work().join("begun").exists(), "{ran:?}");
}

#[test]
fn haft_is_known_by_each_of_its_names() {
    let world = World::new();
    let (copy, link) = (world.work().join("copied"), world.work().join("linked"));
    let program = env!("CARGO_BIN_EXE_haft");
    std::fs::hard_link(program, &copy)
        .or_else(|_| std::fs::copy(program, &copy).map(drop))
        .unwrap();
    std::os::unix::fs::symlink(&copy, &link).unwrap();
    for program in [copy, link] {
        let asks = |command: &str| {
            let mut asked = world.program(&program);
            asked.args(["why", "--mode", "bypass", command]);
            finish(asked, &Input::Nothing)
        };
        for kill in ["pkill -x", "pkill -f", "killall", "kill $(pgrep"] {
            let end = if kill.contains('(') { ")" } else { "" };
            for name in ["haft", "copied"] {
                let ran = asks(&format!("{kill} {name}{end}"));
                assert!(ran.out.contains("this would end haft"), "{kill} {name}: {ran:?}");
            }
        }
        let is_linked = program.ends_with("linked");
        for (command, ends) in [("pkill -x linked", is_linked), ("killall shaft", false)] {
            let ran = asks(command);
            assert_eq!(ran.out.contains("this would end haft"), ends, "{command}: {ran:?}");
        }
    }
}
