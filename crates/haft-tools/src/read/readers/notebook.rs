//! Reads notebooks as their cells, with the output of these.
//!
//! **Invariant:** one cell is parsed at a time, so that memory is bounded by the file. The output
//! of a cell is cut, a source is not. Formats 3 and 4 of Jupyter are known.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::{Engine as _, alphabet, engine};
use bytes::Bytes;
use haft_types::ToolError;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::{PartRange, Picture, Rendered};
use crate::units;

/// Most bytes of a notebook.
pub(crate) const FILE: u64 = 32 * 1024 * 1024;
/// Most characters of one output.
const OUTPUT: usize = 10_000;
/// A name that no program gives to anything: a noncharacter.
const MARK: char = '\u{fdd0}';
/// Most pictures of one answer.
const PICTURES: usize = 10;

/// Where padding is left out, as some programs do, it is no fault.
const BASE64: engine::GeneralPurpose = engine::GeneralPurpose::new(
    &alphabet::STANDARD,
    engine::GeneralPurposeConfig::new()
        .with_decode_padding_mode(engine::DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
struct Notebook<'a> {
    #[serde(borrow, default)]
    cells: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    worksheets: Option<Vec<Sheet<'a>>>,
}

#[derive(Deserialize)]
struct Sheet<'a> {
    #[serde(borrow, default)]
    cells: Vec<&'a RawValue>,
}

/// Shows cells of a notebook; none where the file is no notebook.
///
/// # Errors
/// When the wanted cells are past the end.
pub(crate) fn render(
    bytes: &[u8],
    wanted: PartRange,
    shown: &str,
) -> Result<Option<Rendered>, ToolError> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(None) };
    let text = haft_text::json::without_no_numbers(text, marked);
    let Ok(notebook) = serde_json::from_str::<Notebook<'_>>(&text) else { return Ok(None) };
    let cells = match (notebook.cells, notebook.worksheets) {
        (Some(cells), _) => cells,
        (None, Some(sheets)) => sheets.into_iter().flat_map(|sheet| sheet.cells).collect(),
        (None, None) => return Ok(None),
    };
    let unit = ("cell", "cells");
    let mut rendered = Rendered::new("notebook", unit, cells.len() as u64, wanted, shown)?;
    let mut pictures = 0;
    while let Some(number) = rendered.next(wanted) {
        let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
        let Some(raw) = cells.get(index) else { break };
        let room = PICTURES - pictures;
        let mut cell = Cell { number, text: String::new(), pictures: Vec::new(), room, output: 0 };
        match parsed(raw.get()) {
            Ok((value, halves)) => cell.show(&value, halves),
            Err(error) => cell.head("unknown", &[format!("damaged: {error}")]),
        }
        let before = rendered.count;
        rendered.take(&cell.text, cell.pictures, wanted);
        if rendered.count > before {
            pictures = rendered.pictures.len();
        }
    }
    Ok(Some(rendered))
}

struct Cell {
    number: u64,
    text: String,
    pictures: Vec<Picture>,
    /// Pictures that may still be shown.
    room: usize,
    /// Which of its outputs is shown, from 0.
    output: usize,
}

