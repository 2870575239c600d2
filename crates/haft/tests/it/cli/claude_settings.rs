//! Claude Code's settings files, and what is wrong with settings of rules and hooks: each named with its
//! file and line.

use std::fs;

use serde_json::{Value, json};

use crate::world::{Ran, World};

fn theirs(world: &World, text: &str) {
    let folder = world.root().join("home/.claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), text).unwrap();
}

fn bash(world: &World, command: &str, flags: &[&str]) -> Ran {
    world.tool("bash", &json!({ "command": command }), flags)
}

#[test]
fn rules_modes_folders_and_variables_count() {
    let world = World::new();
    let more = world.root().join("more");
    fs::create_dir(&more).unwrap();
    fs::write(more.join("a"), "further").unwrap();
    let settings = json!({
        "permissions": {
            "allow": ["Bash(touch made)"], "deny": ["Read(secret)"], "ask": ["Bash(touch asked)"],
            "defaultMode": "acceptEdits", "additionalDirectories": [more, "no-such-folder"],
        },
        "env": {"OF_CLAUDE": "yes", "N": 3},
        "theme": "dark", "model": "opus", "enableAllProjectMcpServers": true,
    });
    theirs(&world, &settings.to_string());
    world.file("secret", "x");
    assert_eq!(bash(&world, "touch made", &["--mode", "dont-ask"]).code, Some(0));
    assert_eq!(bash(&world, "touch asked", &["--mode", "bypass"]).code, Some(1));
    let denied = world.tool("read", &json!({"path": "secret"}), &[]);
    assert!(
        denied.both_outputs().contains("the deny rule Read(secret) (user settings)"),
        "{denied:?}"
    );
    let further = world.tool("read", &json!({"path": more.join("a")}), &[]);
    assert!(further.out.contains("further"), "{further:?}");
    assert!(
        further
            .err
            .contains("settings.json:1: permissions.additional_directories.1: \"no-such-folder\""),
        "{further:?}"
    );
    // The mode, too.
    assert_eq!(world.tool("write", &json!({"path": "b", "content": "x"}), &[]).code, Some(0));
    let env = bash(&world, "echo $OF_CLAUDE$N", &["--mode", "bypass"]);
    assert_eq!(env.out, "yes3\n");
    let doctor = world.run(&["doctor"]);
    assert!(doctor.out.contains(".claude/settings.json (read)"), "{doctor:?}");
    assert!(doctor.out.contains("model does nothing here"), "{doctor:?}");
    assert!(!doctor.out.contains("theme"), "{doctor:?}");
    // haft's own file of the same layer stands over it; and it can be left out.
    world.settings("mode = 'ask'");
    assert_eq!(world.tool("write", &json!({"path": "c", "content": "x"}), &[]).code, Some(1));
    world.settings("claude.settings = false");
    assert_eq!(world.tool("read", &json!({"path": "secret"}), &[]).code, Some(0));
    assert!(!world.run(&["doctor"]).out.contains(".claude/settings.json"));
}

#[test]
fn a_project_sets_no_more_than_it_may() {
    let world = World::new();
    let settings = json!({
        "permissions": {"defaultMode": "bypassPermissions", "deny": ["Bash(rm:*)"]},
        "env": {"ANTHROPIC_BASE_URL": "http://x/", "HTTPS_PROXY": "http://x/", "NODE_EXTRA_CA_CERTS": "/x",
            "LD_PRELOAD": "/x", "GIT_SSH_COMMAND": "x", "ANTHROPIC_CUSTOM_HEADERS": "x", "PATH": "/x", "RUSTC_WRAPPER": "x",
            "PYTHONPATH": "x", "FINE": "1"},
        "disableAllHooks": true,
    });
    world.file(".claude/settings.json", settings.to_string());
    world.file(".claude/settings.local.json", "{\"permissions\": {\"deny\": [\"Bash(mv:*)\"]}}");
    let told = "a project may not";
    let ran = bash(&world, "echo [$FINE]", &["--mode", "bypass"]);
    assert!(
        ran.out == "[]\n" && !ran.err.contains(told),
        "it was read before it was trusted: {ran:?}"
    );
    let ran = bash(
        &world,
        "echo [$FINE] $ANTHROPIC_BASE_URL $HTTPS_PROXY $LD_PRELOAD",
        &["--trust", "--mode", "bypass"],
    );
    assert_eq!(ran.out, "[1]\n", "{ran:?}");
    for key in [
        "mode",
        "disableAllHooks",
        "env.ANTHROPIC_BASE_URL",
        "env.HTTPS_PROXY",
        "env.NODE_EXTRA_CA_CERTS",
        "env.LD_PRELOAD",
        "env.GIT_SSH_COMMAND",
        "env.ANTHROPIC_CUSTOM_HEADERS",
        "env.PATH",
        "env.RUSTC_WRAPPER",
        "env.PYTHONPATH",
    ] {
        assert!(
            ran.err.contains(&format!("settings.json:1: {key}: a project may not")),
            "{key}: {ran:?}"
        );
    }
    for command in ["rm x", "mv x y"] {
        let ran = bash(&world, command, &["--trust", "--mode", "bypass"]);
        assert!(ran.both_outputs().contains("the deny rule"), "{ran:?}");
    }
}

#[test]
fn what_is_wrong_is_named_with_file_and_line() {
    let world = World::new();
    let place = |name: &str| world.root().join(name).display().to_string();
    theirs(
        &world,
        "{\n  \"permissions\": {\n    \"deny\": [\n\"Bash(rm\"\n]},\n\"hooks\": {\"PreToolUse\": [\n{\"matcher\": \"(\", \"hooks\": [\n{\"type\": \"command\", \"command\": \"exit 2\", \"if\": \"Bash(\"}]}],\n\"PreToolUze\": []}\n}",
    );
    let ran = bash(&world, "touch x", &["--mode", "bypass"]);
    let json = place("home/.claude/settings.json");
    for wanted in [
        ":4: permissions.deny: the deny rule \"Bash(rm\" (user settings) does not count",
        ":8: hooks.PreToolUse: matcher: \"(\" is no pattern, so it matches everything",
        ":8: hooks.PreToolUse: if: \"Bash(\" is no rule, so it counts for every call",
        ":9: hooks.PreToolUze: there is no event \"PreToolUze\"; did you mean \"PreToolUse\"?",
    ] {
        assert!(ran.err.contains(&format!("{json}{wanted}")), "{wanted}: {ran:?}");
    }
    assert!(ran.out.contains("a hook refused this call"), "the safe side: {ran:?}");
    // One of which a part cannot be read allows nothing.
    let allow = json!({"hookSpecificOutput": {"permissionDecision": "allow"}}).to_string();
    let command = format!("printf '%s' '{allow}'");
    let broken = json!({"hooks": {"PreToolUse": [{"matcher": 3, "hooks": [{"type": "command", "command": command}]}]}});
    theirs(&world, &broken.to_string());
    let ran = bash(&world, "touch x", &[]);
    assert!(ran.code == Some(1) && ran.err.contains("3 does not fit, wanted: a text"), "{ran:?}");
    theirs(&world, "{\n\"permissions\": {\"deny\": [}\n}");
    let ran = bash(&world, "ls", &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains(&format!("{json}:2: ")) && ran.err.contains("claude.settings = false"),
        "{ran:?}"
    );
}

#[test]
fn a_denial_is_neither_overwritten_nor_misspelt_in_silence() {
    let world = World::new();
    let file = world.root().join("home/.claude/settings.json").display().to_string();
    theirs(
        &world,
        "{\"permissions\": {\"deny\": [\"Bash(touch:*)\"]},\n\"permissions\": {\"allow\": [\"Bash(ls)\"]}}",
    );
    let ran = bash(&world, "touch x", &["--mode", "bypass"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let wanted = format!("{file}:2: permissions: this key stands a second time; write it once");
    assert!(ran.err.contains(&wanted), "{ran:?}");
    theirs(&world, "{\"permissions\": {\"denny\": [\"Bash(touch:*)\"]}, \"model\": \"opus\"}");
    let ran = bash(&world, "ls", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.err.matches("did you mean \"deny\"?").count(), 1, "{ran:?}");
    assert!(!ran.err.contains("model"), "{ran:?}");
}

#[test]
fn own_hooks_that_run_nothing_are_a_reason_not_to_start() {
    let world = World::new();
    let own = world.state().join("settings.toml").display().to_string();
    for (text, line, wanted) in [
        ("hooks = 3", 1, "hooks: 3 does not fit, wanted: a table of events"),
        ("[[hooks.Stop]]\nmatcher = ''\n", 1, "it names no hooks"),
        (
            "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = 'command'\n",
            2,
            "this hook runs nothing: command is missing",
        ),
        (
            "[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = 'prompt'\nprompt = 'x'\n",
            2,
            "haft has no hooks of type \"prompt\"",
        ),
        ("[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncomand = 'x'\n", 2, "command is missing"),
    ] {
        world.settings(text);
        let ran = bash(&world, "ls", &[]);
        assert_eq!(ran.code, Some(2), "{text}: {ran:?}");
        assert!(
            ran.err.contains(&format!("{own}:{line}: ")) && ran.err.contains(wanted),
            "{text}: {ran:?}"
        );
    }
    // Of another's it is told, and blocks where it is to.
    let hook = |more: Value| {
        let mut hook = json!({"type": "agent", "prompt": "x"});
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}).to_string()
    };
    world.settings("");
    for (more, code) in [
        (json!({}), 1),
        (json!({"onFailure": "block"}), 1),
        (json!({"onFailure": "continue"}), 0),
        (json!({"if": "Bash(git push *)"}), 0),
    ] {
        theirs(&world, &hook(more));
        let ran = bash(&world, "ls", &[]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let place = "settings.json:1: hooks.PreToolUse.0.hooks.0: this hook runs nothing: ";
        assert!(ran.err.contains(place), "{ran:?}");
        assert!(ran.err.contains("haft has no hooks of type \"agent\""), "{ran:?}");
    }
    theirs(&world, &hook(json!({})).replace("PreToolUse", "Stop"));
    assert_eq!(bash(&world, "ls", &[]).code, Some(0));
}

#[test]
fn hooks_that_nobody_could_run_are_a_reason_not_to_start() {
    let world = World::new();
    for broken in [
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command"}]}]}}"#,
        r#"{"hooks": {"PreToolUse": [{"hooks": ["guard.sh"]}]}}"#,
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash"}]}}"#,
        r#"{"hooks": {"PreToolUse": "guard.sh"}}"#,
        r#"{"hooks": {"PreToolUze": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}"#,
        r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "http", "url": "ftp://h/x"}]}]}}"#,
    ] {
        theirs(&world, broken);
        let ran = bash(&world, "ls", &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(2), "{broken}: {ran:?}");
        assert!(ran.err.contains("settings.json:1: hooks.PreToolU"), "{broken}: {ran:?}");
        assert!(ran.err.contains("claude.settings = false"), "{broken}: {ran:?}");
    }
    theirs(&world, r#"{"hooks": {"BrandNewEvent": [{"hooks": [{"command": "x"}]}]}}"#);
    assert_eq!(bash(&world, "ls", &[]).code, Some(0));
}

