//! The ways in which a call misses the file so that nothing may be changed, and the words without
//! which nobody could go on.
//!
//! **Invariant:** every class is a call that no reading of it makes right. Words are those that name
//! the place and the difference, not the whole message.

use serde_json::json;

use super::super::scratch::Numbers;
use super::calls::{Case, Clean, Codec, Line, arguments, places, squashed};

type MaybeCase = Option<Case>;

fn line_number(clean: &Clean, at: usize) -> usize {
    clean.first + at + 1
}

/// The old text in two places.
pub(super) fn ambiguous(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let file = doubled(clean)?;
    let (first, second) = (clean.first + 1, clean.lines.len() + 2);
    let lines = format!("2 places, at lines {first}, {second}");
    Case::refused(&file, &clean.old(), &clean.new_lines(), &[&lines, "replace_all"])
}

/// The file with the old text once more at its end.
fn doubled(clean: &Clean) -> Option<Clean> {
    let mut file = clean.clone();
    if file.lines.last()?.end.is_empty() {
        return None;
    }
    let end = file.lines.first()?.end;
    let copy = clean.lines[clean.first..clean.stop()].to_vec();
    file.lines.push(Line { text: "-- and once more --".into(), end });
    file.lines.extend(copy);
    Some(file)
}

/// The old text in two places, in none exactly.
pub(super) fn ambiguous_tolerated(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let file = doubled(clean)?;
    let at = clean.inner(numbers)?;
    let (mut old, mut new) = (clean.old(), clean.new_lines());
    let number = if at < clean.before { at } else { at - clean.gone + clean.come.len() };
    old[at] += "   ";
    new[number].clone_from(&old[at]);
    let (first, second) = (clean.first + 1, clean.lines.len() + 2);
    let lines = format!("at lines {first}, {second}");
    Case::refused(&file, &old, &new, &["2 places", "tolerating", "trailing blanks", &lines])
}

/// A middle left out.
pub(super) fn elided(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let wide = clean.wider()?.wider()?;
    let old = wide.old();
    let mark = ["...", "// ... existing code ...", "# rest of the file"][numbers.below(3)];
    let old = [old[0].clone(), mark.to_owned(), old[old.len() - 1].clone()];
    Case::refused(&wide, &old, &clean.new_lines(), &["line 2 stands for text that was left out"])
}

/// One line of the call otherwise than in the file.
fn altered(
    clean: &Clean,
    numbers: &mut Numbers,
    alter: impl Fn(&str) -> Option<String>,
) -> MaybeCase {
    let wide = clean.wider()?;
    let old = wide.old();
    let begin = numbers.below(old.len());
    let (at, line) = (0..old.len())
        .map(|step| (begin + step) % old.len())
        .find_map(|at| Some((at, alter(&old[at])?)))?;
    let mut given = old.clone();
    given[at] = line;
    let there = |lines: &[String]| lines.iter().map(|line| squashed(line)).collect::<String>();
    let all: Vec<String> = clean.lines.iter().map(|line| line.text.clone()).collect();
    if places(&there(&all), &there(&given)) > 0 {
        return None;
    }
    if elsewhere(&wide, &given, at) {
        return None;
    }
    let number = line_number(&wide, at);
    let words = ["not found", &*format!("Line {number}: "), "U+", &*format!("{number:>6}  ")];
    Case::refused(&wide, &given, &clean.come, &words)
}

/// Whether another place has all lines but one too, and there one with a word of that one: then
/// nobody can tell which of them is meant.
fn elsewhere(clean: &Clean, given: &[String], at: usize) -> bool {
    let words = |line: &str| -> Vec<String> {
        let words = line.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 1);
        words.map(str::to_owned).collect()
    };
    let alike = |(number, (line, wanted)): (usize, (&Line, &String))| {
        if number == at {
            let there = words(&line.text);
            return words(wanted).iter().any(|word| there.contains(word));
        }
        squashed(&line.text) == squashed(wanted)
    };
    let places = clean.lines.windows(given.len()).enumerate();
    places
        .filter(|(start, _)| *start != clean.first)
        .any(|(_, lines)| lines.iter().zip(given).enumerate().all(alike))
}

