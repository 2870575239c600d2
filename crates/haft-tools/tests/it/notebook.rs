//! `notebook_edit`: cells change, nothing else does.
//!
//! The layouts that programs write are judged by another writer of JSON, the rest by where the
//! cells stand, as whoever wrote the notebook knows it.

use std::ops::Range;

use haft_policy::Mode;
use haft_testkit::world::World;
use haft_types::{Body, Hash, Reply, Shape, Status};
use serde::Serialize as _;
use serde_json::{Value, json, ser::PrettyFormatter};

use crate::{both, done, failed, local, memory};

/// A notebook as Jupyter writes it.
const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {},
   "source": [
    "# Title"
   ]
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "sum",
   "metadata": {"tags": [ 1.50e+3 ]},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["2\n"]
    }
   ],
   "source": [
    "a = \"\u00e9\"\n",
    "print(1 + 1)"
   ]
  }
 ],
 "metadata": {"big": 12345678901234567890},
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

fn hash(text: &[u8]) -> String {
    Hash::of(text).to_string()
}

async fn content(world: &World, path: &str) -> String {
    String::from_utf8(world.read_bytes(path).await.unwrap().unwrap()).unwrap()
}

#[tokio::test]
async fn a_new_source_takes_the_place_of_the_old_one_alone() {
    for world in both(&[("a.ipynb", NOTEBOOK.as_bytes())]) {
        done(&world, "read", json!({"path": "a.ipynb"})).await;
        let input = json!({
            "path": "a.ipynb", "cell_id": "sum", "new_source": "a = \"é\"\nprint(\"\t\")\n",
        });
        let outcome = world.call("notebook_edit", input).await;
        let wanted = NOTEBOOK
            .replace("\"execution_count\": 3", "\"execution_count\": null")
            .replace("print(1 + 1)\"", "print(\\\"\\t\\\")\\n\"");
        let from = wanted.find("\"outputs\": [").unwrap() + 11;
        let to = wanted.find(",\n   \"source\": [\n    \"a").unwrap();
        let wanted = format!("{}[]{}", &wanted[..from], &wanted[to..]);
        assert_eq!(content(&world, "a.ipynb").await, wanted);
        assert_eq!(
            outcome.joined_text(),
            "Edited cell 2 (code, id sum) of a.ipynb.\n[its outputs were cleared]\n\
             1   a = \"é\"\n2 - print(1 + 1)\n  \\ No newline at end of file\n2 + print(\"\t\")"
        );
        let data = outcome.data.unwrap();
        assert_eq!(
            data["diff"],
            "@@ -1,2 +1,2 @@\n a = \"é\"\n-print(1 + 1)\n\\ No newline at end of file\n+print(\"\t\")\n"
        );
        let (before, after) = (hash(NOTEBOOK.as_bytes()), hash(wanted.as_bytes()));
        assert_eq!((&data["hash_before"], &data["hash_after"]), (&json!(before), &json!(after)));
        let receipt = &outcome.receipts[0];
        assert_eq!(receipt.after.map(|hash| hash.to_string()), Some(after));
        let replaced: Vec<&str> = receipt
            .ranges
            .iter()
            .map(|(from, to)| {
                &NOTEBOOK[usize::try_from(*from).unwrap()..usize::try_from(*to).unwrap()]
            })
            .collect();
        assert_eq!(replaced[0], "3");
        assert!(replaced[1].starts_with("[\n    {") && replaced[2].starts_with("[\n    \"a = "));
        let Some(Shape::Diff { hunks, .. }) = outcome.detail.map(|detail| detail.shape) else {
            panic!("no diff")
        };
        assert_eq!((hunks.len(), hunks[0].lines.len()), (1, 3), "of the source, not of the JSON");

        // What the call left is what the conversation has seen.
        let again = json!({"path": "a.ipynb", "cell": 1, "new_source": "# Other"});
        let text = done(&world, "notebook_edit", again).await;
        let wanted = wanted.replace("# Title", "# Other");
        // Neither source ends with a line end, as usual: that is no news.
        assert!(text.ends_with("a.ipynb.\n1 - # Title\n1 + # Other"), "{text}");
        assert_eq!(content(&world, "a.ipynb").await, wanted);
    }
}

