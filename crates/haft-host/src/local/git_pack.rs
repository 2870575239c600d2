//! The content of git's packs, `.git/objects/pack/*.pack`. It is read through descriptors that stay
//! open, so it stays available whatever becomes of the repository. git itself is not run.
//!
//! **Invariant:** what is returned has the length and the hash that was asked for. Packs of another
//! version or with other hashes than SHA-1 are left out. So is what other repositories hold.
//!
//! Source: git's documentation of its formats, `gitformat-pack`.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read as _},
    os::unix::fs::FileExt as _,
    sync::Arc,
};

use bytes::Bytes;
use flate2::{Decompress, FlushDecompress, read::ZlibDecoder};
use haft_types::HostPath;
use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

use super::sha1::sha1;
use crate::GitId;

/// Most packs that are held open, and most bytes of the list of one.
const PACKS: usize = 64;
const LIST: u64 = 32 << 20;
/// Most bytes of anything that is unpacked, and longest chain of changes.
const UNPACKED: u64 = 256 << 20;
const CHAIN: usize = 4_096;
/// In front of the names in a list: a mark, a version, 256 counts.
const HEAD: usize = 8 + 1_024;
/// A name, a checksum and a place.
const EACH: usize = 20 + 4 + 4;
const BLOB: u8 = 3;
const BY_PLACE: u8 = 6;
const BY_NAME: u8 = 7;

/// One pack, held open.
#[derive(Debug)]
pub(crate) struct Pack {
    list: File,
    data: File,
}

/// A pack with its list.
pub(super) struct Opened {
    pub(super) pack: Arc<Pack>,
    list: Vec<u8>,
}

/// How an object of a pack begins.
struct Head {
    kind: u8,
    /// Bytes that are unpacked: of an object, or of what changes another one.
    len: u64,
    /// Where they begin.
    at: u64,
    /// Where the object is that is changed.
    base: Option<u64>,
}

/// The packs of the repository whose folder this is.
pub(super) fn packs(top: &HostPath) -> Vec<Opened> {
    packs_in(&[top.as_bytes(), b".git/objects/pack"].join(&b'/'))
}

/// The packs in a folder.
pub(super) fn packs_in(folder: &[u8]) -> Vec<Opened> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY;
    let Ok(found) = openat(CWD, folder, flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = Dir::read_from(&found) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name().to_bytes().to_vec());
    let stems = names.filter_map(|name| name.strip_suffix(b".idx").map(<[u8]>::to_vec));
    stems.filter_map(|stem| pack_of(folder, &stem)).take(PACKS).collect()
}

/// The pack in a folder whose files begin so.
pub(super) fn pack_of(folder: &[u8], stem: &[u8]) -> Option<Opened> {
    let file = |end: &[u8]| -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let path = [folder, b"/", stem, end].concat();
        let file = File::from(openat(CWD, path, flags, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    };
    open(file(b".idx").ok()?, file(b".pack").ok()?)
}

/// The pack of these files: its list, and what it holds.
pub(super) fn open(list: File, data: File) -> Option<Opened> {
    Arc::new(Pack { list, data }).open()
}

/// Reads the content of files from git's objects.
pub struct Reader(pub(super) Vec<Opened>);

impl Reader {
    pub(crate) fn of<'a>(packs: impl IntoIterator<Item = &'a Arc<Pack>>) -> Self {
        Self(packs.into_iter().filter_map(|pack| Arc::clone(pack).open()).collect())
    }

    /// Returns the content of a file of `len` bytes.
    ///
    /// # Errors
    /// If the object is not there any more, or is not what its name says.
    pub fn get(&self, id: GitId, len: u64) -> io::Result<Bytes> {
        let mut error = io::Error::new(io::ErrorKind::NotFound, "git does not have it any more");
        for pack in &self.0 {
            match pack.get(id, len) {
                Ok(Some(content)) => return Ok(content.into()),
                Ok(None) => {}
                Err(found) => error = found,
            }
        }
        Err(error)
    }
}

