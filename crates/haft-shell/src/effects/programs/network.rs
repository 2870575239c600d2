//! Programs that fetch.

use super::Call;
use crate::{
    effects::{
        Effect,
        judge::{Judge, Outcome},
        options,
        words::Arg,
    },
    table,
};

/// `curl [OPTIONS] URLS`: the hosts that it connects to.
pub(super) fn fetch(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find(&format!("{} ...", call.name)) else { return };
    if call.args.first().and_then(Arg::known) == Some("--version") {
        return;
    }
    let parsed = options::parse(entry, call.args);
    let is_known = parsed.faults.is_empty();
    let named = parsed.options.iter().filter(|(name, ..)| name == "url");
    let urls = named.filter_map(|(_, _, value)| value.as_ref()).chain(&parsed.operands);
    let hosts: Vec<_> = urls.map(|url| Effect::Network(url.known().and_then(host))).collect();
    out.effects.extend(hosts);
    for (_, what, value) in &parsed.options {
        if let (table::Use::Writes, Some(value)) = (what, value) {
            let files = crate::effects::words::operands(value, judge.state);
            out.effects.extend(files.into_iter().map(Effect::Writes));
        }
    }
    let sends = parsed.options.iter().any(|(name, _, value)| {
        let start = value.as_ref().map_or("", |value| value.value.start());
        ["d", "data"].contains(&name.as_str()) && (start.is_empty() || start.starts_with('@'))
    });
    if !is_known || sends {
        out.anything(format!("not every option of {} is known", call.name));
    }
    out.fault(format!("{} opens connections", call.name));
}

/// The host of an address.
pub(crate) fn host(url: &str) -> Option<String> {
    if url.contains('\\') {
        return None;
    }
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = if host.starts_with('[') {
        host.split_inclusive(']').next()?
    } else {
        host.split(':').next()?
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
    (!host.is_empty() && host.chars().all(is_plain)).then(|| host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn hosts_of_addresses() {
        for (url, wanted) in [
            ("https://a.example/x?y", Some("a.example")),
            ("http://u:p@B.example:80/", Some("b.example")),
            ("a.example", Some("a.example")),
            ("http://[::1]:80/x", Some("[::1]")),
            ("http://{a,b}.example/", None),
            ("http://a\\@b/", None),
            ("", None),
        ] {
            assert_eq!(host(url).as_deref(), wanted, "{url}");
        }
    }
}
