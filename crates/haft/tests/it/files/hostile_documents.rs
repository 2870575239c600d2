//! PDF documents that are made to do harm: each call ends in time with an answer that helps, the
//! memory of all processes together stays bounded, and nothing is left running.

use std::{fmt::Write as _, fs, io::Write as _, process::Child, time::Duration};

use flate2::{Compression, write::ZlibEncoder};
use haft_testkit::machine::{descendants, watched};
use serde_json::json;

use crate::world::{World, collect, ended, signal, until};

/// What haft starts itself with to read a document.
const READER: &str = "--read-pdf-of-standard-input";
/// Most bytes of all processes of a call together: what the reader may have, and haft itself.
const MEMORY: u64 = (1024 + 200) << 20;
/// Longest that a call may take: 20 s for the document, and some for a busy machine.
const TIME: Duration = Duration::from_secs(35);

/// A document of numbered objects; the first is its catalogue.
fn document(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut out = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    let mut places = String::new();
    for (number, object) in (1..).zip(objects) {
        writeln!(places, "{:010} 00000 n ", out.len()).unwrap();
        writeln!(out, "{number} 0 obj").unwrap();
        out.extend_from_slice(object);
        out.extend_from_slice(b"\nendobj\n");
    }
    let (start, size) = (out.len(), objects.len() + 1);
    write!(out, "xref\n0 {size}\n0000000000 65535 f \n{places}").unwrap();
    write!(out, "trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    out
}

fn object(text: impl AsRef<[u8]>) -> Vec<u8> {
    text.as_ref().to_vec()
}

fn stream(entries: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("<< {entries} /Length {} >>\nstream\n", bytes.len());
    [head.as_bytes(), bytes, b"\nendstream"].concat()
}

/// A document of one page that has a word on it, if it comes to that.
fn page(entries: &str, content: Vec<u8>, more: &[Vec<u8>]) -> Vec<u8> {
    let mut objects = vec![
        object("<< /Type /Catalog /Pages 2 0 R >>"),
        object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>"),
        object(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Contents 4 0 R {entries} >>"
        )),
        content,
    ];
    objects.extend_from_slice(more);
    document(&objects)
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// 32 GB of zeros, packed twice.
fn chain_bomb() -> Vec<u8> {
    let mut block = Vec::with_capacity(100_000);
    let mut packed = flate2::Compress::new(Compression::best(), false);
    packed.compress_vec(&vec![b' '; 4 << 20], &mut block, flate2::FlushCompress::Sync).unwrap();
    // A block that ends at a whole byte may stand there any number of times.
    let once = [b"\x78\x01", &*block.repeat(8_000)].concat();
    stream("/Filter [/FlateDecode /FlateDecode]", &deflated(&once))
}

/// Forms that draw each other ten times each, ten deep.
fn laughs() -> Vec<u8> {
    let form = |next: u32| {
        let entries = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 200 200] /Resources << /XObject << /F {next} \
             0 R >> >>"
        );
        stream(&entries, "/F Do ".repeat(10).as_bytes())
    };
    let mut more: Vec<Vec<u8>> = (6..16).map(form).collect();
    let last = "/Type /XObject /Subtype /Form /BBox [0 0 200 200]";
    more.push(stream(last, b"0 0 10 10 re f"));
    page("/Resources << /XObject << /F 5 0 R >> >>", stream("", b"/F Do"), &more)
}

/// A document with this tree of pages; object 3 is a page of it.
fn tree(pages: &str) -> Vec<u8> {
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>";
    document(&[object("<< /Type /Catalog /Pages 2 0 R >>"), object(pages), object(page)])
}

/// A document of one page with an image that claims a size.
fn image(width: u64, height: u64) -> Vec<u8> {
    let entries = format!(
        "/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceRGB \
         /BitsPerComponent 8 /Filter /FlateDecode"
    );
    let picture = stream(&entries, &deflated(&vec![7; 1 << 20]));
    let content = stream("", b"200 0 0 200 0 0 cm /I Do");
    page("/Resources << /XObject << /I 5 0 R >> >>", content, &[picture])
}

/// Documents by name, with what the answer has to say.
fn hostile() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let nested = |what: &str, end: &str| what.repeat(100_000) + &end.repeat(100_000);
    let with = |entry: &str| page(&format!("/X {entry}"), stream("", b""), &[]);
    let does = |text: &str| page("", stream("", text.as_bytes()), &[]);
    let many = format!("<< /Type /Pages /Kids [{}] /Count 9 >>", "3 0 R ".repeat(2_000_000));
    let form = "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /F 5 0 R \
                >> >>";
    let form = page(
        "/Resources << /XObject << /F 5 0 R >> >>",
        stream("", b"/F Do"),
        &[stream(form, b"/F Do")],
    );
    vec![
        ("arrays.pdf", with(&nested("[", "]")), "arrays.pdf"),
        ("dictionaries.pdf", with(&nested("<</A ", ">>")), "dictionaries.pdf"),
        ("operands.pdf", does(&(nested("[", "]") + " TJ")), "PDF document of 1 page"),
        ("states.pdf", does(&"q ".repeat(2_000_000)), "PDF document of 1 page"),
        ("circle.pdf", tree("<< /Type /Pages /Kids [2 0 R 2 0 R 3 0 R] /Count 3 >>"), "circle.pdf"),
        ("count.pdf", tree("<< /Type /Pages /Kids [] /Count 2000000000 >>"), "it has no pages"),
        ("same.pdf", tree(&many), "same.pdf"),
        ("wide.pdf", image(2_000_000_000, 1), "[no text was found on this page"),
        ("square.pdf", image(60_000, 60_000), "[no text was found on this page"),
        ("largest.pdf", image(7_900, 7_900), "PDF document of 1 page"),
        ("form.pdf", form, "PDF document of 1 page"),
    ]
}

