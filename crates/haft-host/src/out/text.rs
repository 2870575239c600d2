//! Shows a stored output as clean text.
//!
//! **Invariant:** the stored output stays as the program wrote it. Readers get text without control
//! sequences and with its progress output collapsed. Most outputs are clean already: then this is
//! the file itself. Otherwise it is a second file beside it, which is created once. Memory is
//! bounded. The second files count towards the cap of the session, and are removed when other
//! outputs need space.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write as _},
    os::unix::fs::FileExt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use bytes::Bytes;
use haft_text::clean::{Cleaner, clean_prefix};
use haft_types::{CallId, HostPath};

use super::{Outs, Place, STEP, Shared, checked};
use crate::{Host, Local, Memory};

/// Bytes at the end of a piece that may be a part of a character.
const PART: usize = 3;

/// What is known of the outputs that were read: of each by a lock of its own, which is held as long as
/// its clean text is made. Who holds one takes no other unless it is free.
#[derive(Debug, Default)]
pub(super) struct Views(Mutex<HashMap<CallId, Slot>>);

/// None where nothing is known.
type Slot = Arc<Mutex<Option<View>>>;

#[derive(Clone, Copy, Debug)]
struct View {
    /// Size and time of the output that was looked at.
    seen: (u64, Option<SystemTime>),
    /// Bytes at its start that are clean text.
    clean: u64,
    /// Whether there is a second file.
    made: bool,
}

impl Views {
    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, call: &CallId) -> Slot {
        Arc::clone(self.lock().entry(call.clone()).or_default())
    }
}

impl Outs {
    /// Where the output of a call can be read as clean text: a host and the path on it. `None` if
    /// none is stored.
    ///
    /// # Errors
    /// If it cannot be read, or its clean text does not fit into the session's cap.
    pub async fn text(&self, call: &CallId) -> io::Result<Option<(Arc<dyn Host>, HostPath)>> {
        let (shared, call) = (Arc::clone(&self.shared), call.clone());
        let found = tokio::task::spawn_blocking(move || shared.text(&call)).await;
        found.unwrap_or_else(|error| Err(io::Error::other(error)))
    }
}

