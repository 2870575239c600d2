//! Files that are written: whole, private, and with what was in them.

use std::fs;

use haft_config::{
    Layer, Presence, Sources, Trust, add_rule, keep_from_git, load, own_settings, save, set_model,
    set_value,
};
use serde_json::json;

#[cfg(unix)]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_saved_file_is_private_and_leaves_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/settings.toml");
    save(&file, b"one").unwrap();
    save(&file, b"two").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    #[cfg(unix)]
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn a_failed_save_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    let error = save(&file.join("below"), b"x").unwrap_err().to_string();
    assert!(error.contains("below"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

#[cfg(unix)]
#[test]
fn settings_behind_a_link_stay_behind_it() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    fs::write(&real, "x").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    save(&link, b"y").unwrap();
    assert!(link.is_symlink());
    assert_eq!(fs::read(&real).unwrap(), b"y");
}

#[test]
fn a_rule_is_added_once_and_comments_stay() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    add_rule(&file, "allow", "Bash(ls)").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, format!("# mine\nmodel = 'x' # this one\n{text}")).unwrap();
    add_rule(&file, "allow", "Bash(ls)").unwrap();
    add_rule(&file, "allow", r"Edit(/a\*b)").unwrap();
    add_rule(&file, "deny", "Read(\"q\")").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# mine\nmodel = 'x' # this one\n"), "{text}");
    let value: toml_like::Value = toml_like::parse(&text);
    assert_eq!(value["permissions"]["allow"], json!(["Bash(ls)", r"Edit(/a\*b)"]));
    assert_eq!(value["permissions"]["deny"], json!(["Read(\"q\")"]));
    fs::write(&file, "permissions = 1").unwrap();
    assert!(add_rule(&file, "allow", "x").unwrap_err().to_string().contains("permissions"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "permissions = 1");
}

#[test]
fn a_model_is_set_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    let set = |before: &str| {
        fs::write(&file, before).unwrap();
        set_model(&file, "ollama/x").map(|()| fs::read_to_string(&file).unwrap())
    };
    let model = |text: &str| {
        let value: toml_like::Value = toml_like::parse(text);
        let model = value["model"].clone();
        if model.is_object() { model["name"].clone() } else { model }
    };
    for before in
        ["", "# mine\n[run]\nmax_steps = 3\n", "model = 'y'\n", "[model]\nretry_seconds = 9\n"]
    {
        let after = set(before).unwrap();
        assert_eq!(model(&after), json!("ollama/x"), "{after}");
        let kept = before.lines().filter(|line| !line.contains("'y'"));
        assert!(kept.clone().all(|line| after.contains(line)), "{after}");
    }
    assert!(set("model = ").is_err());
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = ");
    fs::remove_file(&file).unwrap();
    set_model(&file, "ollama/x").unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = \"ollama/x\"\n");
}

#[test]
fn a_value_is_set_and_the_rest_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settings.toml");
    let set = |before: &str, name: &str, value: serde_json::Value| {
        fs::write(&file, before).unwrap();
        set_value(&file, name, &value).map(|()| fs::read_to_string(&file).unwrap())
    };
    let mine = "# mine\n[terminal] # of it\ntheme = \"light\" # bright\nnotify = false\n";
    for (before, name, value, after) in [
        ("", "terminal.theme", json!("dark"), "[terminal]\ntheme = \"dark\"\n".to_owned()),
        (mine, "terminal.theme", json!("dark"), mine.replace("light", "dark")),
        (mine, "terminal.notify", json!(null), mine.replace("notify = false\n", "")),
        (mine, "effort", json!("low"), mine.replacen("# mine\n", "effort = \"low\"\n# mine\n", 1)),
        ("", "shell.keep", json!(["a", "b'"]), "[shell]\nkeep = [\"a\", \"b'\"]\n".to_owned()),
        (
            "read.max_lines = 3",
            "read.max_bytes",
            json!(4096),
            "read.max_lines = 3\nread.max_bytes = 4096\n".to_owned(),
        ),
        ("", "read.max_lines", json!(null), String::new()),
    ] {
        let text = set(before, name, value.clone()).unwrap();
        assert_eq!(text, after, "{before:?} {name} {value}");
    }
    let text = set("model = 'a/b'\n", "model.retry_seconds", json!(7)).unwrap();
    let value: toml_like::Value = toml_like::parse(&text);
    assert_eq!(value["model"], json!({"name": "a/b", "retry_seconds": 7}), "{text}");
    for broken in ["terminal = 1", "terminal = "] {
        assert!(set(broken, "terminal.theme", json!("dark")).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    }
}

