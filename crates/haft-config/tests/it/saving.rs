//! Files that are written: whole, private, and with what was in them.

use std::fs;

use haft_config::{Trust, add_rule, save};

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
    assert_eq!(value["permissions"]["allow"], serde_json::json!(["Bash(ls)", r"Edit(/a\*b)"]));
    assert_eq!(value["permissions"]["deny"], serde_json::json!(["Read(\"q\")"]));
    fs::write(&file, "permissions = 1").unwrap();
    assert!(add_rule(&file, "allow", "x").unwrap_err().to_string().contains("permissions"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "permissions = 1");
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
