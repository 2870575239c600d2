//! grep beside ripgrep.

use std::{collections::HashMap, process::Command};

use haft_testkit::machine;
use haft_text::{Encoding, StreamDecoder};
use haft_types::HostPath;
use serde_json::{Value, json};

use super::{Compared, data, first_difference, printed, trees::Tree, with, written};

/// Results of a page, where pages are put together.
const PAGE: u64 = 7;
/// Most results of which pages are put together.
const PAGED: usize = 20;

/// One line that is shown: the file, its number, whether it matches, its text, what is marked.
type Line = (String, u64, bool, String, Vec<String>);

/// What is searched for.
const PATTERNS: &[&str] = &[
    "needle",
    "^needle",
    "needle$",
    "needle\\r?$",
    "n..dle",
    "\\bneedle\\b",
    "needle|other",
    "(?i)NEEDLE",
    "[0-9]+",
    "\\d",
    "\\w+_\\w+",
    "^$",
    "^\\s*$",
    "",
    "x*",
    "fn \\w+\\(",
    "a\\.b",
    "\u{e9}",
    "[^a-z\\s]",
    "needle.*needle",
    "\\Aneedle",
    "needle\\z",
    "$",
    "[ \\t]*$",
    ";?$",
    "needle|$",
    "#.*|$",
    "\\z",
    "end\\s",
    "zzz-nowhere",
    "\\t",
    "(",
    "a{2,1}",
    "*a",
    "a\nb",
    "(?s)needle.",
    "needle(?-u:\\W)",
    "k",
    "STRASSE",
];

/// Which files are searched.
const GLOBS: &[&str] = &[
    "*.rs",
    "!*.rs",
    "*.{ts,tsx}",
    "src/**",
    "/src/*",
    "**/deep/**",
    "a*",
    "?.rs",
    "[ab]*",
    "!src",
    "*.RS",
    "*.txt",
    "sub/*.txt",
    ".hidden",
    "!.*",
    "**/x.rs",
    "a/*",
    "*.log",
    "./src/*.rs",
];

/// Patterns with what else is asked for.
fn queries() -> Vec<Value> {
    let mut all: Vec<Value> = PATTERNS.iter().map(|p| json!({ "pattern": p })).collect();
    for mode in ["files_with_matches", "count"] {
        for pattern in ["needle", "^", "$", "(?i)needle", "fn|let", "zzz-nowhere", "\\x00?e"] {
            all.push(json!({"pattern": pattern, "output_mode": mode}));
        }
    }
    let options = [
        json!({"-i": true}),
        json!({"hidden": false}),
        json!({"no_ignore": true}),
        json!({"no_ignore": true, "hidden": false}),
        json!({"-A": 1}),
        json!({"-B": 2}),
        json!({"-C": 3}),
        json!({"-A": 1, "-B": 4}),
        json!({"literal": true}),
        json!({"multiline": true}),
        json!({"type": "rust"}),
        json!({"type": "py"}),
        json!({"type": "md", "-i": true}),
    ];
    all.extend(options.iter().map(|options| with(options, &[("pattern", json!("needle"))])));
    for &glob in GLOBS {
        let mode = if glob.len() % 2 == 0 { "content" } else { "files_with_matches" };
        all.push(json!({"pattern": "needle", "glob": glob, "output_mode": mode}));
    }
    all.extend(shaped());
    all
}

/// Queries over several lines and of plain text.
fn shaped() -> Vec<Value> {
    let mut all = Vec::new();
    for (pattern, more) in [
        ("begin\\n.*?end", json!({"multiline": true})),
        ("needle\\s+other", json!({"multiline": true})),
        ("begin.*end", json!({"multiline": true})),
        ("b\\nend", json!({"multiline": true, "-C": 1})),
        ("needle\\n", json!({"multiline": true, "output_mode": "count"})),
        ("begin.*?end", json!({"multiline": true, "output_mode": "count"})),
        ("needle.*?(needle|\\z)", json!({"multiline": true, "output_mode": "count"})),
        ("^|e", json!({"multiline": true, "output_mode": "count"})),
        ("needle", json!({"multiline": true, "output_mode": "count"})),
        ("e", json!({"multiline": true, "output_mode": "count"})),
        ("[a-z]", json!({"multiline": true, "output_mode": "count", "-i": true})),
        ("e+[^e]", json!({"multiline": true})),
        ("\\s+", json!({"multiline": true})),
        ("$", json!({"multiline": true})),
        ("[ \\t]*$", json!({"multiline": true, "-C": 1})),
        ("e*$", json!({"-i": true, "-C": 1})),
        ("", json!({"literal": true})),
        ("foo(bar)", json!({"literal": true})),
        ("a.b", json!({"literal": true})),
        ("[x]", json!({"literal": true, "-i": true})),
        ("N\u{c9}EDLE", json!({"-i": true})),
        ("stra\u{df}e", json!({"-i": true})),
    ] {
        all.push(with(&more, &[("pattern", json!(pattern))]));
    }
    all
}