/// A word changed.
pub(super) fn changed_word(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    altered(clean, numbers, |line| {
        let letters = |word: &&str| word.len() > 4 && word.chars().all(|c| c.is_ascii_lowercase());
        let word = line.split(|c: char| !c.is_ascii_alphanumeric()).find(letters)?;
        // Of a line that is little more than that word nothing would be left.
        (line.trim().len() > 2 * word.len()).then(|| line.replacen(word, "zanzibar", 1))
    })
}

/// A number changed.
pub(super) fn changed_number(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    altered(clean, numbers, |line| {
        let at = line.find(|c: char| c.is_ascii_digit())?;
        let digit = if line[at..].starts_with('7') { "3" } else { "7" };
        Some([&line[..at], digit, &line[at + 1..]].concat())
    })
}

/// One line indented otherwise than the rest.
pub(super) fn uneven(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let wide = clean.wider()?;
    let mut old = wide.old();
    let at = 1 + numbers.below(old.len() - 1);
    if old.iter().filter(|line| !line.trim().is_empty()).count() < 2 || old[at].trim().is_empty() {
        return None;
    }
    // The first line may begin inside a line of the file: then the rest alone is compared.
    if old[1..].iter().filter(|line| !line.trim().is_empty()).count() < 2 {
        return None;
    }
    old[at] = format!("   {}", old[at]);
    let number = line_number(&wide, at);
    absent(&wide, &old)?;
    let words = ["not found", &*format!("Line {number}: "), "indented", "U+0020"];
    Case::refused(&wide, &old, &clean.come, &words)
}

/// Something where a text is not in the file as it is: one that begins or ends with an empty line
/// may be there without the line next to it.
fn absent(clean: &Clean, old: &[String]) -> Option<()> {
    let text: String = clean.lines.iter().flat_map(|line| [&*line.text, "\n"]).collect();
    (places(&text, &old.join("\n")) == 0).then_some(())
}

/// Two lines in each other's place.
pub(super) fn swapped(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let wide = clean.wider()?;
    let mut old = wide.old();
    let at = numbers.below(old.len() - 1);
    if squashed(&old[at]) == squashed(&old[at + 1]) || old[at..at + 2].iter().any(String::is_empty)
    {
        return None;
    }
    old.swap(at, at + 1);
    absent(&wide, &old)?;
    Case::refused(&wide, &old, &clean.come, &["not found", "The nearest text is at lines", "Line "])
}

/// A line of the file that the call lacks.
pub(super) fn dropped(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let wide = clean.wider()?;
    let mut old = wide.old();
    let at = 1 + numbers.below(old.len() - 2);
    let gone = old.remove(at);
    let alike = |line: &String| squashed(line) == squashed(&gone);
    if gone.trim().is_empty() || wide.old().iter().filter(|line| alike(line)).count() > 1 {
        return None;
    }
    absent(&wide, &old)?;
    if with_one_more(&wide, &old) {
        return None;
    }
    let number = line_number(&wide, at);
    let words = ["not found", &*format!("Line {number}: the file has a line here that old_text")];
    Case::refused(&wide, &old, &clean.come, &words)
}

/// Whether another place has all lines and one more between them: then nobody can tell which of
/// them is meant.
fn with_one_more(clean: &Clean, given: &[String]) -> bool {
    let given: Vec<String> = given.iter().map(|line| squashed(line)).collect();
    let mut places = clean.lines.windows(given.len() + 1).enumerate();
    places.any(|(start, lines)| {
        let lines: Vec<String> = lines.iter().map(|line| squashed(&line.text)).collect();
        let without =
            |more: usize| lines[..more] == given[..more] && lines[more + 1..] == given[more..];
        start != clean.first && (1..given.len()).any(without)
    })
}

/// A line of the call that the file lacks.
pub(super) fn invented(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let wide = clean.wider()?;
    let mut old = wide.old();
    let at = 1 + numbers.below(old.len() - 1);
    // At the end it might as well be another last line.
    if old[at..].iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    old.insert(at, "this line was made up by nobody;".to_owned());
    let words =
        ["not found", "old_text has a line here that the file has not", "made up by nobody"];
    Case::refused(&wide, &old, &clean.come, &words)
}

/// The first and the last line of a long stretch with an invented middle.
pub(super) fn too_large(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let last = clean.stop() + 10 + numbers.below(50);
    let last = &clean.lines.get(last)?.text;
    let old = [clean.lines[clean.first].text.clone(), "an invented middle".into(), last.clone()];
    let words = ["not found", "an invented middle"];
    Case::refused(clean, &old, &clean.come, &words[..1])
}

