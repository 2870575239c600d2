//! Layers over each other, and everything that can be wrong with them.

use std::{ffi::OsString, fs, path::Path};

use haft_config::{Environment, Layer, Loaded, Presence, Settings, Sources, load};
use haft_types::{Effort, Mode};
use proptest::prelude::*;
use serde_json::json;

fn write(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn sources(folder: &Path) -> Sources {
    Sources {
        haft_home: Some(folder.join("home")),
        project: Some(folder.join("project")),
        trusted: true,
        ..Sources::default()
    }
}

fn user(text: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "home/settings.toml", text);
    load(&sources(folder.path()))
}

fn told(loaded: &Loaded) -> String {
    let problems: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    problems.join("\n")
}

#[test]
fn without_files_the_defaults_count() {
    let folder = tempfile::tempdir().unwrap();
    let loaded = load(&sources(folder.path()));
    assert_eq!(loaded.settings, Settings::default());
    assert_eq!(loaded.settings.tools.concurrency, 10);
    assert!(loaded.problems.is_empty() && loaded.origins.is_empty());
    assert!(loaded.files.iter().all(|file| file.presence == Presence::Missing));
}

#[test]
fn later_layers_win_and_rules_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let user = "model = 'a'\neffort = 'low'\n[permissions]\ndeny = ['Read(x)']\n[tools]\nconcurrency = 2\noff = ['a']";
    write(root, "home/settings.toml", user);
    write(root, "project/.haft/settings.toml", "model = 'b'\npermissions.allow = ['Bash(ls)']");
    write(root, "project/.haft/settings.local.toml", "mode = 'acceptEdits'\ntools.off = []");
    write(root, "managed.toml", "permissions.deny = ['Bash(rm:*)']");
    let loaded = load(&Sources {
        managed: Some(root.join("managed.toml")),
        environment: Environment::of([("HAFT_MODEL", OsString::from("c"))]),
        command_line: json!({ "effort": "max", "permissions": { "allow": ["Edit"] } }),
        ..sources(root)
    });
    assert_eq!(told(&loaded), "");
    let settings = &loaded.settings;
    assert_eq!(settings.model.name.as_deref(), Some("c"));
    assert_eq!((settings.effort, settings.mode), (Some(Effort::Max), Mode::AcceptEdits));
    assert_eq!((settings.tools.concurrency, settings.tools.off.len()), (2, 0));
    assert_eq!(settings.permissions.allow, ["Bash(ls)", "Edit"]);
    let rules: Vec<_> =
        loaded.rules.iter().map(|rule| (rule.layer, rule.list, rule.text.as_str())).collect();
    assert_eq!(
        rules,
        [
            (Layer::User, "deny", "Read(x)"),
            (Layer::Project, "allow", "Bash(ls)"),
            (Layer::Managed, "deny", "Bash(rm:*)"),
            (Layer::CommandLine, "allow", "Edit"),
        ]
    );
    assert_eq!(loaded.origin("model.name"), Layer::Environment);
    assert_eq!(loaded.origin("tools.concurrency"), Layer::User);
    assert_eq!(loaded.origin("tools.off"), Layer::Local);
    assert_eq!(loaded.origin("http.stall_seconds"), Layer::Default);
}

#[test]
fn what_is_known_of_models_adds_up() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "home/settings.toml", "models.'openai/a.1'.vision = false\nmodels.b.vision = true");
    write(root, "project/.haft/settings.toml", "models.b.vision = false");
    let loaded = load(&sources(root));
    assert_eq!(told(&loaded), "");
    let vision = |name: &str| loaded.settings.models[name].vision;
    assert_eq!((vision("openai/a.1"), vision("b")), (Some(false), Some(false)));
    write(root, "home/settings.toml", "models.b.context = 9000");
    let both = &load(&sources(root)).settings.models["b"];
    assert_eq!((both.context, both.vision), (Some(9_000), Some(false)), "fields add up");
    for own in [
        "models.b.price = { input = 0, output = 0 }",
        "models.b.extra.n = 9",
        "models.b.output = 16",
    ] {
        write(root, "project/.haft/settings.toml", own);
        assert!(told(&load(&sources(root))).contains("a project may not set this"), "{own}");
    }
    let wrong = user("models.a.visions = true");
    assert!(told(&wrong).contains("visions"), "{}", told(&wrong));
    assert_eq!(wrong.fatal().count(), 1);
}

