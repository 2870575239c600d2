//! Files of the local host, both ways of looking up, and of the memory host, by one set of tests.

mod faults;
mod flips;
mod generic;
mod in_place;
mod moves;
mod outputs;
mod races;
mod recovery;
mod rights;
mod staged;
mod unix;
mod writes;

use std::{
    io,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use haft_host::{Fs, Host, Local, Located, Lookup, Memory, WriteHow, Written};
use haft_testkit::machine;
use haft_types::{Follow, HostPath, Style};
use tempfile::TempDir;

/// A host with an empty folder to play in.
pub struct World {
    pub name: &'static str,
    pub host: Arc<dyn Host>,
    pub root: HostPath,
    memory: Option<Arc<Memory>>,
    folder: Option<TempDir>,
}

/// Tells another thread to end, also when a test fails.
pub struct End<'a>(pub &'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub fn local(lookup: Lookup) -> World {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    let root = HostPath::new(real.as_os_str().as_bytes(), Style::Posix).unwrap();
    let host = Arc::new(Local::at(root.clone(), root.clone(), lookup));
    let name = if lookup == Lookup::Walk { "walk" } else { "openat2" };
    World { name, host, root, memory: None, folder: Some(folder) }
}

/// The ways of looking up that work here.
pub fn locals() -> Vec<World> {
    let mut worlds = vec![local(Lookup::Walk)];
    match Lookup::probed() {
        Lookup::Openat2 => worlds.push(local(Lookup::Openat2)),
        Lookup::Walk => machine::left_out("the system has no openat2"),
    }
    worlds
}

pub fn worlds() -> Vec<World> {
    let memory = Arc::new(Memory::new());
    memory.add_folder("/w").unwrap();
    let root = HostPath::new(b"/w", Style::Posix).unwrap();
    let host: Arc<dyn Host> = Arc::<Memory>::clone(&memory);
    let mut worlds = locals();
    worlds.push(World { name: "memory", host, root, memory: Some(memory), folder: None });
    worlds
}

impl World {
    pub fn path(&self, name: &str) -> HostPath {
        self.root.join(name).unwrap()
    }

    pub fn fs(&self) -> &dyn Fs {
        self.host.fs()
    }

    /// Where a name is on the disk; only for local worlds.
    pub fn disk(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().canonicalize().unwrap().join(name)
    }

    pub fn file(&self, name: &str, data: &str) {
        if let Some(memory) = &self.memory {
            return memory.add_file(&self.path(name).text(), data.as_bytes().to_vec()).unwrap();
        }
        let path = self.disk(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, data).unwrap();
    }

    pub fn folder(&self, name: &str) {
        match &self.memory {
            Some(memory) => memory.add_folder(&self.path(name).text()).unwrap(),
            None => std::fs::create_dir_all(self.disk(name)).unwrap(),
        }
    }

    pub fn link(&self, name: &str, target: &str) {
        match &self.memory {
            Some(memory) => memory.add_link(&self.path(name).text(), target).unwrap(),
            None => std::os::unix::fs::symlink(target, self.disk(name)).unwrap(),
        }
    }

    pub fn second_name(&self, old: &str, new: &str) {
        match &self.memory {
            Some(memory) => {
                memory.add_name(&self.path(old).text(), &self.path(new).text()).unwrap();
            }
            None => std::fs::hard_link(self.disk(old), self.disk(new)).unwrap(),
        }
    }

    pub fn fifo(&self, name: &str) {
        match &self.memory {
            Some(memory) => {
                let kind = haft_types::EntryKind::Fifo;
                memory.add_special(&self.path(name).text(), kind).unwrap();
            }
            None => machine::make_fifo(&self.disk(name)),
        }
    }

    pub async fn locate(&self, name: &str) -> io::Result<Located> {
        self.fs().locate(&self.path(name), Follow::Yes).await
    }

    pub async fn at(&self, name: &str) -> Located {
        self.locate(name).await.unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    pub async fn own(&self, name: &str) -> Located {
        self.fs().locate(&self.path(name), Follow::No).await.unwrap()
    }

    pub async fn read(&self, name: &str) -> io::Result<String> {
        let at = self.locate(name).await?;
        let data = self.fs().read(&at, 0, usize::MAX).await?;
        Ok(String::from_utf8_lossy(&data).into_owned())
    }

    pub async fn write(&self, name: &str, data: &str, how: WriteHow) -> io::Result<Written> {
        let at = self.locate(name).await?;
        self.fs().write(&at, Bytes::copy_from_slice(data.as_bytes()), how).await
    }

    /// Names in a folder, temporary ones included.
    pub async fn names(&self, name: &str) -> Vec<String> {
        let at = self.at(name).await;
        let how = haft_host::ListHow { limit: 1000, stat: false };
        let listing = self.fs().list(&at, how).await.unwrap();
        let name = |e: haft_host::DirEntry| String::from_utf8_lossy(&e.name).into_owned();
        listing.entries.into_iter().map(name).collect()
    }
}

/// Writes anyhow, with the folders above.
pub fn anyhow() -> WriteHow {
    WriteHow { parents: true, ..WriteHow::default() }
}