impl Shared {
    fn text(self: &Arc<Self>, call: &CallId) -> io::Result<Option<(Arc<dyn Host>, HostPath)>> {
        if checked(call).is_err() {
            return Ok(None);
        }
        match &self.place {
            Place::Folder { base, host, .. } => {
                let path = base.join(&*call.0);
                if !fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_file()) {
                    return Ok(None);
                }
                let clean = self.view(call, &File::open(&path)?)?;
                let path = if clean { path } else { base.join(text_name(call)) };
                let host: Arc<dyn Host> = Arc::<Local>::clone(host);
                Ok(Some((host, Local::path(&path)?)))
            }
            Place::Memory { host, base } => {
                let path = base.join(&call.0).ok();
                let bytes = path.as_ref().and_then(|path| host.content(path.as_str()?));
                let Some((path, bytes)) = path.zip(bytes) else { return Ok(None) };
                let path = self.view_in_memory(call, (host, base), (path, &bytes))?;
                let host: Arc<dyn Host> = Arc::<Memory>::clone(host);
                Ok(Some((host, path)))
            }
        }
    }

    /// Whether the output is clean text by itself; where it is not, makes the file that is.
    fn view(&self, call: &CallId, file: &File) -> io::Result<bool> {
        let slot = self.views.of(call);
        let mut view = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let about = file.metadata()?;
        let seen = (about.len(), about.modified().ok());
        let known = *view;
        if let Some(known) = known.filter(|known| known.seen == seen) {
            return Ok(!known.made);
        }
        // One that has grown is looked at from where it was clean text.
        let from = known.filter(|known| known.seen.0 <= seen.0).map_or(0, |known| known.clean);
        let clean = clean_until(file, from, seen.0)?;
        let made = clean < seen.0;
        if made {
            self.make(call, file, seen.0)?;
        }
        *view = Some(View { seen, clean, made });
        Ok(!made)
    }

    /// Writes the clean text of the first `len` bytes.
    fn make(&self, call: &CallId, from: &File, len: u64) -> io::Result<()> {
        let name = text_name(call);
        let Some((new, path)) = self.path(&format!("{name}.new")).zip(self.path(&name)) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let mut to = self.open(&format!("{name}.new"))?;
        let mut reserved = 0;
        let written = clean_copy(from, len, |text| {
            self.reserve(text.len() as u64)?;
            reserved += text.len() as u64;
            to.write_all(text.as_bytes())
        });
        let before = fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
        let done = written.and_then(|()| fs::rename(&new, &path));
        if done.is_ok() {
            self.release(before);
        } else {
            // What cannot even be removed is overwritten the next time.
            let _ = fs::remove_file(&new);
            self.release(reserved);
        }
        done
    }

    fn view_in_memory(
        self: &Arc<Self>,
        call: &CallId,
        (host, base): (&Memory, &HostPath),
        (path, bytes): (HostPath, &Bytes),
    ) -> io::Result<HostPath> {
        if clean_prefix(bytes) == bytes.len() {
            return Ok(path);
        }
        let mut text = String::new();
        let mut cleaner = Cleaner::new();
        cleaner.push(bytes, &mut text);
        cleaner.finish(&mut text);
        let path = base.join(&text_name(call)).map_err(io::Error::other)?;
        let before = host.take(&path);
        self.release(before.map_or(0, |data| data.len() as u64));
        let _pin = self.pin(call);
        self.reserve(text.len() as u64)?;
        host.keep(&path, text.into())?;
        Ok(path)
    }

    /// Forgets what was made of an earlier output of this call.
    pub(super) fn forget_text(&self, call: &CallId) {
        match &self.place {
            Place::Folder { .. } => {
                // Not made where nobody has read it.
                let slot = self.views.lock().get(call).cloned();
                if let Some(slot) = slot {
                    let mut view = slot.lock().unwrap_or_else(PoisonError::into_inner);
                    self.drop_text(call, &mut view);
                }
            }
            Place::Memory { host, base } => {
                let made = base.join(&text_name(call)).ok().and_then(|path| host.take(&path));
                self.release(made.map_or(0, |data| data.len() as u64));
            }
        }
    }

    /// As [`Self::forget_text`], without a wait: false where the text is being made.
    pub(super) fn try_forget_text(&self, call: &CallId) -> bool {
        let Place::Folder { .. } = &self.place else {
            self.forget_text(call);
            return true;
        };
        let Some(slot) = self.views.lock().get(call).cloned() else { return true };
        let Ok(mut view) = slot.try_lock() else { return false };
        self.drop_text(call, &mut view);
        true
    }

    /// Removes what can be made again; false where there was nothing, or it is in use.
    pub(super) fn drop_texts(&self) -> bool {
        let all: Vec<(CallId, Slot)> =
            self.views.lock().iter().map(|(call, slot)| (call.clone(), Arc::clone(slot))).collect();
        let mut dropped = false;
        for (call, slot) in all {
            if let Ok(mut view) = slot.try_lock() {
                dropped |= self.drop_text(&call, &mut view);
            }
        }
        dropped
    }

    /// Whether there was something.
    fn drop_text(&self, call: &CallId, view: &mut Option<View>) -> bool {
        let path = self.path(&text_name(call));
        let Some(path) = path.filter(|_| view.take().is_some_and(|view| view.made)) else {
            return false;
        };
        let size = fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
        let is_gone = fs::remove_file(&path).is_ok();
        if is_gone {
            self.release(size);
        }
        is_gone
    }
}

/// Begins with a dot, as no id does.
fn text_name(call: &CallId) -> String {
    format!(".{}.text", call.0)
}

/// Up to where a file is clean text; looked at from a place up to which it is.
fn clean_until(file: &File, from: u64, end: u64) -> io::Result<u64> {
    let (mut at, mut buffer) = (from, Vec::new());
    while at < end {
        let len = usize::try_from(end - at).unwrap_or(STEP).min(STEP);
        buffer.resize(len, 0);
        file.read_exact_at(&mut buffer, at)?;
        let clean = clean_prefix(&buffer);
        at += clean as u64;
        // A part of a character at the end of a piece is looked at again with what follows.
        let part = clean > 0 && len - clean <= PART && at + ((len - clean) as u64) < end;
        if clean < len && !part {
            break;
        }
    }
    Ok(at)
}

