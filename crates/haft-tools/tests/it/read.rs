//! `read` where a fixture is not enough: sizes, kept outputs, images, special files.

use haft_testkit::machine;
use haft_types::{CallId, Part, Shape, Status};
use serde_json::json;

use crate::{both, done, failed, fits, local, memory, repeated};

#[tokio::test]
async fn two_thousand_lines_without_a_limit_and_more_with_one() {
    let text = repeated(1..5001, |n| format!("{n}\n"));
    for world in both(&[("a.txt", text.as_bytes())]) {
        let shown = done(&world, "read", json!({"path": "a.txt"})).await;
        assert!(shown.contains("  2000\t2000\n[lines 1-2000 of 5000; read on with offset=2001]"));
        let shown = done(&world, "read", json!({"path": "a.txt", "limit": 4000})).await;
        assert!(shown.contains("  4000\t4000\n[lines 1-4000 of 5000; read on with offset=4001]"));
        let outcome = world.call("read", json!({"path": "a.txt", "offset": 4999})).await;
        let data = outcome.data.clone().unwrap();
        assert_eq!((&data["first_line"], &data["lines"]), (&json!(4999), &json!(2)));
        assert_eq!((&data["total_lines"], data.get("next_offset")), (&json!(5000), None));
        assert_eq!(data["hash"], haft_types::Hash::of(text.as_bytes()).to_string());
        let Some(Shape::File { first_line, text, .. }) = outcome.detail.map(|d| d.shape) else {
            panic!("no file")
        };
        assert_eq!((first_line, text.as_str()), (4999, "4999\n5000\n"));
    }
}

#[tokio::test]
async fn an_answer_stays_within_its_tokens_and_pages_lose_nothing() {
    let text = repeated(1..30_001, |n| format!("line {n} {}\n", "x".repeat(n % 90)));
    let world = memory(&[("a.txt", text.as_bytes())]);
    let (mut offset, mut joined, mut pages) = (1, String::new(), 0);
    loop {
        let input = json!({"path": "a.txt", "offset": offset, "limit": 1_000_000});
        let outcome = world.call("read", input).await;
        assert!(outcome.joined_text().len() < 100_500);
        let Some(Shape::File { text, .. }) = outcome.detail.map(|d| d.shape) else {
            panic!("no file")
        };
        joined.push_str(&text);
        pages += 1;
        match outcome.data.unwrap().get("next_offset") {
            Some(next) => offset = next.as_u64().unwrap(),
            None => break,
        }
    }
    assert!(pages > 10);
    assert_eq!(joined, text);
}

#[tokio::test]
async fn a_huge_file_is_paged_without_being_read() {
    let world = local(&[]);
    let path = world.folder().unwrap().join("huge.log");
    let file = std::fs::File::create(&path).unwrap();
    let start = format!("first\n{}", "more of it\n".repeat(10_000));
    std::io::Write::write_all(&mut &file, start.as_bytes()).unwrap();
    // Sparse: 3 GB that nobody writes or reads.
    file.set_len(3_000_000_000).unwrap();
    let shown = done(&world, "read", json!({"path": "huge.log", "limit": 1})).await;
    assert!(shown.contains("[line 1 of a file of 3.0 GB; read on with offset=2]"), "{shown}");
    let outcome = world.call("read", json!({"path": "huge.log", "limit": 1})).await;
    assert_eq!(outcome.data.unwrap().get("hash"), None);
    let shown = failed(
        &world,
        "edit",
        json!({"path": "huge.log", "edits": [{"old_text": "first", "new_text": "x"}]}),
    )
    .await;
    assert!(shown.contains("3.0 GB"), "{shown}");
}

#[tokio::test]
async fn kept_outputs_are_read_by_their_address() {
    let world = memory(&[]);
    let call = CallId("c7.1".into());
    world.session.outs.put(&call, b"one\ntwo\nthree\n").unwrap();
    let input = json!({"path": "out://c7.1", "offset": 2, "limit": 1});
    let shown = done(&world, "read", input).await;
    assert_eq!(shown, "     2\ttwo\n[line 2 of 3; read on with offset=3]");
    for bad in ["out://", "out://../../etc/passwd", "out://c8", "out://c7.1/x"] {
        let shown = failed(&world, "read", json!({"path": bad})).await;
        assert!(shown.contains("nothing is kept under"), "{shown}");
    }
}