/// Two edits of the same text.
pub(super) fn overlap(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let (old, wide) = (clean.old().join("\n"), clean.wider()?.old().join("\n"));
    let mut case = Case::refused(
        clean,
        &clean.old(),
        &clean.new_lines(),
        &["Edits 1 and 2 overlap", "line ", "join the two"],
    )?;
    case.call = arguments(&wide, "one");
    case.call["edits"].as_array_mut()?.push(json!({ "old_text": old, "new_text": "two" }));
    Some(case)
}

/// Nothing that would change.
pub(super) fn no_change(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    Case::refused(clean, &clean.old(), &clean.old(), &["the same", "nothing would change"])
}

/// No text to look for.
pub(super) fn empty(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    Case::refused(clean, &[], &clean.come, &["old_text is empty"])
}

/// An edit that was made before.
pub(super) fn applied(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let joined = |lines: &[String]| lines.iter().map(|line| squashed(line)).collect::<String>();
    let mut file = clean.clone();
    let end = clean.lines[clean.first].end;
    let at = clean.first + clean.before;
    let come = clean.come.iter().map(|text| Line { text: text.clone(), end });
    file.lines.splice(at..at + clean.gone, come);
    let all: Vec<String> = file.lines.iter().map(|line| line.text.clone()).collect();
    let (all, new) = (joined(&all), joined(&clean.new_lines()));
    if places(&all, &joined(&clean.old())) > 0 || places(&all, &new) != 1 || end.is_empty() {
        return None;
    }
    let number = clean.first + 1;
    let words = ["new_text is", &*format!("at line {number}")];
    Case::refused(&file, &clean.old(), &clean.new_lines(), &words)
}

/// An edit that was made before and only put something in, so that its old text is still there.
pub(super) fn put_in(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let kept = clean.before + clean.gone;
    let old = clean.old()[..kept].to_vec();
    let new = [&old[..], &clean.come].concat();
    let mut file = clean.clone();
    let end = clean.lines[clean.first].end;
    let come = clean.come.iter().map(|text| Line { text: text.clone(), end });
    file.lines.splice(clean.first + kept..clean.first + kept, come);
    let all: Vec<String> = file.lines.iter().map(|line| line.text.clone()).collect();
    // One more bracket may be wanted where one stands: signs alone are put in again.
    let says = clean.come.iter().any(|line| line.contains(char::is_alphanumeric));
    let named = old.join("\n");
    if !says || named.is_empty() || end.is_empty() || places(&all.join("\n"), &named) != 1 {
        return None;
    }
    let number = clean.first + 1;
    let words = ["new_text is in the file", &*format!("at line {number}"), "applied already"];
    Case::refused(&file, &old, &new, &words)
}

/// Quotes escaped once too often, and a new text with an escape that may be one too many or not.
pub(super) fn two_readings(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    file.rewrite(at, format!("{} say(\"so\")", clean.old()[at]));
    let (old, mut new) = (file.old(), file.new_lines());
    if old.iter().chain(&new).any(|line| line.contains('\\')) {
        return None;
    }
    new.push("print(\"so\\n\")".to_owned());
    let escaped = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.replace('"', "\\\"")).collect()
    };
    let words = ["literal escapes", "two ways", "Nothing is guessed", "print(\"so\\n\")"];
    Case::refused(&file, &escaped(&old), &escaped(&new), &words)
}

/// Line ends written out, and a string of the new text with one that is meant as it is written.
pub(super) fn escape_in_a_string(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let (old, mut new) = (clean.old(), clean.new_lines());
    if old.iter().chain(&new).any(|line| line.contains('\\')) || old.len() < 2 {
        return None;
    }
    let string = ["print(\"x\\n\")", "re.sub('\\n', a)", "p = \"C:\\new\\table\"", "say(`a\\tb`)"];
    new.push(string[numbers.below(string.len())].to_owned());
    let written = |lines: &[String]| lines.join("\\n").replace('\t', "\\t");
    let words = ["literal escapes", "two ways", "Nothing is guessed"];
    Case::refused(clean, &[written(&old)], &[written(&new)], &words)
}