impl Pack {
    /// Reads the list; none where it is not understood.
    fn open(self: Arc<Self>) -> Option<Opened> {
        let len = self.list.metadata().ok().map(|data| data.len()).filter(|len| *len <= LIST)?;
        let mut list = vec![0; usize::try_from(len).ok()?];
        self.list.read_exact_at(&mut list, 0).ok()?;
        let mut head = [0; 8];
        self.data.read_exact_at(&mut head, 0).ok()?;
        let known = head == *b"PACK\0\0\0\x02" && list.starts_with(b"\xfftOc\0\0\0\x02");
        let opened = Opened { pack: self, list };
        // What comes behind are far places, and two hashes.
        let rest = opened.list.len().checked_sub(HEAD + opened.count()? * EACH + 40)?;
        (known && rest % 8 == 0).then_some(opened)
    }
}

fn wrong() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "git's pack is damaged")
}

impl Opened {
    fn number(&self, at: usize) -> Option<usize> {
        let bytes = self.list.get(at..at + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize)
    }

    /// How many names begin with at most this byte.
    fn up_to(&self, first: usize) -> Option<usize> {
        self.number(8 + 4 * first)
    }

    fn count(&self) -> Option<usize> {
        self.up_to(255)
    }

    /// Where an object begins; none where it is not in here.
    fn place(&self, id: GitId) -> Option<u64> {
        let count = self.count()?;
        let first = usize::from(id.0[0]);
        let from = if first == 0 { 0 } else { self.up_to(first - 1)? };
        let names = self.list.get(HEAD + from * 20..HEAD + self.up_to(first)? * 20)?;
        let number = from + names.as_chunks::<20>().0.binary_search(&id.0).ok()?;
        let places = HEAD + count * 24;
        let place = self.number(places + number * 4)?;
        if place >> 31 == 0 {
            return Some(place as u64);
        }
        let far = places + count * 4 + (place & 0x7fff_ffff) * 8;
        Some(u64::from_be_bytes(self.list.get(far..far + 8)?.try_into().ok()?))
    }

    /// Reports whether an object is in here.
    pub(super) fn has(&self, id: GitId) -> bool {
        self.place(id).is_some()
    }

    /// The length of an object, if it is in here and may be what a file holds.
    pub(super) fn len_of(&self, id: GitId) -> Option<u64> {
        let head = self.head(self.place(id)?).ok()?;
        if head.base.is_none() {
            return (head.kind == BLOB).then_some(head.len);
        }
        // What changes another object begins with the lengths of both.
        let mut packed = [0; 64];
        let got = self.pack.data.read_at(&mut packed, head.at).ok()?;
        let mut begin = [0; 20];
        let mut inflate = Decompress::new(true);
        inflate.decompress(&packed[..got], &mut begin, FlushDecompress::None).ok()?;
        let begin = &begin[..usize::try_from(inflate.total_out()).ok()?];
        let (_, rest) = length(begin)?;
        Some(length(rest)?.0)
    }

    fn head(&self, at: u64) -> io::Result<Head> {
        let mut bytes = [0; 40];
        let got = self.pack.data.read_at(&mut bytes, at)?;
        let mut read = bytes[..got].iter().copied();
        let mut next = || read.next().ok_or_else(wrong);
        let first = next()?;
        let (kind, mut len) = (first >> 4 & 7, u64::from(first & 15));
        let (mut byte, mut shift) = (first, 4);
        while byte & 128 != 0 {
            byte = next()?;
            let part = u64::from(byte & 127).checked_shl(shift).filter(|_| shift < 56);
            len |= part.ok_or_else(wrong)?;
            shift += 7;
        }
        let base = match kind {
            BY_PLACE => {
                byte = next()?;
                let mut back = u64::from(byte & 127);
                while byte & 128 != 0 {
                    byte = next()?;
                    back = back.checked_add(1).filter(|back| *back < 1 << 56).ok_or_else(wrong)?;
                    back = back << 7 | u64::from(byte & 127);
                }
                Some(at.checked_sub(back).filter(|_| back > 0).ok_or_else(wrong)?)
            }
            BY_NAME => {
                let mut id = [0; 20];
                for byte in &mut id {
                    *byte = next()?;
                }
                Some(self.place(GitId(id)).ok_or_else(wrong)?)
            }
            _ => None,
        };
        let at = at + (got - read.len()) as u64;
        Ok(Head { kind, len, at, base })
    }