impl Cell {
    fn head(&mut self, kind: &str, more: &[String]) {
        let more: String = more.iter().flat_map(|text| [", ", text.as_str()]).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "--- cell {}: {kind}{more} ---", self.number);
    }

    fn show(&mut self, cell: &Value, halves: usize) {
        let shown = |value: &Value| haft_text::names::shown(value.as_str().unwrap_or_default(), 80);
        let mut more = Vec::new();
        if cell["id"].is_string() {
            more.push(format!("id {}", shown(&cell["id"])));
        }
        let run =
            ["execution_count", "prompt_number"].into_iter().find_map(|key| cell[key].as_u64());
        more.extend(run.map(|run| format!("run {run}")));
        if halves > 0 {
            let halves = units::count(halves as u64, "half character");
            more.push(format!("{halves} (surrogates) shown as {}", char::REPLACEMENT_CHARACTER));
        }
        let kind = if cell["cell_type"].is_string() {
            shown(&cell["cell_type"])
        } else {
            "unknown".into()
        };
        self.head(&kind, &more);
        let source = if cell["source"].is_null() { &cell["input"] } else { &cell["source"] };
        self.line(&joined(source));
        let attached = cell["attachments"].as_object().into_iter().flatten();
        for (name, _) in attached {
            let name = haft_text::names::shown(name, 80);
            self.line(&format!("[attachment {name} is not shown]"));
        }
        for (number, output) in cell["outputs"].as_array().into_iter().flatten().enumerate() {
            self.output = number;
            self.output(output);
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        if !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }

    fn output(&mut self, output: &Value) {
        let kind = output["output_type"].as_str().unwrap_or_default();
        let name = match kind {
            "stream" => haft_text::names::shown(output["name"].as_str().unwrap_or("stdout"), 40),
            "error" | "pyerr" => "error".to_owned(),
            _ => "result".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "--- cell {}: {name} ---", self.number);
        match kind {
            "stream" => self.printed(&joined(&output["text"])),
            "error" | "pyerr" => {
                let traceback = output["traceback"].as_array().into_iter().flatten();
                let lines: Vec<&str> = traceback.filter_map(Value::as_str).collect();
                if lines.is_empty() {
                    let text = |key: &str| output[key].as_str().unwrap_or_default();
                    self.printed(&format!("{}: {}", text("ename"), text("evalue")));
                } else {
                    self.printed(&lines.join("\n"));
                }
            }
            // Format 3 has the data beside the rest.
            _ if output["data"].is_null() => self.data(output),
            _ => self.data(&output["data"]),
        }
    }

    /// Text of a program: without control sequences, its middle cut out where it is long.
    fn printed(&mut self, text: &str) {
        let text = haft_text::strip::strip(text);
        let cut = haft_text::cut::middle(&text, OUTPUT);
        self.line(&cut.text);
        if cut.omitted > 0 {
            let (cell, output) = (self.number - 1, self.output);
            self.line(&format!(
                "[cut: the whole is in the JSON of the file, as cells[{cell}].outputs[{output}]]"
            ));
        }
    }

    fn data(&mut self, data: &Value) {
        let of = |names: &[&str]| {
            names.iter().map(|name| &data[*name]).find(|value| !value.is_null()).map(joined)
        };
        let image = of(&["image/png", "image/jpeg", "image/gif", "image/webp", "png", "jpeg"]);
        let text = of(&["text/plain", "text/markdown", "text/latex", "text", "latex"]);
        if let Some(text) = &text {
            self.printed(text);
        }
        if let Some(image) = image {
            self.picture(&image);
        } else if text.is_none() {
            if let Some(other) =
                of(&["text/html", "application/json", "image/svg+xml", "html", "svg"])
            {
                self.printed(&other);
            } else {
                let kinds = data.as_object().into_iter().flatten();
                let kinds: Vec<String> =
                    kinds.take(5).map(|(kind, _)| haft_text::names::shown(kind, 80)).collect();
                self.line(&format!("[not shown: {}]", kinds.join(", ")));
            }
        }
    }

    fn picture(&mut self, encoded: &str) {
        let size = units::size((encoded.len() / 4 * 3) as u64);
        if self.pictures.len() >= self.room {
            self.line(&format!("[a picture of {size} is not shown: read this cell alone]"));
            return;
        }
        let encoded: Vec<u8> = encoded.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        match BASE64.decode(encoded) {
            Ok(bytes) => {
                self.line(&format!("[a picture of {size}]"));
                let name = format!("cell {}", self.number);
                self.pictures.push(Picture { name, bytes: Bytes::from(bytes) });
            }
            Err(error) => self.line(&format!("[a picture that is damaged: {error}]")),
        }
    }
}

/// The value of a cell, and how many escapes in it stand for half a character that has no other
/// half: they are read as U+FFFD.
fn parsed(raw: &str) -> serde_json::Result<(Value, usize)> {
    match serde_json::from_str(raw) {
        Ok(value) => Ok((value, 0)),
        Err(error) => {
            let (mended, halves) = without_halves(raw);
            if halves == 0 {
                return Err(error);
            }
            serde_json::from_str(&mended).map(|value| (value, halves))
        }
    }
}

/// JSON with U+FFFD in place of escapes that stand for half a character alone, and their number.
fn without_halves(raw: &str) -> (String, usize) {
    let (mut out, mut rest, mut halves) = (String::with_capacity(raw.len()), raw, 0);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let len = match half(escape) {
            Some(0xD800..0xDC00) if half(&escape[6..]).is_some_and(|low| low >= 0xDC00) => 12,
            Some(_) => {
                out.push(char::REPLACEMENT_CHARACTER);
                halves += 1;
                rest = &escape[6..];
                continue;
            }
            None => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..len]);
        rest = &escape[len..];
    }
    out.push_str(rest);
    (out, halves)
}

/// The surrogate that an escape at the start of a text stands for.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..0xE000).contains(unit))
}

/// What stands for a number that JSON does not have: no value of a notebook, and no text either.
fn marked(word: &str) -> String {
    format!("{{\"{MARK}\":\"{word}\"}}")
}

/// JSON with numbers that JSON does not have as they stood in the file.
fn unmarked(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(MARK) {
        return text;
    }
    ["NaN", "Infinity", "-Infinity"]
        .into_iter()
        .fold(text, |text, word| text.replace(&marked(word), word))
}