/// Queries below a folder or in one file of a tree.
fn placed(tree: &str) -> Vec<Value> {
    let paths: &[&str] = match tree {
        "plain" => &["src", "src/deep", "README.md", ".github", "src/lib.rs"],
        "ignores" => &["sub", "sub/deep", "build", "a.log", "repo", ".hidden", "case"],
        "names" => &["a", "two  blanks", "-dash.rs", "\u{65e5}\u{672c}"],
        "contents" => &[
            "early.bin",
            "late.bin",
            "utf16le.txt",
            "utf8-mark.txt",
            "latin1.txt",
            "sub",
            "crlf.txt",
            "late-in-line.bin",
        ],
        "links" => &["real", "ruled", "to-file.rs"],
        "long" => &["far.bin", "first.js"],
        _ => &["t5", "t3/u4"],
    };
    let mut all = Vec::new();
    for path in paths {
        for mode in ["content", "files_with_matches", "count"] {
            all.push(json!({"pattern": "needle", "path": path, "output_mode": mode}));
        }
        all.push(json!({"pattern": "needle", "path": path, "glob": "*.rs"}));
        all.push(json!({"pattern": "needle", "path": path, "glob": "/*.txt", "no_ignore": true}));
    }
    if tree == "long" {
        for (name, lines) in [("-A", 1), ("-B", 1), ("-C", 1), ("-B", 30), ("-C", 300)] {
            all.push(json!({"pattern": "needle", "glob": "*.js", name: lines}));
            all.push(json!({"pattern": "^line$", "path": "first.js", name: lines}));
        }
    }
    all
}

pub(super) async fn compare(tree: &Tree, all: &mut Vec<Compared>) {
    let queries = queries();
    let some = queries.into_iter().step_by(tree.share);
    for input in some.chain(placed(tree.name)) {
        let mode = input["output_mode"].as_str().unwrap_or("content");
        let (printed, base) = ripgrep(tree, &input, mode);
        // As JSON it has a line at the end of each search, whatever was found.
        let found = printed.as_ref().is_ok_and(|text| {
            if as_json(&input, mode) {
                text.windows(14).any(|part| part == b"\"type\":\"match\"")
            } else {
                !text.is_empty()
            }
        });
        let difference = difference(tree, &input, mode, printed, &base).await;
        let query = written(&input);
        all.push(Compared { tool: "grep", tree: tree.name, query, difference, found });
    }
}

async fn difference(
    tree: &Tree,
    input: &Value,
    mode: &str,
    printed: Result<Vec<u8>, String>,
    base: &HostPath,
) -> Option<String> {
    let whole = whole(tree, input).await;
    let (whole, printed) = match (whole, printed) {
        (Ok(whole), Ok(printed)) => (whole, printed),
        (Err(_), Err(_)) => return None,
        (Ok(_), Err(text)) => return Some(format!("only ripgrep says {text:?}")),
        (Err(text), Ok(_)) => return Some(format!("only haft says {text:?}")),
    };
    if mode == "content" {
        let multiline = input["multiline"] == json!(true);
        let ours = lines(&whole, multiline);
        let theirs = their_lines(tree, base, &printed, multiline);
        if let Some(difference) = first_difference(&ours, &theirs) {
            return Some(difference);
        }
        let matching =
            |lines: &[Line]| -> Vec<Line> { lines.iter().filter(|line| line.2).cloned().collect() };
        let total = whole["matches"].as_u64().unwrap();
        if total != matching(&theirs).len() as u64 {
            return Some(format!("haft counts {total} matches"));
        }
        let pages = pages(tree, input, |page| matching(&lines(page, multiline))).await;
        return pages.and_then(|pages| first_difference(&pages, &matching(&ours)));
    }
    let theirs = if as_json(input, mode) {
        let mut files: Vec<(String, u64)> = Vec::new();
        for (path, ..) in their_lines(tree, base, &printed, true) {
            match files.last_mut().filter(|last| last.0 == path) {
                Some(last) => last.1 += 1,
                None => files.push((path, 1)),
            }
        }
        files
    } else {
        their_files(tree, base, &printed, mode == "count")
    };
    let ours = files(&whole, mode == "count");
    if let Some(difference) = first_difference(&ours, &theirs) {
        return Some(difference);
    }
    let pages = pages(tree, input, |page| files(page, mode == "count")).await;
    pages.and_then(|pages| first_difference(&pages, &ours))
}

/// Whether ripgrep is asked for the lines themselves: where a match may go over lines it counts
/// matches, and haft lines.
fn as_json(input: &Value, mode: &str) -> bool {
    let over_lines = input["multiline"] == json!(true)
        && input["pattern"].as_str().is_some_and(|pattern| pattern.contains(['.', '\\', '^']));
    mode == "content" || (mode == "count" && over_lines)
}