#[tokio::test]
async fn cells_come_and_go_where_they_are_named() {
    for world in both(&[("a.ipynb", NOTEBOOK.as_bytes())]) {
        done(&world, "read", json!({"path": "a.ipynb"})).await;
        let input = |cell: Option<u64>, kind: &str, source: &str| {
            json!({"path": "a.ipynb", "cell": cell, "cell_type": kind, "new_source": source,
                   "edit_mode": "insert"})
        };
        let text = done(&world, "notebook_edit", input(Some(2), "code", "one\ntwo")).await;
        assert!(text.starts_with("Inserted cell 3 (code, id "), "{text}");
        assert!(text.ends_with(") into a.ipynb, which has 3 cells now."), "{text}");
        let id = text.split("id ").nth(1).unwrap()[..8].to_owned();
        let cell = format!(
            ",\n  {{\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \"{id}\",\
             \n   \"metadata\": {{}},\n   \"outputs\": [],\n   \"source\": [\n    \"one\\n\",\n    \
             \"two\"\n   ]\n  }}\n ],\n \"metadata\": {{\"big\""
        );
        let behind = NOTEBOOK.replace("\n ],\n \"metadata\": {\"big\"", &cell);
        assert_eq!(content(&world, "a.ipynb").await, behind);

        let text = done(&world, "notebook_edit", input(None, "raw", "")).await;
        assert!(text.starts_with("Inserted cell 1 (raw, id "), "{text}");
        let id = text.split("id ").nth(1).unwrap()[..8].to_owned();
        let cell = format!(
            "{{\n \"cells\": [\n  {{\n   \"cell_type\": \"raw\",\n   \"id\": \"{id}\",\n   \
             \"metadata\": {{}},\n   \"source\": []\n  }},\n"
        );
        let both = behind.replacen("{\n \"cells\": [\n", &cell, 1);
        assert_eq!(content(&world, "a.ipynb").await, both);

        for (cell, left) in [(1, 3), (3, 2), (2, 1), (1, 0)] {
            let text = done(
                &world,
                "notebook_edit",
                json!({"path": "a.ipynb", "cell": cell, "edit_mode": "delete"}),
            )
            .await;
            let of = if left == 1 { "1 cell".into() } else { format!("{left} cells") };
            assert!(text.contains(&format!("a.ipynb, which has {of} left.")), "{text}");
            if left == 3 {
                assert_eq!(content(&world, "a.ipynb").await, behind);
            }
        }
        let empty = content(&world, "a.ipynb").await;
        assert!(empty.starts_with("{\n \"cells\": [],\n \"metadata\": {\"big\""), "{empty}");
        let first = input(None, "markdown", "again");
        done(&world, "notebook_edit", first).await;
        let text = content(&world, "a.ipynb").await;
        assert!(
            text.starts_with("{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\","),
            "{text}"
        );
        assert!(text.contains("   \"source\": [\n    \"again\"\n   ]\n  }\n ],\n"), "{text}");
    }
}

#[tokio::test]
async fn another_kind_brings_its_members_and_loses_the_others() {
    let world = memory(&[("a.ipynb", NOTEBOOK.as_bytes())]);
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    let text = done(
        &world,
        "notebook_edit",
        json!({"path": "a.ipynb", "cell": 2, "cell_type": "markdown"}),
    )
    .await;
    assert_eq!(
        text,
        "Edited cell 2 (markdown, id sum) of a.ipynb.\n[it was a code cell]\n[its outputs are gone]"
    );
    let shown = content(&world, "a.ipynb").await;
    let cell = "  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"sum\",\n   \"metadata\": \
                {\"tags\": [ 1.50e+3 ]},\n   \"source\": [\n    \"a = \\\"\\u00e9\\\"\\n\",\n    \
                \"print(1 + 1)\"\n   ]\n  }\n ],";
    assert!(shown.contains(cell), "{shown}");
    // And back: what was gone is there again, empty.
    let input = json!({"path": "a.ipynb", "cell": 2, "cell_type": "code", "new_source": "1"});
    done(&world, "notebook_edit", input).await;
    let shown = content(&world, "a.ipynb").await;
    let cell = "  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n   \"id\": \
                \"sum\",\n   \"metadata\": {\"tags\": [ 1.50e+3 ]},\n   \"outputs\": [],\n   \
                \"source\": [\n    \"1\"\n   ]\n  }\n ],";
    assert!(shown.contains(cell), "{shown}");
}

