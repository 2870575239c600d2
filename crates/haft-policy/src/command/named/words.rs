//! The paths that words of a program may be, or hold.
//!
//! **Does not know:** what becomes of them.

use haft_shell::{ANY, FOUND, ONE, SOME, Text};
use haft_types::Place;

use crate::{
    command::{
        lexer::{EXPANDS, QUOTED},
        script::Part,
    },
    places::partial_path::Shape,
};

/// Programs whose words, or whose input, are programs that may name files in them.
const INTERPRETERS: &[&str] = &[
    "at",
    "awk",
    "batch",
    "crontab",
    "deno",
    "ed",
    "emacs",
    "ex",
    "expect",
    "gawk",
    "gdb",
    "julia",
    "lua",
    "mawk",
    "nix-shell",
    "node",
    "nvim",
    "osascript",
    "perl",
    "php",
    "psql",
    "pwsh",
    "python",
    "rscript",
    "ruby",
    "script",
    "sed",
    "sqlite",
    "su",
    "tclsh",
    "vi",
    "vim",
];

/// Programs and what they do that take texts behind these options.
const TEXTS: &[(&str, &[&str], &[&str])] = &[
    ("git", &["commit", "merge", "notes", "revert", "stash", "tag"], &["-m", "--message"]),
    ("gh", &["issue", "pr", "release"], &["-b", "-n", "-t", "--body", "--notes", "--title"]),
];

/// What a number is in a shape.
pub(super) const NUMBER: char = '0';

/// Shells, which may take a script from their input.
const SHELLS: &[&str] = &[".", "bash", "dash", "ksh", "parallel", "sh", "source", "zsh"];

/// Programs that may take names of files from their input.
const TAKE: &[&str] = &["7z", "bsdtar", "cpio", "git", "pax", "rsync", "tar", "zip"];

/// Options whose values are left out.
const LEFT_OUT: &[&str] = &[
    "--exclude",
    "--exclude-dir",
    "--exclude-from",
    "--ignore",
    "--ignore-path",
    "--ignore-pattern",
];

/// Programs that say their words, and no more.
const SAY: &[&str] = &[":", "echo", "false", "printf", "true"];

/// A path that a word may be.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub(crate) struct Named {
    pub shape: Shape,
    /// It is a word, or what stands behind an option in it, and none of the texts within.
    pub is_whole: bool,
    /// Nothing of it is known.
    pub is_blank: bool,
    /// What it leaves open is a pattern that the program may read, or not.
    pub is_guess: bool,
    /// It is the file of a redirect, and no word.
    pub is_target: bool,
}

/// What the words of a part may name.
pub(crate) fn of_part(part: &Part, place: &Place) -> Vec<Named> {
    let name = part.program.as_deref().unwrap_or_default();
    let own = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_lowercase();
    let is_read = INTERPRETERS.contains(&&*own);
    let folders = folders(part);
    // It may read several words in one.
    let splits = !(part.is_tame || part.read_only || super::reach::is_project(part));
    let mut all: Vec<Named> = Vec::new();
    let mut add =
        |text: &str, is_whole: bool| all.extend(shapes(text, folders.as_deref(), place, is_whole));
    for word in without_texts(part).into_iter().filter(|word| !(is_read && is_change(word))) {
        halves(word)
            .into_iter()
            .chain(glued(word))
            .for_each(|(text, is_whole)| add(text, is_whole));
        let magic = word.strip_prefix(":(").and_then(|rest| rest.split_once(')'));
        if let Some((_, path)) = magic.filter(|_| name == "git") {
            add(if path.is_empty() { "." } else { path }, true);
            add(&format!("{}/{path}", place.cwd.text()), true);
        }
        if let Some(path) = word.strip_prefix(":/").filter(|_| name == "git") {
            // From the top of the repository on.
            add(&format!("{}/{path}", place.cwd.text()), true);
        }
        if is_read {
            within(word).for_each(|text| add(text, false));
        } else if splits && word.contains(char::is_whitespace) {
            word.split_whitespace().flat_map(halves).for_each(|(text, _)| add(text, false));
        }
    }
    part.places.iter().for_each(|place| add(place, true));
    let takes = SHELLS.contains(&name)
        || TAKE.contains(&name) && part.shapes.iter().any(|word| is_taking(word));
    for text in part.inputs.iter().filter(|_| is_read || takes) {
        add(text.trim(), false);
        within(text).for_each(|text| add(text, false));
    }
    // What is known of these is an effect.
    let is_open =
        |target: &&String| part.redirects_open || target.contains([ANY, FOUND, ONE, SOME]);
    let targets = part.targets.iter().filter(is_open);
    let targets = targets.flat_map(|text| shapes(text, folders.as_deref(), place, true));
    let targets: Vec<Named> = targets.map(|one| Named { is_target: true, ..one }).collect();
    let runs = ["-x", "-X", "--exec", "--exec-batch"];
    if ["fd", "fdfind"].contains(&name)
        && part.shapes.iter().any(|word| runs.contains(&word.as_str()))
    {
        add(&FOUND.to_string(), false);
    }
    all.extend(targets);
    all
}

