//! The tool powershell, through every face, with a stand-in for `pwsh`: a script that takes the words
//! by which haft runs a command, and knows a few cmdlets.

use std::{fs, os::unix::fs::PermissionsExt as _, process::Command};

use haft_types::Status;
use serde_json::{Value, json};

use crate::{
    mcp_client::{Client, text},
    world::{self, Input, Ran, World, finish, gone, runs, unique_seconds, until},
};

/// Runs a command by bash as PowerShell would run one of the same words: what it makes of its words
/// and where it ended is checked against what haft hands over.
const STAND_IN: &str = r#"#!/bin/bash
[[ "$1 $2 $3 $4" == "-NoLogo -NoProfile -NonInteractive -Command" && $# == 5 ]] || exit 64
[[ $5 == *'$env:HAFT_COMMAND = $null'*'[IntPtr]3'*'exit $LASTEXITCODE'* ]] || exit 65
haft=$HAFT_COMMAND; unset HAFT_COMMAND
Write-Output() { echo "$@"; }
Write-Error() { echo "Write-Error: $*" >&2; return 1; }
Set-Location() { cd "$1"; }
New-Item() { : > "$1"; }
Start-Sleep() { sleep "$2"; }
exec 9>&3 3>&-
trap 'printf %s "$(pwd -P)" >&9' EXIT
eval "$haft"
"#;

/// A world with a `pwsh` on its path.
fn world() -> (World, String) {
    let world = World::new();
    let folder = world.root().join("bin");
    fs::create_dir(&folder).unwrap();
    let pwsh = folder.join("pwsh");
    fs::write(&pwsh, STAND_IN).unwrap();
    fs::set_permissions(&pwsh, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    (world, path)
}

fn haft(world: &World, path: &str, arguments: &[&str]) -> Command {
    let mut haft = world.haft(arguments);
    haft.env("PATH", path);
    haft
}

fn tool(world: &World, path: &str, input: &Value) -> Ran {
    let input = input.to_string();
    let flags = ["tool", "powershell", "--mode", "bypass", "--json", "--input", &input];
    finish(haft(world, path, &flags), &Input::Nothing)
}

fn call(command: &str) -> Value {
    json!({"name": "powershell", "input": {"command": command}})
}

/// What the model is told of these commands, which run one after the other.
fn told(world: &World, path: &str, commands: &[&str], flags: &[&str]) -> Vec<String> {
    let answers = commands.iter().map(|command| json!({"calls": [call(command)]}));
    let answers: Vec<_> = answers.chain([json!({"text": "End."})]).collect();
    let model = world.script(&answers);
    let all = ["-p", "go", "--model", &model, "--mode", "bypass"];
    let ran = finish(haft(world, path, &[&all[..], flags].concat()), &Input::Nothing);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.outcomes().iter().map(world::text).collect()
}

#[test]
fn it_does_what_bash_does() {
    let (world, path) = world();
    world.settings("[tools]\non = [\"powershell\"]\n");
    world.file("src/a", "");
    let token = "export GH_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a OWN=1";
    fs::write(world.root().join("home/.profile"), token).unwrap();
    let commands = [
        "Write-Output out; Write-Error bad; Write-Output \"[$HAFT_COMMAND]\"",
        "Set-Location src",
        "pwd",
        "exit 7",
        "Write-Error bad",
        "cat; read x || Write-Output end",
        "New-Item made.txt",
        "Set-Location /usr",
        "Write-Output \"<$OWN$GH_TOKEN>\"",
        "Stop-Process -Name haft",
        "Get-Process haft | Stop-Process -Force",
        "sleep 1000 & Write-Output left",
    ];
    let told = told(&world, &path, &commands, &[]);
    // What comes at once on both streams has no order.
    assert!(told[0].contains("out\n") && told[0].contains("Write-Error: bad"), "{told:?}");
    assert!(told[0].contains("[]"), "{told:?}");
    assert_eq!(told[1], "[the next command starts in src]");
    assert_eq!(told[2], world.work().join("src").display().to_string());
    assert_eq!(told[3], "[exit code 7]");
    assert_eq!(told[4], "Write-Error: bad\n[exit code 1]");
    assert_eq!(told[5], "end");
    assert!(told[6].contains("[created: src/made.txt]"), "{told:?}");
    assert!(told[7].contains("/usr is outside the workspace"), "{told:?}");
    assert!(told[8].starts_with("<1>\n[GH_TOKEN is withheld"), "{told:?}");
    for refused in &told[9..11] {
        assert!(
            refused.contains("this would end haft") && refused.contains("the Id of"),
            "{told:?}"
        );
    }
    assert!(
        told[11].contains("left\n[still running when the command ended, and stopped"),
        "{told:?}"
    );
    // What it changed is taken back like what bash did.
    let session = world.only_session();
    let ran = finish(haft(&world, &path, &["undo", "c7", "--session", &session]), &Input::Nothing);
    assert!(ran.code == Some(0) && !world.work().join("src/made.txt").exists(), "{ran:?}");
}

#[test]
fn it_ends_at_its_timeout_and_when_it_is_cancelled() {
    let (world, path) = world();
    let seconds = unique_seconds();
    let slow = format!("Write-Output begun; Start-Sleep -Seconds {seconds}");
    let ran = tool(&world, &path, &json!({"command": slow, "timeout_ms": 300}));
    assert_eq!(ran.json()["status"], json!(Status::TimedOut), "{ran:?}");
    assert!(world::text(&ran.json()).starts_with("begun\n[timed out after 0.3 s"), "{ran:?}");
    gone(&seconds);
    let input = json!({ "command": slow }).to_string();
    let flags = ["tool", "powershell", "--mode", "bypass", "--json", "--input", &input];
    let child = haft(&world, &path, &flags).spawn().unwrap();
    assert!(until(world::PATIENCE, || runs(&format!("sleep\0{seconds}"))));
    let outcome = world::interrupted(child);
    assert_eq!(outcome["status"], json!(Status::Cancelled), "{outcome}");
    gone(&seconds);
}

#[test]
fn it_runs_jobs_and_terminals_through_mcp_and_is_judged_by_rules_of_its_own() {
    let (world, path) = world();
    let mut client = Client::of(haft(&world, &path, &["mcp", "--mode", "bypass"]));
    client.greet(&json!({}));
    let job = json!({"command": "Write-Output up; read x; Write-Output got $x; exit 5",
        "run_in_background": true});
    assert!(text(&client.call("powershell", &job)).contains("[job j1 runs in the background"));
    client.call("job", &json!({"action": "input", "job": "j1", "text": "it\n"}));
    let end = client.call("job", &json!({"action": "wait", "job": "j1"}));
    assert!(text(&end).contains("got it") && text(&end).contains("exit code 5"), "{end}");
    let pty = client.call("powershell", &json!({"command": "test -t 1; exit $?", "pty": true}));
    assert_eq!(text(&pty), "(no output)", "{pty}");
    client.ends_well();

    let run = |rules: &[&str]| {
        let input = json!({"command": "Write-Output x"}).to_string();
        let flags = ["tool", "powershell", "--input", &input];
        finish(haft(&world, &path, &[&flags[..], rules].concat()), &Input::Nothing)
    };
    assert_eq!(run(&["--allow", "Bash"]).code, Some(1));
    assert_eq!(run(&["--allow", "PowerShell(Write-Output:*)"]).out, "x\n");
    assert_eq!(run(&["--mode", "bypass", "--deny", "PowerShell(Write-Output:*)"]).code, Some(1));
}

#[test]
fn it_is_there_where_it_is_wanted_and_pwsh_is() {
    let (world, path) = world();
    let there = |path: &str, arguments: &[&str]| {
        finish(haft(&world, path, arguments), &Input::Nothing).out.contains("powershell")
    };
    let bare = std::env::var("PATH").unwrap();
    assert!(there(&path, &["tool", "list"]) && !there(&bare, &["tool", "list"]));
    // A model has it where somebody wants that, and then it can be talked to in line mode, too.
    let model =
        world.script(&[json!({"calls": [call("Write-Output hi")]}), json!({"text": "End."})]);
    let talk = |path: &str, flags: &[&str]| {
        let all = ["--line", "--model", &model, "--mode", "bypass"];
        finish(haft(&world, path, &[&all[..], flags].concat()), &Input::Pipe("go\n/quit\n"))
    };
    let ran = talk(&path, &["--tools", "PowerShell,read"]);
    assert!(
        ran.out.contains("* powershell Write-Output hi") && ran.out.contains("hi\n"),
        "{ran:?}"
    );
    let ran = talk(&path, &[]);
    assert!(ran.out.contains("no tool named \"powershell\""), "{ran:?}");
    for ran in
        [tool(&world, &bare, &json!({"command": "x"})), talk(&bare, &["--tools", "powershell"])]
    {
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains("there is no pwsh on the path"), "{ran:?}");
    }
}
