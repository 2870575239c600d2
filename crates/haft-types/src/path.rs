//! Absolute paths on a host that need not be this machine.
//!
//! **Invariant:** a [`HostPath`] is absolute and lexically normal: no `.`, no `..`, no doubled or
//! trailing separator. It never looks at a disk, so links are not its business (`Fs::locate` is).

use std::{
    borrow::Cow,
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// How a host writes and compares paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// `/` separates names, and bytes are compared as they are.
    #[default]
    Posix,
    /// `\` and `/` separate names, a drive or share comes first, and letter case does not count.
    Windows,
}

/// An absolute path in the bytes of its host.
///
/// In JSON, and for the model, it is written as its text. Where the bytes are not UTF-8, or the
/// text would be read as something else, it is `bytes:` and percent-encoding. A tool accepts a path
/// as another tool showed it.
#[derive(Clone)]
pub struct HostPath {
    bytes: Box<[u8]>,
    style: Style,
}

/// A text that is not an absolute path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not start at a root.
    #[error("{0:?} is not an absolute path")]
    NotAbsolute(String),
    /// It holds a NUL byte, which no host allows in a name.
    #[error("{0:?} holds a NUL byte, which no path can have")]
    Nul(String),
    /// It is longer than [`HostPath::MAX`] bytes; holds its start and its length in bytes.
    #[error("{0:?}... has {1} bytes, and a path has at most {max}; use a shorter one", max = HostPath::MAX)]
    TooLong(String, usize),
}

/// The start of a text that is no path.
fn shown(bytes: &[u8], most: usize) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(most * 4)]).chars().take(most).collect()
}

/// What `bytes:` leaves readable: everything printable but `%`.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

impl HostPath {
    /// Maximum number of bytes of a path: more than any host accepts.
    pub const MAX: usize = 32 * 1024;

    /// Takes an absolute path in the host's own bytes and resolves `.` and `..` in it.
    ///
    /// # Errors
    /// When the path is not absolute in that style, holds a NUL byte, or is too long.
    pub fn new(bytes: &[u8], style: Style) -> Result<Self, PathError> {
        check(bytes)?;
        let root = root_len(bytes, style);
        if root == 0 {
            return Err(PathError::NotAbsolute(shown(bytes, 200)));
        }
        Ok(Self::normal(&bytes[..root], &[&bytes[root..]], style))
    }

    /// The root of a host: `/`, or `C:\\` in the windows style.
    pub fn root(style: Style) -> Self {
        let bytes: &[u8] = if style == Style::Posix { b"/" } else { b"C:\\" };
        Self { bytes: bytes.into(), style }
    }

    /// Resolves a text that a model or person wrote against `self`; an absolute text replaces it.
    ///
    /// `bytes:` with percent-encoding is decoded, so that names that are not UTF-8 can be written.
    ///
    /// # Errors
    /// When the text holds a NUL byte, or is or becomes too long.
    pub fn join(&self, text: &str) -> Result<Self, PathError> {
        match text.strip_prefix("bytes:") {
            Some(encoded) => self.join_bytes(&Cow::from(percent_decode(encoded.as_bytes()))),
            None => self.join_bytes(text.as_bytes()),
        }
    }

    /// Resolves host bytes against `self`; an absolute path replaces it.
    ///
    /// # Errors
    /// When the bytes hold a NUL, or are or become too long.
    pub fn join_bytes(&self, bytes: &[u8]) -> Result<Self, PathError> {
        if root_len(bytes, self.style) > 0 {
            return Self::new(bytes, self.style);
        }
        check(bytes)?;
        if self.is_plain_name(bytes) {
            let separator: &[u8] = if self.bytes.last() == Some(&b'/') { b"" } else { b"/" };
            let bytes = [&self.bytes, separator, bytes].concat().into();
            return Ok(Self { bytes, style: self.style });
        }
        let root = root_len(&self.bytes, self.style);
        let joined = Self::normal(&self.bytes[..root], &[&self.bytes[root..], bytes], self.style);
        match joined.bytes.len() {
            len if len > Self::MAX => Err(PathError::TooLong(shown(bytes, 60), len)),
            _ => Ok(joined),
        }
    }

