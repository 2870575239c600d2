//! Claude Code's files: which count, and what of them must not be lost in silence.

use std::{fs, path::Path};

use haft_config::{Environment, Layer, Loaded, Presence, Sources, load};

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn loaded(folder: &Path) -> Loaded {
    load(&Sources {
        haft_home: Some(folder.join("home/.haft")),
        project: Some(folder.join("project")),
        trusted: true,
        managed: Some(folder.join("managed.toml")),
        managed_claude: Some(folder.join("managed.json")),
        environment: Environment { home: Some(folder.join("home")), ..Environment::default() },
        ..Sources::default()
    })
}

fn told(loaded: &Loaded) -> Vec<(bool, String)> {
    loaded.problems.iter().map(|problem| (problem.fatal, problem.to_string())).collect()
}

fn denied(loaded: &Loaded) -> Vec<(Layer, &str)> {
    let rules = loaded.rules.iter().filter(|rule| rule.list == "deny");
    rules.map(|rule| (rule.layer, rule.text.as_str())).collect()
}

#[test]
fn the_managed_file_counts_whatever_the_person_says() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("home/code")).unwrap();
    let hook = r#"{"hooks": [{"type": "command", "command": "exit 2"}]}"#;
    let managed = format!(
        r#"{{"permissions": {{"deny": ["Bash(touch:*)"], "additionalDirectories": ["~/code"]}},
        "hooks": {{"PreToolUse": [{hook}]}}}}"#
    );
    write(root, "managed.json", &managed);
    write(root, "home/.claude/settings.json", r#"{"permissions": {"deny": ["Bash(rm:*)"]}}"#);
    write(root, "project/.claude/settings.json", r#"{"permissions": {"deny": ["Bash(mv:*)"]}}"#);
    write(root, "home/.haft/settings.toml", "claude.settings = false");
    let found = loaded(root);
    assert_eq!(told(&found), []);
    assert_eq!(denied(&found), [(Layer::Managed, "Bash(touch:*)")]);
    assert_eq!(found.hooks.len(), 1);
    let code = root.join("home/code");
    assert_eq!(found.settings.permissions.additional_directories, [code.to_str().unwrap()]);
    // Whoever runs the machine may leave their own file out, and all others with it.
    write(root, "managed.toml", "claude.settings = false");
    write(root, "home/.haft/settings.toml", "claude.settings = true");
    assert_eq!(denied(&loaded(root)), []);
}

#[test]
fn a_key_that_stands_twice_loses_nothing_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let file = root.join("home/.claude/settings.json").display().to_string();
    let deny = r#"{"deny": ["Bash(touch:*)"]}"#;
    let twice = |key: &str| format!("{file}:3: {key}: this key stands a second time");
    for (text, fatal, key) in [
        (format!("{{\"permissions\": {deny},\n\n\"permissions\": {{}}}}"), true, "permissions"),
        (format!("{{\"permissions\": {deny},\n\n\"permi\\u0073sions\": {{}}}}"), true, "permissions"),
        (
            "{\"permissions\": {\"deny\": [\"Bash(touch:*)\"],\n\n\"deny\": []}}".to_owned(),
            true,
            "permissions.deny",
        ),
        (
            "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"command\": \"exit 2\",\n\n\"command\": \"true\"}]}]}}"
                .to_owned(),
            true,
            "hooks.PreToolUse.0.hooks.0.command",
        ),
        ("{\"disableAllHooks\": false,\n\n\"disableAllHooks\": true}".to_owned(), true, "disableAllHooks"),
        ("{\"theme\": 1,\n\n\"theme\": 2}".to_owned(), false, "theme"),
        ("{\"env\": {\"A\": \"1\",\n\n\"A\": \"2\"}}".to_owned(), false, "env.A"),
    ] {
        write(root, "home/.claude/settings.json", &text);
        let found = loaded(root);
        let problems = told(&found);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert_eq!(problems[0].0, fatal, "{text}: {problems:?}");
        assert!(problems[0].1.starts_with(&twice(key)), "{text}: {problems:?}");
        let mut files = found.files.iter();
        let state = files.find(|state| state.path.ends_with("home/.claude/settings.json"));
        let wanted = if fatal { Presence::Broken } else { Presence::Read };
        assert_eq!(state.unwrap().presence, wanted);
    }
    // The same name in two places is no repetition.
    let text = r#"{"env": {"permissions": "1"}, "permissions": {"deny": ["Bash(a)", "Bash(a)"]}}"#;
    write(root, "home/.claude/settings.json", text);
    assert_eq!(told(&loaded(root)), []);
}