#[test]
fn haft_s_own_folder_is_no_project_s_in_the_home_folder() {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join(".haft");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("settings.toml"), "model = 'a/b'").unwrap();
    for trusted in [false, true] {
        let project = Some(root.path().to_owned());
        let found = load(&Sources {
            haft_home: Some(home.clone()),
            project,
            trusted,
            ..Sources::default()
        });
        assert_eq!(found.origin("model.name"), Layer::User);
        let is_untrusted = |file: &haft_config::FileState| file.presence == Presence::Untrusted;
        assert!(!found.files.iter().any(is_untrusted), "{:?}", found.files);
    }
}

#[test]
fn what_is_kept_at_home_is_read_for_its_project_alone_trusted_or_not() {
    let root = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(root.path()).unwrap();
    let (home, one, other) = (root.join("home"), root.join("a/app"), root.join("b/app"));
    for folder in [&one, &other] {
        fs::create_dir_all(folder.join(".haft")).unwrap();
        fs::write(folder.join(".haft/settings.local.toml"), "mode = 'plan'").unwrap();
    }
    let file = own_settings(&home, &one);
    assert!(file.starts_with(home.join("projects")) && file != own_settings(&home, &other));
    add_rule(&file, "allow", "Bash(./x)").unwrap();
    #[cfg(unix)]
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let read = |project: &std::path::Path, trusted| {
        let (haft_home, project) = (Some(home.clone()), Some(project.to_owned()));
        load(&Sources { haft_home, project, trusted, ..Sources::default() })
    };
    for trusted in [false, true] {
        let loaded = read(&one, trusted);
        assert_eq!(loaded.rules.len(), 1, "{loaded:?}");
        assert_eq!((loaded.rules[0].layer, &*loaded.rules[0].text), (Layer::Local, "Bash(./x)"));
        assert!(loaded.rules[0].place.starts_with(&*file.display().to_string()));
        let inside = |state: &haft_config::FileState| {
            state.path.starts_with(&one) && state.presence == Presence::Read
        };
        assert_eq!(loaded.files.iter().any(inside), trusted);
        assert_eq!(read(&other, trusted).rules, []);
    }
    // One that is reached by a link is the same.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&one, root.join("link")).unwrap();
        assert_eq!(own_settings(&home, &root.join("link")), file);
    }
    // Names are no paths.
    let odd = own_settings(&home, std::path::Path::new("/w/.. $(x)\u{e9}/"));
    assert_eq!(odd.parent().unwrap().parent().unwrap(), home.join("projects"));
}

#[test]
fn git_is_kept_from_the_own_settings_and_what_is_there_stays() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join(".haft");
    assert_eq!(keep_from_git(&folder).unwrap(), None);
    let ignore = folder.join(".gitignore");
    assert_eq!(fs::read_to_string(&ignore).unwrap(), "settings.local.toml\n");
    assert_eq!(keep_from_git(&folder).unwrap().as_deref(), Some("settings.local.toml\n"));
    fs::write(&ignore, "tools/\n").unwrap();
    assert_eq!(keep_from_git(&folder).unwrap().as_deref(), Some("tools/\n"));
    assert_eq!(fs::read_to_string(&ignore).unwrap(), "tools/\n");
    fs::remove_file(&ignore).unwrap();
    fs::create_dir(&ignore).unwrap();
    assert!(keep_from_git(&folder).is_err());
}

mod toml_like {
    pub use serde_json::Value;

    pub fn parse(text: &str) -> Value {
        toml::from_str(text).unwrap()
    }
}

#[test]
fn trust_is_for_one_real_folder() {
    let home = tempfile::tempdir().unwrap();
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("below")).unwrap();
    let mut trust = Trust::load(home.path()).unwrap();
    assert_eq!(trust.trusted(work.path()), None);
    trust.set_trust(work.path(), true).unwrap();
    trust.set_trust(home.path(), false).unwrap();
    let again = Trust::load(home.path()).unwrap();
    assert_eq!(again.trusted(&work.path().join("below/..")), Some(true));
    assert_eq!(again.trusted(&work.path().join("below")), None);
    assert_eq!(again.trusted(home.path()), Some(false));
    assert!(trust.set_trust(&work.path().join("gone"), true).is_err());
    fs::write(home.path().join("trust.json"), "{").unwrap();
    assert!(Trust::load(home.path()).unwrap_err().to_string().contains("remove it"));
}

#[test]
fn two_that_answer_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut first = Trust::load(home.path()).unwrap();
    let mut second = first.clone();
    first.set_trust(a.path(), true).unwrap();
    second.set_trust(b.path(), true).unwrap();
    let all = Trust::load(home.path()).unwrap();
    assert_eq!((all.trusted(a.path()), all.trusted(b.path())), (Some(true), Some(true)));
}