/// What ripgrep prints where the search starts, and that folder; paths go through NUL. A `$` stands
/// before `\r\n`, too, unless ripgrep refuses that for a pattern which itself says where `\r` stands.
fn ripgrep(tree: &Tree, input: &Value, mode: &str) -> (Result<Vec<u8>, String>, HostPath) {
    let pattern = input["pattern"].as_str().unwrap_or_default();
    if pattern.contains('$') && input["literal"] != json!(true) {
        let (printed, base) = asked(tree, input, mode, true);
        if !printed.as_ref().is_err_and(|text| text.contains("not allowed")) {
            return (printed, base);
        }
    }
    asked(tree, input, mode, false)
}

fn asked(
    tree: &Tree,
    input: &Value,
    mode: &str,
    crlf: bool,
) -> (Result<Vec<u8>, String>, HostPath) {
    let mut rg = Command::new(machine::rg());
    rg.args(["--no-config", "--no-require-git", "--sort", "path", "--no-messages", "--no-mmap"]);
    rg.args(["--glob", "!.git"]);
    for (name, flag) in [("glob", "--glob"), ("type", "--type"), ("pattern", "--regexp")] {
        if let Some(value) = input[name].as_str() {
            rg.arg(format!("{flag}={value}"));
        }
    }
    for name in ["-A", "-B", "-C"] {
        if let Some(lines) = input[name].as_u64() {
            rg.args([name, &lines.to_string()]);
        }
    }
    let on = |name: &str| input[name] == json!(true);
    let json = as_json(input, mode);
    for (flag, on) in [
        ("--ignore-case", on("-i")),
        ("--hidden", input["hidden"] != json!(false)),
        ("--no-ignore", on("no_ignore")),
        ("--fixed-strings", on("literal")),
        ("--multiline", on("multiline")),
        ("--multiline-dotall", on("multiline")),
        ("--json", json),
        ("--files-with-matches", mode == "files_with_matches"),
        ("--count", mode == "count" && !json),
        ("--null", !json),
        ("--with-filename", !json),
        ("--crlf", crlf),
    ] {
        if on {
            rg.arg(flag);
        }
    }
    // Globs are compared with paths below the searched folder.
    let path = input["path"].as_str().unwrap_or("");
    let (folder, file) = if tree.root.join(path).is_dir() { (path, "") } else { ("", path) };
    rg.arg("--").arg(format!("./{file}"));
    let base = tree.world.root.join_bytes(folder.as_bytes()).unwrap();
    (printed(&mut rg, &tree.root.join(folder)), base)
}

/// A path of ripgrep as the tool shows it.
fn shown(tree: &Tree, base: &HostPath, path: &[u8]) -> String {
    let path = base.join_bytes(path).unwrap();
    tree.world.dispatcher.place.shown(&path).into_owned()
}

/// `PATH\0` with or without `COUNT\n` behind it.
fn their_files(tree: &Tree, base: &HostPath, printed: &[u8], count: bool) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    let mut rest = printed;
    while let Some(end) = rest.iter().position(|&byte| byte == 0) {
        let path = shown(tree, base, &rest[..end]);
        rest = &rest[end + 1..];
        let mut number = 1;
        if count {
            let end = rest.iter().position(|&byte| byte == b'\n').unwrap();
            number = str::from_utf8(&rest[..end]).unwrap().trim_end().parse().unwrap();
            rest = &rest[end + 1..];
        }
        files.push((path, number));
    }
    files
}

fn files(data: &Value, count: bool) -> Vec<(String, u64)> {
    let number = |file: &Value| if count { file["matches"].as_u64().unwrap() } else { 1 };
    let files = data["files"].as_array().unwrap();
    files.iter().map(|file| (file["path"].as_str().unwrap().to_owned(), number(file))).collect()
}

fn lines(data: &Value, multiline: bool) -> Vec<Line> {
    let mut all = Vec::new();
    for file in data["files"].as_array().unwrap() {
        let path = file["path"].as_str().unwrap();
        for line in file["lines"].as_array().into_iter().flatten() {
            let text = line["text"].as_str().unwrap();
            let spans = line["spans"].as_array().unwrap();
            let at =
                |span: &Value, end: usize| usize::try_from(span[end].as_u64().unwrap()).unwrap();
            let marked = spans.iter().map(|span| text[at(span, 0)..at(span, 1)].to_owned());
            let cut = text.starts_with('…') || text.ends_with('…');
            // Of a line that is cut only its number is compared.
            let marked = if multiline || cut { Vec::new() } else { significant(marked.collect()) };
            let shown = if cut { String::new() } else { text.to_owned() };
            let number = line["number"].as_u64().unwrap();
            all.push((path.to_owned(), number, !spans.is_empty(), shown, marked));
        }
    }
    all
}