/// Whether a part is a shell that runs what it is told.
pub(super) fn is_told(part: &Part) -> bool {
    let is_script = |word: &String| !word.starts_with('-') && !word.starts_with("/dev/");
    part.program.as_deref().is_some_and(|name| SHELLS.contains(&name))
        && !part.shapes.iter().any(is_script)
}

/// Whether a word says that names are taken from the input.
fn is_taking(word: &str) -> bool {
    let is_file = ["-T", "--files-from", "--include-from", "--stdin"];
    ["-", "-@", "-o", "@"].contains(&word) || is_file.iter().any(|start| word.starts_with(start))
}

/// What a text may be that stands for a path: `*` and `?` that the shell left as they are may be read by
/// the program.
fn shapes(text: &str, folders: Option<&[String]>, place: &Place, is_whole: bool) -> Vec<Named> {
    let is_blank = text.chars().eq([ANY]);
    let of = |text: &str, is_guess: bool| {
        let named = move |shape| Named { shape, is_whole, is_blank, is_guess, is_target: false };
        Shape::of(text, folders, place).into_iter().map(named).collect::<Vec<_>>()
    };
    let mut all = of(text, false);
    if text.contains(['*', '?']) {
        all.extend(of(&text.replace('*', &ANY.to_string()).replace('?', &SOME.to_string()), true));
    }
    all
}

/// What may be paths in a text that a script holds.
pub(super) fn of_text(text: &Text, place: &Place) -> Vec<Named> {
    let ends = |c: char| c.is_whitespace() || c == '\0' || "'\"`();<>|=:,@".contains(c);
    let pieces = text.shape.split(ends).filter(|piece| !piece.is_empty());
    let folders = text.folders.as_deref();
    pieces.flat_map(|piece| shapes(piece, folders, place, false)).collect()
}

/// What may be paths in a text of a program.
fn within(text: &str) -> impl Iterator<Item = &str> {
    let ends = |c: char| c.is_whitespace() || "'\"`();<>|".contains(c);
    let pieces = text.split(ends).filter(move |piece| !piece.is_empty() && *piece != text);
    pieces.filter(|piece| !is_change(piece))
}

/// Whether a text says how others are changed: `s/x/y/`.
fn is_change(text: &str) -> bool {
    let starts = ["s/", "y/", "tr/"];
    starts.iter().any(|start| text.starts_with(start)) && text.matches('/').count() > 2
}

/// What stands behind the redirects of a text that cannot be read.
pub(super) fn redirected(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| c.is_whitespace() || "<>|&;()`'\"".contains(c);
    // Each piece is looked at once.
    let mut pieces = text.split(['<', '>']);
    pieces.next();
    pieces.filter_map(move |piece| piece.split(is_end).find(|file| !file.is_empty()))
}

/// A word of a text that cannot be read, without its marks.
pub(super) fn of_rough(word: &str) -> String {
    let homes = [EXPANDS, QUOTED].map(|mark| [format!("{mark}HOME"), format!("{mark}{{HOME}}")]);
    let is_end = |rest: &str| !rest.starts_with(|c: char| c == '_' || c.is_ascii_alphanumeric());
    let home = homes.as_flattened().iter().find_map(|home| word.strip_prefix(home.as_str()));
    let home = home.filter(|rest| is_end(rest)).map(|rest| format!("~{rest}"));
    home.unwrap_or_else(|| word.to_owned()).replace([EXPANDS, QUOTED], "")
}

