//! The lines on which the keys of a TOML or JSON text stand.
//!
//! **Invariant:** a key is named by its path with dots, elements of lists by their numbers from 0; of
//! a key that is not found the nearest one around it tells.

use std::collections::{BTreeMap, BTreeSet};

use haft_text::json;

/// Deepest nesting whose keys are found.
const DEPTH: usize = 12;

/// Where the lines of a text start, in bytes.
pub(crate) struct Starts(Vec<usize>);

impl Starts {
    pub fn of(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    /// The line that holds a byte, from 1.
    pub fn line(&self, byte: usize) -> usize {
        self.0.partition_point(|&start| start <= byte)
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Lines {
    keys: BTreeMap<String, usize>,
    /// Keys of JSON that stand a second time in their object, with the line of the later one.
    pub twice: Vec<(String, usize)>,
}

impl Lines {
    pub fn of_toml(text: &str) -> Self {
        let mut lines = BTreeMap::new();
        if let Ok(table) = toml::de::DeTable::parse(text) {
            in_table(table.get_ref(), "", &Starts::of(text), &mut lines);
        }
        Self { keys: lines, twice: Vec::new() }
    }

    pub fn of_json(text: &str) -> Self {
        let mut lines = Self::default();
        in_json(text, 0, "", DEPTH, &Starts::of(text), &mut lines);
        lines
    }

    /// The line of a key, from 1.
    pub fn line(&self, key: &str) -> Option<usize> {
        let mut key = key;
        loop {
            if let Some(line) = self.keys.get(key) {
                return Some(*line);
            }
            key = key.rsplit_once('.')?.0;
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

fn in_table(
    table: &toml::de::DeTable<'_>,
    prefix: &str,
    starts: &Starts,
    lines: &mut BTreeMap<String, usize>,
) {
    for (name, value) in table {
        let key = join(prefix, name.get_ref());
        lines.insert(key.clone(), starts.line(name.span().start));
        in_value(value.get_ref(), &key, starts, lines);
    }
}

fn in_value(
    value: &toml::de::DeValue<'_>,
    key: &str,
    starts: &Starts,
    lines: &mut BTreeMap<String, usize>,
) {
    match value {
        toml::de::DeValue::Table(inner) => in_table(inner, key, starts, lines),
        toml::de::DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let key = join(key, &index.to_string());
                lines.insert(key.clone(), starts.line(item.span().start));
                in_value(item.get_ref(), &key, starts, lines);
            }
        }
        _ => {}
    }
}

/// Takes the keys of a value that begins at byte `at` of the whole text.
fn in_json(text: &str, at: usize, prefix: &str, depth: usize, starts: &Starts, lines: &mut Lines) {
    if depth == 0 {
        return;
    }
    if text.trim_start().starts_with('{') {
        let mut names = BTreeSet::new();
        for member in json::members(text, &[]).unwrap_or_default() {
            let key = join(prefix, &member.name);
            let line = starts.line(at + member.key.start);
            if !names.insert(member.name) {
                lines.twice.push((key.clone(), line));
            }
            lines.keys.insert(key.clone(), line);
            let inner = &text[member.value.clone()];
            in_json(inner, at + member.value.start, &key, depth - 1, starts, lines);
        }
    } else if text.trim_start().starts_with('[') {
        for (index, item) in json::elements(text, &[]).unwrap_or_default().into_iter().enumerate() {
            let key = join(prefix, &index.to_string());
            lines.keys.insert(key.clone(), starts.line(at + item.start));
            in_json(&text[item.clone()], at + item.start, &key, depth - 1, starts, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_lists_have_their_lines() {
        let toml = "[a]\nb = [\n  'x',\n  'y',\n]\n[[h.P]]\nm = 1\n[[h.P.hooks]]\nc = 2\n";
        let json = "{\"a\": {\"b\": [\n\"x\",\n \"y\"]},\n\"h\": {\"P\": [{\n\"hooks\": [{\n\n\"c\": 2}]}]}}";
        let lines = |lines: &Lines| {
            ["a.b.1", "h.P.0.hooks.0.c", "h.P.0.hooks.0.gone.x", "x"].map(|key| lines.line(key))
        };
        assert_eq!(lines(&Lines::of_toml(toml)), [Some(4), Some(9), Some(8), None]);
        assert_eq!(lines(&Lines::of_json(json)), [Some(3), Some(7), Some(5), None]);
    }
}
