//! Results that were cut are kept whole under their address, and how a person comes to them.

use serde_json::json;

use crate::world::World;

#[test]
fn a_cut_result_of_one_call_leads_somewhere() {
    let world = World::new();
    let input = json!({"command": "seq 1 50000"});
    let found = world.tool("bash", &input, &["--mode", "bypass"]);
    let (_, command) = found.err.split_once("what is kept of it: ").unwrap();
    let ran = world.shell(command.trim());
    assert_eq!(ran.code, Some(0), "{command}: {ran:?}");
    assert!(ran.out.contains("1999"), "{ran:?}");
    let short = world.tool("bash", &json!({"command": "seq 1 5"}), &["--mode", "bypass"]);
    assert_eq!(short.err, "", "nothing is left out");
}

#[test]
fn an_address_under_which_nothing_is_leaves_no_session_and_no_hint() {
    let world = World::new();
    let ran = world.tool("read", &json!({"path": "out://c1"}), &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.out.contains("nothing is kept under"), "{ran:?}");
    assert_eq!(world.sessions(), 0);
}

#[test]
fn an_address_is_one_in_any_letter_case_and_none_behind_a_folder() {
    let world = World::new();
    let id = {
        let input = json!({"command": "seq 1 20000"});
        let ran = world.tool("bash", &input, &["--mode", "bypass"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        world.only_session()
    };
    let read = |path: &str| {
        let input = json!({"path": path, "offset": 19_999});
        world.tool("read", &input, &["--session", &id])
    };
    for address in ["out://c1", "OUT://c1", "Out://c1"] {
        let ran = read(address);
        assert!(ran.code == Some(0) && ran.out.contains("20000"), "{address} {ran:?}");
    }
    let input = json!({"path": "OUT://c1", "pattern": "^19998$"});
    let ran = world.tool("grep", &input, &["--session", &id]);
    assert!(ran.code == Some(0) && ran.out.contains("19998"), "{ran:?}");
    for path in ["./out://c1", "sub/OUT://c1"] {
        let ran = read(path);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.out.contains("write out://CALL, without a folder or ./ in front"), "{ran:?}");
    }
    let edits = json!([{"old_text": "1", "new_text": "2"}]);
    let input = json!({"path": "OUT://c1", "edits": edits});
    let ran = world.tool("edit", &input, &["--mode", "bypass"]);
    assert!(ran.code == Some(1) && ran.out.contains("is no path"), "{ran:?}");
    // A folder of that name is one.
    world.file("out:/c1", "a file\n");
    let ran = world.tool("read", &json!({"path": "./out://c1"}), &[]);
    assert!(ran.out.contains("a file"), "{ran:?}");
}