/// Reports whether a document is being read for a process.
fn is_reading(process: u32) -> bool {
    readers(process).next().is_some()
}

fn readers(process: u32) -> impl Iterator<Item = u32> {
    descendants(process).into_iter().filter(|process| {
        let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(READER)
    })
}

/// Hundredths of a second that a process has computed.
fn computed(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = stat.rsplit(')').next().unwrap_or_default();
    rest.split_whitespace().nth(11).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Has a document read and gives what was said; fails when it took too much.
fn said(name: &str, bytes: &[u8]) -> String {
    let world = World::new();
    world.file(name, bytes);
    let mut child = reading(&world, name);
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let most = watched(&mut child, TIME);
    let status = ended(&mut child, Duration::from_secs(1));
    let said = out.join().unwrap() + &err.join().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{name}: {status:?} {said}");
    assert!(said.contains(name), "{said}");
    assert!(most > 10_000 << 10, "{name}: nothing was measured");
    assert!(most < MEMORY, "{name}: {} MiB", most >> 20);
    said
}

fn reading(world: &World, name: &str) -> Child {
    let input = format!("{{\"path\": \"{name}\", \"limit\": 1}}");
    world.haft(&["tool", "read", "--input", &input]).spawn().unwrap()
}

#[test]
fn hostile_documents_cost_one_call_and_bounded_memory() {
    for (name, bytes, want) in hostile() {
        let said = said(name, &bytes);
        assert!(said.contains(want), "{name}: {said}");
    }
}

#[test]
fn a_hostile_document_that_unpacks_without_end_meets_the_bound_of_memory() {
    let said = said("chain.pdf", &page("", chain_bomb(), &[]));
    // A busy machine does not come that far in its time.
    let bounds = ["it takes more memory than a document may", "it takes more than 20 seconds"];
    assert!(bounds.iter().any(|bound| said.contains(bound)), "{said}");
    assert!(said.contains("page 1 of chain.pdf cannot be read"), "{said}");
    assert!(said.contains("another program, such as pdftotext"), "{said}");
}

#[test]
fn a_hostile_document_without_end_is_given_up_in_time() {
    let said = said("laughs.pdf", &laughs());
    assert!(said.contains("page 1 of laughs.pdf cannot be read"), "{said}");
    assert!(said.contains("it takes more than 20 seconds to read"), "{said}");
}

#[test]
fn the_reader_of_a_hostile_document_ends_with_who_wants_it() {
    for (how, limit) in [("INT", 3), ("TERM", 3), ("KILL", 3)] {
        let world = World::new();
        world.file("laughs.pdf", laughs());
        let mut child = reading(&world, "laughs.pdf");
        assert!(until(TIME, || is_reading(child.id())), "{how}: no reader was started");
        let reader = readers(child.id()).next().unwrap();
        // In the middle of its work, with the whole document in its hands.
        assert!(until(TIME, || computed(reader) > 20), "{how}: nothing is computed");
        signal(how, child.id());
        ended(&mut child, Duration::from_secs(limit));
        let gone = || {
            let line = fs::read(format!("/proc/{reader}/cmdline")).unwrap_or_default();
            !String::from_utf8_lossy(&line).contains(READER)
        };
        assert!(until(Duration::from_secs(limit), gone), "{how}: the reader still runs");
    }
}

#[test]
fn the_reader_can_open_and_write_nothing() {
    let world = World::new();
    world.file("laughs.pdf", laughs());
    let mut child = reading(&world, "laughs.pdf");
    assert!(until(TIME, || is_reading(child.id())), "no reader was started");
    let reader = readers(child.id()).next().unwrap();
    let limits = || fs::read_to_string(format!("/proc/{reader}/limits")).unwrap();
    let limit = |name: &str| {
        let limits = limits();
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(until(TIME, || limit("Max address space") == ["1073741824", "1073741824"]));
    for (name, most) in [
        ("Max file size", "0"),
        ("Max open files", "0"),
        ("Max core file size", "0"),
        ("Max cpu time", "25"),
    ] {
        assert_eq!(limit(name), [most, most], "{name}");
    }
    let environment = fs::read(format!("/proc/{reader}/environ")).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains(crate::world::CANARY));
    signal("KILL", child.id());
    ended(&mut child, Duration::from_secs(3));
}

#[test]
fn a_run_goes_on_after_a_hostile_document() {
    let world = World::new();
    let sound = include_bytes!("../../../../haft-tools/tests/fixtures/files/report.pdf");
    world.file("sound.pdf", sound);
    world.file("bomb.pdf", page("", chain_bomb(), &[]));
    let read = |path: &str| json!({"name": "read", "input": {"path": path}});
    let calls = json!({"calls": [read("bomb.pdf"), read("sound.pdf")]});
    let model = world.script(&[calls, json!({"text": "over"})]);
    let ran = world.run(&["-p", "go", "--model", &model, "--output", "stream-json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("page 1 of bomb.pdf cannot be read"), "{}", ran.out);
    assert!(ran.out.contains("A report of numbers"), "{}", ran.out);
}