fn clean_copy(from: &File, len: u64, mut to: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let (mut cleaner, mut text) = (Cleaner::new(), String::new());
    let (mut at, mut buffer) = (0, Vec::new());
    while at < len {
        buffer.resize(usize::try_from(len - at).unwrap_or(STEP).min(STEP), 0);
        from.read_exact_at(&mut buffer, at)?;
        at += buffer.len() as u64;
        cleaner.push(&buffer, &mut text);
        to(&text)?;
        text.clear();
    }
    cleaner.finish(&mut text);
    to(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outs(cap: u64) -> (tempfile::TempDir, [Outs; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let on_disk = Outs::in_folder(folder.path().join("out"), cap);
        (folder, [on_disk, Outs::in_memory(cap)])
    }

    async fn read(outs: &Outs, call: &CallId) -> Option<String> {
        let (host, path) = outs.text(call).await.unwrap()?;
        let at = host.fs().locate(&path, haft_types::Follow::No).await.unwrap();
        let bytes = host.fs().read(&at, 0, usize::MAX).await.unwrap();
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_text_is_clean_and_what_is_kept_stays_raw() {
        let (_folder, all) = outs(100 << 20);
        let call = CallId::nth(1);
        // Characters lie across the border of pieces, wherever that is.
        let long = "日本語é\n".repeat(200_000);
        let cases = [
            ("plain\ntext", None),
            (&*long, None),
            ("1%\r2%\n\u{1b}[31mred\u{1b}[0m\n", Some("2%\nred\n")),
            ("", None),
        ];
        for outs in &all {
            assert!(outs.text(&call).await.unwrap().is_none());
            for (raw, clean) in cases {
                outs.put(&call, raw.as_bytes()).unwrap();
                let own = |path: &HostPath| path.file_name() == Some(b"c1");
                if raw.is_empty() && outs.open(&call).is_none() {
                    continue;
                }
                assert!(read(outs, &call).await.unwrap() == clean.unwrap_or(raw), "{raw:.20?}");
                let (_, path) = outs.text(&call).await.unwrap().unwrap();
                assert_eq!(own(&path), clean.is_none());
                assert!(own(&outs.open(&call).unwrap().1));
                let both = raw.len() + clean.map_or(0, str::len);
                assert_eq!(outs.used(), both as u64, "{raw:.20?}");
            }
        }
    }

    #[tokio::test]
    async fn an_output_that_grows_is_looked_at_again() {
        let (_folder, [outs, _]) = outs(1 << 20);
        let call = CallId::nth(1);
        let mut out = outs.create(&call).unwrap();
        let mut want = String::new();
        for (raw, clean) in [("one\n", "one\n"), ("t\u{1b}[1mwo\n", "two\n"), ("6\r7\n", "7\n")] {
            out.append(raw.as_bytes()).unwrap();
            want.push_str(clean);
            assert_eq!(read(&outs, &call).await.unwrap(), want);
        }
    }

    #[tokio::test]
    async fn clean_texts_make_room_for_each_other() {
        let (_folder, [outs, _]) = outs(70);
        let raw = "\u{1b}[31m0123456789".as_bytes();
        for number in 1..=3 {
            outs.put(&CallId::nth(number), raw).unwrap();
        }
        for number in [1, 2, 3, 1] {
            assert_eq!(read(&outs, &CallId::nth(number)).await.unwrap(), "0123456789");
        }
        outs.put(&CallId::nth(4), b"0123456789").unwrap();
        assert!(outs.used() <= 70);
        let (_folder, [outs, _]) = self::outs(20);
        outs.put(&CallId::nth(1), raw).unwrap();
        let error = outs.text(&CallId::nth(1)).await.err().unwrap();
        assert!(error.to_string().contains("of at most 20 bytes"), "{error}");
        assert_eq!(outs.used(), raw.len() as u64);
    }

    #[tokio::test]
    async fn who_keeps_an_output_does_not_wait_for_one_that_is_read() {
        let (_folder, [outs, _]) = outs(1 << 20);
        let raw = "\u{1b}[31m0123456789".as_bytes();
        outs.put(&CallId::nth(1), raw).unwrap();
        assert_eq!(read(&outs, &CallId::nth(1)).await.unwrap(), "0123456789");
        // As long as its text is made.
        let slot = outs.shared.views.of(&CallId::nth(1));
        let held = slot.lock().unwrap();
        outs.put(&CallId::nth(2), raw).unwrap();
        let shared = Arc::clone(&outs.shared);
        let other = std::thread::spawn(move || shared.text(&CallId::nth(2)).unwrap().is_some());
        assert!(other.join().unwrap());
        assert!(outs.shared.drop_texts(), "only of the other one");
        assert!(held.is_some_and(|view| view.made));
    }
}