/// The old text twice, indented with spaces and with tabs, and in the call in a third way.
pub(super) fn two_indentations(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    if clean.lines.last()?.end.is_empty() || clean.old().iter().any(|line| line.starts_with('\t')) {
        return None;
    }
    let indented = |lines: &[String], by: &str| -> Vec<String> {
        let line = |line: &String| {
            if line.trim().is_empty() { line.clone() } else { format!("{by}{line}") }
        };
        lines.iter().map(line).collect()
    };
    let mut file = clean.clone();
    let end = clean.lines.first()?.end;
    file.lines.push(Line { text: "-- and once more --".into(), end });
    let copy = indented(&clean.old(), "\t");
    file.lines.extend(copy.into_iter().map(|text| Line { text, end }));
    for (at, text) in indented(&clean.old(), "    ").into_iter().enumerate() {
        file.rewrite(at, text);
    }
    let (old, new) = (indented(&clean.old(), "      "), indented(&clean.new_lines(), "      "));
    let (first, second) = (clean.first + 1, clean.lines.len() + 2);
    let lines = format!("at lines {first}, {second}");
    Case::refused(&file, &old, &new, &["2 places", "tolerating", "indentation", &lines])
}

/// A raised or enclosed digit, a fraction or a sign of its own in the file, plain ones in the call.
pub(super) fn compatible_digits(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    if !clean.codec.unicode() {
        return None;
    }
    let pairs =
        [("10²", "102"), ("2⁵", "25"), ("1½", "11⁄2"), ("①", "1"), ("x₁", "x1"), ("20 ℃", "20 °C")];
    let (there, given) = pairs[numbers.below(pairs.len())];
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let line = clean.old()[at].clone();
    file.rewrite(at, format!("{line} # {there} worth"));
    let mut old = clean.old();
    old[at] = format!("{line} # {given} worth");
    let words = ["not found", &*format!("Line {}: ", line_number(clean, at)), "U+"];
    Case::refused(&file, &old, &clean.new_lines(), &words)
}

/// One line with a part of its indentation, and a further one that shall stand like it, or be indented
/// as it is given.
pub(super) fn inside_the_indentation(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let at = numbers.below(clean.old().len());
    let line = clean.old()[at].clone();
    let bare = line.trim_start_matches(' ');
    let deep = line.len() - bare.len();
    let given = " "
        .repeat(deep.checked_sub(1).filter(|most| *most > 0).map(|most| 1 + numbers.below(most))?);
    let old = format!("{given}{bare}");
    let text: String = clean.lines.iter().flat_map(|line| [&*line.text, "\n"]).collect();
    if bare.trim().len() < 3 || places(&text, &old) != 1 {
        return None;
    }
    let new = format!("{old}\n{given}added();");
    let written = format!("\n{line}\n{given}added();\n");
    let shifted = format!("\n{line}\n{}added();\n", " ".repeat(deep));
    let words = ["two ways", "Nothing is guessed", &*written, &*shifted];
    Case::refused(clean, &[old], &[new], &words)
}

/// A character that the file's encoding lacks.
pub(super) fn unrepresentable(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let Codec::Legacy(encoding) = clean.codec else { return None };
    let mut new = clean.new_lines();
    new.push("\u{1F600}".to_owned());
    Case::refused(clean, &clean.old(), &new, &["U+1F600", encoding.name()])
}

/// A call that needs a tolerance.
fn tolerated(clean: &Clean, numbers: &mut Numbers, words: &[&str]) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let line = clean.old()[at].clone();
    file.rewrite(at, format!("{line}   "));
    Case::refused(&file, &clean.old(), &clean.new_lines(), words)
}

/// A tolerance in a file that was never read.
pub(super) fn unread(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let words = ["was not read", "only with a tolerance", "Nothing was changed"];
    Some(Case { read: false, ..tolerated(clean, numbers, &words)? })
}

/// A tolerance in a file that changed since it was read.
pub(super) fn stale(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
    let words = ["changed since it was read", "only with a tolerance", "Nothing was changed"];
    let case = tolerated(clean, numbers, &words)?;
    let meanwhile = Some(case.file.clone());
    let file = clean.file()?;
    Some(Case { file, meanwhile, ..case })
}

/// A file that is no text.
pub(super) fn binary(clean: &Clean, _: &mut Numbers) -> MaybeCase {
    let mut case = Case::refused(clean, &clean.old(), &clean.new_lines(), &["is not text"])?;
    case.file.splice(0..0, *b"\x7fELF\x02\x01\x01\0\0\x03");
    Some(Case { read: false, ..case })
}