#[tokio::test]
async fn members_stand_in_any_order_and_those_that_go_take_their_commas_along() {
    let cell = r#"{"outputs": [1], "execution_count": 1,"source":"x", "outputs" :[2],"a":[ ] , "cell_type":"code","execution_count":4}"#;
    let text = format!(r#"{{"nbformat":4,"nbformat_minor":2,"cells":[{cell}]}}"#);
    let world = memory(&[("a.ipynb", text.as_bytes())]);
    let input = json!({"path": "a.ipynb", "cell": 1, "cell_type": "raw", "new_source": "y",
                       "expect": hash(text.as_bytes())});
    done(&world, "notebook_edit", input).await;
    let wanted = text.replace(cell, r#"{"source":"y","a":[ ] , "cell_type":"raw"}"#);
    assert_eq!(content(&world, "a.ipynb").await, wanted);
}

#[tokio::test]
async fn what_is_no_notebook_is_refused_in_words() {
    let deep = "[".repeat(200);
    let attached = r#"{"nbformat": 4, "cells": [{"cell_type": "raw", "source": "x",
        "attachments": {"a.png": {}}}, 7, {}]}"#;
    let cases: [(&[u8], &[&str]); 13] = [
        (
            b"{\"nbformat\": 4,\n \"cells\": [}",
            &["a value is missing at line 2, column 12.", "Mend"],
        ),
        // An edit of no text is refused, so that is no way out.
        (b"", &["empty", "with write", "nbformat"]),
        (b" \r\n", &["empty", "with write"]),
        (b"text\n", &["is not JSON", "line 1, column 1"]),
        (deep.as_bytes(), &["128 levels"]),
        (b"[1]", &["it is JSON, but no object"]),
        (b"{\"cells\": []}", &["no notebook", "no nbformat"]),
        (b"{\"nbformat\": 4}", &["no notebook", "no cells"]),
        (b"{\"nbformat\": 4, \"cells\": {}}", &["its cells are no list"]),
        (b"{\"nbformat\": 3, \"worksheets\": []}", &["format 3", "nbconvert"]),
        (b"{\"nbformat\": \"x\"}", &["format \"x\"", "Convert"]),
        (b"{\"nbformat\": 4, \"cells\": []} \xFF", &["byte 29 is no UTF-8"]),
        (b"{\"nbformat\": 4, \"cells\": []}", &["has 0 cells, and no cell 1", "Insert the first"]),
    ];
    for (bytes, words) in cases {
        let world = memory(&[("a.ipynb", bytes)]);
        let input = json!({"path": "a.ipynb", "cell": 1, "new_source": "1", "expect": hash(bytes)});
        let text = failed(&world, "notebook_edit", input).await;
        for word in words {
            assert!(text.contains(word), "lacks {word:?}: {text}");
        }
        assert_eq!(world.read_bytes("a.ipynb").await.unwrap().unwrap(), bytes);
    }
    for (cell, words) in [(1, "has attachments"), (2, "no object"), (3, "no object")] {
        let world = memory(&[("a.ipynb", attached.as_bytes())]);
        let input = json!({"path": "a.ipynb", "cell": cell, "new_source": "1", "cell_type": "code",
                           "expect": hash(attached.as_bytes())});
        let text = failed(&world, "notebook_edit", input).await;
        assert!(text.contains(words), "{text}");
    }
}

#[tokio::test]
async fn cells_are_named_by_one_id_or_number() {
    let cell = |id: &str| json!({"cell_type": "raw", "source": id, "id": id});
    let text = json!({"nbformat": 4, "cells": [cell("a"), cell("b"), cell("a"), cell("3")]});
    let text = text.to_string();
    let without =
        json!({"nbformat": 4, "cells": [{"cell_type": "raw", "source": "x"}]}).to_string();
    let files = [("a.ipynb", text.as_bytes()), ("b.ipynb", without.as_bytes())];
    let world = memory(&files);
    let input_of = |path: &str, name: Value| {
        let mut input = json!({"path": path, "new_source": "new"});
        input["expect"] = json!(hash(if path == "a.ipynb" { &text } else { &without }.as_bytes()));
        input.as_object_mut().unwrap().extend(name.as_object().unwrap().clone());
        input
    };
    for (path, name, words) in [
        ("a.ipynb", json!({"cell_id": "a"}), &["\"a\" is that of 2 cells", "cells 1, 3"][..]),
        ("a.ipynb", json!({"cell_id": "b", "cell": 1}), &["cell 1", "\"b\"", "that of cell 2"]),
        (
            "a.ipynb",
            json!({"cell_id": "4"}),
            &["no cell with the id \"4\"", "a (cell 1), b (cell 2), a (cell 3), 3 (cell 4)"],
        ),
        ("b.ipynb", json!({"cell_id": "4"}), &["Its 1 cell have no ids", "by cell"]),
        ("a.ipynb", json!({"cell": 5}), &["has 4 cells, and no cell 5", "1 to 4"]),
        ("a.ipynb", json!({"cell": 0}), &["cell", "0"]),
        ("a.ipynb", json!({"cell": u64::MAX}), &["no cell 18446744073709551615"]),
    ] {
        let shown = failed(&world, "notebook_edit", input_of(path, name)).await;
        for word in words {
            assert!(shown.contains(word), "lacks {word:?}: {shown}");
        }
    }
    // An id that looks like a number is an id.
    done(&world, "notebook_edit", input_of("a.ipynb", json!({"cell_id": "3"}))).await;
    let now: Value = serde_json::from_str(&content(&world, "a.ipynb").await).unwrap();
    assert_eq!(now["cells"][3]["source"], "new");
}

