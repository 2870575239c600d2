//! The ways in which a call may miss the file and still has to be carried out.
//!
//! **Invariant:** each class changes the file or the call in one way only, and says from the lines
//! what the file must be afterwards. A class that cannot be made of a change gives none.

use serde_json::{Value, json};
use unicode_normalization::UnicodeNormalization as _;

use super::super::scratch::Numbers;
use super::calls::{Case, Clean, PATH, Want, arguments, places};

type MaybeCase = Option<Case>;

/// Nothing is missed.
pub(super) fn exact(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    Case::applied(clean, &clean.old(), &clean.new_lines())
}

/// A word of a line instead of whole lines.
pub(super) fn inside_a_line(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let at = clean.first + clean.before;
    let line = clean.lines.get(at)?.text.clone();
    let words: Vec<&str> =
        line.split(' ').filter(|word| word.len() > 3 && *word != "other").collect();
    let word = *words.get(numbers.below(words.len().max(1)))?;
    let text: String = clean.lines.iter().flat_map(|line| [&*line.text, "\n"]).collect();
    if places(&text, word) != 1 {
        return None;
    }
    let mut after = clean.clone();
    after.lines[at].text = line.replacen(word, "other", 1);
    let want = Want::Bytes(after.file()?);
    Some(Case::new(clean.file()?, word, "other", want))
}

/// Blanks at the end of a line of the file that the call has not.
pub(super) fn blanks_lost(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let (old, new) = (clean.old(), clean.new_lines());
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let blanks = ["  ", " ", "\t", " \t "][numbers.below(4)];
    file.rewrite(at, format!("{}{blanks}", old[at]));
    Case::applied(&file, &old, &new)
}

/// Blanks at the ends of the call's lines that the file has not.
pub(super) fn blanks_added(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let more = |lines: Vec<String>, stays: &dyn Fn(usize) -> bool| -> Vec<String> {
        let line = |(at, text): (usize, String)| if stays(at) { format!("{text}  ") } else { text };
        lines.into_iter().enumerate().map(line).collect()
    };
    let come = clean.before..clean.before + clean.come.len();
    let new = more(clean.new_lines(), &|at| !come.contains(&at));
    Case::applied(clean, &more(clean.old(), &|_| true), &new)
}

/// Tabs at the end of a line of the file where the call has spaces.
pub(super) fn blanks_of_another_kind(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let bare = clean.old()[at].trim_end().to_owned();
    file.rewrite(at, format!("{bare}\t\t"));
    let (mut old, mut new) = (clean.old(), clean.new_lines());
    let number = if at < clean.before { at } else { at - clean.gone + clean.come.len() };
    old[at] = format!("{bare}  ");
    new[number].clone_from(&old[at]);
    Case::applied(&file, &old, &new)
}

/// Blank lines around the text that the file has not.
pub(super) fn blank_lines_around(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let around = |lines: Vec<String>, head: usize, tail: usize| {
        [vec![String::new(); head], lines, vec![String::new(); tail]].concat()
    };
    let (head, tail) = (numbers.below(3), 1 + numbers.below(2));
    let blank = |at: usize| clean.lines.get(at).is_none_or(|line| line.text.trim().is_empty());
    if blank(clean.first) || blank(clean.stop() - 1) {
        return None;
    }
    let (old, new) = (around(clean.old(), head, tail), around(clean.new_lines(), head, tail));
    Case::applied(clean, &old, &new)
}

/// A line that stays gets one text in the file and another in the call.
fn spelt(clean: &Clean, numbers: &mut Numbers, pairs: &[(&str, &str)]) -> MaybeCase {
    if !clean.codec.unicode() {
        return None;
    }
    let (there, given) = pairs[numbers.below(pairs.len())];
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let line = clean.old()[at].clone();
    file.rewrite(at, format!("{line} # {there}"));
    let (mut old, mut new) = (clean.old(), clean.new_lines());
    let number = if at < clean.before { at } else { at - clean.gone + clean.come.len() };
    old[at] = format!("{line} # {given}");
    new[number].clone_from(&old[at]);
    Case::applied(&file, &old, &new)
}

