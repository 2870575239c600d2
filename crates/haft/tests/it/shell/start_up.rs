//! What the person's shell sets when it starts, in commands, through every face; and that nothing in
//! start-up files breaks or holds up a command.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use haft_types::Status;
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, text},
    world::{self, Input, Ran, World, finish, gone, runs, unique_seconds, until},
};

const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

/// Writes a start-up file.
fn home(world: &World, name: &str, content: &str) {
    fs::write(world.root().join("home").join(name), content).unwrap();
}

/// haft for a person with this shell.
fn with_shell(world: &World, shell: &str, arguments: &[&str]) -> Command {
    let mut haft = world.haft(arguments);
    haft.env("SHELL", shell);
    haft
}

fn bash(command: &str) -> Value {
    json!({"name": "bash", "input": {"command": command}})
}

/// What a model is told of these commands, which run one after the other.
fn told(world: &World, shell: &str, commands: &[&str]) -> Vec<String> {
    let answers = commands.iter().map(|command| json!({"calls": [bash(command)]}));
    let answers: Vec<_> = answers.chain([json!({"text": "End."})]).collect();
    let model = world.script(&answers);
    let flags = ["-p", "go", "--model", &model, "--mode", "bypass"];
    let ran = finish(with_shell(world, shell, &flags), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.outcomes().iter().map(world::text).collect()
}

/// The same of one command.
fn tool(world: &World, shell: &str, command: &str) -> Ran {
    let input = json!({ "command": command }).to_string();
    let flags = ["tool", "bash", "--mode", "bypass", "--input", &input];
    finish(with_shell(world, shell, &flags), &Input::Nothing)
}

/// A person whose shell sets all kinds of things.
fn person() -> World {
    let world = World::new();
    let login = "export FROM_PROFILE=1\n. ~/.bashrc\n";
    home(&world, ".profile", login);
    let rc = "echo junk; echo junk >&2\n\
        count=$(cat ~/count 2>/dev/null); echo $((count + 1)) > ~/count; pwd > ~/where\n\
        export PATH=\"$HOME/own-bin:$PATH\" OWN_WORD=own LANG=other SHLVL=7 PS1='> ' HAFT_OUT=x\n\
        greet() { _inner \"$1\"; }; _inner() { [[ $1 == @(me|you) ]] && echo \"hello $1\"; }\n\
        _completes() { :; }; pwd() { echo wrong; }\n\
        alias shout='echo LOUD' rm='rm -i'\n\
        spread() { echo spread; }; export -f spread\n\
        shopt -s nullglob; set -f; PRIVATE=1\n";
    home(&world, ".bashrc", &format!("{rc}export MY_TOKEN={SECRET}\n"));
    fs::create_dir(world.root().join("home/own-bin")).unwrap();
    let own = world.root().join("home/own-bin/own-program");
    fs::write(&own, "#!/bin/sh\necho \"own: $OWN_WORD $(type greet 2>&1 | head -c 7)\"\n").unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    world
}

/// What shows all of that.
const LOOK: &str = "own-program; greet me; shout; echo \"<$LANG|$FROM_PROFILE|$PRIVATE|$SHLVL>\"\n\
    echo \"<${BASH_ENV-}${PS1-}${HAFT_START_UP-}>\"; type -t _completes; type -t rm; shopt nullglob; cd src\n\
    echo '*'.x *.x";
const SEEN: &str =
    "own: own greet: \nhello me\nLOUD\n<C.UTF-8|1||1>\n<>\nfile\nnullglob       \toff\n*.x *.x";

#[test]
fn a_command_has_what_the_shell_of_the_person_sets() {
    let world = person();
    world.file("src/a", "");
    let ran = tool(&world, "/bin/bash", LOOK);
    let next = "[the next command starts in src]";
    assert_eq!(ran.out, format!("{SEEN}\n{next}\n"), "{ran:?}");
    let at_home = |name: &str| fs::read_to_string(world.root().join("home").join(name)).unwrap();
    assert_eq!(at_home("where").trim(), world.root().join("home").display().to_string());

    let ran = tool(&world, "/bin/bash", "spread; bash -c spread; bash -c 'type -t greet'");
    assert!(ran.out.starts_with("spread\nspread\n[exit code 1"), "{ran:?}");

    // Once for all commands of a session, even of two that begin together.
    fs::remove_file(world.root().join("home/count")).unwrap();
    let answers = [json!({"calls": [bash("greet me"), bash("greet you")]})];
    let model = world.script(&[&answers[..], &[json!({"text": "End."})]].concat());
    let flags = ["--line", "--model", &model, "--mode", "bypass"];
    let ran = finish(with_shell(&world, "/bin/bash", &flags), &Input::Pipe("go\n/quit\n"));
    assert!(ran.out.contains("hello me") && ran.out.contains("hello you"), "{ran:?}");
    assert_eq!(at_home("count"), "1\n");

    let mut client = Client::of(with_shell(&world, "/bin/bash", &["mcp", "--mode", "bypass"]));
    client.greet(&json!({}));
    let answer = client.call("bash", &json!({"command": LOOK, "session": "dev"}));
    let stands = "[the next command of session dev starts in src]";
    assert_eq!(text(&answer), format!("{SEEN}\n{stands}"));
    let answer = client.call("bash", &json!({"command": LOOK}));
    assert_eq!(text(&answer), format!("{SEEN}\n{next}"));
    client.call("bash", &json!({"command": "greet you; sleep 600", "run_in_background": true}));
    let until = json!({"action": "wait", "job": "j1", "pattern": "hello you"});
    let waited = client.call("job", &until);
    assert!(text(&waited).contains("hello you"), "{waited}");
    assert_eq!(at_home("count"), "2\n");
    client.ends_well();
}

#[test]
fn a_secret_of_a_start_up_file_is_withheld_and_named() {
    let world = person();
    let look = "echo \"<$MY_TOKEN>\"";
    let [answer] = &told(&world, "/bin/bash", &[look])[..] else { panic!() };
    assert!(answer.starts_with("<>\n[MY_TOKEN is withheld"), "{answer}");
    world.settings("[shell]\nlet_through = [\"MY_TOKEN\"]\n");
    let weigh = "echo \"<${#MY_TOKEN} $MY_TOKEN>\"";
    // Commands have it; who reads what they say does not.
    let shown = tool(&world, "/bin/bash", weigh).out;
    assert!(shown.starts_with("<40 {{secret:MY_TOKEN}}>\n"), "{shown}");
    // What haft was given itself stands over what the files say.
    let input = json!({"command": "echo $OWN_WORD"}).to_string();
    let mut haft =
        with_shell(&world, "/bin/bash", &["tool", "bash", "--mode", "bypass", "--input", &input]);
    haft.env("OWN_WORD", "mine");
    assert_eq!(finish(haft, &Input::Nothing).out, "mine\n");
}

#[test]
fn what_a_start_up_file_sets_is_hidden_wherever_it_stands() {
    let value = "zyxwvutsrqponm12345";
    let made = "made-by-running-9f3a7c";
    let world = World::new();
    // One stands in a file, one in a file that this reads, one is known when they were run.
    let rc = format!(". ~/.more\nexport DEPLOY_TOKEN={value}\nLATE_SECRET_KEY=$(cat ~/late)\n");
    home(&world, ".bashrc", &rc);
    home(&world, ".more", "export MORE_SECRET=qwertyuiop-98765-asdf\n");
    home(&world, "late", made);
    world.file("note", format!("{value} qwertyuiop-98765-asdf\n{made}\n"));
    let mut client = Client::of(with_shell(&world, "/bin/bash", &["mcp", "--mode", "bypass"]));
    client.greet(&json!({}));
    let read = client.call("read", &json!({"path": "note"}));
    let shown = "{{secret:DEPLOY_TOKEN}} {{secret:MORE_SECRET}}";
    assert!(text(&read).contains(shown), "{read}");
    let ran = client.call("bash", &json!({"command": "cat note"}));
    assert!(text(&ran).contains(shown), "{ran}");
    let again = "bash -ic 'echo \"<$LATE_SECRET_KEY $DEPLOY_TOKEN>\"'; cat note";
    let ran = client.call("bash", &json!({ "command": again }));
    assert!(text(&ran).contains("<{{secret:LATE_SECRET_KEY}} {{secret:DEPLOY_TOKEN}}>"), "{ran}");
    for answer in [&ran, &client.call("read", &json!({"path": "note", "offset": 2}))] {
        assert!(text(answer).contains("{{secret:LATE_SECRET_KEY}}"), "{answer}");
        assert!(!text(answer).contains(made) && !text(answer).contains(value), "{answer}");
    }
    client.ends_well();
}

#[test]
fn options_of_a_shell_that_started_haft_change_no_command() {
    let world = World::new();
    let look = "false; echo \"<$NOT_SET>\" *.none; env | grep -E '^(SHELL|BASH)OPTS=' || echo none";
    let input = json!({ "command": look }).to_string();
    for files in [None, Some("export A=1; greet() { :; }\n")] {
        if let Some(files) = files {
            home(&world, ".bashrc", files);
        }
        let flags = ["tool", "bash", "--mode", "bypass", "--input", &input];
        let mut haft = with_shell(&world, "/bin/bash", &flags);
        haft.env("SHELLOPTS", "braceexpand:errexit:hashall:nounset:xtrace");
        haft.env("BASHOPTS", "nullglob");
        let ran = finish(haft, &Input::Nothing);
        assert_eq!(ran.out, "<> *.none\nnone\n", "{ran:?}");
    }
    let mut haft = with_shell(&world, "/bin/bash", &["mcp", "--mode", "bypass"]);
    haft.env("SHELLOPTS", "braceexpand:errexit:hashall:nounset:xtrace");
    let mut client = Client::of(haft);
    client.greet(&json!({}));
    let answer = client.call("bash", &json!({"command": look, "session": "dev"}));
    assert_eq!(text(&answer), "<> *.none\nnone");
    client.ends_well();
}

/// Functions that need what is not exported, and what they need.
const NEEDING: &str = r#"
scalar="it's \"so\" $HOME"; declare -i number=7; list=(one "two  three"); list[7]=eight
declare -A map=([a b]=1 [']']="x
y") empty; declare -r FIXED=fixed; declare -n other=scalar; unused=9; OPTIND=4
API_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a
declare -A login=([user]=me [password]='correct horse battery')
huge=$(printf '%070000d' 1)
uses() {
  echo "$scalar|$number|${#list[@]} ${list[1]} ${list[7]}|${map["a b"]}${map["]"]}|${FIXED:-}"
  echo "[$API_TOKEN${login[user]}${login[password]}]"; empty[x]=1; echo "${empty[x]}${#huge}"
  : "$OPTIND $other"
}
_hidden() { :; "$kept_out"; }; kept_out=1
alias with='echo $by_alias'; by_alias=aliased
"#;

#[test]
fn functions_have_the_options_that_they_need_and_sessions_the_aliases() {
    let world = World::new();
    let rc = "shopt -s extglob globstar\nshout() { echo all: **/*.@(x|y); }\n";
    home(&world, ".bashrc", &format!("{rc}alias hey='echo hey'\n"));
    world.file("sub/deep/a.x", "");
    world.file("b.y", "");
    let look = "shout; shopt -q nullglob || echo plain; hey you";
    let seen = "all: b.y sub/deep/a.x\nplain\nhey you\n";
    let ran = tool(&world, "/bin/bash", look);
    assert_eq!(ran.out, seen, "{ran:?}");
    home(
        &world,
        ".bashrc",
        "shopt -s extglob nullglob\nnone() { for f in *.none; do echo $f; done; }\n",
    );
    let ran = tool(&world, "/bin/bash", "none; shopt extglob");
    assert_eq!(ran.out.split_whitespace().collect::<Vec<_>>()[..2], ["extglob", "off"], "{ran:?}");

    home(&world, ".bashrc", &format!("{rc}alias hey='echo hey'\n"));
    let mut client = Client::of(with_shell(&world, "/bin/bash", &["mcp", "--mode", "bypass"]));
    client.greet(&json!({}));
    let answer = client.call("bash", &json!({"command": look, "session": "dev"}));
    assert_eq!(text(&answer), seen.trim_end());
    client.call("bash", &json!({"command": "alias ho='hey ho'", "session": "dev"}));
    let answer = client.call("bash", &json!({"command": "ho", "session": "dev"}));
    assert_eq!(text(&answer), "hey ho");
}

#[test]
fn functions_have_the_variables_that_they_name() {
    let world = World::new();
    home(&world, ".bashrc", NEEDING);
    let look = "uses; with; number+=1; echo \"$number<$unused$kept_out>\"; FIXED=2; echo $FIXED; \
        env | grep -cE '^(scalar|number|list|map|FIXED|by_alias)='; echo $OPTIND";
    let seen = format!(
        "it's \"so\" {}|7|3 two  three eight|1x\ny|fixed\n[]\n10\naliased\n8<>\n2\n0\n",
        world.root().join("home").display()
    );
    let ran = tool(&world, "/bin/bash", look);
    // What bash itself has stands over it.
    assert_eq!(ran.out, format!("{seen}1\n"), "{ran:?}");
    assert!(!ran.out.contains("ghp_") && !ran.out.contains("horse"), "{ran:?}");

    let other = World::new();
    home(&other, ".bashrc", NEEDING);
    let told = &told(&other, "/bin/bash", &["echo \"<$API_TOKEN${login[password]}>\""])[0];
    assert!(told.starts_with("<>\n["), "{told}");
    assert!(told.contains("API_TOKEN") && told.contains("login"), "{told}");
    world.settings("[shell]\nlet_through = [\"API_TOKEN\", \"login\"]\n");
    let through = tool(&world, "/bin/bash", "uses | sed -n 3p").out;
    assert!(through.starts_with("[{{secret:API_TOKEN}}me{{secret:password}}]\n"), "{through}");

    let mut client = Client::of(with_shell(&world, "/bin/bash", &["mcp", "--mode", "bypass"]));
    client.greet(&json!({}));
    let answer = client.call("bash", &json!({"command": look, "session": "dev"}));
    assert!(text(&answer).contains("|7|3 two  three eight|1x\ny|fixed\n"), "{answer}");
    client.ends_well();
}

#[test]
fn a_plain_shell_whose_files_end_it_says_what_they_set() {
    for (files, shown) in [
        ("export A=1; exit 3; export A=2", "1"),
        ("export A=1; set -eu; false; export A=2", "1"),
        ("export A=1; return; export A=2", "1"),
        ("export A=1; cd /; umask 777; set -f; IFS=:; PATH=; echo junk", "1"),
        ("export A=1; trap 'echo bye' EXIT", "1"),
        ("export A=1 ENV=\"$HOME/.shinit\"", "1:more"),
    ] {
        let world = World::new();
        home(&world, ".profile", files);
        home(&world, ".shinit", "export A=$A:more");
        let answers = told(&world, "/bin/sh", &["echo \"<$A>\""]);
        assert_eq!(answers[0], format!("<{shown}>"), "{files}");
    }
    let world = World::new();
    home(&world, ".profile", "export A=1; exec cat");
    let answers = told(&world, "/bin/sh", &["echo \"<$A>\""]);
    assert!(answers[0].starts_with("<>\n[") && answers[0].contains("another program"));
}

#[test]
fn files_that_end_or_hang_their_shell_break_no_command() {
    let lost = "or became another program";
    let late = "did not end within 1 s";
    for (files, shown, said) in [
        ("export A=1; exit 3; export A=2", "1", ""),
        ("export A=1; exec cat; export A=2", "1", ""),
        ("export A=1; set -eu; false; export A=2", "1", ""),
        ("export A=1; trap 'echo bye' EXIT; trap 'echo step' DEBUG; set -x", "1", ""),
        ("read -p 'sure? ' x; select y in a b; do break; done; export A=1$x", "1", ""),
        ("if true; then\nexport A=2; }", "", ""),
        ("exec 3>&1; echo junk >&3; IFS=:; set -o posix; printf() { :; }; export A=1", "1", ""),
        ("PATH=; unset HOME; export A=1; set -f; alias '?=x' '*=y'; set -a", "1", ""),
        ("export A=1; ulimit -n 256; umask 777; cd /; cat() { :; }", "1", ""),
        ("export A=1; stty raw </dev/tty; read x </dev/tty; fg; kill -STOP $$ & wait", "", late),
        ("export A=1; builtin exec cat", "", lost),
        ("export A=1; kill -KILL $$", "", lost),
        ("export A=1; while :; do sleep 60; done", "", late),
        ("export A=1; trap '' TERM INT HUP; while :; do :; done", "", late),
        ("export A=1; while :; do echo much; done", "", late),
    ] {
        let world = World::new();
        world.settings("[shell]\nstart_up_seconds = 1\n");
        home(&world, ".bashrc", files);
        let answers = told(&world, "/bin/bash", &["echo \"<$A>\"", "echo \"<$A>\""]);
        assert!(answers[0].starts_with(&format!("<{shown}>")), "{files}: {answers:?}");
        assert!(answers[0].contains(said), "{files}: {answers:?}");
        assert_eq!(said.is_empty(), !answers[0].contains('['), "{files}: {answers:?}");
        // It is told once.
        assert_eq!(answers[1], format!("<{shown}>"), "{files}");
    }
}

#[test]
fn what_a_start_up_file_starts_ends_with_it() {
    let world = World::new();
    let seconds = unique_seconds();
    let files = format!(
        "export SSH_AUTH_SOCK=/tmp/agent SSH_AGENT_PID=1 A=1; (setsid sleep {seconds} &); sleep {seconds} &"
    );
    home(&world, ".bash_profile", &files);
    let ran = tool(&world, "/bin/bash", "echo \"<$A$SSH_AUTH_SOCK$SSH_AGENT_PID>\"");
    assert_eq!(ran.out, "<1>\n", "{ran:?}");
    gone(&seconds);
    // Where an agent is reached that somebody else has started.
    home(&world, ".bash_profile", "export SSH_AUTH_SOCK=/tmp/agent");
    assert_eq!(tool(&world, "/bin/bash", "echo $SSH_AUTH_SOCK").out, "/tmp/agent\n");
}

#[test]
fn a_call_that_is_cancelled_meanwhile_leaves_nothing() {
    let world = World::new();
    let seconds = unique_seconds();
    home(&world, ".bashrc", &format!("[ -e ~/again ] && return; touch ~/again; sleep {seconds}"));
    let input = json!({"command": "touch ran"}).to_string();
    let flags = ["tool", "bash", "--mode", "bypass", "--json", "--input", &input];
    let child = with_shell(&world, "/bin/bash", &flags).spawn().unwrap();
    assert!(until(world::PATIENCE, || runs(&seconds)));
    let outcome = world::interrupted(child);
    assert_eq!(outcome["status"], json!(Status::Cancelled), "{outcome}");
    gone(&seconds);
    assert!(!world.work().join("ran").exists());
}

#[test]
fn nothing_is_started_where_there_is_nothing_to_read() {
    let world = World::new();
    let marks = |shell: &str| {
        let path = world.root().join(shell);
        let script = "#!/bin/sh\necho started >> ~/started\nfor last; do :; done\n\
            export A=1 PWD=x; eval \"$last\"\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    };
    let started = || fs::remove_file(world.root().join("home/started")).is_ok();
    let (zsh, fish, other) = (marks("zsh"), marks("fish"), marks("nologin"));
    // Files of the workspace are none of the person's.
    for name in [".zshrc", ".bashrc", ".profile", ".zshenv"] {
        world.file(name, "touch stranger");
    }
    for shell in [&zsh, &fish, &other, "/nowhere/bash"] {
        assert_eq!(tool(&world, shell, "echo \"<$A>\"").out, "<>\n", "{shell}");
        assert!(!started(), "{shell}");
    }
    assert_eq!(
        tool(&world, "/bin/bash", "ls").out,
        "(no output)\n",
        "something of the workspace was run"
    );
    home(&world, ".zshrc", "");
    fs::create_dir_all(world.root().join("home/.config/fish/conf.d")).unwrap();
    home(&world, ".profile", "");
    // Of shells that do not run the commands, the variables are taken.
    for shell in [&zsh, &fish] {
        assert_eq!(tool(&world, shell, "echo \"<$A>\"").out, "<1>\n", "{shell}");
        assert!(started(), "{shell}");
    }
    assert!(tool(&world, &other, "echo \"<$A>\"").out == "<>\n" && !started());
    world.settings("[shell]\nstart_up_seconds = 0\n");
    assert!(tool(&world, &zsh, "echo \"<$A>\"").out == "<>\n" && !started());
}

#[test]
fn files_of_somebody_else_are_not_run() {
    let world = World::new();
    home(&world, ".bashrc", "export A=1");
    let file = world.root().join("home/.bashrc");
    if std::os::unix::fs::chown(&file, Some(54_321), None).is_err() {
        // Nobody but root can give files away.
        return;
    }
    let answers = told(&world, "/bin/bash", &["echo \"<$A>\""]);
    assert!(answers[0].starts_with("<>\n[the start-up files of the person's shell are not read"));
    assert!(answers[0].contains("belongs to somebody else"), "{answers:?}");
}