/// What is marked, without what is empty: of that one is enough to tell a match.
fn significant(marked: Vec<String>) -> Vec<String> {
    marked.into_iter().filter(|text| !text.is_empty()).collect()
}

/// The lines of `rg --json`.
fn their_lines(tree: &Tree, base: &HostPath, printed: &[u8], multiline: bool) -> Vec<Line> {
    let mut all = Vec::new();
    let mut encodings = HashMap::new();
    for message in printed.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(message).unwrap();
        let matches = message["type"] == "match";
        if !matches && message["type"] != "context" {
            continue;
        }
        let data = &message["data"];
        let path = shown(tree, base, &bytes(&data["path"]));
        let text = bytes(&data["lines"]);
        let encoding = *encodings.entry(path.clone()).or_insert_with(|| legacy(tree, &path));
        let first = data["line_number"].as_u64().unwrap();
        let mut start = 0;
        for (line, number) in text.split_inclusive(|&byte| byte == b'\n').zip(first..) {
            let kept = line.strip_suffix(b"\n").unwrap_or(line);
            let kept = kept.strip_suffix(b"\r").unwrap_or(kept);
            let marked = data["submatches"].as_array().unwrap().iter().map(|span| {
                let at = |name: &str| usize::try_from(span[name].as_u64().unwrap()).unwrap();
                let clip = |at: usize| at.saturating_sub(start).min(kept.len());
                as_text(&kept[clip(at("start"))..clip(at("end"))], encoding)
            });
            let cut = kept.len() > 2_000 && String::from_utf8_lossy(kept).chars().count() > 2_000;
            let marked = if multiline || cut { Vec::new() } else { significant(marked.collect()) };
            let shown = if cut { String::new() } else { as_text(kept, encoding) };
            all.push((path.clone(), number, matches, shown, marked));
            start += line.len();
        }
    }
    all
}

/// The encoding of a file that is in a legacy one, as read tells it.
fn legacy(tree: &Tree, path: &str) -> Option<Encoding> {
    let bytes = std::fs::read(tree.root.join(path)).ok()?;
    let format = haft_text::decode(&bytes).ok()?.format();
    Some(format.encoding).filter(|encoding| matches!(encoding, Encoding::Legacy(_)))
}

/// Bytes of ripgrep as haft shows them.
fn as_text(bytes: &[u8], encoding: Option<Encoding>) -> String {
    let Some(encoding) = encoding else { return String::from_utf8_lossy(bytes).into_owned() };
    let (mut decoder, mut text) = (StreamDecoder::new(encoding), String::new());
    decoder.push(bytes, &mut text);
    decoder.finish(&mut text);
    text
}

/// A text of `rg --json`: as it is, or in base 64 where it is no UTF-8.
fn bytes(value: &Value) -> Vec<u8> {
    if let Some(text) = value["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for four in value["bytes"].as_str().unwrap().as_bytes().chunks(4) {
        let held = four.iter().filter(|&&byte| byte != b'=').count();
        let all = four.iter().fold(0, |all, &byte| (all << 6) | digit(byte));
        out.extend_from_slice(&all.to_be_bytes()[1..held]);
    }
    out
}

/// All that a query gives, however many answers it takes to hold that.
async fn whole(tree: &Tree, input: &Value) -> Result<Value, String> {
    let mut whole = json!({"files": [], "matches": 0});
    let mut offset = json!(0);
    loop {
        let more = [("head_limit", json!(0)), ("offset", offset)];
        let part = data(&tree.world, "grep", &with(input, &more)).await?;
        whole["files"].as_array_mut().unwrap().extend(part["files"].as_array().unwrap().clone());
        let matches = whole["matches"].as_u64().unwrap() + part["matches"].as_u64().unwrap();
        whole["matches"] = json!(matches);
        assert_eq!(part["truncated"] == json!(true), part["next_offset"].is_u64(), "{part}");
        match part.get("next_offset") {
            Some(next) => offset = next.clone(),
            None => return Ok(whole),
        }
    }
}

/// All pages of a query put together; none where there are too many.
async fn pages<T>(tree: &Tree, input: &Value, read: impl Fn(&Value) -> Vec<T>) -> Option<Vec<T>> {
    let (mut all, mut offset) = (Vec::new(), 0);
    loop {
        let more = [("head_limit", json!(PAGE)), ("offset", json!(offset))];
        let page = data(&tree.world, "grep", &with(input, &more)).await.unwrap();
        all.extend(read(&page));
        match page["next_offset"].as_u64() {
            Some(next) => {
                assert!(next > offset, "{input} goes round from {offset} to {next}");
                offset = next;
            }
            None => return Some(all),
        }
        if all.len() > PAGED {
            return None;
        }
    }
}