const ACCENTS: [&str; 3] = ["naïve café", "Ångström überall", "żółw ťukal"];

fn forms(both: impl Fn(&str) -> (String, String)) -> Vec<(String, String)> {
    ACCENTS.iter().map(|text| both(text)).collect()
}

fn spelt_owned(clean: &Clean, numbers: &mut Numbers, pairs: &[(String, String)]) -> MaybeCase {
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(one, two)| (&**one, &**two)).collect();
    spelt(clean, numbers, &pairs)
}

/// Characters put together in the file, taken apart in the call.
pub(super) fn composed(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let pairs = forms(|text| (text.nfc().collect(), text.nfd().collect()));
    spelt_owned(clean, numbers, &pairs)
}

/// Characters taken apart in the file, put together in the call.
pub(super) fn decomposed(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let pairs = forms(|text| (text.nfd().collect(), text.nfc().collect()));
    spelt_owned(clean, numbers, &pairs)
}

/// Ligatures, full-width letters and the like.
pub(super) fn compatible(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let pairs =
        [("ﬁne and ﬂat", "fine and flat"), ("ＡＢＣ１２", "ABC12"), ("wait… so", "wait... so")];
    spelt(clean, numbers, &pairs)
}

/// Curly quotes in the file; plain ones come only where it has such elsewhere, too.
pub(super) fn quotes(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let has = |text: &String| text.contains(['"', '\'']);
    if clean.come.iter().any(has) && !clean.lines.iter().any(|line| has(&line.text)) {
        return None;
    }
    spelt(clean, numbers, &[("“so”", "\"so\""), ("it’s ‘so’", "it's 'so'"), ("„so“", "\"so\"")])
}

/// Curly quotes in the call.
pub(super) fn quotes_given(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    spelt(clean, numbers, &[("\"so\"", "“so”"), ("it's", "it’s")])
}

/// Dashes.
pub(super) fn dashes(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let pairs = [("a – b", "a - b"), ("a—b", "a-b"), ("a ‑ b", "a - b"), ("a - b", "a – b")];
    spelt(clean, numbers, &pairs)
}

/// Odd spaces.
pub(super) fn spaces(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let pairs =
        [("a\u{a0}b", "a b"), ("a\u{3000}b", "a b"), ("5\u{202f}km", "5 km"), ("a b", "a\u{a0}b")];
    spelt(clean, numbers, &pairs)
}

/// One word of a line changed whose quotes, dashes and spaces the call writes plainly.
pub(super) fn partly_edited(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    if !clean.codec.unicode() {
        return None;
    }
    let at = clean.inner(numbers)?;
    let (head, tail) =
        [("“So” it’s — a\u{a0}", "\u{a0}— b “and” ﬁne"), ("10\u{a0}€ – ", " – ‘it’s’"), ("“", "”")]
            [numbers.below(3)];
    let plain = |text: &str| {
        let text = text.replace(['“', '”'], "\"").replace(['‘', '’'], "'");
        text.replace(['—', '–'], "-").replace('\u{a0}', " ").replace('ﬁ', "fi")
    };
    let line = clean.old()[at].clone();
    let [there, given, then] =
        ["brownworth", "brownworth", "redworth"].map(|word| [head, word, tail].concat());
    let (mut file, mut after) = (clean.clone(), clean.clone());
    file.rewrite(at, format!("{line} # {there}"));
    after.rewrite(at, format!("{line} # {then}"));
    let (mut old, mut new) = (clean.old(), clean.old());
    old[at] = format!("{line} # {}", plain(&given));
    new[at] = format!("{line} # {}", plain(&then));
    let want = Want::Bytes(after.file()?);
    Some(Case::new(file.file()?, &old.join("\n"), &new.join("\n"), want))
}

/// No-break spaces throughout the call, none in the file.
pub(super) fn spaces_brought(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let odd = |lines: &[String]| lines.iter().any(|line| line.contains('\u{a0}'));
    let given = |lines: Vec<String>| -> Vec<String> {
        lines.iter().map(|line| line.replace(' ', "\u{a0}")).collect()
    };
    let (old, new) = (clean.old(), clean.new_lines());
    if odd(&old) || odd(&new) || !old.iter().any(|line| line.contains(' ')) {
        return None;
    }
    Case::applied(clean, &given(old), &given(new))
}

