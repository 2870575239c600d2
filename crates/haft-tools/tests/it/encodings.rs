//! `read` of files whose beginning does not say how they are written: what is shown is what an edit
//! would take, and never another text.

use haft_types::Status;
use serde_json::{Value, json};

use crate::{both, failed, local, memory};

const ASCII: &[u8] = b"a line of plain text here\n";
const JAPANESE: &[u8] =
    b"\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96{\x8c\xea\x82\xcc\x95\xb6\x8f\xcd\x82\xc5\x82\xb7\x81B\n";
/// "Change the settings" in `Shift_JIS`.
const LAST: &[u8] = b"\x90\xdd\x92\xe8\x82\xf0\x95\xcf\x8dX\x82\xb7\x82\xe9\n";
const LAST_TEXT: &str = "設定を変更する";

/// Files whose first 64 KiB are plain.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let plain = ASCII.repeat(4000);
    let with = |rest: &[&[u8]]| [&plain[..], &rest.concat()].concat();
    let two_bytes = "\u{e9}t\u{e9}\n".repeat(40_000).into_bytes();
    vec![
        ("plain", plain.clone()),
        ("Japanese", with(&[&JAPANESE.repeat(50), LAST])),
        ("Latin-1", with(&[&b"caf\xe9 d\xe9j\xe0 vu\n".repeat(20)])),
        ("UTF-8", with(&["日本語 \u{1F600}\n".repeat(30_000).as_bytes()])),
        ("UTF-8, shifted", [b"x", &two_bytes[..]].concat()),
        ("damaged UTF-8", with(&["日本語\n".repeat(500).as_bytes(), b"\xff\n"])),
        ("one odd byte, then UTF-8", [b"\xe9\n", &plain[..], &two_bytes].concat()),
        ("cut off", with(&[b"\xe6\x97"])),
        ("marked, damaged", [b"\xEF\xBB\xBF", &plain[..], b"\xff\n"].concat()),
        ("big", [&ASCII.repeat(60_000)[..], &JAPANESE.repeat(50), LAST].concat()),
    ]
}

async fn encoding(world: &haft_testkit::world::World, input: Value) -> Value {
    let outcome = world.call("read", input).await;
    assert_eq!(outcome.status, Status::Done, "{}", outcome.joined_text());
    outcome.data.unwrap()["encoding"].clone()
}

#[tokio::test]
async fn read_and_edit_take_a_file_for_the_same_text() {
    for (what, bytes) in files() {
        let decoded = haft_text::decode(&bytes).unwrap();
        let name = json!(decoded.format().encoding.name());
        let last = decoded.text().trim_end().lines().last().unwrap();
        for world in both(&[("a.txt", &bytes)]) {
            for (offset, limit) in [(1, 1), (-1, 1), (2000, 3), (-2, 1)] {
                let input = json!({"path": "a.txt", "offset": offset, "limit": limit});
                assert_eq!(encoding(&world, input).await, name, "{what} {offset}");
            }
            let outcome = world.call("read", json!({"path": "a.txt", "offset": -1})).await;
            let shown = outcome.joined_text();
            assert!(shown.contains(&format!("\t{last}")), "{what}: {shown}");
        }
    }
}

#[tokio::test]
async fn what_comes_to_be_no_text_is_none_for_read_either() {
    let bytes = [&ASCII.repeat(4000)[..], b"\0\x01\x02\n"].concat();
    for world in both(&[("a", &bytes)]) {
        for offset in [1, -1] {
            let shown = failed(&world, "read", json!({"path": "a", "offset": offset})).await;
            assert!(shown.contains("binary data"), "{shown}");
        }
        let edits = json!([{"old_text": "plain", "new_text": "x", "replace_all": true}]);
        let shown = failed(&world, "edit", json!({"path": "a", "edits": edits})).await;
        assert!(shown.contains("binary data"), "{shown}");
    }
}

#[tokio::test]
async fn files_that_are_too_big_to_be_decoded_whole_show_their_text_too() {
    // Over what is decoded as a whole, and over what is hashed as a whole.
    for size in [17 << 20, 65 << 20] {
        let bytes = [&ASCII.repeat(size / ASCII.len())[..], &JAPANESE.repeat(50), LAST].concat();
        let world = memory(&[("a.txt", &bytes)]);
        let input = json!({"path": "a.txt", "offset": -1});
        let outcome = world.call("read", input.clone()).await;
        assert!(outcome.joined_text().contains(LAST_TEXT), "{}", outcome.joined_text());
        // What is known of its lines by now changes nothing.
        assert_eq!(encoding(&world, input).await, "Shift_JIS");
        let first = world.call("read", json!({"path": "a.txt", "limit": 1})).await;
        assert!(first.joined_text().contains("plain text"), "{}", first.joined_text());
    }
}

#[tokio::test]
async fn an_encoding_that_nothing_announces_is_told_as_a_guess() {
    let wide: Vec<u8> = "one\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, want) in [
        (&b"5 \xb5s\n"[..], "[the file is probably in windows-1252]"),
        (&JAPANESE.repeat(9), "[the file is probably in Shift_JIS]"),
        (&[b"\xff\xfe", &wide[..]].concat(), "[the file is in UTF-16LE]"),
    ] {
        let world = memory(&[("a.txt", bytes)]);
        let outcome = world.call("read", json!({"path": "a.txt"})).await;
        assert!(outcome.joined_text().ends_with(want), "{}", outcome.joined_text());
    }
}