#[test]
fn rules_are_tried_and_those_that_do_nothing_are_named() {
    let world = World::new();
    let own = world.state().join("settings.toml").display().to_string();
    world.settings(
        "[permissions]\nallow = [\n  'Bash(git push:*)',\n  'Bash(cd * && make)',\n]\ndeny = ['Bash(git:*)']\n\
         [[permissions.tests]]\ncommand = 'git push'\nexpect = 'deny'\n",
    );
    let ran = bash(&world, "ls", &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let wanted = format!(
        "{own}:3: permissions.allow: the allow rule \"Bash(git push:*)\" (user settings) does not count: the deny rule Bash(git:*) (user settings) covers all of it"
    );
    assert!(ran.err.contains(&wanted), "{ran:?}");
    assert!(
        ran.err.contains(&format!("{own}:4: ")) && ran.err.contains("several commands"),
        "{ran:?}"
    );
    let case = "[[permissions.tests]]\ncommand = 'touch x'\nexpect = 'allow'\n";
    world.settings(case);
    let ran = bash(&world, "ls", &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains(&format!(
            "{own}:1: permissions.tests: {{\"command\":\"touch x\"}} is to allow, but the rules ask"
        )),
        "{ran:?}"
    );
    // Those of a project do not decide whether haft is of use in it.
    world.settings("");
    world.file(".haft/settings.toml", case);
    let ran = bash(&world, "ls", &["--trust"]);
    assert!(ran.code == Some(0) && ran.err.contains("permissions.tests"), "{ran:?}");
    assert!(!bash(&world, "ls", &[]).err.contains("permissions.tests"), "before trust");
}
