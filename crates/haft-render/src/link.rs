//! Links to files, as terminals know them (OSC 8).
//!
//! **Invariant:** only a link that this process made passes as one: each holds a word that nobody
//! else can know. A link leads to the file whose name it stands behind, and nowhere else.
//!
//! Source: "Hyperlinks in Terminal Emulators" (the OSC 8 proposal that terminals follow).

use std::{
    fmt::Write as _,
    hash::{BuildHasher as _, Hasher as _, RandomState},
    sync::OnceLock,
};

use haft_types::HostPath;

/// What ends a link.
pub(crate) const END: &str = "\u{1b}]8;;\u{1b}\\";
/// What ends a sequence of a link.
const TERMINATOR: &str = "\u{1b}\\";
/// How addresses of files begin.
const SCHEME: &str = "file://";
/// The longest address.
const LONGEST: usize = 4 << 10;

/// How each link of this process begins.
fn begin() -> &'static str {
    static BEGIN: OnceLock<String> = OnceLock::new();
    // The keys of a hasher are random.
    BEGIN.get_or_init(|| {
        let word = RandomState::new().build_hasher().finish();
        format!("\u{1b}]8;id=haft{word:016x};{SCHEME}")
    })
}

/// The sequence that begins a link to a file below a folder of the machine `host`; none where it
/// has no such address.
pub(crate) fn to(host: &str, folder: &HostPath, path: &str) -> Option<String> {
    let address = address(host, folder, path)?;
    let link = format!("{}{address}{TERMINATOR}", begin());
    (link.len() <= LONGEST).then_some(link)
}

/// The address of a file as programs take it (RFC 8089); none where it has none.
pub fn file_address(path: &HostPath) -> Option<String> {
    Some(format!("{SCHEME}{}", address("", path, &path.text())?))
}

/// What stands behind the scheme of the address of a file below a folder.
fn address(host: &str, folder: &HostPath, path: &str) -> Option<String> {
    let folder = folder.text();
    if !folder.starts_with('/') || folder.contains('\u{fffd}') || path.contains('\u{fffd}') {
        return None;
    }
    let mut address = String::new();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    address.extend(host.chars().filter(|c| is_name(*c)));
    if !path.starts_with('/') {
        encode(folder.trim_end_matches('/'), &mut address);
        address.push('/');
    }
    encode(path, &mut address);
    Some(address)
}

/// Adds a path as it stands in an address (RFC 3986, 3.3).
fn encode(path: &str, to: &mut String) {
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            to.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(to, "%{byte:02X}");
        }
    }
}

/// The length of the sequence of a link of this process that a text begins with.
pub fn link(text: &str) -> Option<usize> {
    if text.starts_with(END) {
        return Some(END.len());
    }
    let address = text.strip_prefix(begin())?;
    let end = address.find('\u{1b}').filter(|end| *end <= LONGEST)?;
    let (address, rest) = address.split_at(end);
    let is_plain = address.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && rest.starts_with(TERMINATOR)).then(|| begin().len() + end + TERMINATOR.len())
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    fn folder(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }

    #[test]
    fn an_address_holds_any_name() {
        let link = to("box-1", &folder("/w/a b"), "\u{e4}#?%;\u{1b}.rs").unwrap();
        let (_, address) = link.split_once("file://").unwrap();
        assert_eq!(address, "box-1/w/a%20b/%C3%A4%23%3F%25%3B%1B.rs\u{1b}\\");
        assert_eq!(super::link(&(link.clone() + "more")), Some(link.len()));
        assert!(to("", &folder("/"), "a").unwrap().ends_with(";file:///a\u{1b}\\"));
        assert!(to("", &folder("/w"), "/etc/x").unwrap().ends_with(";file:///etc/x\u{1b}\\"));
        assert_eq!(to("", &folder("/w"), &"x".repeat(5_000)), None);
    }

    #[test]
    fn no_other_link_passes() {
        for text in [
            "\u{1b}]8;;file:///etc/passwd\u{1b}\\",
            "\u{1b}]8;id=haft0000000000000000;file:///etc/passwd\u{1b}\\",
            "\u{1b}]8;;http://example.org\u{7}",
            &(begin().to_owned() + "/a"),
            &(begin().to_owned() + "/a\u{7}"),
            &(begin().to_owned() + "/a b\u{1b}\\"),
            &(begin().to_owned() + "/a\u{1b}[2J\u{1b}\\"),
            "",
        ] {
            assert_eq!(link(text), None, "{text:?}");
        }
    }
}
