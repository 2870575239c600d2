//! `read` of notebooks, archives and documents, and of files that only look like these.

use std::{
    io::{Read as _, Write as _},
    path::Path,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use haft_types::{Outcome, Part, Status};
use serde_json::{Value, json};

use crate::{both, done, failed, fits, local, memory, repeated};

/// A file that another program made.
pub(crate) fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/files");
    std::fs::read(folder.join(name)).unwrap()
}

fn inflated(name: &str) -> Vec<u8> {
    let mut out = Vec::new();
    GzDecoder::new(&file(name)[..]).read_to_end(&mut out).unwrap();
    out
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn pictures(outcome: &Outcome) -> usize {
    outcome.content.iter().filter(|part| matches!(part, Part::Image { .. })).count()
}

#[tokio::test]
async fn zip_archives_list_their_names_and_sizes() {
    let plain = file("plain.zip");
    let before = [b"#!/bin/sh\n".as_slice(), &plain].concat();
    for world in both(&[("a.zip", &plain), ("b.zip", &file("large.zip")), ("run.zip", &before)]) {
        let outcome = world.call("read", json!({"path": "a.zip"})).await;
        fits(&world, "read", &outcome);
        let want = "     1\t           0  folder/\n     2\t         600  folder/a.txt\n     \
                    3\t           1  \u{fc}.txt\n     4\t           1  esc\\u{1b}[31m\n\
                    [a.zip is a ZIP archive of 4 entries]";
        assert_eq!(outcome.joined_text(), want);
        let data = outcome.data.unwrap();
        assert_eq!(data["hash"], haft_types::Hash::of(&plain).to_string());
        assert_eq!(
            data["parts"],
            json!({"of": "ZIP archive", "unit": "entry", "first": 1, "count": 4, "total": 4})
        );
        let text = done(&world, "read", json!({"path": "a.zip", "offset": -3, "limit": 1})).await;
        assert!(text.starts_with("     2\t") && text.contains("read on with offset=3"), "{text}");
        let text = failed(&world, "read", json!({"path": "a.zip", "offset": 9})).await;
        assert!(text.contains("a.zip has 4 entries; offset 9 is past its end"), "{text}");
        let text = done(&world, "read", json!({"path": "b.zip"})).await;
        assert!(text.contains("\t  5000000000  huge.bin\n"), "{text}");
        let text = failed(&world, "read", json!({"path": "run.zip"})).await;
        assert!(text.contains("run.zip is not text"), "a program, {text}");
    }
}

#[tokio::test]
async fn tar_archives_list_alike_in_every_format() {
    for name in ["gnu.tgz", "pax.tgz"] {
        let tar = inflated(name);
        let long = format!("{}/{}.txt", "l".repeat(60), "n".repeat(120));
        let want = format!(
            "     1\t           0  dir/\n     2\t        1500  dir/a.txt\n     3\t           0  \
             link -> dir/a.txt\n     4\t           1  {long}\n     5\t           2  \
             gr\u{f6}\u{df}e.txt\n"
        );
        for world in both(&[("a.tar", &tar), ("a.tgz", &file(name)), ("noname", &file(name))]) {
            for path in ["a.tar", "a.tgz", "noname"] {
                let text = done(&world, "read", json!({"path": path})).await;
                assert!(text.starts_with(&want), "{name} {path}: {text}");
                let what = if path == "a.tar" { "tar archive" } else { "tar archive in gzip" };
                let notice = format!("[{path} is a {what} of 5 entries]");
                assert!(text.ends_with(&notice), "{name} {path}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn damaged_archives_give_what_they_have_and_say_what_is_wrong() {
    let (zip, tar, tgz) = (file("plain.zip"), inflated("gnu.tgz"), file("pax.tgz"));
    let mut changed = tar.clone();
    changed[512 + 148] ^= 1;
    let mut claims = zip.clone();
    let end = claims.windows(4).position(|four| four == b"PK\x05\x06").unwrap();
    claims[end + 10] = 200;
    let world = memory(&[
        ("cut.zip", &zip[..zip.len() / 2]),
        ("claims.zip", &claims),
        ("cut.tar", &tar[..1024 + 700]),
        ("changed.tar", &changed),
        ("cut.tgz", &tgz[..tgz.len() - 20]),
        ("one.gz", &deflated(b"only text\n")),
        ("tiny.zip", b"PK\x03\x04"),
    ]);
    for (path, want) in [
        ("cut.zip", "cut.zip is a damaged ZIP archive: its directory of names is not there"),
        ("tiny.zip", "tiny.zip is a damaged ZIP archive"),
        ("one.gz", "one.gz is not text but gzip data"),
    ] {
        let text = failed(&world, "read", json!({"path": path})).await;
        assert!(text.contains(want), "{path}: {text}");
    }
    for (path, wants) in [
        ("claims.zip", ["folder/a.txt", "it is damaged: it claims to have 200 entries"]),
        ("cut.tar", ["dir/a.txt", "it is damaged: its last entry ends in the middle"]),
        ("changed.tar", ["dir/\n", "it is damaged: the header after 1 entry is none"]),
        ("cut.tgz", ["dir/a.txt", "there may be more entries: it ends in the middle"]),
    ] {
        let text = done(&world, "read", json!({"path": path})).await;
        assert!(wants.iter().all(|want| text.contains(want)), "{path}: {text}");
    }
}

#[tokio::test]
async fn archives_that_expand_without_end_are_bounded() {
    // A file of 2 GB of zeros, packed in many members, and more names than are kept.
    let header = inflated("gnu.tgz")[512..1024].to_vec();
    let sized = |size: u64| {
        let mut header = header.clone();
        header[124..136].copy_from_slice(format!("{size:011o}\0").as_bytes());
        header[148..156].copy_from_slice(b"        ");
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header
    };
    let zeros = deflated(&vec![0; 4_000_000]);
    let bomb = [deflated(&sized(2_000_000_000)), zeros.repeat(500)].concat();
    let empty = sized(0);
    let many = empty.repeat(12_000);
    let world = memory(&[("bomb.tgz", &bomb), ("many.tar", &many), ("many.tgz", &deflated(&many))]);
    let text = done(&world, "read", json!({"path": "bomb.tgz"})).await;
    let bounded = text.contains("no more than 268.4 MB of it") || text.contains("took too long");
    assert!(text.starts_with("     1\t") && bounded, "{text}");
    for path in ["many.tar", "many.tgz"] {
        let input = json!({"path": path, "offset": 10_000});
        let outcome = world.call("read", input).await;
        assert_eq!(outcome.data.as_ref().unwrap()["truncated"], true);
        let text = outcome.joined_text();
        assert!(text.starts_with(" 10000\t"), "{text}");
        let all = "of more than 10,000 entries, of which those are listed; this is entry 10000; a \
                   command such as tar -tf lists all]";
        assert!(text.ends_with(all), "{text}");
        for offset in [-1, 10_001] {
            let text = failed(&world, "read", json!({"path": path, "offset": offset})).await;
            let wants = ["has more than 10,000 entries", "tar -tf lists all", "is behind those"];
            assert!(wants.iter().all(|want| text.contains(want)), "{text}");
        }
    }
}

/// A ZIP archive of empty files.
fn zip_of(count: u16) -> Vec<u8> {
    let mut directory = Vec::new();
    for number in 0..count {
        let mut entry = vec![0; 46];
        entry[..4].copy_from_slice(b"PK\x01\x02");
        entry[28] = 5;
        entry.extend(format!("{number:05}").bytes());
        directory.extend(entry);
    }
    let mut end = vec![0; 22];
    end[..4].copy_from_slice(b"PK\x05\x06");
    end[8..10].copy_from_slice(&count.to_le_bytes());
    end[10..12].copy_from_slice(&count.to_le_bytes());
    end[12..16].copy_from_slice(&u32::try_from(directory.len()).unwrap().to_le_bytes());
    end[16..20].copy_from_slice(&4_u32.to_le_bytes());
    [b"PK\x03\x04".to_vec(), directory, end].concat()
}

#[tokio::test]
async fn archives_of_old_of_many_and_of_none_are_told() {
    // An archive as tar wrote it before there was a magic: nothing behind the name of a link.
    let mut old = inflated("gnu.tgz");
    let (mut at, blocks) = (0, old.len() / 512);
    while at < blocks && old[at * 512] != 0 {
        let header = &mut old[at * 512..(at + 1) * 512];
        let size = std::str::from_utf8(&header[124..135]).unwrap().trim_matches(['\0', ' ']);
        let size = usize::from_str_radix(size, 8).unwrap();
        header[257..].fill(0);
        header[148..156].fill(b' ');
        let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        at += 1 + size.div_ceil(512);
    }
    let text = b"this is text and no archive\n";
    let world = memory(&[
        ("old.tar", &old),
        ("old.tgz", &deflated(&old)),
        ("gnu.tgz", &file("gnu.tgz")),
        ("text.tgz", &deflated(text)),
        ("long.tgz", &deflated(&text.repeat(100))),
        ("none.tgz", &deflated(&[0; 1024])),
        ("plain.tgz", text),
        ("many.zip", &zip_of(12_000)),
    ]);
    let whole = done(&world, "read", json!({"path": "gnu.tgz"})).await;
    let lines =
        |text: &str| text.lines().filter(|l| !l.starts_with('[')).collect::<Vec<_>>().join("\n");
    for path in ["old.tar", "old.tgz"] {
        let text = done(&world, "read", json!({"path": path})).await;
        assert_eq!(lines(&text), lines(&whole), "{path}");
    }
    for path in ["text.tgz", "long.tgz"] {
        let text = failed(&world, "read", json!({"path": path})).await;
        let wants = [path, "is gzip, but what is in it is no tar archive", "gzip -dc"];
        assert!(wants.iter().all(|want| text.contains(want)), "{text}");
    }
    let text = done(&world, "read", json!({"path": "none.tgz"})).await;
    assert!(text.contains("of 0 entries]"), "{text}");
    let text = done(&world, "read", json!({"path": "plain.tgz"})).await;
    assert!(text.contains("this is text and no archive"), "{text}");
    let outcome = world.call("read", json!({"path": "many.zip", "offset": 10_000})).await;
    let (text, data) = (outcome.joined_text(), outcome.data.unwrap());
    assert!(text.starts_with(" 10000\t"), "{text}");
    let only = "is a ZIP archive of 12,000 entries, of which the first 10,000 are listed; this is \
                entry 10000; a command such as unzip -l lists all]";
    assert!(text.ends_with(only), "{text}");
    assert_eq!((&data["truncated"], &data["parts"]["total"]), (&json!(true), &json!(12_000)));
    for offset in [-1, 10_001] {
        let text = failed(&world, "read", json!({"path": "many.zip", "offset": offset})).await;
        let wants = ["has 12,000 entries", "first 10,000 entries are listed", "unzip -l lists all"];
        assert!(wants.iter().all(|want| text.contains(want)), "{text}");
    }
}

#[tokio::test]
async fn notebooks_show_as_cells_with_pictures() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(30, 10).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let encoded = base64(png.get_ref());
    let notebook = json!({"metadata": {}, "nbformat": 4, "nbformat_minor": 5, "cells": [
        {"cell_type": "markdown", "id": "a1", "metadata": {}, "source": ["# Title"]},
        {"cell_type": "code", "id": "b2", "execution_count": 3, "metadata": {},
         "source": ["x = 1\n", "x"], "outputs": [
            {"output_type": "execute_result", "data": {"text/plain": "1", "image/png": encoded}},
            {"output_type": "display_data", "data": {"image/png": "bm8gaW1hZ2U="}}]}]});
    let bytes = notebook.to_string().into_bytes();
    let broken = &bytes[..bytes.len() / 2];
    let files: [(&str, &[u8]); 4] = [
        ("a.ipynb", &bytes),
        ("b.json", &bytes),
        ("c.ipynb", broken),
        ("d.ipynb", b"{\"cells\":[]}"),
    ];
    for world in both(&files) {
        let outcome = world.call("read", json!({"path": "a.ipynb"})).await;
        assert_eq!(outcome.status, Status::Done);
        fits(&world, "read", &outcome);
        let text = outcome.joined_text();
        let want = "--- cell 1: markdown, id a1 ---\n# Title\n--- cell 2: code, id b2, run 3 ---\n\
                    x = 1\nx\n--- cell 2: result ---\n1\n[a picture of ";
        assert!(text.starts_with(want), "{text}");
        assert!(text.contains("[a.ipynb is a notebook of 2 cells; cell 2 of a.ipynb is no image"));
        assert_eq!(pictures(&outcome), 1);
        let data = outcome.data.unwrap();
        assert_eq!(data["hash"], haft_types::Hash::of(&bytes).to_string());
        assert_eq!(data["parts"]["unit"], "cell");
        let text = done(&world, "read", json!({"path": "a.ipynb", "limit": 1})).await;
        assert!(text.ends_with("this is cell 1; read on with offset=2]"), "{text}");
        let text = done(&world, "read", json!({"path": "a.ipynb", "offset": -1})).await;
        assert!(text.starts_with("--- cell 2"), "{text}");
        for path in ["b.json", "c.ipynb"] {
            let text = done(&world, "read", json!({"path": path})).await;
            assert!(text.starts_with("     1\t{\"metadata\""), "{path}: {text}");
        }
        let text = done(&world, "read", json!({"path": "d.ipynb"})).await;
        assert_eq!(text, "[d.ipynb is a notebook of 0 cells]");
        // What was seen as cells may be changed as text.
        let edits = json!([{"old_text": "x = 1\\n", "new_text": "x = 2\\n"}]);
        done(&world, "edit", json!({"path": "a.ipynb", "edits": edits})).await;
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[tokio::test]
async fn lone_surrogates_are_shown_with_marks() {
    let text = "a text that is long enough for some damage ".repeat(3);
    for big in [false, true] {
        let bytes = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        let mut data: Vec<u8> = bytes(0xFEFF).to_vec();
        data.extend(text.encode_utf16().chain([0xD800, 0x78, 0x0A, 0x79]).flat_map(bytes));
        for world in both(&[("a.txt", &data)]) {
            let shown = done(&world, "read", json!({"path": "a.txt"})).await;
            assert!(shown.contains("damage \u{FFFD}x\n     2\ty"), "{shown}");
            assert!(shown.contains("UTF-16"), "{shown}");
        }
    }
}

#[tokio::test]
async fn deep_pages_of_a_known_file_are_the_same_and_a_changed_one_is_counted_anew() {
    let text = repeated(1..120_001, |n| format!("line {n}\n"));
    let world = local(&[("a.log", text.as_bytes())]);
    for _ in 0..2 {
        for (offset, line) in [(110_000, 110_000), (-1, 120_000), (91_071, 91_071), (1, 1)] {
            let input = json!({"path": "a.log", "offset": offset, "limit": 1});
            let outcome = world.call("read", input).await;
            let shown = outcome.joined_text();
            assert!(shown.starts_with(&format!("{line:>6}\tline {line}")), "{shown}");
            let data = outcome.data.unwrap();
            assert_eq!(data["total_lines"], 120_000);
            assert_eq!(data["hash"], haft_types::Hash::of(text.as_bytes()).to_string());
        }
    }
    // The same size, but every line is elsewhere.
    let other = text.replace("line ", "li\nn ");
    std::fs::write(world.folder().unwrap().join("a.log"), &other).unwrap();
    let input = json!({"path": "a.log", "offset": -1, "limit": 1});
    let outcome = world.call("read", input).await;
    let shown = outcome.joined_text();
    assert!(shown.starts_with("240000\tn 120000"), "{shown}");
    let hash = haft_types::Hash::of(other.as_bytes()).to_string();
    assert_eq!(outcome.data.unwrap()["hash"], hash);
}

#[tokio::test]
async fn what_stands_above_is_not_sent_again() {
    let text = repeated(1..200, |n| format!("line {n}\n"));
    for world in both(&[("a.txt", text.as_bytes()), ("b.txt", b"short\n")]) {
        let read = |input: Value| async { done(&world, "read", input).await };
        let whole = json!({"path": "a.txt"});
        // Nobody says that results stand, as over MCP: all is sent, always.
        for _ in 0..3 {
            assert!(read(whole.clone()).await.contains("line 150"));
        }
        let conversation = world.dispatcher.conversation.clone();
        conversation.results_stand(0);
        assert!(read(whole.clone()).await.contains("line 150"));
        let outcome = world.call("read", whole.clone()).await;
        let want = "[a.txt is unchanged: lines 1-199 stand in the result of an earlier read. If you \
                    cannot see that anymore, repeat the call]";
        assert_eq!(outcome.joined_text(), want);
        fits(&world, "read", &outcome);
        let data = outcome.data.unwrap();
        assert_eq!((&data["unchanged"], &data["lines"]), (&json!(true), &json!(199)));
        assert!(read(whole.clone()).await.contains("line 150"), "who insists gets it");
        // Another range, another state, something masked: all is sent.
        assert!(read(json!({"path": "a.txt", "offset": 50})).await.contains("line 150"));
        conversation.results_stand(1);
        assert!(read(whole.clone()).await.contains("line 150"));
        let edits = json!([{"old_text": "line 150", "new_text": "line 0"}]);
        done(&world, "edit", json!({"path": "a.txt", "edits": edits})).await;
        assert!(read(whole.clone()).await.contains("line 151"));
        assert!(read(whole).await.contains("is unchanged"));
        for _ in 0..2 {
            assert!(read(json!({"path": "b.txt"})).await.contains("short"), "it saves nothing");
        }
    }
}

#[cfg(feature = "pdf")]
mod documents {
    use haft_testkit::world::World;

    use super::*;

    #[tokio::test]
    async fn what_stands_before_a_document_hides_it_not() {
        let report = file("report.pdf");
        let behind = |junk: &[u8]| [junk, &report].concat();
        let (short, long) = (behind(b"\xff\0 from a printer\r\n"), behind(&[b'\n'; 1024]));
        let world = memory(&[("short.pdf", &short), ("long.pdf", &long), ("about", &short)]);
        for (path, bytes) in [("short.pdf", &short), ("long.pdf", &long)] {
            let outcome = world.call("read", json!({"path": path})).await;
            let text = outcome.joined_text();
            assert!(text.contains("--- page 2 ---\nPage two\nThe end.\n"), "{text}");
            assert!(text.ends_with(&format!("[{path} is a PDF document of 2 pages]")), "{text}");
            assert_eq!(outcome.data.unwrap()["hash"], haft_types::Hash::of(bytes).to_string());
        }
        let text = failed(&world, "read", json!({"path": "about"})).await;
        assert!(text.contains("about is not text"), "{text}");
    }

    #[tokio::test]
    async fn pages_show_as_text_in_the_order_of_reading() {
        let files = ["report.pdf", "columns.pdf", "other.pdf"].map(|name| (name, file(name)));
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
        for world in both(&files) {
            let outcome = world.call("read", json!({"path": "report.pdf"})).await;
            fits(&world, "read", &outcome);
            let text = outcome.joined_text().replace("  ", " ");
            for want in [
                "--- page 1 ---\nA report of numbers\n",
                "The quick brown fox jumps over the lazy dog, and a second sentence follows",
                "\n\nSecond paragraph: caf\u{e9}, na\u{ef}ve & 100 %.\n",
                "Name Count Share\napples 12 40 %\npears 18 60 %\n",
                "--- page 2 ---\nPage two\nThe end.\n",
                "[report.pdf is a PDF document of 2 pages]",
            ] {
                assert!(text.contains(want), "lacks {want:?}:\n{text}");
            }
            assert_eq!(pictures(&outcome), 0, "a page with text is shown as text");
            let data = outcome.data.unwrap();
            assert_eq!(data["hash"], haft_types::Hash::of(&file("report.pdf")).to_string());
            let text = done(&world, "read", json!({"path": "columns.pdf"})).await;
            let left = text.find("left column line 5\n").unwrap();
            let right = text.find("right column line 1\n").unwrap();
            assert!(left < right && text.contains("\n\nturned text\n"), "{text}");
            let text = done(&world, "read", json!({"path": "other.pdf"})).await;
            assert!(
                text.contains("Text of another program.\nIts second line has \"quotes\""),
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn a_page_that_is_asked_for_or_has_no_text_is_a_picture() {
        let (report, drawing) = (file("report.pdf"), file("drawing.pdf"));
        let world = memory(&[("report.pdf", &report), ("drawing.pdf", &drawing)]);
        let input = json!({"path": "report.pdf", "offset": 2, "limit": 1});
        let outcome = world.call("read", input).await;
        assert!(outcome.joined_text().starts_with("--- page 2 ---\nPage two"));
        assert_eq!(pictures(&outcome), 1);
        let outcome = world.call("read", json!({"path": "drawing.pdf"})).await;
        assert_eq!(outcome.status, Status::Done);
        let Some(Part::Image { blob }) = outcome.content.last() else { panic!("no picture") };
        let kept = world.session.blobs.get(blob).unwrap();
        let picture = image::load_from_memory(&kept).unwrap().into_rgb8();
        assert_eq!((picture.width(), picture.height()), (1500, 750));
        assert_eq!((picture[(300, 300)].0, picture[(1400, 300)].0), ([255, 0, 0], [255; 3]));
    }

    /// A document of a page of text and an empty one.
    const TWO: &str = "%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2/MediaBox[0 0 200 200]>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/Contents 5 0 R/Resources<</Font<</F 6 0 R>>>>>>endobj
4 0 obj<</Type/Page/Parent 2 0 R>>endobj
5 0 obj<</Length 47>>stream
BT /F 12 Tf 10 100 Td (Words to be read) Tj ET
endstream endobj
6 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
%%EOF
";

    #[tokio::test]
    async fn pictures_are_told_by_the_pages_that_they_are_of() {
        let report = file("report.pdf");
        let world = memory(&[("two.pdf", TWO.as_bytes()), ("report.pdf", &report)]);
        for (input, images, note) in [
            (
                json!({"path": "two.pdf"}),
                1,
                "[two.pdf is a PDF document of 2 pages; the image is of page 2; pages with text \
                 are drawn where limit is at most 3]",
            ),
            (
                json!({"path": "two.pdf", "limit": 3}),
                2,
                "[two.pdf is a PDF document of 2 pages; the images are of page 1, page 2]",
            ),
            (
                json!({"path": "report.pdf", "offset": 2, "limit": 1}),
                1,
                "[report.pdf is a PDF document of 2 pages; this is page 2; the image is of page 2]",
            ),
        ] {
            let outcome = world.call("read", input).await;
            assert_eq!(pictures(&outcome), images);
            let text = outcome.joined_text();
            assert!(text.contains(note), "{text}");
        }
    }

    /// A document with these texts, a page each; `differences` are names of its font's glyphs.
    fn with_font(differences: &str, pages: &[&str]) -> String {
        use std::fmt::Write as _;
        let kids = crate::repeated(0..pages.len(), |page| format!("{} 0 R ", 10 + page));
        let mut out = format!(
            "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages\
             /Kids[{kids}]/Count {}/MediaBox[0 0 400 200]>>endobj\n3 0 obj<</Type/Font/Subtype\
             /Type1/BaseFont/Helvetica/Encoding<</Differences[{differences}]>>>>endobj\n",
            pages.len()
        );
        for (index, text) in pages.iter().enumerate() {
            let content = format!("BT /F 12 Tf 10 100 Td ({text}) Tj ET");
            let (page, stream) = (10 + index, 40 + index);
            write!(
                out,
                "{page} 0 obj<</Type/Page/Parent 2 0 R/Contents {stream} 0 R/Resources<</Font\
                 <</F 3 0 R>>>>>>endobj\n{stream} 0 obj<</Length {}>>stream\n{content}\n\
                 endstream endobj\n",
                content.len()
            )
            .unwrap();
        }
        out + "trailer<</Root 1 0 R>>\n%%EOF\n"
    }

    #[tokio::test]
    async fn a_page_whose_font_gives_no_characters_says_so() {
        // Capitals are glyphs without a character, or with one for private use.
        let unmapped = crate::repeated(0..26, |at| format!("/glyph.own{at}x"));
        let private = crate::repeated(0..26, |at| format!("/uniE0{at:02X}"));
        let soup = "has no text that can be read: its font gives no characters; ";
        for names in [unmapped, private] {
            let pages = [
                "ABCDEFG HIJKLMNOP QRSTUVW",
                "words that can be read",
                "words A that B can be read",
                "THIS is soup MOSTLY",
                "more words than SOUP here",
            ];
            let document = with_font(&format!("65 {names}"), &pages);
            let world = memory(&[("soup.pdf", document.as_bytes())]);
            let outcome = world.call("read", json!({"path": "soup.pdf"})).await;
            fits(&world, "read", &outcome);
            let text = outcome.joined_text();
            let of = |page: usize| {
                let text = text.split(&format!("--- page {page} ---\n")).nth(1).unwrap();
                text.split("--- page").next().unwrap()
            };
            for page in [1, 4] {
                let want = format!("[page {page} {soup}look at its image]\n");
                assert!(of(page).starts_with(&want), "{page}: {text}");
                assert!(!of(page).contains(['\u{fffd}', '\u{e000}', '\u{e001}']), "{text}");
            }
            assert_eq!(of(2).trim_end(), "words that can be read");
            assert!(of(3).starts_with("words ") && of(3).contains("can be read"), "{text}");
            assert!(of(5).starts_with("more words than "), "{text}");
            assert!(!of(3).contains("no text") && !of(5).contains("no text"), "{text}");
            assert_eq!(pictures(&outcome), 2, "of the pages without text alone");
            assert!(text.contains("the images are of page 1, page 4;"), "{text}");
        }
        // A font whose glyphs have names of letters is none of that.
        let document = with_font("65 /a/b/c", &["ABC ABC ABC"]);
        let world = memory(&[("named.pdf", document.as_bytes())]);
        let text = done(&world, "read", json!({"path": "named.pdf"})).await;
        assert!(text.contains("abc abc abc"), "{text}");
    }

    #[tokio::test]
    async fn a_document_that_was_cut_is_not_told_as_whole() {
        let report = file("report.pdf");
        let end = TWO.find("trailer").unwrap();
        let junk = [&report, &[b'\n'; 900][..]].concat();
        let world = memory(&[
            ("cut.pdf", &TWO.as_bytes()[..end]),
            ("report.pdf", &report[..report.len() - 30]),
            ("whole.pdf", &report),
            ("junk.pdf", &junk),
        ]);
        for (path, cut) in
            [("cut.pdf", true), ("report.pdf", true), ("whole.pdf", false), ("junk.pdf", false)]
        {
            let text = done(&world, "read", json!({"path": path})).await;
            assert_eq!(
                text.contains("cut off or damaged, and pages may be missing"),
                cut,
                "{text}"
            );
        }
    }

    #[tokio::test]
    async fn documents_that_cannot_be_read_say_why() {
        let report = file("report.pdf");
        let mut bomb =
            b"%PDF-1.4\n1 0 obj\n<< /Length 9 /Filter /FlateDecode >>\nstream\n".to_vec();
        // A block that ends at a whole byte may stand there any number of times.
        let mut block = Vec::new();
        let mut packed = flate2::Compress::new(Compression::best(), false);
        let flush = flate2::FlushCompress::Sync;
        block.reserve(100_000);
        packed.compress_vec(&vec![0; 4_000_000], &mut block, flush).unwrap();
        bomb.extend_from_slice(b"\x78\x01");
        bomb.extend_from_slice(&block.repeat(40));
        bomb.extend_from_slice(b"\nendstream\nendobj\n");
        let world = memory(&[
            ("locked.pdf", &file("locked.pdf")),
            ("none.pdf", b"%PDF-1.4\nnothing of that kind\n"),
            ("bomb.pdf", &bomb),
            ("report.pdf", &report),
            ("about.txt", b"%PDF-1.4 is what documents begin with\n"),
        ]);
        for (path, want) in [
            ("locked.pdf", "opens with a password only"),
            ("none.pdf", "none.pdf is a damaged PDF document"),
            ("bomb.pdf", "it unpacks to more than can be held"),
        ] {
            let text = failed(&world, "read", json!({"path": path})).await;
            assert!(text.contains(want), "{path}: {text}");
        }
        let text = failed(&world, "read", json!({"path": "report.pdf", "offset": 3})).await;
        assert!(text.contains("report.pdf has 2 pages; offset 3 is past its end"), "{text}");
        let text = done(&world, "read", json!({"path": "about.txt"})).await;
        assert!(text.contains("     1\t%PDF-1.4 is what"), "{text}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn damaged_documents_never_break_anything() {
        let whole = file("report.pdf");
        let mut state = 7_u64;
        let mut next = |most: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(state >> 33).unwrap() % most
        };
        for _ in 0..12 {
            let mut bytes = whole.clone();
            for _ in 0..=next(8) {
                let at = next(bytes.len());
                bytes[at] = u8::try_from(next(256)).unwrap();
            }
            bytes.truncate(whole.len() - next(whole.len() / 2));
            let world = memory(&[("a.pdf", &bytes)]);
            let outcome = world.call("read", json!({"path": "a.pdf"})).await;
            assert!(matches!(outcome.status, Status::Done | Status::Failed));
        }
    }

    /// A world whose documents are read by a shell script.
    fn read_by(script: &str, bytes: &[u8]) -> World {
        let host = std::sync::Arc::new(haft_host::Local::new());
        let program = ["/bin/sh", "-c", script].map(|word| word.as_bytes().to_vec()).to_vec();
        let pdf = haft_tools::PdfReader::Apart { host, program };
        let options = haft_tools::Options { pdf, ..haft_tools::Options::default() };
        let files = [("a.pdf", bytes), ("a.txt", b"plain\n")];
        World::memory(haft_tools::with(&options), files).unwrap()
    }

    #[tokio::test]
    async fn a_reader_that_dies_or_talks_nonsense_costs_its_call_alone() {
        let report = file("report.pdf");
        let page = "printf 'n\\0\\0\\0\\010\\0\\0\\0\\0\\0\\0\\0\\002'; \
                    printf 'p\\0\\0\\0\\006first\\n'";
        for (script, want) in [
            ("kill -9 $$", "a.pdf cannot be read: its reader was ended by signal 9"),
            ("kill -24 $$", "it takes more than 20 seconds to read"),
            ("echo memory allocation of 9 bytes failed >&2; kill -6 $$", "takes more memory than"),
            ("echo has overflowed its stack >&2; kill -6 $$", "it is nested too deeply"),
            ("echo out of sorts >&2; exit 3", "its reader ended with exit code 3: out of sorts"),
            ("exit 101", "its reader broke down on it"),
            ("exit 0", "a.pdf cannot be read: its reader ended with exit code 0"),
            ("cat", "its reader told nonsense"),
            ("yes", "its reader told nonsense"),
            ("exec no-such-program-there", "its reader ended with exit code 127"),
        ] {
            let world = read_by(script, &report);
            let text = failed(&world, "read", json!({"path": "a.pdf"})).await;
            assert!(text.contains(want), "{script}: {text}");
            assert!(text.contains("another program"), "{script}: {text}");
            done(&world, "read", json!({"path": "a.txt"})).await;
        }
        // The pages before it are given.
        let world = read_by(&format!("cat > /dev/null; {page}; kill -9 $$"), &report);
        let text = done(&world, "read", json!({"path": "a.pdf"})).await;
        assert!(text.starts_with("first\n[a.pdf is a PDF document of 2 pages"), "{text}");
        assert!(text.contains("read on with offset=2"), "{text}");
        assert!(text.contains("cannot be read: its reader was ended by signal 9"), "{text}");
    }

    #[tokio::test]
    async fn a_reader_is_started_for_documents_alone() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("started");
        let world = read_by(&format!("touch '{}'", mark.display()), &file("report.pdf"));
        done(&world, "read", json!({"path": "a.txt"})).await;
        assert!(!mark.exists());
        failed(&world, "read", json!({"path": "a.pdf"})).await;
        assert!(mark.exists());
    }

    #[tokio::test]
    async fn a_reader_ends_when_its_call_is_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("process");
        let script = format!("echo $$ > '{}'; exec sleep 300", mark.display());
        let world = read_by(&script, &file("report.pdf"));
        let stop = tokio_util::sync::CancellationToken::new();
        let cancel = async {
            while !std::fs::read_to_string(&mark).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            stop.cancel();
        };
        let call = world.call_until("read", json!({"path": "a.pdf"}), stop.clone());
        let (outcome, ()) = tokio::join!(call, cancel);
        assert_eq!(outcome.status, Status::Cancelled, "{outcome:?}");
        let process = std::fs::read_to_string(&mark).unwrap();
        let line = || std::fs::read(format!("/proc/{}/cmdline", process.trim()));
        for _ in 0..600 {
            if line().is_ok_and(|line| line.is_empty()) || line().is_err() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("it still runs: {:?}", line());
    }
}

#[tokio::test]
async fn what_is_wrong_with_an_image_is_said_in_words() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(30, 10).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let png = png.into_inner();
    // Behind the 8 bytes of the signature the header takes 25.
    let headless = [&png[..8], &png[33..]].concat();
    let mut other = png.clone();
    other[29] ^= 1;
    let world = memory(&[("headless.png", &headless), ("other.png", &other)]);
    for (path, why) in
        [("headless.png", "its header chunk is missing"), ("other.png", "a checksum is wrong")]
    {
        let text = failed(&world, "read", json!({"path": path})).await;
        assert!(text.contains(&format!("{path} is a damaged image: {why}")), "{text}");
    }
}
