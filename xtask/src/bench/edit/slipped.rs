//! Calls in which old and new text do not miss the file alike: one of them, or each in its own way.
//!
//! **Invariant:** a slip is made of the lines that the file has, and of those that it shall have. Where
//! the old text is there exactly, the new one is wanted as it is given, slips and all. Elsewhere what
//! is meant is wanted, or a refusal.

use super::super::scratch::Numbers;
use super::calls::{Case, Clean, Want};
use super::tolerated::{indented, is_blank, levelled, tells};

type MaybeCase = Option<Case>;

/// Which of the two texts slips.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slip {
    New,
    Old,
    Alike,
    Apart,
}

/// A call with these texts: the old one as it was meant and as it is given, and so the new one.
struct Call {
    file: Clean,
    old: String,
    meant: Vec<String>,
    new: String,
}

impl Call {
    fn case(self, slip: Slip) -> MaybeCase {
        let bytes = self.file.file()?;
        let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
        let want = match slip {
            Slip::New => Want::Bytes(self.file.with(&lines(&self.new.replace("\r\n", "\n")))?),
            _ => Want::BytesOrRefused(self.file.with(&self.meant)?),
        };
        let exact = self.file.old().join("\n") == self.old.replace("\r\n", "\n");
        let slips = self.new.replace("\r\n", "\n") != self.meant.join("\n");
        let ends = self.old.contains('\r') || self.new.contains('\r');
        let as_said = match slip {
            Slip::New => exact && (slips || ends),
            Slip::Old => (!exact || ends) && !slips,
            Slip::Alike | Slip::Apart => ends || (!exact && slips),
        };
        // What would leave the file as it is is refused for that.
        let same = match &want {
            Want::Bytes(after) | Want::BytesOrRefused(after) => *after == bytes,
            Want::Refused(_) => true,
        };
        // Of lines that go for nothing nobody can tell whether an empty one stays.
        let none = self.meant.is_empty() || self.new.is_empty();
        (as_said && !same && !none).then(|| Case::new(bytes, &self.old, &self.new, want))
    }
}

/// The change as it is; or its lines alone; or its lines put into a block, or all of them taken for
/// others.
fn varied(clean: &Clean, numbers: &mut Numbers) -> Option<Clean> {
    let mut one = clean.clone();
    let old = clean.old();
    let indent = |line: &str| line[..line.len() - line.trim_start().len()].to_owned();
    match numbers.below(8) {
        0..4 => return Some(one),
        4 | 5 => (one.first, one.before, one.after) = (clean.first + clean.before, 0, 0),
        6 => {
            let base = old.iter().filter(|line| !is_blank(line)).map(|line| indent(line));
            let base = base.min_by_key(String::len)?;
            (one.before, one.gone, one.after) = (0, old.len(), 0);
            one.come = [vec![format!("{base}if wrapped {{")], indented(&old, "    ")].concat();
        }
        _ => {
            (one.before, one.gone, one.after) = (0, old.len(), 0);
            let other = |(at, line): (usize, &String)| {
                if is_blank(line) { line.clone() } else { format!("{}other({at});", indent(line)) }
            };
            one.come = old.iter().enumerate().map(other).collect();
        }
    }
    (one.stop() > one.first && one.is_unique()).then_some(one)
}

/// Lines indented by so much more, or so much less where all of them can be.
fn shifted(lines: &[String], (more, add): (&str, bool)) -> Option<Vec<String>> {
    if add {
        return Some(indented(lines, more));
    }
    let line = |line: &String| {
        if is_blank(line) { Some(line.clone()) } else { Some(line.strip_prefix(more)?.to_owned()) }
    };
    lines.iter().map(line).collect()
}

