//! Whether git has a file's content among its objects: whoever may read those has the content
//! anyway.
//!
//! This is decided by the content, not by the index or a commit. A program can write those as it
//! likes, but it cannot write the hash of content that it does not know.
//!
//! **Does not know:** repositories with other hashes than SHA-1, objects elsewhere (alternates,
//! worktrees), and files that git converts. Those are not found.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::FileExt,
    path::Path,
};

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// The longest file that is looked for.
const LONGEST: u64 = 1 << 20;
/// Most packs that are looked through.
const PACKS: usize = 1000;
/// What an index of a pack begins with, in its second version (gitformat-pack(5)).
const HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Where in it the names of objects begin, behind how many there are up to each first byte.
const NAMES: u64 = 8 + 256 * 4;

/// Reports whether the repository in which a file lies has its content.
pub(super) fn has(file: &Path) -> bool {
    let objects = file.ancestors().skip(1).map(|folder| folder.join(".git/objects"));
    let Some(objects) = { objects }.find(|objects| objects.is_dir()) else { return false };
    name(file).is_ok_and(|name| is_loose(&objects, &name) || is_packed(&objects, &name))
}

/// The name that git gives to the content of a file.
fn name(file: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(file)?;
    let found = file.metadata()?;
    if !found.is_file() || found.len() > LONGEST {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes)?;
    let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    hash.update(format!("blob {}\0", bytes.len()).as_bytes());
    hash.update(&bytes);
    Ok(hash.finish().as_ref().to_vec())
}

fn is_loose(objects: &Path, name: &[u8]) -> bool {
    let mut text = String::new();
    for byte in name {
        let _ = write!(text, "{byte:02x}");
    }
    let (folder, rest) = text.split_at(2);
    objects.join(folder).join(rest).is_file()
}

fn is_packed(objects: &Path, name: &[u8]) -> bool {
    let Ok(packs) = fs::read_dir(objects.join("pack")) else { return false };
    let indexes = packs.flatten().map(|entry| entry.path());
    let mut indexes = indexes.filter(|path| path.extension().is_some_and(|end| end == "idx"));
    indexes.by_ref().take(PACKS).any(|index| lists(&index, name).unwrap_or(false))
}

/// Whether an index of a pack lists an object: its names stand in their order.
fn lists(index: &Path, name: &[u8]) -> io::Result<bool> {
    let index = File::open(index)?;
    let mut head = [0; 8];
    index.read_exact_at(&mut head, 0)?;
    let up_to = |first: u8| -> io::Result<u64> {
        let mut count = [0; 4];
        index.read_exact_at(&mut count, 8 + u64::from(first) * 4)?;
        Ok(u32::from_be_bytes(count).into())
    };
    let Some(first) = name.first().filter(|_| head == HEAD) else { return Ok(false) };
    let mut from = first.checked_sub(1).map_or(Ok(0), up_to)?;
    let mut to = up_to(*first)?;
    let mut found = vec![0; name.len()];
    while from < to {
        let middle = from + (to - from) / 2;
        index.read_exact_at(&mut found, NAMES + middle * name.len() as u64)?;
        match (*found).cmp(name) {
            std::cmp::Ordering::Equal => return Ok(true),
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Greater => to = middle,
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_git_has_is_found_loose_and_packed() {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = Command::new("git");
            command.args(words).current_dir(folder.path()).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{words:?}");
        };
        git(&["init", "-q"]);
        fs::create_dir(folder.path().join("sub")).unwrap();
        let at = |name: &str| folder.path().join(name);
        for number in 0..300 {
            fs::write(at(&format!("sub/{number}")), format!("content {number}\n")).unwrap();
        }
        fs::write(at("sub/id_rsa"), "a fixture\n").unwrap();
        git(&["add", "."]);
        git(&["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]);
        fs::write(at("sub/.netrc"), "a key\n").unwrap();
        let all = || (0..300).all(|number| has(&at(&format!("sub/{number}"))));
        for packed in [false, true] {
            if packed {
                git(&["gc", "-q"]);
                assert!(fs::read_dir(at(".git/objects")).unwrap().count() < 5);
            }
            assert!(all() && has(&at("sub/id_rsa")) && !has(&at("sub/.netrc")), "{packed}");
        }
        fs::write(at("sub/id_rsa"), "another\n").unwrap();
        assert!(!has(&at("sub/id_rsa")) && !has(&at("none")) && !has(&at("sub")));
    }
}
