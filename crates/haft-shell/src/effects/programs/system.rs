//! Programs that tell about the machine, where words without dashes are options.

use super::Call;
use crate::{
    effects::{
        judge::{Judge, Outcome},
        options,
        words::Arg,
    },
    table,
};

/// The words of a call, where all are known.
fn known<'a>(call: &Call<'a>) -> Option<Vec<&'a str>> {
    call.args.iter().map(Arg::known).collect()
}

/// `date [OPTIONS] [+FORMAT]`: any other operand sets the clock.
pub(super) fn date(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("date ...") else { return };
    let parsed = options::parse(entry, call.args);
    let is_format =
        |arg: &Arg| arg.value.start().starts_with('+') && !arg.is_split && !arg.is_pattern;
    if parsed.operands.iter().any(|arg| !is_format(arg)) {
        out.anything("date sets the clock");
    }
    judge.parsed("date", entry, &parsed, out);
}

/// `lsof -n ...`: without it names are looked up elsewhere.
pub(super) fn lsof(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let words = known(call).unwrap_or_default();
    if words == ["-v"] {
        return;
    }
    let has_n = words.iter().any(|word| ["-n", "-nP", "-Pn", "-nPi", "-Pni"].contains(word));
    let is_plain = |word: &&str| {
        let letters = word.strip_prefix('-').unwrap_or("+");
        letters.chars().next().is_some_and(|c| "nPitsapuclx4:0123456789".contains(c))
            && (letters.starts_with("sTCP:")
                || letters.starts_with("sUDP:")
                || !letters.contains(['D', 'k', 'S', 'r', '+', '@']))
            || !word.starts_with(['-', '+'])
    };
    // Values of options among them are read as names, too.
    for arg in call.args.iter().filter(|arg| !arg.known().is_some_and(|word| word.starts_with('-')))
    {
        out.effects.extend(judge.reads(arg));
    }
    // The address of `-i` is in a word of its own, too.
    let asks = |word: &&str| {
        word.split_once('@').is_none_or(|(_, place)| is_address(place, !place.starts_with('[')))
    };
    if !has_n
        || !words.iter().all(asks)
        || words.len() != call.args.len()
        || !words.iter().all(is_plain)
    {
        out.anything("lsof may look names up in the network");
    }
}

/// Whether a place, perhaps with `:PORT` behind it, is a number, and no name that is looked up.
fn is_address(place: &str, has_port: bool) -> bool {
    let host =
        if has_port { place.rsplit_once(':').map_or(place, |(host, _)| host) } else { place };
    let host = host.split_once('/').map_or(host, |(host, _)| host);
    let is_six = |c: char| c.is_ascii_hexdigit() || "[]:.".contains(c);
    let is_number = host.chars().all(|c| c.is_ascii_digit() || ".*".contains(c));
    let is_bracketed = host.starts_with('[')
        && host.split(']').nth(1).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
    is_number
        || is_bracketed && host.split(']').next().is_some_and(|host| host.chars().all(is_six))
        || host == "localhost"
}

/// `ss [OPTIONS] [FILTER]`: hosts that a filter names are looked up.
pub(super) fn ss(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    const WORDS: [&str; 35] = [
        "state",
        "exclude",
        "dst",
        "src",
        "dport",
        "sport",
        "eq",
        "ne",
        "neq",
        "gt",
        "lt",
        "ge",
        "le",
        "and",
        "or",
        "not",
        "established",
        "syn-sent",
        "syn-recv",
        "fin-wait-1",
        "fin-wait-2",
        "time-wait",
        "closed",
        "close-wait",
        "last-ack",
        "listening",
        "listen",
        "closing",
        "all",
        "connected",
        "synchronized",
        "bucket",
        "big",
        "autobound",
        "",
    ];
    let Some(entry) = table::find("ss ...") else { return };
    let parsed = options::parse(entry, call.args);
    let is_plain =
        |word: &str| WORDS.contains(&word) || word.starts_with(':') || is_address(word, true);
    let is_known = |text: &str| text.split(|c: char| " \t\n()!=<>&|".contains(c)).all(is_plain);
    if !parsed.operands.iter().all(|arg| arg.known().is_some_and(is_known)) {
        out.anything("ss may look names up in the network");
    }
    judge.parsed("ss", entry, &parsed, out);
}

/// `netstat -n ...`: without it names are looked up elsewhere.
pub(super) fn netstat(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("netstat ...") else { return };
    let parsed = options::parse(entry, call.args);
    if !parsed.has("n") && !parsed.has("numeric") {
        out.anything("netstat may look names up in the network");
    }
    judge.parsed("netstat", entry, &parsed, out);
}

/// `ip addr`, `ip route show`
pub(super) fn ip(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let words = known(call).unwrap_or_default();
    let mut rest = words.iter().skip_while(|word| {
        ["-4", "-6", "-br", "-brief", "-o", "-j", "-json", "-c", "-s"].contains(*word)
    });
    let object = rest.next().copied().unwrap_or("help");
    let objects = ["a", "addr", "address", "l", "link", "r", "route", "rule", "neigh", "n"];
    let is_fine =
        objects.contains(&object) && rest.all(|word| ["show", "list", "ls"].contains(word));
    if !is_fine || words.is_empty() {
        out.anything("ip may change the network");
    }
}

