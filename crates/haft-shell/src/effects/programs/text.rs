//! Programs that reshape data, where options have more than one value.

use super::Call;
use crate::{
    effects::{
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
    judge.parsed("jq", entry, &parsed, out);
}

fn is_many(arg: &Arg) -> bool {
    arg.is_split || arg.is_pattern
}