#[test]
fn what_may_be_a_misspelt_denial_is_told_and_what_others_have_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let file = root.join("home/.claude/settings.json").display().to_string();
    for (text, wanted) in [
        (
            r#"{"permissions": {"denny": []}}"#,
            "permissions.denny: there is no key \"denny\"; did you mean \"deny\"?",
        ),
        (
            r#"{"permissions": {"Deny": []}}"#,
            "permissions.Deny: there is no key \"Deny\"; did you mean \"deny\"?",
        ),
        (
            r#"{"permissions": {"forbid": []}}"#,
            "permissions.forbid: there is no key \"forbid\"; known here: ",
        ),
        (
            r#"{"permission": {}}"#,
            "permission: there is no key \"permission\"; did you mean \"permissions\"?",
        ),
        (
            r#"{"Permissions": {}}"#,
            "Permissions: there is no key \"Permissions\"; did you mean \"permissions\"?",
        ),
        (r#"{"deny": []}"#, "deny: this stands in \"permissions\", as permissions.deny"),
        (r#"{"ask": []}"#, "ask: this stands in \"permissions\", as permissions.ask"),
        (r#"{"hook": {}}"#, "hook: there is no key \"hook\"; did you mean \"hooks\"?"),
        (r#"{"PreToolUse": []}"#, "PreToolUse: this stands in \"hooks\", as hooks.PreToolUse"),
    ] {
        write(root, "home/.claude/settings.json", text);
        let found = loaded(root);
        let problems = told(&found);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(problems[0].1.starts_with(&format!("{file}:1: {wanted}")), "{text}: {problems:?}");
        assert!(!problems[0].0 && found.aside.is_empty(), "{text}: {:?}", found.aside);
    }
    let quiet = r#"{"model": "opus", "enabledPlugins": {}, "apiKeyHelper": "x", "theme": "dark",
        "skipWorkflowUsageWarning": true}"#;
    write(root, "home/.claude/settings.json", quiet);
    let found = loaded(root);
    assert_eq!(told(&found), []);
    assert_eq!(found.aside.len(), 4, "{:?}", found.aside);
}

#[test]
fn what_its_sandbox_would_hold_back_is_named_key_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = r#"{"sandbox": {
        "enabled": true,
        "allowUnsandboxedCommands": false,
        "autoAllowBashIfSandboxed": true,
        "network": {
            "allowedDomains": ["example.org"],
            "allowLocalBinding": true
        },
        "filesystem": {"denyRead": ["~/.aws"]},
        "newer": 1
    }}"#;
    write(root, "home/.claude/settings.json", text);
    let found = loaded(root);
    let file = root.join("home/.claude/settings.json").display().to_string();
    let told = told(&found);
    for (line, key, instead) in [
        (2, "enabled", "sandbox.always = true"),
        (3, "allowUnsandboxedCommands", "sandbox.unsandboxed = false"),
        (6, "network.allowedDomains", "sandbox.hosts"),
        (9, "filesystem.denyRead", "permissions.deny"),
        (10, "newer", "does not know"),
    ] {
        let place = format!("{file}:{line}: sandbox.{key}: ");
        let is_told = |(fatal, text): &(bool, String)| {
            !fatal && text.starts_with(&place) && text.contains(instead)
        };
        assert!(told.iter().any(is_told), "{key}: {told:#?}");
    }
    assert_eq!(told.len(), 5, "{told:#?}");
    for (line, key) in [(4, "autoAllowBashIfSandboxed"), (7, "network.allowLocalBinding")] {
        let text = format!("{file}:{line}: sandbox.{key} does nothing here");
        assert!(found.aside.contains(&text), "{:?}", found.aside);
    }
    let off = r#"{"sandbox": {"enabled": false, "allowUnsandboxedCommands": true}}"#;
    write(root, "home/.claude/settings.json", off);
    assert_eq!(self::told(&loaded(root)), []);
}

#[test]
fn whoever_runs_the_machine_forbids_mode_bypass_and_hooks_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let hooks = |command: &str| {
        format!(
            r#""hooks": {{"PreToolUse": [{{"hooks": [{{"type": "command", "command": "{command}"}}]}}]}}"#
        )
    };
    let strict = r#""permissions": {"disableBypassPermissionsMode": "disable"}, "allowManagedHooksOnly": true"#;
    write(root, "home/.claude/settings.json", &format!("{{{}}}", hooks("user")));
    write(root, "home/.haft/settings.toml", "mode = 'bypass'");
    write(root, "managed.json", &format!("{{{strict},\n{}}}", hooks("managed")));
    let found = loaded(root);
    assert_eq!(found.settings.mode.name(), "ask");
    assert_eq!(found.hooks.iter().map(|hook| hook.layer).collect::<Vec<_>>(), [Layer::Managed]);
    let said = told(&found);
    assert!(
        !said[0].0 && said[0].1.contains("managed.json:1: mode: mode bypass of the user settings"),
        "{said:?}"
    );
    assert!(
        found.aside.iter().any(|text| text.contains("allowManagedHooksOnly")),
        "{:?}",
        found.aside
    );
    // The same in haft's own file, and what cannot be read counts.
    fs::remove_file(root.join("managed.json")).unwrap();
    write(
        root,
        "managed.toml",
        "allowManagedHooksOnly = 'yes'\npermissions.disableBypassPermissionsMode = true",
    );
    let found = loaded(root);
    assert_eq!((found.settings.mode.name(), found.hooks.len()), ("ask", 0));
    let said: Vec<String> = told(&found).into_iter().map(|(_, text)| text).collect();
    assert!(
        said.iter().any(|text| text.contains("managed.toml:1: allowManagedHooksOnly")),
        "{said:?}"
    );
    assert!(said.iter().any(|text| text.contains("wanted: \"disable\"; it counts")), "{said:?}");
    // In other files it counts for nothing, which is told.
    fs::remove_file(root.join("managed.toml")).unwrap();
    write(root, "home/.claude/settings.json", &format!("{{{strict},\n{}}}", hooks("user")));
    let found = loaded(root);
    assert_eq!((found.settings.mode.name(), found.hooks.len()), ("bypass", 1));
    assert_eq!(told(&found).len(), 2, "{:?}", told(&found));
}