#[tokio::test]
async fn what_a_kept_output_lost_is_told_with_what_is_shown_of_it() {
    let world = memory(&[]);
    let mark = "\n[haft: 1234 bytes are left out here]\n";
    let kept = |before: usize, behind: usize| {
        [&"a\n".repeat(before), mark, &"b\n".repeat(behind)].concat().into_bytes()
    };
    for (name, output, lost) in [
        ("c1", kept(100, 100), true),
        ("c2", kept(1, 1), true),
        // A program wrote the line.
        ("c3", kept(100, 99), false),
        ("c4", b"a\n".repeat(200), false),
    ] {
        world.session.outs.put(&CallId(name.into()), &output).unwrap();
        let path = format!("out://{name}");
        for (tool, input) in [
            ("read", json!({"path": path, "limit": 1})),
            ("grep", json!({"path": path, "pattern": "b"})),
            ("grep", json!({"path": path, "pattern": "zebra"})),
        ] {
            let text = done(&world, tool, input).await;
            let told = text.contains("1,234 bytes from the middle of the output were not kept");
            assert_eq!(told, lost, "{tool} {name}: {text}");
        }
    }
}

#[tokio::test]
async fn an_image_is_shown_with_its_size_and_kept() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(3000, 10).write_to(&mut png, image::ImageFormat::Png).unwrap();
    for world in both(&[("a.png", png.get_ref())]) {
        let outcome = world.call("read", json!({"path": "a.png"})).await;
        assert_eq!(outcome.status, Status::Done);
        fits(&world, "read", &outcome);
        let text = outcome.joined_text();
        assert!(text.contains("a.png: PNG image, 3000 x 10 pixels"), "{text}");
        assert!(text.contains("shown at 2000 x 6: multiply its coordinates by 1.500"), "{text}");
        let Some(Part::Image { blob }) = outcome.content.last() else { panic!("no image") };
        let kept = world.session.blobs.get(blob).unwrap();
        assert_eq!(image::load_from_memory(&kept).unwrap().width(), 2000);
    }
}

#[tokio::test]
async fn each_side_of_a_thin_image_has_its_scale() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::GrayImage::new(1, 60_000).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let world = memory(&[("a.png", png.get_ref())]);
    let text = done(&world, "read", json!({"path": "a.png"})).await;
    assert!(
        text.contains("shown at 1 x 2000: multiply its coordinates by 1.000 across and by 30.000"),
        "{text}"
    );
}

#[tokio::test]
async fn what_an_image_is_shown_as_is_told() {
    let mut state = 7_u32;
    let noise = image::RgbImage::from_fn(1200, 1200, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let [a, b, c, _] = state.to_be_bytes();
        image::Rgb([a, b, c])
    });
    let mut png = std::io::Cursor::new(Vec::new());
    noise.write_to(&mut png, image::ImageFormat::Png).unwrap();
    let world = memory(&[("a.png", png.get_ref())]);
    let outcome = world.call("read", json!({"path": "a.png"})).await;
    fits(&world, "read", &outcome);
    let text = outcome.joined_text();
    assert!(text.contains("a.png: PNG image, 1200 x 1200 pixels, 4."), "{text}");
    assert!(text.contains("MB; it is shown as JPEG") && !text.contains("multiply"), "{text}");
    let Some(Part::Image { blob }) = outcome.content.last() else { panic!("no image") };
    assert!(blob.mime == "image/jpeg" && blob.len.div_ceil(3) * 4 <= 5_000_000, "{blob:?}");
}

