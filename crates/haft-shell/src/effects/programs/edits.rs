//! Programs that change no more than the files that they name, where they are asked for no more.
//!
//! **Invariant:** every word is known, and each option and letter stands here; with anything else the
//! program is one of which not all is known.

use super::Call;
use crate::{
    effects::{
        Effect, Operand,
        judge::{Judge, Outcome},
        words::{self, Arg},
    },
    table,
};

/// `chmod +x FILES`: rights of files, none for those of another owner.
pub(super) fn chmod(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let known: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    match known.as_deref() {
        Some([mode, files @ ..])
            if is_mode(mode) && !files.is_empty() && files.iter().all(|file| is_file(file)) =>
        {
            for arg in &call.args[1..] {
                let all = words::operands(arg, judge.state);
                out.effects.extend(all.into_iter().map(Effect::Writes));
            }
        }
        _ => {
            if let Some(entry) = table::find(call.name) {
                judge.table(call.name, entry, call.args, out);
            }
        }
    }
}

/// Whether a mode says who may read, write and run a file, and no more.
fn is_mode(mode: &str) -> bool {
    let is_number = |text: &str| {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        digits.len() == 3 && digits.bytes().all(|c| (b'0'..=b'7').contains(&c))
    };
    let is_clause = |text: &str| {
        let rest = text.trim_start_matches(['u', 'g', 'o', 'a']);
        let rights = rest.strip_prefix(['+', '-', '=']);
        // `-w` would be an option.
        rights.is_some_and(|rights| rights.bytes().all(|c| b"rwxX".contains(&c)))
            && !text.starts_with('-')
    };
    is_number(mode) || mode.split(',').all(is_clause)
}

/// Whether a word is the name of a file here, and no option.
fn is_file(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(['-', '@']) && !text.contains(':')
}

/// `gzip -k FILES` and `tar cf ARCHIVE FILES`: whether it is that.
pub(super) fn pack(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) -> bool {
    let known: Option<Vec<&str>> = call.args.iter().map(Arg::known).collect();
    let Some([first, ..]) = known.as_deref() else { return false };
    let letters = first.strip_prefix('-').unwrap_or(first);
    match call.name {
        "gzip" | "xz" => {
            let is_dashed = letters.len() < first.len();
            let is_fine = letters.bytes().all(|c| c == b'k' || c == b'v' || c.is_ascii_digit());
            let files = &call.args[1..];
            if !is_dashed || !is_fine || !letters.contains('k') || !are_files(files) {
                return false;
            }
            let ending = if call.name == "xz" { ".xz" } else { ".gz" };
            for arg in files {
                for operand in words::operands(arg, judge.state) {
                    let made = match &operand {
                        Operand::Path(path) => Operand::Path(format!("{path}{ending}")),
                        _ => Operand::Unknown,
                    };
                    out.effects.extend([Effect::Reads(operand), Effect::Writes(made)]);
                }
            }
        }
        "tar" => {
            let is_fine = letters.bytes().all(|c| b"cvzjJf".contains(&c));
            let names = call.args.get(1..).unwrap_or_default();
            let is_one = |letter: char| letters.matches(letter).count() == 1;
            if !is_fine || !is_one('c') || !is_one('f') || !letters.ends_with('f') {
                return false;
            }
            if names.len() < 2 || !are_files(names) {
                return false;
            }
            let made = words::operands(&names[0], judge.state);
            out.effects.extend(made.into_iter().map(Effect::Writes));
            out.effects.extend(names[1..].iter().flat_map(|arg| judge.reads(arg)));
        }
        _ => return false,
    }
    true
}

fn are_files(args: &[Arg]) -> bool {
    !args.is_empty() && args.iter().all(|arg| arg.known().is_some_and(is_file))
}
