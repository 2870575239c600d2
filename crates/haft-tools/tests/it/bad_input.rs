//! What nobody should ask of the file and search tools: each call ends soon, says what was wrong
//! and what to do, and leaves everything on the disk as it was.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use haft_policy::Mode;
use haft_testkit::{
    machine::{self, make_fifo},
    world::World,
};
use haft_tool::{Call, Dispatcher, Next, Settings, Stage, standard};
use haft_types::{Outcome, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::local;

/// Longest that any of these calls may take, in a build that is not optimised.
const SOON: Duration = Duration::from_secs(20);
/// Bytes of the longest line.
const LONG: usize = 100_000_000;

/// Tool, arguments, how it ends, and what the answer must say.
type Row = (&'static str, Value, Status, &'static [&'static str]);

use Status::{Denied, Done, Failed};

/// A workspace with one of everything that is no file to read.
fn menagerie() -> (World, Vec<UnixListener>) {
    let world = local(&[
        ("a.txt", b"one\ntwo\n"),
        ("sub/b.txt", b"three\n"),
        ("bin.dat", b"\x7fELF\x02\x01\0\0\x03\0 binary"),
        ("damaged.txt", &damaged()),
        ("surrogate.txt", &surrogate()),
    ]);
    let at = world.folder().unwrap();
    fs::write(at.join(OsStr::from_bytes(b"caf\xe9.txt")), "latin name\n").unwrap();
    make_fifo(&at.join("pipe"));
    let socket = UnixListener::bind(at.join("socket")).unwrap();
    for (name, target) in [
        ("self", "self"),
        ("one", "two"),
        ("two", "one"),
        ("gone", "nowhere/at/all"),
        ("up", ".."),
        ("zero", "/dev/zero"),
        ("sub/back", "../sub"),
    ] {
        symlink(target, at.join(name)).unwrap();
    }
    (world, vec![socket])
}

/// UTF-8 with a byte in its sixth line that means nothing.
fn damaged() -> Vec<u8> {
    let sound = "many gr\u{f6}\u{df}en, \u{fc}berall the \u{e4} x\n".repeat(5);
    [sound.as_bytes(), b"na\xffve\nend\n"].concat()
}

/// UTF-16 with half a character in it.
fn surrogate() -> Vec<u8> {
    let text = "a text that is long enough for some damage ".repeat(3);
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16()).chain([0xD800, 0x78, 0x0A]);
    units.flat_map(u16::to_le_bytes).collect()
}

/// Everything below a folder: what it is, and what it holds.
fn tree(folder: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let (mut found, mut open) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        // A folder may be closed on purpose.
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            let content = if about.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if about.is_file() && about.len() < 1 << 20 {
                fs::read(&path).unwrap_or_default()
            } else {
                Vec::new()
            };
            if about.is_dir() {
                open.push(path.clone());
            }
            found.insert(path, (about.mode(), about.len(), content));
        }
    }
    found
}

fn edit(path: &str) -> Value {
    json!({"path": path, "edits": [{"old_text": "one", "new_text": "1"}]})
}

fn write(path: &str) -> Value {
    json!({"path": path, "content": "new\n"})
}

/// One path for each of the tools; `wants` in the order read, edit, write, grep, find, ls. Where
/// nothing is wanted the call has to work, and `-` leaves it out.
fn each(path: &str, wants: [&'static [&'static str]; 6]) -> Vec<Row> {
    let inputs = [
        ("read", json!({"path": path})),
        ("edit", edit(path)),
        ("write", write(path)),
        ("grep", json!({"pattern": "thr", "path": path})),
        ("find", json!({"pattern": "x*", "path": path})),
        ("ls", json!({"path": path})),
    ];
    let rows = inputs.into_iter().zip(wants).filter(|(_, wants)| *wants != ["-"]);
    rows.map(|((tool, input), wants)| {
        let works = wants.is_empty() || wants[0] == "Done";
        let wants = wants.strip_prefix(&["Done"]).unwrap_or(wants);
        (tool, input, if works { Done } else { Failed }, wants)
    })
    .collect()
}

