//! Programs that reshape data, where options have more than one value.

use super::{Call, edits};
use crate::{
    effects::{
        Effect, Operand,
        judge::{Judge, Outcome},
        options,
        words::Arg,
    },
    table,
};

/// `jq [OPTIONS] FILTER [FILES]`: some options name a variable and its value.
pub(super) fn jq(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("jq ...") else { return };
    let mut args = Vec::new();
    let mut at = 0;
    while let Some(arg) = call.args.get(at) {
        let two = call.args.get(at + 1..at + 3);
        match (arg.known(), two) {
            (Some("--arg" | "--argjson"), Some(two)) if !two.iter().any(is_many) => at += 3,
            (Some("--slurpfile" | "--rawfile"), Some(two)) if !two.iter().any(is_many) => {
                out.effects.extend(judge.reads(&two[1]));
                at += 3;
            }
            _ => {
                args.push(arg.clone());
                at += 1;
            }
        }
    }
    let parsed = options::parse(entry, &args);
    let has_file = parsed.has("f") || parsed.has("from-file");
    let program = parsed.operands.first().filter(|_| !has_file);
    // A module is a file that the filter names.
    if has_file || program.is_some_and(|arg| !arg.known().is_some_and(is_filter)) {
        out.effects.push(Effect::Reads(Operand::Unknown));
    }
    judge.parsed("jq", entry, &parsed, out);
}

/// Whether a filter loads nothing.
fn is_filter(text: &str) -> bool {
    !["import", "include", "modulemeta"].iter().any(|word| text.contains(word))
}

/// `bat [OPTIONS] FILES`: it may be told to start no pager.
pub(super) fn bat(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find(call.name) else { return };
    let is_paging = |arg: &&Arg| arg.known() == Some("--paging=never");
    let args: Vec<Arg> = call.args.iter().filter(|arg| !is_paging(arg)).cloned().collect();
    judge.table(call.name, entry, &args, out);
}

/// `zgrep PATTERN FILES`: a script, some versions of which run what names of files hold.
pub(super) fn zgrep(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("zgrep ...") else { return };
    let is_line = |arg: &Arg| {
        arg.known().is_some_and(|text| !text.is_empty() && !text.chars().any(char::is_control))
    };
    let parsed = options::parse(entry, call.args);
    let skipped = usize::from(!parsed.has("e"));
    let is_name = |arg: &Arg| {
        let is_plain = |c: u8| c.is_ascii_alphanumeric() || b"._/+-@%:,".contains(&c);
        arg.known().is_some_and(|text| text.bytes().all(is_plain))
    };
    let names = parsed.operands.get(skipped..).unwrap_or_default();
    if !call.args.iter().all(is_line) || !names.iter().all(is_name) {
        out.anything("what zgrep is given is not known to be plain");
    }
    judge.parsed("zgrep", entry, &parsed, out);
}

/// Programs of archives, where they only list or print.
pub(super) fn archive(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let first = call.args.first().and_then(Arg::known).unwrap_or_default();
    let shows: &[&str] = match call.name {
        _ if call.args.len() == 1 && first == "--version" => return,
        "tar" => {
            &["tf", "-tf", "tvf", "-tvf", "-tzf", "tzf", "-tzvf", "tzvf", "-tjf", "-tJf", "-ztf"]
        }
        "unzip" => &["-l", "-v", "-Z1", "-p", "-t"],
        "gzip" => &["-l", "-dc", "-cd", "-t", "-lv"],
        "gunzip" => &["-c"],
        "xz" | "zstd" => &["-l", "-dc", "-t"],
        "ar" => &["t", "tv", "-t"],
        _ => &[],
    };
    let rest = call.args.get(1..).unwrap_or_default();
    // With a colon a name is one on another machine, and `@` names a file of options.
    let is_file = |arg: &Arg| {
        let is_plain = |text: &str| !text.starts_with(['-', '@']) && !text.contains(':');
        arg.known().is_some_and(|text| text == "-" || is_plain(text))
    };
    if !shows.contains(&first) || !rest.iter().all(is_file) {
        if edits::pack(judge, call, out) {
            return;
        }
        return out.anything(format!("{} may write files", call.name));
    }
    out.follows |= call.name == "tar";
    let count = if ["tar", "unzip", "ar"].contains(&call.name) { 1 } else { rest.len() };
    out.effects.extend(rest.iter().take(count).flat_map(|arg| judge.reads(arg)));
}

fn is_many(arg: &Arg) -> bool {
    arg.is_split || arg.is_pattern
}
