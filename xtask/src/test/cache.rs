//! Installs that every checkout of this user shares, each in a folder of the user's cache.
//!
//! **Invariant:** an install that [`Install::is_complete`] can be used, however an earlier run was
//! ended. Its folder is made beside its place and renamed when all is in it. Where the files name
//! their own place, as those of a virtual environment do, it is made there, and counts from its
//! stamp on, which is written last and removed first. One run at a time works on the installs of a
//! kind: a lock of the system, which ends with the processes that hold it. The programs that install
//! hold it, too, so that one whose run was killed is waited for. It does not know what is installed.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{Context as _, Result};

use crate::process::run_quoted;

/// The file that is written when an install is complete, with what was asked for.
const STAMP: &str = "haft-stamp";
/// How many installs of a kind are kept, the one in use among them.
const KEPT: usize = 2;
/// What the name of a folder ends with that is not complete yet.
const UNFINISHED: &str = ".new";

/// An install that is there, or can be made.
pub(crate) struct Install {
    /// What the names of the folders of all versions of it begin with, before a dash.
    pub(crate) kind: &'static str,
    /// The folder, named by all that the install depends on.
    pub(crate) place: PathBuf,
    /// What the stamp holds: the list of what is installed; `None` where the name says all of it.
    pub(crate) wish: Option<Vec<u8>>,
    /// Whether the folder works under another name, too.
    pub(crate) can_move: bool,
}

/// Where an install is made.
pub(crate) struct Site<'a> {
    /// The folder, which is there and empty.
    pub(crate) folder: &'a Path,
    lock: &'a File,
}

impl Site<'_> {
    /// Runs a program that installs something. Its standard input is the file of the lock, which is
    /// as empty as what other programs get, and keeps the lock for as long as the program runs.
    pub(crate) fn run(&self, command: &mut Command) -> Result<()> {
        self.run_unless(command, &[])
    }

    /// The same for a program that passes over its own failure: one of the words is in what it says
    /// then.
    pub(super) fn run_unless(&self, command: &mut Command, failing: &[&str]) -> Result<()> {
        let lock = self.lock.try_clone().context("the lock cannot be handed on")?;
        run_quoted(command.stdin(lock), failing)
    }
}

impl Install {
    /// Whether it was made and nothing of it was removed again.
    pub(super) fn is_complete(&self) -> bool {
        match &self.wish {
            Some(wish) => fs::read(self.place.join(STAMP)).is_ok_and(|stamp| stamp == *wish),
            None => self.place.is_dir(),
        }
    }

    /// Makes the install unless it is complete and works.
    ///
    /// # Errors
    ///
    /// When it cannot be made; nothing of it is left then.
    pub(crate) fn ensure(
        &self,
        works: impl Fn(&Path) -> bool,
        make: impl FnOnce(&Site<'_>) -> Result<()>,
    ) -> Result<()> {
        let lock = self.lock()?;
        self.sweep();
        if self.is_complete() && works(&self.place) {
            self.touch();
            println!("  there already: {}", self.place.display());
            return Ok(());
        }
        let folder = if self.can_move { self.beside() } else { self.place.clone() };
        remove(&self.place)?;
        if let Err(error) = self.make(&Site { folder: &folder, lock: &lock }, make) {
            // The first failure is the one to tell; what is left is swept by the next run.
            let _ = remove(&folder);
            return Err(error);
        }
        self.prune();
        println!("  made: {}", self.place.display());
        Ok(())
    }

    fn make(&self, site: &Site<'_>, make: impl FnOnce(&Site<'_>) -> Result<()>) -> Result<()> {
        let folder = site.folder;
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
        make(site)?;
        if let Some(wish) = &self.wish {
            let stamp = folder.join(STAMP);
            fs::write(&stamp, wish)
                .with_context(|| format!("{} cannot be written", stamp.display()))?;
        }
        if folder == self.place {
            return Ok(());
        }
        fs::rename(folder, &self.place).with_context(|| {
            format!("{} cannot be renamed to {}", folder.display(), self.place.display())
        })
    }