fn indentation(clean: &Clean, numbers: &mut Numbers, slip: Slip) -> MaybeCase {
    let file = varied(clean, numbers)?;
    if !tells(&file) {
        return None;
    }
    let mut way = || (["  ", "    ", "        ", "\t"][numbers.below(4)], numbers.below(2) == 0);
    let (one, two) = (way(), way());
    let (old, new) = (file.old(), file.new_lines());
    let (given, fresh) = match slip {
        Slip::New => (old, shifted(&new, two)?),
        Slip::Old => (shifted(&old, one)?, new.clone()),
        Slip::Alike => (shifted(&old, one)?, shifted(&new, one)?),
        Slip::Apart if one == two => return None,
        Slip::Apart => (shifted(&old, one)?, shifted(&new, two)?),
    };
    Call { old: given.join("\n"), meant: new, new: fresh.join("\n"), file }.case(slip)
}

fn tabs(clean: &Clean, numbers: &mut Numbers, slip: Slip) -> MaybeCase {
    if !tells(clean) {
        return None;
    }
    let blanks = ["  ", "    ", "        "];
    let (one, more) = (blanks[numbers.below(3)], blanks[numbers.below(3)]);
    let (there, given) = if numbers.below(2) == 0 { ("\t", one) } else { (one, "\t") };
    // The new text has a step of its own.
    let other = if more == one { "\t\t" } else { more };
    let base = numbers.below(2);
    let before = clean.before;
    let deep = |at: usize| base + at % 2;
    let come_deep = |at: usize| base + (at + before) % 2;
    let levels = |unit: &str| {
        let old = levelled(&clean.old(), unit, &deep);
        let come = levelled(&clean.come, unit, &come_deep);
        let new = [&old[..before], &come, &old[before + clean.gone..]].concat();
        (old, new)
    };
    let (old, new) = levels(there);
    let mut file = clean.clone();
    old.iter().enumerate().for_each(|(at, line)| file.rewrite(at, line.clone()));
    let (given, fresh) = match slip {
        Slip::New => (old, levels(given).1),
        Slip::Old => (levels(given).0, new.clone()),
        Slip::Alike => levels(given),
        Slip::Apart => (levels(given).0, levels(other).1),
    };
    Call { old: given.join("\n"), meant: new, new: fresh.join("\n"), file }.case(slip)
}

/// Quotes of a file that has those of one kind alone.
const CURLY: [char; 4] = ['“', '”', '‘', '’'];

fn plain(text: &str) -> String {
    text.replace(['“', '”'], "\"").replace(['‘', '’'], "'")
}

fn quotes(clean: &Clean, numbers: &mut Numbers, slip: Slip) -> MaybeCase {
    let mut file = clean.clone();
    let is_plain = file
        .lines
        .iter()
        .map(|line| &line.text)
        .chain(&file.come)
        .all(|text| text.is_ascii() || !text.contains(CURLY));
    if !file.codec.unicode() || !is_plain {
        return None;
    }
    let at = file.inner(numbers)?;
    let curly = numbers.below(2) == 0;
    let (first, second) = ("“so” it’s ‘so’", " a “new” one’s “text”");
    let line = clean.old()[at].clone();
    file.rewrite(at, format!("{line} {first}"));
    if numbers.below(2) == 0 {
        file.come.last_mut()?.push_str(second);
    }
    let spelt = |lines: Vec<String>, kind: usize| -> Vec<String> {
        let line = |text: String| match kind {
            // As a text has them, as it is typed, and as other languages have them.
            0 => text.replace(" \"", " “").replace(" '", " ‘").replace('"', "”").replace('\'', "’"),
            1 => plain(&text),
            _ => plain(&text).replace(" \"", " „").replace('"', "“").replace('\'', "\u{2032}"),
        };
        lines.into_iter().map(line).collect()
    };
    let (there, given) = if curly { (0, 1) } else { (1, 0) };
    // Files have quotes of one kind: a text as it is printed, or one as it is typed.
    for line in &mut file.lines {
        line.text = spelt(vec![line.text.clone()], there).concat();
    }
    let (old, new) = (file.old(), spelt(file.new_lines(), there));
    let (given, fresh) = match slip {
        Slip::New => (old, spelt(new.clone(), given)),
        Slip::Old => (spelt(old, given), new.clone()),
        Slip::Alike => (spelt(old, given), spelt(new.clone(), given)),
        Slip::Apart => (spelt(old, given), spelt(new.clone(), 2)),
    };
    Call { old: given.join("\n"), meant: new, new: fresh.join("\n"), file }.case(slip)
}