#[tokio::test]
async fn lines_end_as_all_of_the_file_says() {
    let wide = "x".repeat(70_000);
    let old = format!("{wide}\rtwo\rthree\r");
    let plain = format!("a\rb{wide}\ntwo\rstill two\nthree\n");
    let world = local(&[("old", old.as_bytes()), ("plain", plain.as_bytes())]);
    for (path, second) in
        [("old", "     2\ttwo\n     3\tthree"), ("plain", "     2\ttwo\rstill two\n")]
    {
        for offset in [2, -2] {
            let outcome = world.call("read", json!({"path": path, "offset": offset})).await;
            let (shown, data) = (outcome.joined_text(), outcome.data.unwrap());
            assert!(shown.starts_with(second), "{path} {offset}: {shown:?}");
            assert_eq!(data["total_lines"], 3, "{path} {offset}");
        }
    }
}

/// Text in UTF-16 with its mark, low bytes first.
fn wide(text: &str) -> Vec<u8> {
    "\u{feff}".encode_utf16().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
}

#[tokio::test]
async fn a_mark_makes_text_of_utf_16_whatever_signs_are_in_it() {
    let text = "first line\u{85}of two\nsecond \u{7} line\n".repeat(20);
    let late = format!("{}last\u{85}\n", "plain text\n".repeat(7_000));
    for world in both(&[("a.txt", &wide(&text)), ("late.txt", &wide(&late))]) {
        for path in ["a.txt", "late.txt"] {
            let outcome = world.call("read", json!({"path": path, "limit": 2})).await;
            assert_eq!(outcome.data.unwrap()["encoding"], "UTF-16LE", "{path}");
        }
        let edits = json!([{"old_text": "last", "new_text": "very last"}]);
        let edited = world.call("edit", json!({"path": "late.txt", "edits": edits})).await;
        assert_eq!(edited.status, Status::Done, "{}", edited.joined_text());
        let write = json!({"path": "a.txt", "content": "new\n"});
        let told = world.call("write", write).await.joined_text();
        assert!(told.contains("UTF-16LE"), "{told}");
        assert_eq!(world.read_bytes("a.txt").await.unwrap().unwrap(), wide("new\n"));
    }
}

#[tokio::test]
async fn broken_places_of_utf_16_are_shown_and_told_in_files_of_every_size() {
    let small = wide("hello\r\nend\r\n");
    let (small, mut big) = (&small[..small.len() - 1], wide("x\n"));
    big.extend_from_slice(b"\x00\xd8\n\0");
    big.extend_from_slice(&wide(&"plain text\n".repeat(60_000))[2..]);
    for world in both(&[("small.txt", small), ("big.txt", &big)]) {
        for path in ["small.txt", "big.txt"] {
            let shown = world.call("read", json!({"path": path, "limit": 9})).await.joined_text();
            assert!(shown.contains('\u{FFFD}'), "{path} {shown}");
            let note = "the file is in UTF-16LE, with broken places, shown as \u{FFFD}]";
            assert!(shown.ends_with(note), "{path} {shown}");
        }
    }
}

#[tokio::test]
async fn a_file_of_nothing_but_a_mark_has_its_encoding_and_a_hash() {
    for (bytes, name) in [(&b"\xfe\xff"[..], "UTF-16BE"), (b"\xef\xbb\xbf", "UTF-8")] {
        for world in both(&[("a.txt", bytes)]) {
            let outcome = world.call("read", json!({"path": "a.txt"})).await;
            let data = outcome.data.as_ref().unwrap();
            assert_eq!(data["encoding"], name);
            assert_eq!(data["hash"], haft_types::Hash::of(bytes).to_string());
            let told = outcome.joined_text();
            assert!(told.starts_with("[a.txt is empty: it has no lines"), "{told}");
            assert_eq!(told.contains("the file is in UTF-16BE"), name == "UTF-16BE", "{told}");
        }
    }
}

#[tokio::test]
async fn utf32_is_named_with_what_converts_it() {
    let text = "h\u{e4}llo\nzwei\n";
    let little: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let big: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect();
    let marked = [b"\xff\xfe\0\0", &little[..]].concat();
    for (bytes, name) in [(little, "UTF-32LE"), (big, "UTF-32BE"), (marked, "UTF-32")] {
        for world in both(&[("wide.txt", &bytes)]) {
            let edit = json!([{"old_text": "zwei", "new_text": "2"}]);
            for (tool, input) in [
                ("read", json!({"path": "wide.txt"})),
                ("edit", json!({"path": "wide.txt", "edits": edit})),
            ] {
                let shown = failed(&world, tool, input).await;
                assert!(shown.contains("is text in UTF-32"), "{tool}: {shown}");
                assert!(shown.contains(&format!("iconv -f {name} -t UTF-8")), "{tool}: {shown}");
            }
            let input = json!({"path": "wide.txt", "content": "new\n"});
            let outcome = world.call("write", input).await;
            assert!(outcome.joined_text().contains("text in UTF-32"), "{}", outcome.joined_text());
        }
    }
}