    /// Waits until no other process works on this kind.
    fn lock(&self) -> Result<File> {
        let cache = self.cache();
        fs::create_dir_all(cache).with_context(|| format!("{} cannot be made", cache.display()))?;
        let path = cache.join(format!("{}.lock", self.kind));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("{} cannot be made", path.display()))?;
        let locked = match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                println!("  another run installs {}: waiting for it to end", self.kind);
                file.lock()
            }
            Err(TryLockError::Error(error)) => Err(error),
        };
        locked.with_context(|| format!("{} cannot be locked", path.display()))?;
        Ok(file)
    }

    fn cache(&self) -> &Path {
        self.place.parent().unwrap_or(&self.place)
    }

    fn beside(&self) -> PathBuf {
        let name = self.place.file_name().unwrap_or_default().to_string_lossy();
        self.cache().join(format!("{name}{UNFINISHED}"))
    }

    /// Removes what runs that were ended left behind. Whoever holds the lock is alone with it.
    fn sweep(&self) {
        for folder in self.folders() {
            let is_unfinished = folder.to_string_lossy().ends_with(UNFINISHED);
            let lacks_stamp = self.wish.is_some() && !folder.join(STAMP).exists();
            if is_unfinished || lacks_stamp {
                println!("  removing what a run left unfinished: {}", folder.display());
                note_failure(remove(&folder));
            }
        }
    }

    /// Says that it was used, so that it is not the first to go.
    fn touch(&self) {
        // A cache that cannot be written is as good to read from.
        let _ = File::open(self.mark(&self.place))
            .and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes the installs of this kind that were not used for longest.
    fn prune(&self) {
        let mut others: Vec<_> =
            self.folders().into_iter().filter(|folder| *folder != self.place).collect();
        others.sort_by_key(|folder| {
            self.mark(folder).metadata().and_then(|data| data.modified()).ok()
        });
        let most = others.len().saturating_sub(KEPT - 1);
        for folder in &others[..most] {
            println!("  removing one that was not used for longer: {}", folder.display());
            note_failure(remove(folder));
        }
    }

    /// What bears the time of the last use.
    fn mark(&self, folder: &Path) -> PathBuf {
        if self.wish.is_some() { folder.join(STAMP) } else { folder.to_path_buf() }
    }

    /// The folders of this kind, finished or not.
    fn folders(&self) -> Vec<PathBuf> {
        let start = format!("{}-", self.kind);
        let entries = fs::read_dir(self.cache()).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .collect()
    }
}