#[tokio::test]
async fn only_a_notebook_that_was_seen_as_it_is_changes() {
    let world = local(&[("a.ipynb", NOTEBOOK.as_bytes())]);
    let path = world.folder().unwrap().join("a.ipynb");
    let input = json!({"path": "a.ipynb", "cell": 1, "new_source": "new"});
    let text = failed(&world, "notebook_edit", input.clone()).await;
    assert!(text.contains("a.ipynb was not read in this conversation"), "{text}");
    std::fs::write(world.folder().unwrap().join("x.txt"), "text\n").unwrap();
    let other = json!({"path": "x.txt", "cell": 1, "new_source": "new"});
    let text = failed(&world, "notebook_edit", other).await;
    assert!(text.contains("x.txt is no notebook"), "{text}");
    done(&world, "read", json!({"path": "a.ipynb", "limit": 1})).await;
    let other = NOTEBOOK.replace("print", "show");
    std::fs::write(&path, &other).unwrap();
    for mode in ["replace", "insert", "delete"] {
        let mut input = input.clone();
        input["edit_mode"] = json!(mode);
        let text = failed(&world, "notebook_edit", input).await;
        assert!(text.contains("a.ipynb changed since it was read"), "{text}");
        assert!(text.contains("Read the notebook"), "{text}");
    }
    let mut known = input.clone();
    known["expect"] = json!(hash(NOTEBOOK.as_bytes()));
    let text = failed(&world, "notebook_edit", known.clone()).await;
    assert!(text.contains("was expected"), "{text}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
    known["expect"] = json!(hash(other.as_bytes()));
    done(&world, "notebook_edit", known).await;
    assert_eq!(std::fs::read_to_string(&path).unwrap(), other.replace("# Title", "new"));
}

#[tokio::test]
async fn the_question_shows_the_source_and_a_refusal_changes_nothing() {
    for world in both(&[("a.ipynb", NOTEBOOK.as_bytes())]) {
        done(&world, "read", json!({"path": "a.ipynb"})).await;
        world.mode(Mode::Ask);
        world.answer([Reply::pick("deny"), Reply::pick("allow")]);
        let input = json!({"path": "a.ipynb", "cell": 1, "new_source": "new"});
        let outcome = world.call("notebook_edit", input.clone()).await;
        assert_eq!(outcome.status, Status::Denied, "{}", outcome.joined_text());
        assert_eq!(content(&world, "a.ipynb").await, NOTEBOOK);
        let preview = world.recorder.bodies().into_iter().find_map(|body| match body {
            Body::Asked { question } => question.preview,
            _ => None,
        });
        let Some(Shape::Diff { hunks, .. }) = preview.map(|preview| preview.shape) else {
            panic!("no preview")
        };
        let lines: Vec<&str> = hunks[0].lines.iter().map(|line| &*line.text).collect();
        assert_eq!(lines, ["# Title", "new"]);
        done(&world, "notebook_edit", input).await;
        assert_eq!(content(&world, "a.ipynb").await, NOTEBOOK.replace("# Title", "new"));
    }
}

#[tokio::test]
async fn a_call_that_cannot_work_asks_nobody() {
    let world = memory(&[("a.ipynb", NOTEBOOK.as_bytes())]);
    world.mode(Mode::Ask);
    world.answer([]);
    failed(&world, "notebook_edit", json!({"path": "a.ipynb", "cell": 1, "new_source": "x"})).await;
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    failed(&world, "notebook_edit", json!({"path": "a.ipynb", "cell": 9, "new_source": "x"})).await;
    assert!(!world.recorder.text().contains("\"asked\""));
}

#[tokio::test]
async fn what_a_deletion_does_not_need_is_told() {
    let world = memory(&[("a.ipynb", NOTEBOOK.as_bytes())]);
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    let input =
        json!({"path": "a.ipynb", "cell": 1, "edit_mode": "delete", "new_source": "unused"});
    let text = done(&world, "notebook_edit", input).await;
    assert!(text.contains("[new_source was not used: the cell was deleted]"), "{text}");
    assert!(text.ends_with("\n1 - # Title"), "{text}");
}

/// Numbers without order, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % bound
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Line ends of one kind: others would be fitted.
    fn text(&mut self) -> String {
        let pieces = [
            "a",
            "é",
            "\n",
            "\n",
            "\"",
            "\\",
            "\t",
            "日",
            "\u{1F600}",
            "]}",
            "\u{2028}",
            "\u{1}",
            ", ",
        ];
        (0..self.below(12)).map(|_| self.one(&pieces)).collect()
    }
}