/// Makes the calls of a table and tells everything that is not as the table has it.
async fn check(world: &World, rows: Vec<Row>) {
    let folder = world.folder().unwrap();
    let before = tree(&folder);
    let mut wrong = Vec::new();
    for (tool, input, status, wants) in rows {
        let raw = input.as_str().map(str::to_owned);
        let shown: String = input.to_string().chars().take(120).collect();
        let call = async {
            match &raw {
                Some(raw) => world.call_raw(tool, raw).await,
                None => world.call(tool, input).await,
            }
        };
        let Ok(outcome) = tokio::time::timeout(SOON, call).await else {
            wrong.push(format!("{tool} {shown}: did not end within {SOON:?}"));
            continue;
        };
        let text = outcome.joined_text();
        if outcome.status != status {
            wrong.push(format!("{tool} {shown}: is {:?}: {text:.600}", outcome.status));
        }
        for want in wants.iter().filter(|want| !text.contains(**want)) {
            wrong.push(format!("{tool} {shown}: lacks {want:?}: {text:.600}"));
        }
        if text.len() > 4_000 {
            wrong.push(format!("{tool} {shown}: an answer of {} bytes", text.len()));
        }
        if tree(&folder) != before {
            wrong.push(format!("{tool} {shown}: something changed on the disk"));
        }
    }
    assert!(wrong.is_empty(), "{} rows are wrong:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[tokio::test]
async fn what_is_no_regular_file_is_named_and_left_alone() {
    const PIPE: &[&str] = &["pipe is a named pipe", "regular file"];
    const SOCKET: &[&str] = &["socket is a socket", "regular file"];
    const ZERO: &[&str] = &["/dev/zero is a device", "regular file"];
    const FOLDER: &[&str] = &["sub is a folder, not a file", "ls"];
    const LOOP: &[&str] = &["w/self: ", "levels of symbolic links", "leads back to itself", "ls"];
    const LOOPS: &[&str] = &["w/one: ", "levels of symbolic links", "leads back to itself", "ls"];
    const GONE: &[&str] = &["gone leads to nowhere/at/all, where nothing is", "ls"];
    const NONE: &[&str] = &["Done", "Nothing matches x*"];
    let (world, _sockets) = menagerie();
    let mut rows = each(
        "bin.dat",
        [
            &["bin.dat is not text but ELF program, 17 bytes", "program that knows"],
            &["bin.dat is not text but ELF program", "program that knows"],
            &["-"],
            &["Done", "No matches for thr in bin.dat", "(1 file searched)."],
            NONE,
            &["bin.dat is no folder", "Use read"],
        ],
    );
    let special = |path, what: &'static [&'static str], search, ls| {
        each(path, [what, what, what, search, NONE, ls])
    };
    rows.extend(special(
        "pipe",
        PIPE,
        &["pipe cannot be searched", "is a named pipe", "another path"],
        &["pipe is a named pipe, not a folder"],
    ));
    rows.extend(special(
        "socket",
        SOCKET,
        &["socket cannot be searched", "is a socket", "another path"],
        &["socket is a socket, not a folder"],
    ));
    rows.extend(special(
        "zero",
        ZERO,
        &["zero cannot be searched", "is a device", "another path"],
        &["zero is a device, not a folder"],
    ));
    rows.extend(each("sub", [FOLDER, FOLDER, FOLDER, &["Done", "sub/b.txt:1:three"], NONE, &[]]));
    rows.extend(each("self", [LOOP; 6]));
    rows.extend(each("one", [LOOPS; 6]));
    rows.extend(each("gone", [GONE, GONE, &["-"], GONE, GONE, GONE]));
    rows.extend(each(
        "sub/back/back/b.txt",
        [
            &["Done", "three"],
            &["old_text was not found"],
            &["-"],
            &["Done", "three"],
            NONE,
            &["is no folder"],
        ],
    ));
    check(&world, rows).await;
}

#[tokio::test]
async fn the_memory_of_programs_and_devices_is_no_file() {
    let (world, _sockets) = menagerie();
    let mut rows = Vec::new();
    for (path, status, want) in [
        ("/dev/tty", Failed, &["/dev/tty", "device"][..]),
        ("/dev/zero", Failed, &["/dev/zero", "device"]),
        ("/proc/self/mem", Denied, &["/proc/self/mem", "another program's memory"]),
    ] {
        rows.push(("read", json!({"path": path}), status, want));
        rows.push(("edit", edit(path), status, want));
        rows.push(("write", write(path), status, want));
        rows.push(("grep", json!({"pattern": "x", "path": path}), status, want));
    }
    check(&world, rows).await;
}

#[tokio::test]
async fn paths_that_are_none_are_told_with_what_is_wrong_with_them() {
    const BLANK: &[&str] = &["path is blank: \" \"", "Give the path of a file"];
    const EMPTY: &[&str] = &["path is empty", "Give the path of a file"];
    const NUL: &[&str] = &["a\\0b", "holds a NUL byte", "Mend the path"];
    const BYTES: &[&str] = &["bytes:%zz is no path", "two digits", "ls or find"];
    const INSIDE: &[&str] = &["w/a.txt is not a folder"];
    const NAME: &[&str] = &["nnnnnnnn", "File name too long", "at most 255 bytes", "shorter"];
    let (world, _sockets) = menagerie();
    let long = "d/".repeat(2_500);
    let mut rows = each("a\0b", [NUL; 6]);
    rows.extend(each("bytes:%zz", [BYTES; 6]));
    rows.extend(each("bytes:a%4", [&["bytes:a%4 is no path"]; 6]));
    rows.extend(each("a.txt/b", [INSIDE; 6]));
    rows.extend(each(&"n".repeat(300), [NAME, NAME, NAME, NAME, NAME, NAME]));
    rows.extend(each(
        &long,
        [
            &["there is no file d/d/d/", "Check the path"],
            &["there is no file d/d/d/", "Check the path"],
            &["d/d/d/", "programs take at most 4,095", "nothing was made", "shorter path"],
            &["there is no d/d/d/", "ls or find"],
            &["there is no d/d/d/", "ls or find"],
            &["there is no folder d/d/d/", "List the folder above"],
        ],
    ));
    rows.extend(each("", [EMPTY, EMPTY, EMPTY, &[], &[], &[]]));
    rows.extend(each(" ", [BLANK, BLANK, BLANK, &["-"], &["-"], &["-"]]));
    for number in [json!(7), json!(["a.txt", "b.txt"]), json!({"a": 1}), json!(null)] {
        rows.push(("read", json!({"path": number}), Failed, &["path"]));
        rows.push(("write", json!({"path": number, "content": "x"}), Failed, &["path"]));
    }
    check(&world, rows).await;
}

#[tokio::test]
async fn names_of_any_bytes_are_found_and_near_ones_are_offered() {
    const BIDI: &[&str] = &["a\\u{202e}txt", "Did you mean a.txt?"];
    const NEAR: &[&str] = &["there is no", "Did you mean bytes:caf%E9.txt?"];
    let (world, _sockets) = menagerie();
    let mut rows = each(
        "bytes:caf%E9.txt",
        [
            &["Done", "latin name"],
            &["bytes:caf%E9.txt was not changed", "old_text was not found"],
            &["-"],
            &["Done", "No matches for thr in bytes:caf%E9.txt"],
            &["-"],
            &["bytes:caf%E9.txt is no folder"],
        ],
    );
    rows.extend(each("caf\u{e9}.txt", [NEAR, NEAR, &["-"], NEAR, NEAR, NEAR]));
    // Nobody is shown a text that reads another way than it is.
    rows.extend(each("a\u{202e}txt", [BIDI, BIDI, &["-"], BIDI, BIDI, BIDI]));
    rows.extend(each(
        "*.txt",
        [
            &["there is no file *.txt", "find with pattern"],
            &["there is no file *.txt", "find with pattern"],
            &["-"],
            &["path takes no glob", "glob *.txt"],
            &["path takes no glob", "pattern *.txt"],
            &["there is no folder *.txt"],
        ],
    ));
    check(&world, rows).await;
}

#[tokio::test]
async fn lone_surrogates_are_no_text() {
    let (world, _sockets) = menagerie();
    let mut rows: Vec<Row> = Vec::new();
    for (tool, raw) in [
        ("read", r#"{"path": "a\ud800.txt"}"#),
        ("edit", r#"{"path": "a.txt", "edits": [{"old_text": "\udfff", "new_text": "x"}]}"#),
        ("write", r#"{"path": "a.txt", "content": "x\ud800\n"}"#),
        ("grep", r#"{"pattern": "\ud800"}"#),
        ("find", r#"{"pattern": "\ud800*"}"#),
        ("ls", r#"{"path": "\ud800"}"#),
    ] {
        rows.push((tool, Value::String(raw.to_owned()), Failed, &["surrogate"]));
    }
    check(&world, rows).await;
}

#[tokio::test]
async fn what_is_outside_of_the_workspace_is_left_alone() {
    let (world, _sockets) = menagerie();
    world.mode(Mode::DontAsk);
    let outside = world.folder().unwrap().parent().unwrap().join("outside.txt");
    fs::write(&outside, "CANARY three\n").unwrap();
    symlink(&outside, world.folder().unwrap().join("way")).unwrap();
    let mut rows: Vec<Row> = Vec::new();
    for path in ["../outside.txt", "sub/../../outside.txt", "way", "up/outside.txt"] {
        for (tool, input, ..) in each(path, [&[]; 6]) {
            rows.push((tool, input, Denied, &["outside.txt", "outside the workspace"]));
        }
    }
    check(&world, rows).await;
    assert_eq!(fs::read_to_string(&outside).unwrap(), "CANARY three\n");
    assert!(!world.recorder.text().contains("CANARY"));
}

#[tokio::test]
async fn ranges_that_are_none_are_told_with_what_they_may_be() {
    let (world, _sockets) = menagerie();
    let read =
        |offset: Value, limit: Value| json!({"path": "a.txt", "offset": offset, "limit": limit});
    let one = || json!(1);
    let mut rows: Vec<Row> = vec![
        ("read", read(json!(0), one()), Done, &["\tone\n", "offset 0 was taken as 1"]),
        ("read", read(json!(-1), one()), Done, &["     2\ttwo"]),
        ("read", read(json!(i64::MIN), one()), Done, &["     1\tone"]),
        ("read", read(json!(3), one()), Failed, &["2 lines", "offset 3 is past", "from 1 to 2"]),
        ("read", read(json!(i64::MAX), one()), Failed, &["9223372036854775807 is past"]),
        ("read", read(json!(1e30), one()), Failed, &["offset is 1e+30", "at most"]),
        ("read", read(json!(1.5), one()), Failed, &["offset is 1.5, wanted: integer"]),
        ("read", read(json!("x"), one()), Failed, &["offset is \"x\", wanted: integer"]),
        ("read", read(one(), json!(0)), Failed, &["limit is 0", "at least 1"]),
        ("read", read(one(), json!(-5)), Failed, &["limit is -5", "at least 1"]),
        ("read", read(one(), json!(u64::MAX)), Done, &["\tone\n", "\ttwo"]),
        ("read", read(json!(true), json!([])), Failed, &["offset is true", "limit is []"]),
        ("grep", json!({"pattern": "o", "offset": -1}), Failed, &["offset is -1", "at least 0"]),
        (
            "grep",
            json!({"pattern": "o", "head_limit": -5, "-A": -5}),
            Failed,
            &["head_limit is -5", "-A is -5", "at least 0"],
        ),
        ("grep", json!({"pattern": "o", "-A": u64::MAX}), Failed, &["-A", "18446744073709551615"]),
        ("grep", json!({"pattern": "o", "offset": i64::MAX}), Done, &["there are only 3"]),
        ("grep", json!({"pattern": "o", "head_limit": 0}), Done, &["a.txt:1:one"]),
    ];
    for tool in ["find", "ls"] {
        let input = |limit: Value| json!({"pattern": "*", "limit": limit});
        rows.push((tool, input(json!(0)), Failed, &["limit is 0", "at least 1"]));
        rows.push((tool, input(json!(-5)), Failed, &["limit is -5", "at least 1"]));
        rows.push((tool, input(json!("many")), Failed, &["limit is \"many\", wanted: integer"]));
        rows.push((tool, input(json!(u64::MAX)), Done, &["a.txt", "zero"]));
    }
    check(&world, rows).await;
}

#[tokio::test]
async fn patterns_that_are_none_or_explode_are_told_with_what_to_write() {
    let (world, _sockets) = menagerie();
    let mut rows: Vec<Row> = Vec::new();
    for (pattern, want) in [
        ("(a{1000}){1000}", &["(a{1000}){1000}", "1000000 characters", "repeat less often"][..]),
        ("((a{100}){100}){100}", &["1000000 characters", "repeat less often"]),
        ("(", &["\"(\" is no regular expression", "unclosed group", "set literal"]),
        ("[z-a]", &["\"[z-a]\" is no regular expression", "lower end first"]),
        ("\\p{Nope}", &["property not found", "\\p{Greek}"]),
        ("(?=x)", &["look-around", "search for what must match without it"]),
        ("(a)\\1", &["backreferences are not supported", "write out"]),
        ("a\0b", &["\"a\\0b\" holds a NUL byte", "leave it out"]),
        ("\\", &["incomplete escape", "write \\\\ for a backslash"]),
        ("*", &["repetition operator missing", "write \\*"]),
        ("x{2,1}", &["{2,1}", "smaller number first"]),
        ("(?x", &["(?x", "write \\("]),
    ] {
        for multiline in [false, true] {
            let input = json!({"pattern": pattern, "multiline": multiline});
            rows.push(("grep", input, Failed, want));
        }
    }
    rows.push(("grep", json!({"pattern": "\n"}), Failed, &["line end", "set multiline"]));
    // These take other engines for ever.
    for pattern in ["(a|a)*b", "(a*)*b", "(x+x+)+y", "(.*)*$"] {
        rows.push(("grep", json!({"pattern": pattern}), Done, &[]));
        rows.push(("grep", json!({"pattern": pattern, "multiline": true}), Done, &[]));
    }
    check(&world, rows).await;
    let long = "a".repeat(200_000) + "c\n";
    fs::write(world.folder().unwrap().join("long.txt"), &long).unwrap();
    let input = |pattern: &str| json!({"pattern": pattern, "path": "long.txt"});
    let rows = vec![
        ("grep", input("(a|a)*b"), Done, &["No matches"][..]),
        ("grep", input("(a+)+b"), Done, &["No matches"]),
        ("grep", input("(a|aa)+$"), Done, &["No matches"]),
    ];
    check(&world, rows).await;
}

#[tokio::test]
async fn globs_that_are_none_are_told_with_how_they_are_written() {
    const NOTHING: &[&str] = &["names nothing", "Write it like *.rs"];
    let (world, _sockets) = menagerie();
    let mut rows: Vec<Row> = Vec::new();
    for (glob, want) in [
        ("[", &["\"[\"", "unclosed character class"][..]),
        ("{a,b", &["\"{a,b\"", "unclosed alternate"]),
        ("}", &["\"}\"", "unopened alternate"]),
        ("[z-a]", &["\"[z-a]\"", "invalid range"]),
        ("a\\", &["a\\", "dangling '\\'"]),
    ] {
        rows.push(("grep", json!({"pattern": "o", "glob": glob}), Failed, want));
        rows.push(("find", json!({"pattern": glob}), Failed, want));
        rows.push(("ls", json!({"pattern": glob}), Failed, want));
    }
    for glob in ["/", "//", "."] {
        rows.push(("grep", json!({"pattern": "o", "glob": glob}), Failed, NOTHING));
        rows.push(("find", json!({"pattern": glob}), Failed, NOTHING));
    }
    rows.push(("find", json!({"pattern": ""}), Failed, NOTHING));
    rows.push(("find", json!({"pattern": " "}), Done, &["Nothing matches \" \""]));
    for glob in ["{a,b}".repeat(40), "*a".repeat(2_000), "a\0".to_owned(), "***".to_owned()] {
        rows.push(("grep", json!({"pattern": "o", "glob": glob}), Done, &[]));
        rows.push(("find", json!({"pattern": glob}), Done, &[]));
        rows.push(("ls", json!({"pattern": glob}), Done, &[]));
    }
    for (kind, want) in [("nope", "\"nope\" is no known file type"), ("*", "\"*\" is no known")] {
        let want: &'static [&'static str] = Box::leak(Box::new([want, "use glob"]));
        rows.push(("grep", json!({"pattern": "o", "type": kind}), Failed, want));
    }
    check(&world, rows).await;
}

#[tokio::test]
async fn texts_with_bytes_that_mean_nothing_are_not_written_over_unseen() {
    let (world, _sockets) = menagerie();
    for (path, name) in [("damaged.txt", "UTF-8 with invalid bytes"), ("surrogate.txt", "UTF-16LE")]
    {
        let folder = world.folder().unwrap();
        let before = tree(&folder);
        let shown = crate::done(&world, "read", json!({"path": path})).await;
        assert!(shown.contains(char::REPLACEMENT_CHARACTER), "{shown}");
        // As a model writes back what it was shown, with a change.
        let input = json!({"path": path, "content": "na\u{fffd}ve\nother\n"});
        let said = crate::failed(&world, "write", input).await;
        for want in [path, name, "1 place of it, the first in line", "with edit", "expect "] {
            assert!(said.contains(want), "lacks {want:?}: {said}");
        }
        let line = if path == "damaged.txt" { "in line 6" } else { "in line 1" };
        assert!(said.contains(line), "{said}");
        crate::failed(&world, "write", write(path)).await;
        assert_eq!(tree(&folder), before);
        // With the hash that the answer names, it is meant.
        let hash = said.rsplit("expect ").next().unwrap().trim_end_matches('.');
        let input = json!({"path": path, "content": "new\n", "expect": hash});
        crate::done(&world, "write", input).await;
    }
    // Never read, and nothing of it comes back: the answer tells what is gone.
    let (world, _sockets) = menagerie();
    let said = crate::done(&world, "write", write("damaged.txt")).await;
    assert!(said.contains("was never read in this conversation; its 7 lines"), "{said}");
    let said =
        crate::failed(&world, "write", json!({"path": "surrogate.txt", "content": "\u{fffd}"}));
    assert!(said.await.contains("surrogate.txt was not replaced"));
}

#[tokio::test]
async fn lines_of_many_megabytes_are_cut_searched_and_left_as_they_are() {
    let world = local(&[]);
    let path = world.folder().unwrap().join("long.txt");
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    for _ in 0..LONG / 1_000 {
        std::io::Write::write_all(&mut file, &[b'x'; 1_000]).unwrap();
    }
    std::io::Write::write_all(&mut file, b"needle").unwrap();
    drop(file.into_inner().unwrap());
    let grep = |pattern: &str| json!({"pattern": pattern, "path": "long.txt"});
    check(
        &world,
        vec![
            (
                "read",
                json!({"path": "long.txt"}),
                Done,
                &["xxx", "[cut here", "1 line cut at 2,000"],
            ),
            ("read", json!({"path": "long.txt", "offset": -1}), Done, &["1 line cut at 2,000"]),
            (
                "read",
                json!({"path": "long.txt", "offset": 2}),
                Failed,
                &["1 line", "offset 2 is past"],
            ),
            ("edit", edit("long.txt"), Failed, &["100.0 MB", "at most 67.1 MB", "with a command"]),
            ("grep", grep("needle"), Done, &["needle", "parts of 4 MB"]),
            ("grep", grep("(x|x)*y"), Done, &["No matches"]),
            ("find", json!({"pattern": "long*"}), Done, &["long.txt"]),
            ("ls", json!({"long": true}), Done, &["100000006", "long.txt"]),
        ],
    )
    .await;
    let peak = machine::peak();
    assert!(peak < 100 << 20, "{} MiB", peak >> 20);
    // What is too big to be kept is replaced all the same, and that is said.
    let said = crate::done(&world, "write", write("long.txt")).await;
    for want in ["Replaced long.txt", "cannot be undone", "100000006 bytes are more than"] {
        assert!(said.contains(want), "lacks {want:?}: {said}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"new\n");
}

/// Removes a file between the look at it and the call.
struct Remover(PathBuf);

impl Stage for Remover {
    fn name(&self) -> &'static str {
        "remover"
    }
    fn run<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let _ = fs::remove_file(&self.0);
        next.run(call)
    }
}

#[tokio::test]
async fn a_file_that_goes_between_the_look_and_the_call_is_missing() {
    for after in ["resolve", "check", "guard", "timeout"] {
        for (tool, input, ..) in each("a.txt", [&[]; 6]) {
            let (world, _sockets) = menagerie();
            let gone = world.folder().unwrap().join("a.txt");
            let pipeline =
                standard(&Settings::default()).insert_after(after, Remover(gone.clone()));
            let dispatcher =
                Dispatcher { pipeline: Arc::new(pipeline), ..(*world.dispatcher).clone() };
            let dispatcher = Arc::new(dispatcher);
            let call = dispatcher.call(tool, input, CancellationToken::new());
            let outcome = tokio::time::timeout(SOON, call).await.unwrap().1;
            let text = outcome.joined_text();
            match tool {
                // A new file takes the name.
                "write" if outcome.status == Done => {
                    assert_eq!(fs::read(&gone).unwrap(), b"new\n", "{after}: {text}");
                }
                "write" | "edit" | "ls" => assert_eq!(outcome.status, Failed, "{after}: {text}"),
                // Whoever holds it may still read it.
                _ => assert!(matches!(outcome.status, Done | Failed), "{after} {tool}: {text}"),
            }
            assert!(tool == "write" || !gone.exists(), "{after} {tool}: it is there again");
            if outcome.status == Failed {
                assert!(text.contains("a.txt"), "{after} {tool}: {text}");
            }
        }
    }
}

#[test]
fn what_may_not_be_opened_is_told() {
    if crate::ran_as_somebody_else("bad_input::what_may_not_be_opened_is_told") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(without_rights());
}

async fn without_rights() {
    let world = local(&[
        ("closed.txt", b"CANARY three\n"),
        ("shut/b.txt", b"CANARY three\n"),
        ("ro/b.txt", b"three one\n"),
        ("a.txt", b"three\n"),
    ]);
    let at = |name: &str| world.folder().unwrap().join(name);
    let mode = |name: &str, mode| {
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("closed.txt", 0);
    mode("shut", 0);
    mode("ro", 0o555);
    let mut rows = each(
        "closed.txt",
        [
            &["closed.txt", "Permission denied"],
            &["closed.txt", "Permission denied"],
            &["closed.txt", "Permission denied"],
            &["closed.txt", "Permission denied"],
            &["Done"],
            &["closed.txt is no folder"],
        ],
    );
    rows.extend(each("shut/b.txt", [&["shut", "Permission denied"]; 6]));
    rows.push(("ls", json!({"path": "shut"}), Failed, &["shut", "Permission denied"]));
    rows.push(("grep", json!({"pattern": "three"}), Done, &["a.txt:1:three", "2 unreadable"]));
    rows.push(("find", json!({"pattern": "*.txt"}), Done, &["a.txt", "1 unreadable", "shut"]));
    rows.push(("ls", json!({"recursive": true}), Done, &["a.txt", "1 folder was not entered"]));
    rows.push(("edit", edit("ro/b.txt"), Failed, &["ro", "ermission denied"]));
    rows.push(("write", write("ro/new.txt"), Failed, &["ro", "ermission denied"]));
    check(&world, rows).await;
    mode("shut", 0o755);
    mode("ro", 0o755);
}