#[tokio::test]
async fn pipes_and_devices_are_refused_at_once() {
    let world = local(&[]);
    machine::make_fifo(&world.folder().unwrap().join("pipe"));
    let edits = json!([{"old_text": "a", "new_text": "b"}]);
    for (tool, input) in [
        ("read", json!({"path": "pipe"})),
        ("edit", json!({"path": "pipe", "edits": edits})),
        ("write", json!({"path": "pipe", "content": "x"})),
    ] {
        let shown = failed(&world, tool, input).await;
        assert!(shown.contains("pipe is a named pipe"), "{shown}");
    }
    let shown = failed(&world, "read", json!({"path": "/dev/zero"})).await;
    assert!(shown.contains("a device"), "{shown}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_that_claim_to_be_empty_are_read() {
    let world = local(&[]);
    let shown = done(&world, "read", json!({"path": "/proc/self/status"})).await;
    assert!(shown.contains("Name:"), "{shown}");
}

#[tokio::test]
async fn emoji_are_never_cut_in_half() {
    let line = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F467}".repeat(1500);
    let world = memory(&[("a.txt", line.as_bytes())]);
    let shown = done(&world, "read", json!({"path": "a.txt"})).await;
    assert!(shown.contains("[cut here: the line has 27000 bytes]"));
    assert!(!shown.contains('\u{FFFD}'));
    assert!(shown.contains("1 line cut at 2,000 characters"), "{}", &shown[shown.len() - 100..]);
}

#[tokio::test]
async fn paths_that_are_none_are_told_apart() {
    for world in both(&[("a.txt", b"one\ntwo\n")]) {
        let text = done(&world, "read", json!({"path": "a.txt", "offset": 0})).await;
        assert!(text.contains("one") && text.contains("offset 0 was taken as 1"), "{text}");
        let edits = json!([{"old_text": "a", "new_text": "b"}]);
        for (tool, input) in [
            ("read", json!({"path": ""})),
            ("write", json!({"path": "", "content": "x"})),
            ("edit", json!({"path": "", "edits": edits})),
        ] {
            let text = failed(&world, tool, input).await;
            assert!(text.contains("path is empty"), "{tool}: {text}");
        }
        for (tool, input) in [
            ("write", json!({"path": "out://c1", "content": "x"})),
            ("edit", json!({"path": "out://c1", "edits": edits})),
            ("ls", json!({"path": "out://c1"})),
            ("find", json!({"path": "out://c1", "pattern": "*"})),
        ] {
            let text = failed(&world, tool, input).await;
            assert!(text.contains("out:// addresses can only be read"), "{tool}: {text}");
        }
        assert_eq!(world.files().await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn links_that_lead_nowhere_are_named_with_their_end() {
    let world = local(&[("a.txt", b"one\n")]);
    let folder = world.folder().unwrap();
    std::os::unix::fs::symlink("sub/nowhere", folder.join("gone")).unwrap();
    let text = failed(&world, "read", json!({"path": "gone"})).await;
    assert!(text.contains("gone leads to sub/nowhere, where nothing is"), "{text}");
}

#[tokio::test]
async fn names_with_control_characters_are_given_so_that_tools_take_them() {
    for world in both(&[("esc\u{1b}[31m", b"found me\n"), ("two\nlines", b"found me\n")]) {
        for (tool, input) in [
            ("ls", json!({})),
            ("find", json!({"pattern": "*"})),
            ("grep", json!({"pattern": "found"})),
        ] {
            let text = done(&world, tool, input).await;
            assert!(text.contains("bytes:esc%1B[31m"), "{tool}: {text}");
            assert!(text.contains("bytes:two%0Alines") && !text.contains('\u{1b}'), "{text}");
        }
        for path in ["bytes:esc%1B[31m", "bytes:two%0Alines", "esc\u{1b}[31m"] {
            let outcome = world.call("read", json!({"path": path})).await;
            assert!(outcome.joined_text().contains("found me"), "{path}");
            assert!(!outcome.joined_text().contains('\u{1b}'), "{path}");
        }
    }
}

#[tokio::test]
async fn a_link_to_an_open_file_is_not_called_a_matter_of_rights() {
    let world = local(&[]);
    let text = failed(&world, "read", json!({"path": "/proc/self/cwd/x"})).await;
    assert!(text.contains("is a link to an open file of a process"), "{text}");
    assert!(text.contains("name the file by its path") && !text.contains("rights"), "{text}");
}

#[tokio::test]
async fn a_missing_name_that_is_no_text_is_looked_for_with_ls() {
    for world in both(&[("a.txt", b"a\n")]) {
        let shown = failed(&world, "read", json!({"path": "bytes:no%FFne"})).await;
        assert!(shown.contains("there is no file bytes:no%FFne"), "{shown}");
        assert!(shown.contains("look with ls at its folder"), "{shown}");
        assert!(!shown.contains("find with pattern") && !shown.contains('\u{FFFD}'), "{shown}");
    }
}