/// A cell with what every kind of it has.
fn any_cell(numbers: &mut Numbers, number: usize) -> Value {
    let kind = numbers.one(&["code", "markdown", "raw"]);
    let text = numbers.text();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut cell = json!({"cell_type": kind});
    if kind == "code" {
        cell["execution_count"] = numbers.one(&[Some(7), None]).map_or(Value::Null, Value::from);
    }
    cell["id"] = json!(format!("id-{number}"));
    cell["metadata"] =
        numbers.one(&[0, 1]).eq(&0).then(|| json!({"k": [1, {}]})).unwrap_or(json!({}));
    if kind == "code" {
        cell["outputs"] =
            numbers.one(&[0, 1]).eq(&0).then(|| json!([{"a": 1}])).unwrap_or(json!([]));
    }
    cell["source"] = if numbers.below(4) == 0 { json!(text) } else { json!(lines) };
    cell
}

fn written(value: &Value, indent: Option<&[u8]>) -> String {
    let Some(indent) = indent else { return value.to_string() };
    let mut out = Vec::new();
    let formatter = PrettyFormatter::with_indent(indent);
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter)).unwrap();
    String::from_utf8(out).unwrap() + "\n"
}

/// What the call is to make of the notebook, worked out on its values.
fn changed(notebook: &Value, input: &Value, id: Option<&str>) -> Value {
    let mut notebook = notebook.clone();
    let cells = notebook["cells"].as_array_mut().unwrap();
    let index = input["cell"].as_u64().map(|number| usize::try_from(number).unwrap() - 1);
    let source = input["new_source"].as_str().unwrap_or_default();
    let lines = || json!(source.split_inclusive('\n').collect::<Vec<_>>());
    match (input["edit_mode"].as_str().unwrap(), index) {
        ("delete", Some(index)) => drop(cells.remove(index)),
        ("insert", index) => {
            let beside = cells.get(index.unwrap_or(0));
            let whole = beside.is_some_and(|cell| cell["source"].is_string());
            let mut cell = json!({"cell_type": "code", "execution_count": null, "id": id,
                                  "metadata": {}, "outputs": []});
            cell["source"] = if whole { json!(source) } else { lines() };
            cells.insert(index.map_or(0, |index| index + 1), cell);
        }
        (_, Some(index)) => {
            let cell = &mut cells[index];
            cell["source"] = if cell["source"].is_string() { json!(source) } else { lines() };
            if cell["cell_type"] == "code" {
                (cell["execution_count"], cell["outputs"]) = (Value::Null, json!([]));
            }
        }
        (_, None) => {}
    }
    notebook
}

#[tokio::test]
async fn any_change_of_any_layout_is_what_another_writer_would_have_written() {
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let layouts: [Option<&[u8]>; 5] = [None, Some(b" "), Some(b"  "), Some(b"    "), Some(b"\t")];
    let (mut modes, mut empty) = ([0; 3], 0);
    let world = memory(&[]);
    for round in 0..400 {
        let count = numbers.below(4);
        let cells: Vec<Value> = (0..count).map(|number| any_cell(&mut numbers, number)).collect();
        let notebook = json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5});
        let layout = numbers.one(&layouts);
        let crlf = layout.is_some() && numbers.below(4) == 0;
        let ends = |text: String| if crlf { text.replace('\n', "\r\n") } else { text };
        let text = ends(written(&notebook, layout));
        let path = format!("{round}.ipynb");
        done(&world, "write", json!({"path": path, "content": text})).await;
        let mode = numbers.below(3);
        let cell = (count > 0).then(|| 1 + numbers.below(count));
        let cell = cell.filter(|_| mode != 1 || numbers.below(3) > 0);
        if cell.is_none() && mode != 1 {
            continue;
        }
        (modes[mode], empty) = (modes[mode] + 1, empty + usize::from(count == 0));
        let mut input = json!({"path": path, "new_source": format!("{}!", numbers.text()),
                               "edit_mode": (["replace", "insert", "delete"][mode])});
        if let Some(cell) = cell {
            input["cell"] = json!(cell);
        }
        let outcome = world.call("notebook_edit", input.clone()).await;
        let data = outcome.data.clone().unwrap_or_else(|| panic!("{}", outcome.joined_text()));
        let wanted = ends(written(&changed(&notebook, &input, data["cell_id"].as_str()), layout));
        assert_eq!(content(&world, &path).await, wanted, "round {round}: {input}\n{text}");
    }
    assert!(modes.iter().all(|count| *count > 50) && empty > 10, "{modes:?} {empty}");
}