    /// Reports whether these bytes are one name that joins as it is; searches join millions.
    fn is_plain_name(&self, bytes: &[u8]) -> bool {
        self.style == Style::Posix
            && !matches!(bytes, b"" | b"." | b"..")
            && !bytes.contains(&b'/')
            && self.bytes.len() + bytes.len() < Self::MAX
    }

    fn normal(root: &[u8], rests: &[&[u8]], style: Style) -> Self {
        let mut parts: Vec<&[u8]> = Vec::new();
        for part in rests.iter().flat_map(|rest| rest.split(|&b| is_separator(b, style))) {
            match part {
                b"" | b"." => {}
                b".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        let separator: u8 = if style == Style::Posix { b'/' } else { b'\\' };
        let mut bytes: Vec<u8> = match style {
            Style::Posix => vec![b'/'],
            Style::Windows => windows_root(root),
        };
        bytes.extend_from_slice(&parts.join(&separator));
        Self { bytes: bytes.into(), style }
    }

    /// The bytes as the host has them.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The style of the host that it belongs to.
    pub const fn style(&self) -> Style {
        self.style
    }

    /// The text where the bytes are UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }

    /// The text that people, the model and JSON see; [`join`](Self::join) accepts it.
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.bytes)
    }

    /// The last name, or none for a root.
    pub fn file_name(&self) -> Option<&[u8]> {
        let root = root_len(&self.bytes, self.style);
        let rest = &self.bytes[root..];
        let name = rest.rsplit(|&b| is_separator(b, self.style)).next()?;
        (!name.is_empty()).then_some(name)
    }

    /// The folder that holds it, or none for a root.
    pub fn parent(&self) -> Option<Self> {
        let name = self.file_name()?.len();
        let root = root_len(&self.bytes, self.style);
        let end = (self.bytes.len() - name).saturating_sub(1).max(root);
        Some(Self { bytes: self.bytes[..end].into(), style: self.style })
    }

    /// The names below the root, in order.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let root = root_len(&self.bytes, self.style);
        let style = self.style;
        self.bytes[root..].split(move |&b| is_separator(b, style)).filter(|name| !name.is_empty())
    }

    /// Reports whether it is `root` or lies below it, comparing names as the host does.
    pub fn is_within(&self, root: &Self) -> bool {
        self.style == root.style && {
            let (mine, theirs) = (self.key(), root.key());
            mine.strip_prefix(&*theirs).is_some_and(|rest| {
                rest.is_empty()
                    || is_separator(rest[0], self.style)
                    || theirs.last().is_some_and(|&b| is_separator(b, self.style))
            })
        }
    }

    /// The path as seen from `root`, in host bytes without a leading separator; none outside it.
    pub fn relative_to(&self, root: &Self) -> Option<&[u8]> {
        if !self.is_within(root) {
            return None;
        }
        let rest = &self.bytes[root.bytes.len()..];
        Some(rest.strip_prefix(b"/").or_else(|| rest.strip_prefix(b"\\")).unwrap_or(rest))
    }

    /// The path as shown from `root`: the relative text inside it, `.` for the root itself, and the
    /// whole text outside.
    pub fn shown_from(&self, root: &Self) -> Cow<'_, str> {
        match self.relative_to(root) {
            Some(b"") => Cow::Borrowed("."),
            Some(bytes) => text_of(bytes),
            None => self.text(),
        }
    }

    /// What two paths are compared by.
    fn key(&self) -> Cow<'_, [u8]> {
        match self.style {
            Style::Posix => Cow::Borrowed(&self.bytes),
            Style::Windows => match self.as_str() {
                Some(text) => Cow::Owned(text.to_lowercase().into_bytes()),
                None => Cow::Owned(self.bytes.to_ascii_lowercase()),
            },
        }
    }
}

/// Refuses what no path can be.
fn check(bytes: &[u8]) -> Result<(), PathError> {
    if bytes.len() > HostPath::MAX {
        return Err(PathError::TooLong(shown(bytes, 60), bytes.len()));
    }
    if bytes.contains(&0) { Err(PathError::Nul(shown(bytes, 200))) } else { Ok(()) }
}