pub(super) fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// Whether at least two lines of both texts say anything, so that an indentation can be told.
pub(super) fn tells(clean: &Clean) -> bool {
    let said = |lines: &[String]| lines.iter().filter(|line| !is_blank(line)).count();
    said(&clean.old()) > 1 && clean.come.iter().all(|line| !line.is_empty() || is_blank(line))
}

/// Whether lines stay that both texts have once, all as deep as they were, and the lines that come
/// begin no further out, so that nobody can ask how the new text is indented.
fn is_clear(clean: &Clean) -> bool {
    let (old, new) = (clean.old(), clean.new_lines());
    let once = |lines: &[String], line: &str| {
        lines.iter().filter(|other| other.trim() == line.trim()).count() == 1
    };
    let base = |lines: &[String]| {
        let lines = lines.iter().filter(|line| !is_blank(line));
        lines.map(|line| line.len() - line.trim_start().len()).min()
    };
    let stays = |line: &String| !is_blank(line) && once(&old, line) && once(&new, line);
    let mut stay = old.iter().filter(|line| stays(line)).peekable();
    base(&old) == base(&new) && stay.peek().is_some() && stay.all(|line| new.contains(line))
}

pub(super) fn indented(lines: &[String], more: &str) -> Vec<String> {
    let line = |line: &String| if is_blank(line) { line.clone() } else { format!("{more}{line}") };
    lines.iter().map(line).collect()
}

/// More indentation in the call than in the file.
pub(super) fn indented_more(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    if !tells(clean) || !is_clear(clean) {
        return None;
    }
    let more = ["  ", "    ", "\t", "        "][numbers.below(4)];
    Case::applied(clean, &indented(&clean.old(), more), &indented(&clean.new_lines(), more))
}

/// Less indentation in the call than in the file.
pub(super) fn indented_less(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    if !tells(clean) || !is_clear(clean) {
        return None;
    }
    let more = ["  ", "    ", "\t", "        "][numbers.below(4)];
    let mut file = clean.clone();
    for (at, line) in indented(&clean.old(), more).into_iter().enumerate() {
        file.rewrite(at, line);
    }
    file.come = indented(&clean.come, more);
    Case::applied(&file, &clean.old(), &clean.new_lines())
}

/// The lines indented once or twice.
pub(super) fn levelled(lines: &[String], unit: &str, deep: &dyn Fn(usize) -> usize) -> Vec<String> {
    let line = |(at, line): (usize, &String)| match line.trim_start() {
        "" => String::new(),
        text => format!("{}{text}", unit.repeat(deep(at))),
    };
    lines.iter().enumerate().map(line).collect()
}

fn tabs_and_spaces(clean: &Clean, numbers: &mut Numbers, tabs_in_file: bool) -> MaybeCase {
    if !tells(clean) || !is_clear(clean) {
        return None;
    }
    let spaces = " ".repeat([2, 4, 8][numbers.below(3)]);
    let (there, given) = if tabs_in_file { ("\t", &*spaces) } else { (&*spaces, "\t") };
    let deep = |at: usize| 1 + at % 2;
    let come_deep = |at: usize| 1 + (at + clean.before) % 2;
    let mut file = clean.clone();
    for (at, line) in levelled(&clean.old(), there, &deep).into_iter().enumerate() {
        file.rewrite(at, line);
    }
    file.come = levelled(&clean.come, there, &come_deep);
    let old = levelled(&clean.old(), given, &deep);
    let come = levelled(&clean.come, given, &come_deep);
    let (head, tail) = (&old[..clean.before], &old[clean.before + clean.gone..]);
    Case::applied(&file, &old, &[head, &come, tail].concat())
}

/// Spaces in the call where the file has tabs.
pub(super) fn spaces_for_tabs(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    tabs_and_spaces(clean, numbers, true)
}

/// Tabs in the call where the file has spaces.
pub(super) fn tabs_for_spaces(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    tabs_and_spaces(clean, numbers, false)
}