/// A notebook with blanks and forms that no program would choose, and where its cells stand.
fn wild(numbers: &mut Numbers) -> (String, Vec<Range<usize>>) {
    fn gap(numbers: &mut Numbers) -> &'static str {
        numbers.one(&["", "", " ", "\n", "\r\n\t", "   "])
    }
    let join = |numbers: &mut Numbers, items: Vec<String>, open: char, close: char| {
        let mut out = String::from(open);
        for (index, item) in items.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (a, b) = (gap(numbers), gap(numbers));
            out.push_str(&[comma, a, item.as_str(), b].concat());
        }
        out.push(close);
        out
    };
    let mut cells = Vec::new();
    for number in 0..numbers.below(4) {
        let mut members = vec![
            format!("\"cell_type\"{}:\"{}\"", gap(numbers), numbers.one(&["code", "raw", "odd"])),
            format!("\"id\":{}\"id-{number}\"", gap(numbers)),
            "\"metadata\":{\"n\" : 1.50e+3 ,\"m\":-0,\"x\":\"\\u00e9\\/\"}".to_owned(),
            numbers.one(&["\"outputs\":[1, 2]", "\"outputs\":[ ]", "\"other\":null"]).to_owned(),
            numbers.one(&["\"execution_count\":7", "\"execution_count\" : null"]).to_owned(),
        ];
        let source = numbers.one(&[
            "\"so\\u0075rce\": \"old\"",
            "\"source\":[ \"o\\u006cd\\n\" ,\"x\"]",
            "\"source\":[]",
            "\"source\": null",
            "\"none\": 0",
        ]);
        let at = numbers.below(members.len() + 1);
        members.insert(at, source.to_owned());
        cells.push(join(numbers, members, '{', '}'));
    }
    let mut text = numbers.one(&["", "\u{feff}", "\n"]).to_owned();
    text.push_str("{\"a\":\"}]\", \"cells\"\n:[");
    let mut spans = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str(gap(numbers));
        spans.push(text.len()..text.len() + cell.len());
        text.push_str(cell);
        text.push_str(gap(numbers));
    }
    text.push_str("],\"nbformat\":4,\"nbformat_minor\":4,\"b\":1E5}");
    text.push_str(gap(numbers));
    (text, spans)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap()
}

/// What is left of a cell besides what a change of it may touch.
fn rest(cell: &Value) -> Value {
    let mut rest = cell.clone();
    for name in ["source", "outputs", "execution_count"] {
        rest.as_object_mut().unwrap().shift_remove(name);
    }
    rest
}

/// What goes with a cell: itself and the comma beside it.
fn gone_with(text: &str, spans: &[Range<usize>], index: usize) -> Range<usize> {
    match (index.checked_sub(1), spans.get(index + 1)) {
        (_, Some(next)) => spans[index].start..next.start,
        (Some(last), None) => spans[last].end..spans[index].end,
        (None, None) => text.find('[').unwrap() + 1..text.find("],\"nbformat").unwrap(),
    }
}