    /// Unpacks what stands at a place.
    fn unpacked(&self, head: &Head) -> io::Result<Vec<u8>> {
        if head.len > UNPACKED {
            return Err(wrong());
        }
        let mut content = Vec::new();
        let packed = At { file: &self.pack.data, at: head.at };
        ZlibDecoder::new(packed).take(head.len + 1).read_to_end(&mut content)?;
        if content.len() as u64 == head.len { Ok(content) } else { Err(wrong()) }
    }

    /// The names of all objects in here.
    pub(super) fn ids(&self) -> impl Iterator<Item = GitId> {
        let count = self.count().unwrap_or(0);
        let names = self.list.get(HEAD..HEAD + count * 20).unwrap_or_default();
        names.as_chunks::<20>().0.iter().map(|id| GitId(*id))
    }

    /// Gives what a file held; none where it is not in here.
    fn get(&self, id: GitId, len: u64) -> io::Result<Option<Vec<u8>>> {
        let Some((kind, content)) = self.object(id)? else { return Ok(None) };
        let named = sha1(&[format!("blob {len}\0").as_bytes(), &content]);
        let right = kind == BLOB && content.len() as u64 == len && named == id.0;
        if right { Ok(Some(content)) } else { Err(wrong()) }
    }

    /// Gives an object with its kind, its hash unchecked; none where it is not in here.
    pub(super) fn object(&self, id: GitId) -> io::Result<Option<(u8, Vec<u8>)>> {
        let Some(place) = self.place(id) else { return Ok(None) };
        let mut changes = Vec::new();
        let mut head = self.head(place)?;
        while let Some(base) = head.base {
            if changes.len() == CHAIN {
                return Err(wrong());
            }
            changes.push(head);
            head = self.head(base)?;
        }
        let mut content = self.unpacked(&head)?;
        for change in changes.iter().rev() {
            content = changed(&content, &self.unpacked(change)?).ok_or_else(wrong)?;
        }
        Ok(Some((head.kind, content)))
    }
}

/// Reads a file from a place on.
struct At<'a> {
    file: &'a File,
    at: u64,
}

impl io::Read for At<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.file.read_at(into, self.at)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// A length at the begin of some bytes, and what comes behind it.
fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut len = 0;
    for (number, byte) in bytes.iter().take(8).enumerate() {
        len |= u64::from(byte & 127) << (7 * number);
        if byte & 128 == 0 {
            return Some((len, &bytes[number + 1..]));
        }
    }
    None
}

/// What becomes of an object by what changes it.
fn changed(base: &[u8], change: &[u8]) -> Option<Vec<u8>> {
    let (from, change) = length(change)?;
    let (to, mut change) = length(change)?;
    if from != base.len() as u64 || to > UNPACKED {
        return None;
    }
    let most = usize::try_from(to).ok()?;
    let mut content = Vec::with_capacity(most);
    while let Some((&what, mut rest)) = change.split_first() {
        if what & 128 == 0 {
            // So many bytes that stand here; none is no change at all.
            let (new, rest) = rest.split_at_checked(usize::from(what)).filter(|_| what != 0)?;
            content.extend_from_slice(new);
            change = rest;
        } else {
            // Four bytes say from where, three how many; those that are zero are left out.
            let mut numbers = [0_u8; 8];
            for (bit, number) in numbers.iter_mut().take(7).enumerate() {
                if what >> bit & 1 == 1 {
                    (*number, rest) = rest.split_first().map(|(byte, rest)| (*byte, rest))?;
                }
            }
            let numbers = u64::from_le_bytes(numbers);
            let from = usize::try_from(numbers & 0xffff_ffff).ok()?;
            let count = match usize::try_from(numbers >> 32).ok()? {
                0 => 0x1_0000,
                count => count,
            };
            content.extend_from_slice(base.get(from..from.checked_add(count)?)?);
            change = rest;
        }
        if content.len() > most {
            return None;
        }
    }
    (content.len() == most).then_some(content)
}