/// A text, which notebooks keep whole or as a list of lines.
fn joined(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect::<String>().into(),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(unmarked(other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn show(notebook: &Value) -> Rendered {
        let wanted = PartRange { first: 1, count: 100, room: 100_000 };
        render(notebook.to_string().as_bytes(), wanted, "a.ipynb").unwrap().unwrap()
    }

    #[test]
    fn cells_show_their_source_and_what_they_put_out() {
        let picture = BASE64.encode(b"bytes of a picture");
        let rendered = show(&json!({"nbformat": 4, "cells": [
            {"cell_type": "markdown", "id": "m1", "source": ["# Title\n", "text"]},
            {"cell_type": "code", "execution_count": 7, "source": "print(1)\n1/0", "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["\u{1b}[31m1\u{1b}[0m\n"]},
                {"output_type": "display_data", "data": {
                    "image/png": format!("{}\n", picture), "text/plain": "<Figure>"}},
                {"output_type": "display_data", "data": {"application/x-own": {"a": 1}}},
                {"output_type": "error", "ename": "E", "evalue": "no", "traceback": ["l1", "l2"]}]},
            {"cell_type": "raw", "source": []},
            "no cell"
        ]}));
        assert_eq!(
            rendered.text,
            "--- cell 1: markdown, id m1 ---\n# Title\ntext\n--- cell 2: code, run 7 ---\n\
             print(1)\n1/0\n--- cell 2: stdout ---\n1\n--- cell 2: result ---\n<Figure>\n\
             [a picture of 18 bytes]\n--- cell 2: result ---\n[not shown: application/x-own]\n\
             --- cell 2: error ---\nl1\nl2\n--- cell 3: raw ---\n--- cell 4: unknown ---\n"
        );
        assert_eq!(&rendered.pictures[0].bytes[..], b"bytes of a picture");
        assert_eq!((rendered.count, rendered.total), (4, 4));
    }

    #[test]
    fn old_formats_show_and_what_is_none_is_told() {
        let rendered = show(&json!({"nbformat": 3, "worksheets": [{"cells": [
            {"cell_type": "code", "prompt_number": 2, "input": "x", "outputs": [
                {"output_type": "pyout", "text": ["42"]}]}]}]}));
        assert_eq!(rendered.text, "--- cell 1: code, run 2 ---\nx\n--- cell 1: result ---\n42\n");
        let wanted = PartRange { first: 1, count: 1, room: 9 };
        for none in ["", "{}", "{\"cells\": 7}", "[]", "{\"cells\": [", "\u{feff}{"] {
            assert!(render(none.as_bytes(), wanted, "a").unwrap().is_none(), "{none}");
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_read_and_shown() {
        let cells = r#"{"metadata": {"loss": NaN}, "cells": [
            {"cell_type": "code", "metadata": {"a": [-Infinity]}, "source": "x = NaN", "outputs": [
                {"output_type": "display_data", "data": {
                    "application/json": {"a": [NaN, Infinity, -Infinity, "NaN", 1]}}},
                {"output_type": "stream", "text": ["a, NaN, b\n", NaN]}]}]}"#;
        let wanted = PartRange { first: 1, count: 9, room: 1000 };
        let rendered = render(cells.as_bytes(), wanted, "a.ipynb").unwrap().unwrap();
        assert_eq!(
            rendered.text,
            "--- cell 1: code ---\nx = NaN\n--- cell 1: result ---\n\
             {\"a\":[NaN,Infinity,-Infinity,\"NaN\",1]}\n--- cell 1: stdout ---\na, NaN, b\n"
        );
        for none in [r#"{"cells": [nan]}"#, r#"{"cells": [-NaN]}"#, r#"{"cells": [NaN}"#] {
            assert!(render(none.as_bytes(), wanted, "a").unwrap().is_none(), "{none}");
        }
    }

    #[test]
    fn half_a_character_hides_no_cell() {
        let cells = r#"{"cells": [
            {"cell_type": "code", "source": "a\ud800b \ud83d\ude00 \\ud800 \udc00\ud800"},
            {"cell_type": "code", "source": "\u00e9", "outputs": [
                {"output_type": "stream", "text": ["\uDFFF\uDFFF\n"]}]}]}"#;
        let wanted = PartRange { first: 1, count: 9, room: 1000 };
        let rendered = render(cells.as_bytes(), wanted, "a.ipynb").unwrap().unwrap();
        assert_eq!(
            rendered.text,
            "--- cell 1: code, 3 half characters (surrogates) shown as \u{fffd} ---\n\
             a\u{fffd}b \u{1f600} \\ud800 \u{fffd}\u{fffd}\n\
             --- cell 2: code, 2 half characters (surrogates) shown as \u{fffd} ---\n\u{e9}\n\
             --- cell 2: stdout ---\n\u{fffd}\u{fffd}\n"
        );
    }

    #[test]
    fn a_long_output_is_cut_and_a_source_is_not() {
        let long = "x".repeat(50_000);
        let rendered = show(&json!({"cells": [{"cell_type": "code", "source": long, "outputs": [
            {"output_type": "stream", "text": long}]}]}));
        assert!(rendered.text.contains(&long));
        assert!(rendered.text.len() < 62_000, "{}", rendered.text.len());
        assert!(rendered.text.ends_with(", as cells[0].outputs[0]]\n"), "the way to the rest");
    }
}