#[test]
fn a_model_is_a_name_or_a_table() {
    for (text, name, seconds) in [
        ("model = 'openai/a'", Some("openai/a"), 120),
        ("[model]\nname = 'openai/a'\nretry_seconds = 7", Some("openai/a"), 7),
        ("model.retry_seconds = 0", None, 0),
    ] {
        let loaded = user(text);
        assert_eq!(told(&loaded), "", "{text}");
        let model = &loaded.settings.model;
        assert_eq!((model.name.as_deref(), model.retry_seconds), (name, seconds), "{text}");
    }
    for wrong in ["model = 3", "model.name = 3", "model.retry_seconds = 'x'", "model.retry = 1"] {
        let loaded = user(wrong);
        assert!(told(&loaded).contains(":1: model"), "{wrong}: {}", told(&loaded));
    }
}

#[test]
fn more_models_are_names_of_models() {
    let loaded = user("[model]\nsmall = ' a/b '\nlarge = 'c/d'\nfallback = 'e/f'");
    assert_eq!(told(&loaded), "");
    let model = &loaded.settings.model;
    let names = (model.small.as_deref(), model.medium.as_deref(), model.large.as_deref());
    assert_eq!(names, (Some("a/b"), None, Some("c/d")));
    assert_eq!(model.fallback, ["e/f"]);
    let loaded = user("model = 'a/b'\n");
    assert!(loaded.settings.model.fallback.is_empty(), "{:?}", loaded.settings.model);
    let many = format!("model.fallback = [{}]", "'a/b',".repeat(9));
    let long = format!("model.small = '{}'", "a".repeat(301));
    for (wrong, wanted) in [
        ("model.small = ''", "must be a model's name, as SERVER/NAME"),
        ("model.small = 3", "model.small: 3 does not fit"),
        ("model.large = [\"a/b\"]", "model.large"),
        ("model.medium = \"a/b\\nc\"", "on one line"),
        ("model.fallback = ['a/b', ' ']", "must be a model's name"),
        ("model.fallback = [1]", "or a list of such names"),
        ("model.fallback = true", "or a list of such names"),
        (&*many, "at most 8 models"),
        (&*long, "at most 300 bytes"),
    ] {
        let loaded = user(wrong);
        assert!(told(&loaded).contains(wanted), "{wrong}: {}", told(&loaded));
        assert_eq!(loaded.fatal().count(), 1, "{wrong}");
        assert_eq!(loaded.settings.model, haft_config::Settings::default().model, "{wrong}");
    }
}

#[test]
fn before_trust_nothing_of_a_project_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "project/.haft/settings.toml", "= this is no TOML");
    let loaded = load(&Sources { trusted: false, ..sources(folder.path()) });
    assert_eq!(told(&loaded), "");
    let file = loaded.files.iter().find(|file| file.path.ends_with("project/.haft/settings.toml"));
    assert_eq!(file.unwrap().presence, Presence::Untrusted);
    assert_eq!(loaded.settings, Settings::default());
}

#[test]
fn a_trusted_project_still_may_not_decide_everything() {
    let folder = tempfile::tempdir().unwrap();
    let text = "mode = 'bypass'\nmodel.retry_seconds = 0\nrun.max_steps = 3";
    write(folder.path(), "project/.haft/settings.toml", text);
    let loaded = load(&sources(folder.path()));
    assert_eq!(loaded.settings.mode, Mode::Ask);
    assert_eq!(loaded.settings.model.retry_seconds, 120);
    assert_eq!(loaded.settings.run.max_steps, Some(3));
    assert_eq!(loaded.problems.len(), 2);
    assert!(told(&loaded).contains("a project may not set this to \"bypass\""));
}