/// The bytes as text where they are and show nothing by stealth, percent-encoded otherwise. A name
/// that begins as an encoded path or as the home folder does would lead elsewhere: it is encoded.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    let misread = |text: &str| {
        text.starts_with("bytes:")
            || text.strip_prefix('~').is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) && !misread(text) => Cow::Borrowed(text),
        _ => Cow::Owned(format!("bytes:{}", percent_encode(bytes, ESCAPED))),
    }
}

const fn is_separator(byte: u8, style: Style) -> bool {
    byte == b'/' || (byte == b'\\' && matches!(style, Style::Windows))
}

/// Length of the root at the start of `bytes`: `/`, `C:\`, `\\server\share\`; 0 when relative.
fn root_len(bytes: &[u8], style: Style) -> usize {
    match (style, bytes) {
        (Style::Posix, bytes) => usize::from(bytes.first() == Some(&b'/')),
        (Style::Windows, [drive, b':', b'/' | b'\\', ..]) if drive.is_ascii_alphabetic() => 3,
        (Style::Windows, [b'/' | b'\\', b'/' | b'\\', rest @ ..]) => {
            let mut names = rest.split(|&b| is_separator(b, style));
            match (names.next(), names.next()) {
                (Some(server), Some(share)) if !server.is_empty() && !share.is_empty() => {
                    (3 + server.len() + share.len() + 1).min(bytes.len())
                }
                _ => 0,
            }
        }
        (Style::Windows, _) => 0,
    }
}

/// The root with `\` as its only and last separator, and the drive letter in upper case.
fn windows_root(root: &[u8]) -> Vec<u8> {
    let mut root: Vec<u8> =
        root.iter().map(|&b| if is_separator(b, Style::Windows) { b'\\' } else { b }).collect();
    if root.get(1) == Some(&b':') {
        root[0] = root[0].to_ascii_uppercase();
    }
    if root.last() != Some(&b'\\') {
        root.push(b'\\');
    }
    root
}

impl PartialEq for HostPath {
    fn eq(&self, other: &Self) -> bool {
        self.style == other.style
            && match self.style {
                Style::Posix => self.bytes == other.bytes,
                Style::Windows => self.key() == other.key(),
            }
    }
}

impl Eq for HostPath {}

impl Hash for HostPath {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.style.hash(state);
        self.key().hash(state);
    }
}