/// Ways in which a text is escaped: line ends and tabs, quotes, all as in a string of JSON.
fn escaped(lines: &[String], way: usize) -> String {
    let text = lines.join("\n");
    match way {
        0 => text.replace('\n', "\\n").replace('\t', "\\t"),
        1 => text.replace('"', "\\\""),
        _ => {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"");
            text.replace('\n', "\\n").replace('\t', "\\t")
        }
    }
}

fn escapes(clean: &Clean, numbers: &mut Numbers, slip: Slip) -> MaybeCase {
    let mut file = clean.clone();
    let at = file.inner(numbers)?;
    let string = ["say(\"so\")", "say(\"so\\n\")", "re('\\d')"][numbers.below(3)];
    file.rewrite(at, format!("{} {string}", clean.old()[at]));
    let more = ["", " say(\"x\")", " say(\"x\\ty\\n\")", " re('\\\\d\\n')"][numbers.below(4)];
    file.come.last_mut()?.push_str(more);
    let (one, two) = (numbers.below(3), numbers.below(3));
    let (old, new) = (file.old(), file.new_lines());
    let (plain, right) = (old.join("\n"), new.join("\n"));
    let (given, fresh) = match slip {
        Slip::New => (plain, escaped(&new, two)),
        Slip::Old => (escaped(&old, one), right),
        Slip::Alike => (escaped(&old, one), escaped(&new, one)),
        Slip::Apart if one == two => return None,
        Slip::Apart => (escaped(&old, one), escaped(&new, two)),
    };
    Call { old: given, meant: new, new: fresh, file }.case(slip)
}

fn ends(clean: &Clean, numbers: &mut Numbers, slip: Slip) -> MaybeCase {
    let mut file = clean.clone();
    let there = ["\n", "\r\n"][numbers.below(2)];
    for line in file.lines.iter_mut().filter(|line| !line.end.is_empty()) {
        line.end = there;
    }
    let other = if there == "\n" { "\r\n" } else { "\n" };
    let (old, new) = (file.old(), file.new_lines());
    let mixed = |lines: &[String]| -> String {
        let line = |(at, text): (usize, &String)| match at {
            0 => text.clone(),
            at => [["\n", "\r\n"][at % 2], text].concat(),
        };
        lines.iter().enumerate().map(line).collect()
    };
    let (given, fresh) = match slip {
        Slip::New => (old.join(there), new.join(other)),
        Slip::Old => (old.join(other), new.join(there)),
        Slip::Alike => (old.join(other), new.join(other)),
        Slip::Apart => (old.join(other), mixed(&new)),
    };
    Call { old: given, meant: new, new: fresh, file }.case(slip)
}

macro_rules! slips {
    ($($make:ident: $new:ident $old:ident $alike:ident $apart:ident;)*) => {
        $(
            pub(super) fn $new(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
                $make(clean, numbers, Slip::New)
            }
            pub(super) fn $old(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
                $make(clean, numbers, Slip::Old)
            }
            pub(super) fn $alike(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
                $make(clean, numbers, Slip::Alike)
            }
            pub(super) fn $apart(clean: &Clean, numbers: &mut Numbers) -> MaybeCase {
                $make(clean, numbers, Slip::Apart)
            }
        )*
    };
}

slips! {
    indentation: indentation_new indentation_old indentation_alike indentation_apart;
    tabs: tabs_new tabs_old tabs_alike tabs_apart;
    quotes: quotes_new quotes_old quotes_alike quotes_apart;
    escapes: escapes_new escapes_old escapes_alike escapes_apart;
    ends: ends_new ends_old ends_alike ends_apart;
}