/// The same of a word that stands alone.
pub(crate) fn of_word(word: &str, place: &Place) -> Vec<Named> {
    let folders = [place.cwd.text().into_owned()];
    let shapes = halves(word).into_iter().flat_map(|(text, is_whole)| {
        let shapes = Shape::of(text, Some(&folders), place);
        shapes.into_iter().map(move |shape| Named {
            shape,
            is_whole,
            is_blank: false,
            is_guess: false,
            is_target: false,
        })
    });
    shapes.collect()
}

/// The words that are no texts of people, and name nothing that is left out.
fn without_texts(part: &Part) -> Vec<&str> {
    let name = part.program.as_deref().unwrap_or_default();
    if SAY.contains(&name) {
        return Vec::new();
    }
    let does = |subs: &[&str]| part.shapes.iter().any(|word| subs.contains(&word.as_str()));
    let texts = TEXTS.iter().find(|(own, subs, _)| *own == name && does(subs));
    let options = texts.map_or(&[][..], |(_, _, options)| options);
    let is_bundle = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_it = name == "git" && !options.is_empty();
        is_it && letters.ends_with('m') && letters.bytes().all(|c| c.is_ascii_lowercase())
    };
    let is_text = |word: &str| {
        let (option, value) = word.split_once('=').map_or((word, None), |(o, v)| (o, Some(v)));
        let is_one = LEFT_OUT.contains(&option) || options.contains(&option);
        (is_one, value.is_some())
    };
    let (mut next, mut kept) = (false, Vec::new());
    for word in part.shapes.iter().map(String::as_str) {
        let (is_one, is_joined) = is_text(word);
        let skipped = std::mem::replace(&mut next, (is_one || is_bundle(word)) && !is_joined);
        // Of `zip` all that follows is left out, up to the next option.
        if name == "zip" && (word == "-x" || skipped && !word.starts_with('-')) {
            next = true;
            continue;
        }
        if !(skipped || is_one && is_joined) {
            kept.push(word);
        }
    }
    kept
}

/// The folders that its words are seen from: also those that `-C` names.
pub(super) fn folders(part: &Part) -> Option<Vec<String>> {
    let mut all = part.folders.clone()?;
    let mut words = part.shapes.iter().peekable();
    while let Some(word) = words.next() {
        let named = match word.as_str() {
            "-C" | "--directory" => words.peek().map(|next| next.as_str()),
            word => word.strip_prefix("--directory=").or_else(|| word.strip_prefix("-C")),
        };
        let Some(named) = named.filter(|named| !named.is_empty()) else { continue };
        let more: Vec<String> = match named {
            named if named.starts_with('/') => vec![named.to_owned()],
            named => all.iter().map(|from| format!("{from}/{named}")).collect(),
        };
        all.extend(more);
        if all.len() > 16 {
            return None;
        }
    }
    Some(all)
}

/// A word, and its parts: of `--file=/x` the second half is meant.
fn halves(word: &str) -> Vec<(&str, bool)> {
    let mut all = vec![(word, true)];
    if let Some((option, value)) = word.split_once('=')
        && option.starts_with('-')
    {
        all.push((value, true));
    }
    // `-v FROM:TO`
    if let Some((first, _)) = word.split_once(':') {
        let first = first.split_once('=').map_or(first, |(_, first)| first);
        all.push((first, true));
    }
    // `--mount type=bind,source=FROM`
    for (name, value) in word.split(',').filter_map(|part| part.split_once('=')) {
        if ["source", "src"].contains(&name) {
            all.push((value, true));
        }
    }
    let parts = word.split(['=', ':', '@', ',']).filter(|part| !part.is_empty());
    all.extend(parts.filter(|part| *part != word).map(|part| (part, false)));
    all
}

/// What may be the value of an option of one letter in the same word: `-Cfolder`, `-xffile`.
fn glued(word: &str) -> Vec<(&str, bool)> {
    let Some(rest) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return Vec::new();
    };
    let letters = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let starts = (1..=letters.min(8)).filter(|at| *at < rest.len());
    starts.map(|at| (&rest[at..], rest.as_bytes()[at - 1] == b'C')).collect()
}