#[test]
fn a_project_cannot_set_servers() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = "[providers.anthropic]\naddress = 'https://elsewhere.example'";
    write(root, "project/.haft/settings.toml", text);
    let loaded = load(&sources(root));
    assert!(loaded.settings.providers.is_empty(), "{:?}", loaded.settings.providers);
    let place = "project/.haft/settings.toml:1: providers: a project may not set this to";
    assert!(told(&loaded).contains(place), "{}", told(&loaded));
    write(root, "home/settings.toml", text);
    assert_eq!(load(&sources(root)).settings.providers.len(), 1);
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (text, place, part, fatal) in [
        ("\nmodle = 'x'", "settings.toml:2: modle:", "did you mean \"model\"?", false),
        ("qqqqqqqqqqqq = 1", "settings.toml:1:", "known here: ", false),
        ("foo = 1", "settings.toml:1: foo", "\"foo\"; known here: ", false),
        ("mdoe = 1", "settings.toml:1: mdoe", "did you mean \"mode\"?", false),
        ("[tools]\n\nconcurency = 1", "settings.toml:3: tools.concurency", "concurrency", false),
        ("[permissions]\ndenny = ['x']", "permissions.denny", "\"deny\"", true),
        (
            "[permissions]\ndeny = 'x'",
            "settings.toml:2: permissions.deny: \"x\"",
            "wanted: a list",
            true,
        ),
        ("mode = 'yolo'", "mode: \"yolo\"", "accept-edits", true),
        ("tools.concurrency = 'ten'", "tools.concurrency: \"ten\"", "wanted: a whole number", true),
        ("tools.concurrency = 0", "tools.concurrency: 0", "at least 1", true),
        ("tools.concurrency = 65", "tools.concurrency: 65", "at most 64", true),
        ("tools = 3", "tools: 3", "does not fit", true),
        ("model = 'x'\nmodel = 'y'", "settings.toml:2", "duplicate", true),
        ("x = ", "settings.toml:1", "correct the file", true),
    ] {
        let loaded = user(text);
        let told = told(&loaded);
        assert!(told.contains(place) && told.contains(part), "{text:?}: {told}");
        assert_eq!(loaded.fatal().count(), usize::from(fatal), "{text:?}");
        assert_eq!(loaded.settings, Settings::default(), "{text:?}");
    }
}

#[test]
fn one_wrong_value_does_not_take_others_along() {
    let loaded = user("effort = 'huge'\nmodel = 'm'\nread.max_lines = 10");
    assert_eq!(loaded.settings.model.name.as_deref(), Some("m"));
    assert_eq!((loaded.settings.read.max_lines, loaded.problems.len()), (10, 1));
}

#[test]
fn a_wrong_variable_is_named() {
    let loaded = load(&Sources {
        environment: Environment::of([("HAFT_EFFORT", OsString::from("huge"))]),
        ..Sources::default()
    });
    assert!(told(&loaded).contains("HAFT_EFFORT: effort: \"huge\""), "{}", told(&loaded));
}

#[test]
fn odd_files_end_in_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("home/settings.toml");
    fs::create_dir_all(&file).unwrap();
    assert!(told(&load(&sources(folder.path()))).contains("no regular file"));
    fs::remove_dir(&file).unwrap();
    fs::write(&file, b"model = '\xff'").unwrap();
    assert!(told(&load(&sources(folder.path()))).contains("not UTF-8 at byte 9"));
    fs::write(&file, vec![b'#'; 1024 * 1024 + 1]).unwrap();
    let loaded = load(&sources(folder.path()));
    assert!(told(&loaded).contains("over 1048576 bytes"));
    assert_eq!(loaded.files[0].presence, Presence::Broken);
}

/// Text as of a file of settings: anything, or keys that are known with values that may not fit.
fn settings() -> impl Strategy<Value = String> {
    let keys = vec!["model", "mode", "effort", "tools", "tools.off", "permissions.deny", "modle"];
    let values = vec!["'a'", "3", "[]", "['x']", "{}", "true", "'yolo'", "'ask'", "nan"];
    let line = (prop::sample::select(keys), prop::sample::select(values));
    let line = line.prop_map(|(key, value)| format!("{key} = {value}\n"));
    prop_oneof![
        "[a-z.= \\[\\]'\"0-9{}\n#\u{e9}]{0,80}",
        prop::collection::vec(line, 0..4).prop_map(|lines| lines.concat()),
    ]
}

/// Reports whether anything is set by a value: by an empty table, nothing is.
fn says(value: &toml::Value) -> bool {
    value.as_table().is_none_or(|table| table.values().any(says))
}

proptest! {
    #[test]
    fn whatever_does_not_count_is_told(text in settings()) {
        let loaded = user(&text);
        let is_toml = toml::from_str::<toml::Table>(&text);
        prop_assert!(is_toml.is_ok() || loaded.fatal().count() == 1, "{:?}", loaded.problems);
        let says_something = is_toml.is_ok_and(|table| table.values().any(says));
        let counts = !loaded.origins.is_empty();
        prop_assert!(counts || !says_something || !loaded.problems.is_empty(), "{text:?}");
    }
}