/// Line numbers pasted with the text.
pub(super) fn line_numbers(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let separator = ["\t", "→", ": ", ":", "| ", "|"][numbers.below(6)];
    let first = clean.first + 1;
    let numbered = |lines: &[String]| -> Vec<String> {
        let line = |(at, line): (usize, &String)| format!("{:>6}{separator}{line}", first + at);
        lines.iter().enumerate().map(line).collect()
    };
    let new = clean.new_lines();
    // New lines that begin like numbered ones say nothing clear.
    let digits = |line: &String| line.trim_start().starts_with(|at: char| at.is_ascii_digit());
    if new.iter().any(digits) {
        return None;
    }
    let new = if numbers.below(2) == 0 { numbered(&new) } else { new };
    Case::applied(clean, &numbered(&clean.old()), &new)
}

/// Quotes escaped once too often.
pub(super) fn escaped_quotes(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    file.rewrite(at, format!("{} say(\"so\")", clean.old()[at]));
    let escaped = |lines: Vec<String>| -> Option<Vec<String>> {
        let plain = lines.iter().all(|line| !line.contains('\\'));
        plain.then(|| lines.iter().map(|line| line.replace('"', "\\\"")).collect())
    };
    Case::applied(&file, &escaped(file.old())?, &escaped(file.new_lines())?)
}

/// Whether lines come with what the old text does not have, so that nobody can tell whether an
/// escape of it is meant as it is written, or with quotes that stay open.
fn is_unsure(clean: &Clean) -> bool {
    let has = |lines: &[String], sign: char| lines.iter().any(|line| line.contains(sign));
    let old = clean.old();
    let comes = |sign: &char| has(&clean.come, *sign) && !has(&old, *sign);
    let open =
        |line: &String| ['"', '\'', '`'].iter().any(|sign| line.matches(*sign).count() % 2 == 1);
    let fenced = old.iter().any(|line| line.matches('`').count() % 2 == 1);
    fenced || ['\t', '"'].iter().any(comes) || clean.come.iter().any(open)
}

/// Line ends and tabs written out.
pub(super) fn escaped_ends(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let (old, new) = (clean.old(), clean.new_lines());
    if old.iter().chain(&new).any(|line| line.contains('\\')) || old.len() < 2 || is_unsure(clean) {
        return None;
    }
    let written = |lines: &[String]| lines.join("\\n").replace('\t', "\\t");
    let want = Want::Bytes(clean.result()?);
    Some(Case::new(clean.file()?, &written(&old), &written(&new), want))
}

/// The whole text as a JSON string would have it.
pub(super) fn escaped_twice(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    file.rewrite(at, format!("{} path('\\\\d')", clean.old()[at]));
    if is_unsure(clean) {
        return None;
    }
    let written = |lines: &[String]| {
        let text = lines.join("\n").replace('\\', "\\\\").replace('\n', "\\n");
        text.replace('\t', "\\t").replace('"', "\\\"")
    };
    let want = Want::Bytes(file.result()?);
    Some(Case::new(file.file()?, &written(&file.old()), &written(&file.new_lines()), want))
}

/// Strings with escapes of their own, and the text around them escaped once more: all of it, all but
/// its line ends and tabs, or its quotes alone.
pub(super) fn escaped_strings(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let way = numbers.below(3);
    let string = if way == 2 { "say(\"so\\n\")" } else { "say(\"so\\n\", \"a\\\"b\\t\")" };
    if is_unsure(clean) || clean.come.iter().any(|line| line.contains('\\')) {
        return None;
    }
    file.rewrite(at, format!("{} {string}", clean.old()[at]));
    let written = |lines: &[String]| {
        let text = lines.join("\n");
        let text = if way == 2 { text } else { text.replace('\\', "\\\\") };
        let text = text.replace('"', "\\\"");
        if way == 0 { text.replace('\n', "\\n").replace('\t', "\\t") } else { text }
    };
    let want = Want::Bytes(file.result()?);
    Some(Case::new(file.file()?, &written(&file.old()), &written(&file.new_lines()), want))
}