impl PartialOrd for HostPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HostPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl fmt::Display for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Debug for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl Serialize for HostPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for HostPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        let bytes = match text.strip_prefix("bytes:") {
            Some(encoded) => Cow::from(percent_decode(encoded.as_bytes())),
            None => Cow::Borrowed(text.as_bytes()),
        };
        let style = if bytes.starts_with(b"/") { Style::Posix } else { Style::Windows };
        Self::new(&bytes, style).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn posix(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }
    fn windows(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Windows).unwrap()
    }

    #[test]
    fn dots_and_doubled_separators_are_resolved() {
        assert_eq!(posix("/w//src/./a/../b/").text(), "/w/src/b");
        assert_eq!(posix("/../..").text(), "/");
        assert_eq!(posix("/w/src").join("../a").unwrap(), posix("/w/a"));
        assert_eq!(posix("/w").join("/etc/hosts").unwrap(), posix("/etc/hosts"));
    }

    #[test]
    fn windows_knows_drives_shares_and_both_separators() {
        assert_eq!(windows("c:/Users/../x").text(), "C:\\x");
        assert_eq!(windows("C:\\A"), windows("c:/a"));
        assert_eq!(windows("\\\\srv\\share\\a\\..\\b").text(), "\\\\srv\\share\\b");
        assert_eq!(windows("C:\\a\\b").parent().unwrap().text(), "C:\\a");
        assert_eq!(windows("C:\\a").parent().unwrap().text(), "C:\\");
        assert!(windows("C:\\a").parent().unwrap().parent().is_none());
    }

    #[test]
    fn names_that_are_not_utf8_come_back_from_their_text() {
        let path = HostPath::new(b"/w/\xff 50%.txt", Style::Posix).unwrap();
        assert_eq!(path.text(), "bytes:/w/%FF 50%25.txt");
        assert_eq!(posix("/").join(&path.text()).unwrap(), path);
        let json = serde_json::to_string(&path).unwrap();
        assert_eq!(serde_json::from_str::<HostPath>(&json).unwrap(), path);
        assert_eq!(path.shown_from(&posix("/w")), "bytes:%FF 50%25.txt");
        assert_eq!(posix("/w").join(&path.shown_from(&posix("/w"))).unwrap(), path);
    }

    #[test]
    fn what_is_shown_leads_back_to_the_same_path() {
        let names: [&[u8]; 13] = [
            b"a b",
            b"a%20b",
            b"bytes:a%20b",
            b"bytes:",
            b"bytes:%zz",
            b"bytes:bytes:%41",
            b"~",
            b"~a",
            b"BYTES:a",
            b"\xff",
            b"\x1b[2J",
            "\u{e9}".as_bytes(),
            b"out:",
        ];
        let place = crate::Place {
            host: "local".into(),
            cwd: posix("/w"),
            roots: vec![posix("/w")],
            read_roots: Vec::new(),
            home: posix("/home/me"),
            temp: posix("/tmp"),
        };
        for (one, two) in names.iter().flat_map(|one| names.map(|two| (*one, two))) {
            for path in [[b"/w/", one].concat(), [b"/w/", one, b"/", two].concat()] {
                let path = HostPath::new(&path, Style::Posix).unwrap();
                let shown = place.shown(&path);
                assert_eq!(place.path(&shown).as_ref(), Ok(&path), "{shown}");
                let json = serde_json::to_string(&path).unwrap();
                assert_eq!(serde_json::from_str::<HostPath>(&json).unwrap(), path);
                for root in [posix("/w"), posix("/"), path.parent().unwrap()] {
                    assert_eq!(root.join(&path.shown_from(&root)).as_ref(), Ok(&path));
                }
            }
        }
        assert_eq!(posix("/w/bytes:a%20b").shown_from(&posix("/w")), "bytes:bytes:a%2520b");
        assert_eq!(posix("/w/a/bytes:b").shown_from(&posix("/w")), "a/bytes:b");
    }

    #[test]
    fn within_is_by_whole_names() {
        assert!(posix("/w/a").is_within(&posix("/w")));
        assert!(posix("/w").is_within(&posix("/w")));
        assert!(posix("/w").is_within(&posix("/")));
        assert!(!posix("/wide").is_within(&posix("/w")));
        assert_eq!(posix("/w/a/b").relative_to(&posix("/w")), Some(&b"a/b"[..]));
        assert_eq!(posix("/a").relative_to(&posix("/")), Some(&b"a"[..]));
        assert_eq!(posix("/w").shown_from(&posix("/w")), ".");
    }

    #[test]
    fn bad_paths_are_named() {
        assert!(matches!(HostPath::new(b"a/b", Style::Posix), Err(PathError::NotAbsolute(_))));
        assert!(matches!(HostPath::new(b"/a\0b", Style::Posix), Err(PathError::Nul(_))));
        assert!(posix("/w").join("a\0").is_err());
    }

    #[test]
    fn a_path_is_bounded_however_it_comes_about() {
        let long = "a/".repeat(HostPath::MAX / 2);
        assert!(posix("/").join(&long[1..]).is_ok());
        let error = posix("/w").join(&long).unwrap_err();
        assert!(matches!(error, PathError::TooLong(_, len) if len > HostPath::MAX), "{error}");
        for text in [format!("{long}b"), format!("/{long}"), "\u{1b}".repeat(1 << 20)] {
            let error = posix("/w").join(&text).unwrap_err();
            assert!(matches!(error, PathError::TooLong(_, len) if len == text.len()), "{error}");
            let told = error.to_string();
            assert!(told.len() < 600 && told.contains("at most 32768"), "{told}");
        }
        assert!(HostPath::new(format!("/{long}").as_bytes(), Style::Posix).is_err());
    }
}