#[test]
fn a_link_that_leads_nowhere_is_no_missing_file() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("home")).unwrap();
    std::os::unix::fs::symlink("gone/settings.toml", root.join("home/settings.toml")).unwrap();
    let loaded = load(&sources(root));
    let fatal: Vec<String> = loaded.fatal().map(ToString::to_string).collect();
    assert!(fatal[0].contains("is a link to gone/settings.toml, which is not there"), "{fatal:?}");
    // So is a folder on the way.
    fs::remove_dir_all(root.join("home")).unwrap();
    std::os::unix::fs::symlink("elsewhere", root.join("home")).unwrap();
    assert_eq!(load(&sources(root)).fatal().count(), 1);
    fs::create_dir(root.join("elsewhere")).unwrap();
    assert_eq!(load(&sources(root)).fatal().count(), 0);
}

#[test]
fn a_project_never_raises_the_mode_over_the_persons_choice() {
    for (user, project, counts) in [
        ("plan", "auto", "plan"),
        ("plan", "ask", "plan"),
        ("ask", "accept-edits", "ask"),
        ("accept-edits", "auto", "accept-edits"),
        ("dont-ask", "acceptEdits", "dont-ask"),
        ("auto", "plan", "plan"),
        ("auto", "accept-edits", "accept-edits"),
        ("ask", "dont-ask", "dont-ask"),
        ("bypass", "auto", "auto"),
        ("", "auto", "auto"),
    ] {
        for file in ["settings.toml", "settings.local.toml"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            let text = if user.is_empty() { String::new() } else { format!("mode = '{user}'") };
            write(root, "home/settings.toml", &text);
            write(root, &format!("project/.haft/{file}"), &format!("\nmode = '{project}'"));
            let loaded = load(&sources(root));
            assert_eq!(loaded.settings.mode.name(), counts, "{user} {project} {file}");
            let place = format!("{file}:2: mode: a project may not set this to");
            assert_eq!(told(&loaded).contains(&place), user == counts, "{}", told(&loaded));
            // What is typed wins.
            let typed = Sources { command_line: json!({"mode": "auto"}), ..sources(root) };
            assert_eq!(load(&typed).settings.mode.name(), "auto");
        }
    }
}

#[test]
fn entries_that_mean_nothing_are_named_with_their_line_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let text = "[sandbox]\nwrite = [\n'rel/x',\n'$HOME/a',\n'/',\n'/..',\n'~/b',\n'/srv',\n'',\n]\n\
                [shell]\nlet_through = ['GH_TOKEN',\n'A B', 'a=b', '']\nkeep = ['gradled', 'a/b', '']\n\
                [secrets]\nnot = ['X Y', 'MY_TOKEN']";
    write(root, "home/settings.toml", text);
    let loaded = load(&sources(root));
    let settings = &loaded.settings;
    assert_eq!(settings.sandbox.write, ["~/b", "/srv"]);
    assert_eq!(settings.shell.let_through, ["GH_TOKEN"]);
    assert_eq!(
        (&settings.shell.keep[..], &settings.secrets.not[..]),
        (&["gradled".to_owned()][..], &["MY_TOKEN".to_owned()][..])
    );
    let told = told(&loaded);
    for wanted in [
        "settings.toml:3: sandbox.write: \"rel/x\" is left out: it would be another folder",
        "settings.toml:4: sandbox.write: \"$HOME/a\" is left out: variables",
        "settings.toml:5: sandbox.write: \"/\" is left out: commands could write everywhere",
        "settings.toml:6: sandbox.write: \"/..\" is left out",
        "settings.toml:9: sandbox.write: \"\" is left out",
        "settings.toml:13: shell.let_through: \"A B\" is left out",
        "settings.toml:14: shell.keep: \"a/b\" is left out",
        "settings.toml:16: secrets.not: \"X Y\" is left out",
    ] {
        assert!(told.contains(wanted), "{wanted}: {told}");
    }
    assert_eq!(loaded.place_of("sandbox.write", "/srv").unwrap().rsplit(':').next(), Some("8"));
}