#[tokio::test]
async fn not_a_byte_outside_the_cell_changes_whatever_the_layout() {
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let world = memory(&[]);
    let mut modes = [0; 3];
    for round in 0..400 {
        let (text, spans) = wild(&mut numbers);
        let path = format!("{round}.ipynb");
        done(&world, "write", json!({"path": path, "content": text})).await;
        let mode = numbers.below(3);
        if spans.is_empty() && mode != 1 {
            continue;
        }
        modes[mode] += 1;
        let index = numbers.below(spans.len().max(1));
        let mut input = json!({"path": path, "new_source": "new\nsource",
                               "edit_mode": (["replace", "insert", "delete"][mode])});
        if !spans.is_empty() {
            input["cell"] = json!(index + 1);
        }
        done(&world, "notebook_edit", input).await;
        let now = content(&world, &path).await;
        let about = format!("round {round}, mode {mode}, cell {index} of {text:?}: {now:?}");
        let (before, after) = (parsed(&text), parsed(&now));
        match mode {
            0 => {
                let (head, tail) = (&text[..spans[index].start], &text[spans[index].end..]);
                assert!(now.starts_with(head) && now.ends_with(tail), "{about}");
                let cell = parsed(&now[head.len()..now.len() - tail.len()]);
                let source = match &cell["source"] {
                    Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
                    other => other.as_str().unwrap().to_owned(),
                };
                assert_eq!((&*source, rest(&cell)), ("new\nsource", rest(&before["cells"][index])));
                let kept = "{\"n\" : 1.50e+3 ,\"m\":-0,\"x\":\"\\u00e9\\/\"}";
                assert!(now[head.len()..].contains(kept), "{about}");
                if cell["cell_type"] == "code" && cell.get("outputs").is_some() {
                    assert_eq!(cell["outputs"], json!([]), "{about}");
                }
            }
            1 => {
                let at = spans.get(index).map_or(text.find('[').unwrap() + 1, |span| span.end);
                assert!(
                    now.starts_with(&text[..at]) && now.ends_with(text[at..].trim_start()),
                    "{about}"
                );
                let mut cells = after["cells"].as_array().unwrap().clone();
                let new = cells.remove(if spans.is_empty() { 0 } else { index + 1 });
                assert_eq!(json!(cells), before["cells"], "{about}");
                assert!(new.get("id").is_none() && new["cell_type"] == "code", "{about}");
            }
            _ => {
                let gone = gone_with(&text, &spans, index);
                assert_eq!(now, format!("{}{}", &text[..gone.start], &text[gone.end..]), "{about}");
            }
        }
    }
    assert!(modes.iter().all(|count| *count > 50), "{modes:?}");
}

#[tokio::test]
async fn a_new_source_has_the_line_ends_of_the_notebook() {
    let crlf = NOTEBOOK.replace("\\u00e9\\\"\\n", "\\u00e9\\\"\\r\\n");
    let mixed = crlf.replace("print(1 + 1)\"", "print(1 + 1)\\n\"");
    let insert = |cell: u64, source: &str| json!({"path": "a.ipynb", "cell": cell, "new_source": source, "edit_mode": "insert"});
    let replace =
        |cell: u64, source: &str| json!({"path": "a.ipynb", "cell": cell, "new_source": source});
    let (lf, as_before) = ("a = 1\nb = 3\n", "line ends are LF, as before");
    for (text, input, want, told) in [
        (NOTEBOOK, replace(2, "a = 1\r\nb = 3\r\n"), lf, Some(as_before)),
        (NOTEBOOK, replace(2, lf), lf, None),
        // The cell has none of its own: what the others have counts.
        (NOTEBOOK, replace(1, "a = 1\r\nb = 3\r\n"), lf, Some(as_before)),
        (NOTEBOOK, insert(1, "a = 1\r\nb = 3\r\n"), lf, Some(as_before)),
        (&crlf, insert(2, lf), "a = 1\r\nb = 3\r\n", Some("line ends are CRLF, as before")),
        (&crlf, replace(2, "a = \"é\"\nb"), "a = \"é\"\r\nb", Some("CRLF, as before")),
        (&mixed, replace(2, "a = \"é\"\nb\n"), "a = \"é\"\r\nb\n", Some("mixed, as before")),
        (
            "{\"nbformat\": 4, \"cells\": []}",
            json!({"path": "a.ipynb", "new_source": "a = 1\r\nb = 3\r\n",
            "edit_mode": "insert"}),
            lf,
            Some("line ends are LF"),
        ),
    ] {
        for world in both(&[("a.ipynb", text.as_bytes())]) {
            done(&world, "read", json!({"path": "a.ipynb"})).await;
            let said = done(&world, "notebook_edit", input.clone()).await;
            let now: Value = serde_json::from_str(&content(&world, "a.ipynb").await).unwrap();
            let cells = now["cells"].as_array().unwrap();
            let source = |cell: &Value| match &cell["source"] {
                Value::Array(lines) => lines.iter().map(|line| line.as_str().unwrap()).collect(),
                other => other.as_str().unwrap().to_owned(),
            };
            assert!(cells.iter().any(|cell| source(cell) == want), "{input}: {now}");
            assert_eq!(said.contains("line ends"), told.is_some(), "{said}");
            assert!(told.is_none_or(|told| said.contains(told)), "{said}");
        }
    }
    let world = memory(&[("a.ipynb", NOTEBOOK.as_bytes())]);
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    let same = replace(2, "a = \"é\"\r\nprint(1 + 1)");
    assert!(failed(&world, "notebook_edit", same).await.contains("already has exactly"));
}