/// A short name for bytes (FNV-1a, 64 bits): the same on every machine and in every version.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Removes a folder; its stamp goes first, so that half of it is never taken for the whole.
fn remove(folder: &Path) -> Result<()> {
    let removed = match fs::remove_file(folder.join(STAMP)) {
        Err(error) if !is_missing(&error) => Err(error),
        _ => fs::remove_dir_all(folder),
    };
    match removed {
        Err(error) if !is_missing(&error) => {
            Err(error).with_context(|| format!("{} cannot be removed", folder.display()))
        }
        _ => Ok(()),
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

/// An old folder that stays takes room and harms nothing.
fn note_failure(result: Result<()>) {
    if let Err(error) = result {
        println!("  note: {error:#}");
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    use std::time::Duration;

    use anyhow::bail;

    use super::*;

    /// The folder in which the child of a test leaves an install half made.
    const HALF: &str = "HAFT_TEST_HALF_INSTALL";

    /// A cache of its own for a test.
    struct Cache(PathBuf);

    impl Cache {
        fn new(name: &str) -> Self {
            let folder = env::temp_dir().join(format!("haft-cache-{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<_> = fs::read_dir(&self.0)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .filter(|name| name != "kind.lock")
                .collect();
            names.sort();
            names
        }
    }

    impl Drop for Cache {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn install(cache: &Path, wish: &str, can_move: bool) -> Install {
        let place = cache.join(format!("kind-{wish}"));
        Install { kind: "kind", place, wish: Some(wish.into()), can_move }
    }

    /// An install of two files, of which the second makes it work.
    fn whole(site: &Site<'_>) -> Result<()> {
        fs::write(site.folder.join("first"), "1")?;
        fs::write(site.folder.join("second"), "2")?;
        Ok(())
    }

    fn works(folder: &Path) -> bool {
        folder.join("first").exists()
    }

    #[test]
    fn the_second_run_makes_nothing() {
        let cache = Cache::new("second");
        for can_move in [true, false] {
            let wanted = install(&cache.0, if can_move { "moved" } else { "fixed" }, can_move);
            assert!(!wanted.is_complete());
            wanted.ensure(works, whole).unwrap();
            assert!(wanted.is_complete());
            wanted.ensure(works, |_| bail!("made twice")).unwrap();
            wanted.ensure(|_| false, whole).unwrap();
        }
        assert_eq!(cache.names(), ["kind-fixed", "kind-moved"]);
    }

    #[test]
    fn a_failed_install_leaves_nothing() {
        let cache = Cache::new("failed");
        for can_move in [true, false] {
            let wanted = install(&cache.0, "a", can_move);
            let half = |site: &Site<'_>| {
                fs::write(site.folder.join("first"), "1")?;
                bail!("no network")
            };
            let error = wanted.ensure(works, half).unwrap_err();
            assert_eq!(error.to_string(), "no network");
            assert!(cache.names().is_empty(), "{:?}", cache.names());
        }
    }

    #[test]
    fn a_folder_that_lost_its_stamp_is_not_taken_for_complete() {
        let cache = Cache::new("stamp");
        let wanted = install(&cache.0, "a", false);
        wanted.ensure(works, whole).unwrap();
        fs::remove_file(wanted.place.join(STAMP)).unwrap();
        fs::remove_file(wanted.place.join("second")).unwrap();
        assert!(!wanted.is_complete() && works(&wanted.place));
        wanted.ensure(works, whole).unwrap();
        assert!(wanted.place.join("second").exists());
        let other = Install { wish: Some(b"b".to_vec()), ..install(&cache.0, "a", false) };
        assert!(!other.is_complete());
    }

    #[test]
    fn the_two_that_were_used_last_are_kept() {
        let cache = Cache::new("prune");
        let old = SystemTime::now() - Duration::from_hours(1);
        for (age, wish) in ["a", "b"].iter().enumerate() {
            let made = install(&cache.0, wish, true);
            made.ensure(works, whole).unwrap();
            let minutes = Duration::from_mins(u64::try_from(age).unwrap());
            let stamp = File::open(made.place.join(STAMP)).unwrap();
            stamp.set_modified(old + minutes).unwrap();
        }
        // Used again, the older one is the newer.
        install(&cache.0, "a", true).ensure(works, |_| bail!("made twice")).unwrap();
        fs::create_dir(cache.0.join("other-kind")).unwrap();
        install(&cache.0, "c", true).ensure(works, whole).unwrap();
        assert_eq!(cache.names(), ["kind-a", "kind-c", "other-kind"]);
    }

    /// Not a test of its own: the child of the next one, which is killed in the middle.
    #[test]
    fn half_an_install() {
        let Some(folder) = env::var_os(HALF) else { return };
        let can_move = Path::new(&folder).ends_with("true");
        let _ = install(Path::new(&folder), "a", can_move).ensure(works, |site| {
            fs::write(site.folder.join("first"), "1")?;
            println!("\nhalf is there");
            loop {
                std::thread::park();
            }
        });
    }

    #[test]
    fn an_install_that_is_killed_in_the_middle_is_made_anew() {
        let cache = Cache::new("killed");
        for can_move in [true, false] {
            let folder = cache.0.join(can_move.to_string());
            let mut child = Command::new(env::current_exe().unwrap())
                .args(["--exact", "test::cache::tests::half_an_install", "--nocapture"])
                .env(HALF, &folder)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let is_half = lines.map_while(Result::ok).any(|line| line == "half is there");
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(is_half);
            let wanted = install(&folder, "a", can_move);
            assert!(!wanted.is_complete());
            wanted.ensure(works, whole).unwrap();
            assert!(wanted.is_complete() && wanted.place.join("second").exists());
            let left = wanted.folders();
            assert_eq!(left, [wanted.place]);
        }
    }

    #[test]
    fn a_program_that_installs_holds_the_lock_though_its_run_is_gone() {
        let cache = Cache::new("lock");
        let wanted = install(&cache.0, "a", true);
        let lock = wanted.lock().unwrap();
        let mut tail = Command::new("tail");
        let program = tail.args(["-f", "/dev/null"]).stdin(lock.try_clone().unwrap()).spawn();
        // The command keeps its end of the lock, as the run that is gone did.
        drop((lock, tail));
        let mut program = program.unwrap();
        let again = || File::open(cache.0.join("kind.lock")).unwrap().try_lock();
        assert!(matches!(again(), Err(TryLockError::WouldBlock)));
        program.kill().unwrap();
        program.wait().unwrap();
        assert!(again().is_ok());
    }

    #[test]
    fn names_are_those_of_the_published_hash() {
        assert_eq!(hash(b""), "cbf29ce484222325");
        assert_eq!(hash(b"a"), "af63dc4c8601ec8c");
    }
}