/// Line ends of another kind in the call, in the file, or in both.
pub(super) fn line_ends(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let there = ["\n", "\r\n", "\r"][numbers.below(3)];
    for line in file.lines.iter_mut().filter(|line| !line.end.is_empty()) {
        line.end = there;
    }
    let given = ["\r\n", "\n", "\r\n"][numbers.below(3)];
    let (old, new) = (file.old().join(given), file.new_lines().join(given));
    let want = Want::Bytes(file.result()?);
    Some(Case::new(file.file()?, &old, &new, want))
}

/// Arguments in the shapes that models give instead of those of the schema.
pub(super) fn argument_forms(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut case = exact(clean, numbers)?;
    let edit = case.call["edits"][0].clone();
    let (old, new) = (&edit["old_text"], &edit["new_text"]);
    let raw = |value: Value| Value::String(value.to_string());
    case.call = match numbers.below(9) {
        0 => json!({ "path": PATH, "edits": raw(json!([edit])) }),
        1 => json!({ "path": PATH, "edits": edit }),
        2 => json!({ "path": PATH, "edits": [raw(edit)] }),
        3 => json!({ "file_path": PATH, "old_string": old, "new_string": new }),
        4 => json!({ "filePath": PATH, "edits": [{ "oldText": old, "newText": new }] }),
        5 => json!({ "path": PATH, "old_str": old, "new_str": new, "replace_all": "false" }),
        6 => json!({ "path": PATH, "edits": [edit], "explanation": "what it is for", "n": 1 }),
        7 => json!({ "path": format!("@{PATH}"), "edits": [edit], "expect": null }),
        // Line ends and tabs as they are inside the string.
        _ => {
            let text = json!([edit]).to_string();
            if text.contains("\\\\") {
                return None;
            }
            let text = text.replace("\\n", "\n").replace("\\t", "\t");
            json!({ "path": PATH, "edits": text })
        }
    };
    Some(case)
}

/// Every place at once, with a word for the flag.
pub(super) fn every_place(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    if file.lines.iter().any(|line| line.text.contains("markworth")) {
        return None;
    }
    let marks = 2 + numbers.below(4);
    let (mut before, mut after) = (file.clone(), file.clone());
    for (at, line) in file.lines.iter_mut().enumerate().take(marks) {
        let text = line.text.clone();
        line.text = format!("{text} markworth");
        before.lines[at].text.clone_from(&line.text);
        after.lines[at].text = format!("{text} replacedworth");
    }
    let want = Want::Bytes(after.file()?);
    let mut case = Case::new(before.file()?, "markworth", "replacedworth", want);
    case.call["edits"][0]["replace_all"] = [json!(true), json!("true")][numbers.below(2)].clone();
    Some(case)
}

/// Two changes of one file in one call.
pub(super) fn two_edits(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let at = clean.stop() + 1;
    let far = &clean.lines.get(at..at + 2)?;
    let word = far[0].text.split(' ').find(|word| word.len() > 3)?.to_owned();
    if word == "second" {
        return None;
    }
    let text: String = clean.lines.iter().flat_map(|line| [&*line.text, "\n"]).collect();
    if places(&text, &word) != 1 {
        return None;
    }
    let mut file = clean.clone();
    let mut call = arguments(&clean.old().join("\n"), &clean.new_lines().join("\n"));
    let second = json!({ "old_text": word, "new_text": "second" });
    // In the order in which they do not stand.
    call["edits"].as_array_mut()?.insert(0, second);
    let before = file.file()?;
    file.lines[at].text = file.lines[at].text.replacen(&*word, "second", 1);
    let want = Want::Bytes(file.result()?);
    Some(Case { file: before, read: true, meanwhile: None, call, want })
}

/// A file that was never read, and an old text that is there exactly and once.
pub(super) fn unread(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    Some(Case { read: false, ..exact(clean, numbers)? })
}

/// A file that changed elsewhere since it was read, and an old text that is there exactly and once.
pub(super) fn stale(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = if clean.first > 0 { 0 } else { clean.lines.len() - 1 };
    if at >= clean.first && at < clean.stop() {
        return None;
    }
    file.lines[at].text += " changed";
    let meanwhile = Some(file.file()?);
    let case = exact(clean, numbers)?;
    Some(Case { meanwhile, want: Want::Bytes(file.result()?), ..case })
}