/// Of these packs those that hold some of these objects.
pub(super) fn holders(packs: &[Opened], ids: &HashSet<GitId>) -> Vec<Arc<Pack>> {
    let used = packs.iter().filter(|pack| ids.iter().any(|id| pack.has(*id)));
    used.map(|pack| Arc::clone(&pack.pack)).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::Write as _,
        path::Path,
        process::{Command, Stdio},
    };

    use haft_types::Style;

    use super::*;

    fn git(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(["-c", "maintenance.auto=false"]).args(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        done.stdout
    }

    fn id(text: &str) -> GitId {
        let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        GitId(std::array::from_fn(byte))
    }

    /// Some texts with so many versions in a repository, and what git calls each.
    fn versions(folder: &Path, count: usize) -> (HostPath, Vec<(GitId, Vec<u8>)>) {
        git(folder, &["init", "-q", "."], b"");
        let lines: Vec<String> = (0..800).map(|line| format!("line {line} of it\n")).collect();
        let mut contents = Vec::new();
        for version in 0..count {
            let mut text = lines.clone();
            text.insert(version * 17, format!("version {version}\n"));
            text.truncate(700 + version);
            contents.extend([text.concat(), format!("{version}\n"), "x".repeat(version * 5_000)]);
        }
        let mut names = Vec::new();
        for (number, content) in contents.iter().enumerate() {
            fs::write(folder.join(number.to_string()), content).unwrap();
            writeln!(names, "{number}").unwrap();
        }
        let ids = git(folder, &["hash-object", "-w", "--stdin-paths"], &names);
        let ids = std::str::from_utf8(&ids).unwrap().lines().map(id);
        let top = HostPath::new(folder.to_str().unwrap().as_bytes(), Style::Posix).unwrap();
        (top, ids.zip(contents.into_iter().map(String::into_bytes)).collect())
    }

    fn pack(folder: &Path, ids: &[(GitId, Vec<u8>)], arguments: &[&str]) {
        let mut names = String::new();
        for (id, _) in ids {
            names.extend(id.0.iter().map(|byte| format!("{byte:02x}")));
            names.push('\n');
        }
        let all = [&["pack-objects", "-q"], arguments, &[".git/objects/pack/pack"]].concat();
        git(folder, &all, names.as_bytes());
    }

    #[test]
    fn what_git_packed_is_had_though_the_repository_is_gone() {
        // Changes are named by place or by name; places are near or far.
        for arguments in [
            &["--depth=50", "--window=20"][..],
            &["--delta-base-offset", "--depth=200", "--window=20"],
            &["--delta-base-offset", "--index-version=2,0x40"],
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (top, ids) = versions(folder.path(), 40);
            assert!(packs(&top).is_empty(), "nothing is packed yet");
            pack(folder.path(), &ids, arguments);
            let packs = packs(&top);
            let [opened] = &packs[..] else { panic!("one pack") };
            for (id, content) in &ids {
                assert_eq!(opened.len_of(*id), Some(content.len() as u64), "{arguments:?}");
            }
            let pack = Arc::clone(&opened.pack);
            drop(packs);
            fs::remove_dir_all(folder.path().join(".git")).unwrap();
            let reader = Reader::of([&pack]);
            for (id, content) in &ids {
                assert_eq!(reader.get(*id, content.len() as u64).unwrap(), *content);
                assert!(reader.get(*id, content.len() as u64 + 1).is_err());
            }
            let error = reader.get(GitId([7; 20]), 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }

    #[test]
    fn what_is_damaged_is_never_given() {
        let folder = tempfile::tempdir().unwrap();
        let (top, ids) = versions(folder.path(), 8);
        pack(folder.path(), &ids, &["--delta-base-offset"]);
        let dir = folder.path().join(".git/objects/pack");
        let mut had = 0;
        for file in fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()) {
            let whole = fs::read(&file).unwrap();
            fs::remove_file(&file).unwrap();
            let mut look = |bytes: &[u8]| {
                fs::write(&file, bytes).unwrap();
                for opened in packs(&top) {
                    for (id, content) in &ids {
                        // Any length will do that ends.
                        let _ = opened.len_of(*id);
                        if let Ok(Some(found)) = opened.get(*id, content.len() as u64) {
                            assert!(found == *content, "{}", file.display());
                            had += 1;
                        }
                    }
                }
            };
            for at in (0..whole.len()).step_by(whole.len() / 100 + 1) {
                let mut other = whole.clone();
                other[at] ^= 0x55;
                look(&other);
                look(&whole[..at]);
            }
            fs::write(&file, &whole).unwrap();
        }
        assert!(had > 0, "what is whole is given");
    }
}