#[tokio::test]
async fn edit_leaves_a_notebook_json_and_names_the_cell() {
    for world in both(&[("a.ipynb", NOTEBOOK.as_bytes())]) {
        done(&world, "read", json!({"path": "a.ipynb"})).await;
        let edit = |old: &str, new: &str| json!({"path": "a.ipynb", "edits": [{"old_text": old, "new_text": new}]});
        let text = failed(&world, "edit", edit("print(1 + 1)", "print(\"2\")")).await;
        assert!(text.contains("no JSON any more") && text.contains("with cell 2"), "{text}");
        // As read shows it.
        let text = failed(&world, "edit", edit("a = \"é\"\nprint(1", "a = 2")).await;
        assert!(text.contains("notebook_edit, with cell 2 and"), "{text}");
        assert_eq!(content(&world, "a.ipynb").await, NOTEBOOK);
        done(&world, "edit", edit("print(1 + 1)", "print(\\\"2\\\")")).await;
        let wanted = NOTEBOOK.replace("print(1 + 1)", "print(\\\"2\\\")");
        assert_eq!(content(&world, "a.ipynb").await, wanted);
    }
    // What is no JSON already may be mended in steps.
    let world = memory(&[("a.ipynb", b"{\"cells\": [}, }\n")]);
    done(&world, "read", json!({"path": "a.ipynb"})).await;
    let input = json!({"path": "a.ipynb", "edits": [{"old_text": "[}", "new_text": "[]"}]});
    done(&world, "edit", input).await;
}

#[tokio::test]
async fn numbers_that_json_does_not_have_are_read_and_kept() {
    let with = NOTEBOOK
        .replace(
            "{\"tags\": [ 1.50e+3 ]}",
            "{\"tags\": [ NaN,Infinity , -Infinity ], \"NaN\": \"NaN\"}",
        )
        .replace("\"metadata\": {\"big\"", "\"metadata\": {\"loss\": NaN, \"big\"")
        .replace("\"# Title\"", "\"# Title, NaN, Infinity\"");
    for world in both(&[("a.ipynb", with.as_bytes())]) {
        let text = done(&world, "read", json!({"path": "a.ipynb"})).await;
        assert!(text.contains("# Title, NaN, Infinity") && text.contains("print(1 + 1)"), "{text}");
        let input = json!({"path": "a.ipynb", "cell_id": "intro", "new_source": "# NaN"});
        done(&world, "notebook_edit", input).await;
        let want = with.replace("# Title, NaN, Infinity", "# NaN");
        assert_eq!(content(&world, "a.ipynb").await, want);
        let input = json!({"path": "a.ipynb", "cell": 2, "edit_mode": "insert", "new_source": "x"});
        done(&world, "notebook_edit", input).await;
        let input = json!({"path": "a.ipynb", "cell": 3, "edit_mode": "delete"});
        done(&world, "notebook_edit", input).await;
        assert_eq!(content(&world, "a.ipynb").await, want);
        // The other tools that keep notebooks whole take it as one, too.
        let edits = json!([{"old_text": "\"# NaN\"", "new_text": "\"# a"}]);
        let text = failed(&world, "edit", json!({"path": "a.ipynb", "edits": edits})).await;
        assert!(text.contains("JSON"), "{text}");
        assert_eq!(content(&world, "a.ipynb").await, want);
    }
}

#[tokio::test]
async fn what_only_looks_like_such_a_number_is_refused_where_it_stands() {
    for (bad, column) in [("nan", 25), ("1NaN", 26), ("-NaN", 26), ("NaN1", 25), ("- Infinity", 26)]
    {
        let with = NOTEBOOK.replace("[ 1.50e+3 ]", bad);
        let world = memory(&[("a.ipynb", with.as_bytes())]);
        let expect = hash(with.as_bytes());
        let input = json!({
            "path": "a.ipynb", "cell": 1, "new_source": "x", "expect": expect});
        let text = failed(&world, "notebook_edit", input).await;
        assert!(text.contains(&format!("line 15, column {column}.")), "{bad}: {text}");
        assert_eq!(content(&world, "a.ipynb").await, with);
    }
}