/// `man [SECTION] NAME`: pages that are installed.
pub(super) fn man(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("man ...") else { return };
    let parsed = options::parse(entry, call.args);
    judge.parsed("man", entry, &parsed, out);
    // A page of the workspace may name any file, and how it is shown.
    if parsed.operands.iter().any(|arg| arg.known().is_none_or(|name| name.contains('/'))) {
        out.anything("the page is not known to be one that is installed");
    }
}

/// Programs that only tell what they are, with these words.
pub(super) fn version(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    match known(call).as_deref() {
        Some(["--version" | "-V" | "--help" | "-h" | "-v" | "-version" | "version" | "help"])
            if is_told(call) => {}
        _ => {
            out.effects.push(crate::Effect::Runs(call.name.to_owned()));
            out.fault(format!("{} may run anything", call.name));
        }
    }
}

/// Programs that files of the project can make run anything, whatever their words are.
pub(super) fn runs(_: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    out.effects.push(crate::Effect::Runs(call.name.to_owned()));
    out.fault(format!("{} may run anything", call.name));
}

/// `rustc --version`
pub(super) fn toolchain(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find(&format!("{} ...", call.name)) else { return };
    let parsed = options::parse(entry, call.args);
    judge.parsed(call.name, entry, &parsed, out);
    for (name, _, value) in &parsed.options {
        let text = value.as_ref().and_then(Arg::known).unwrap_or_default();
        let told = ["sysroot", "cfg", "target-list", "host-tuple", "default", "current", ""];
        // Some of what can be printed is written, or needs the whole compiler.
        if name.starts_with("print") && !told.contains(&text) {
            out.anything(format!("{} --{name} {text} is not known", call.name));
        }
    }
    let is_told = ["version", "V"].iter().any(|name| parsed.has(name));
    if call.name == "rustfmt" && !is_told && parsed.has("check") {
        // Its settings and `#[path]` name other files.
        out.effects.push(crate::Effect::Reads(crate::Operand::Unknown));
        out.fault("rustfmt reads what the files name");
    } else if call.name == "rustfmt" && !is_told {
        let operands = parsed
            .operands
            .iter()
            .flat_map(|arg| crate::effects::words::operands(arg, judge.state));
        out.effects.extend(operands.map(crate::Effect::Writes));
    }
}

/// `cargo metadata --no-deps`: without it cargo runs the compiler that the workspace names.
pub(super) fn metadata(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("cargo metadata ...") else { return };
    let parsed = options::parse(entry, call.args);
    judge.parsed(call.name, entry, &parsed, out);
    if !parsed.has("no-deps") {
        out.effects.push(crate::Effect::Runs("cargo metadata".to_owned()));
        out.fault("without --no-deps cargo runs what the workspace names");
    }
}

/// `jo name=value`: `@`, `%` and `:` before or in a value name files.
pub(super) fn jo(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("jo ...") else { return };
    let names_file = |arg: &Arg| arg.known().is_none_or(|text| text.contains(['@', '%', ':']));
    if call.args.iter().any(names_file) {
        out.anything("what jo is given may name files");
    }
    judge.parsed("jo", entry, &options::parse(entry, call.args), out);
}

/// Whether this word makes this program tell its version.
fn is_told(call: &Call<'_>) -> bool {
    let word = call.args.first().and_then(Arg::known).unwrap_or_default();
    match word {
        "--version" => true,
        "-V" => {
            ["python", "python3", "python2", "pip", "pip3", "pytest", "java"].contains(&call.name)
                && call.name != "java"
        }
        "-v" => ["node", "ruby", "perl", "php", "lua"].contains(&call.name),
        "-version" => ["java", "javac"].contains(&call.name),
        "version" => call.name == "helm",
        _ => false,
    }
}

/// `yq`: two programs have this name, and what both take is known.
pub(super) fn yq(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("yq ...") else { return };
    let mut parsed = options::parse(entry, call.args);
    // What one takes for a subcommand is a program to the other.
    let first = parsed.operands.first().and_then(Arg::known).unwrap_or_default();
    if ["eval", "e", "eval-all", "ea"].contains(&first) {
        parsed.operands.remove(0);
    }
    if let Some(program) = parsed.operands.first() {
        let is_fine = program.known().is_some_and(|text| {
            ["load", "env", "eval", "system", "input", "include", "import", "exec", "@"]
                .iter()
                .all(|word| !text.contains(word))
        });
        if !is_fine {
            out.fault("what yq does is not known");
        }
    }
    judge.parsed("yq", entry, &parsed, out);
}

/// `tput CAPABILITY`: two of them run what the description of the terminal names.
pub(super) fn tput(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("tput ...") else { return };
    let parsed = options::parse(entry, call.args);
    let is_told = |arg: &Arg| arg.known().is_some_and(|text| !["init", "reset"].contains(&text));
    if !parsed.operands.first().is_none_or(is_told) {
        out.anything("tput may run a program that the description of the terminal names");
    }
    judge.parsed("tput", entry, &parsed, out);
}
