//! A host of someone else: a map of bytes behind the traits, without programs and search of its
//! own. The tools need nothing more.

use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{
    Caps, DirEntry, Expect, FileKind, Fs, Host, ListHow, Listing, Located, Search, Shell, Staged,
    Stamp, WriteHow, Written,
};
use haft_testkit::world::World;
use haft_types::{EntryKind, Follow, HostPath, Style};
use serde_json::json;

use crate::{done, failed};

type Files = Mutex<BTreeMap<HostPath, (Bytes, i128)>>;

struct Shelf {
    home: HostPath,
    files: Arc<Files>,
}

struct Later {
    files: Arc<Files>,
    path: HostPath,
    data: Bytes,
    how: WriteHow,
}

impl Staged for Later {
    fn place(self: Box<Self>) -> BoxFuture<'static, io::Result<Written>> {
        let mut files = self.files.lock().unwrap();
        let now = look(&files, &self.path).stamp;
        let holds = match self.how.expect {
            Expect::Absent => now.is_none(),
            Expect::Stamp(stamp) => now == Some(stamp),
            Expect::Any => true,
        };
        if !holds {
            return ready(Err(io::ErrorKind::AlreadyExists.into()));
        }
        let modified = now.map_or(0, |stamp| stamp.modified) + 1;
        files.insert(self.path.clone(), (self.data, modified));
        ready(Ok(Written { at: look(&files, &self.path), made: Vec::new(), in_place: None }))
    }
}

fn look(files: &BTreeMap<HostPath, (Bytes, i128)>, path: &HostPath) -> Located {
    let found = files.get(path);
    let stamp = found.map(|(data, modified)| Stamp {
        size: data.len() as u64,
        modified: *modified,
        ..Stamp::default()
    });
    let kind = match found {
        Some(_) => FileKind::FILE,
        None if files.keys().any(|file| file.is_within(path)) => FileKind::FOLDER,
        None => FileKind::Missing,
    };
    let (real, names) = (path.clone(), u64::from(stamp.is_some()));
    Located { real, kind, stamp, names, handle: Arc::new(()) }
}

impl Shelf {
    fn look(&self, path: &HostPath) -> Located {
        look(&self.files.lock().unwrap(), path)
    }
}

fn ready<T: Send + 'static>(result: io::Result<T>) -> BoxFuture<'static, io::Result<T>> {
    std::future::ready(result).boxed()
}

impl Fs for Shelf {
    fn locate<'a>(&'a self, path: &'a HostPath, _: Follow) -> BoxFuture<'a, io::Result<Located>> {
        ready(Ok(self.look(path)))
    }
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        _: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        ready(folder.real.join_bytes(name).map(|path| self.look(&path)).map_err(io::Error::other))
    }
    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        let files = self.files.lock().unwrap();
        ready(files.get(&at.real).ok_or(io::ErrorKind::NotFound.into()).map(|(data, _)| {
            let start = usize::try_from(offset).unwrap().min(data.len());
            data.slice(start..start.saturating_add(len).min(data.len()))
        }))
    }
    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        let (files, path) = (self.files.clone(), at.real.clone());
        ready(Ok(Box::new(Later { files, path, data, how }) as Box<dyn Staged>))
    }
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        let files = self.files.lock().unwrap();
        let mut names: BTreeMap<Vec<u8>, EntryKind> = BTreeMap::new();
        for file in files.keys().filter_map(|file| file.relative_to(&at.real)) {
            let mut parts = file.splitn(2, |byte| *byte == b'/');
            let name = parts.next().unwrap().to_vec();
            names.insert(
                name,
                if parts.next().is_some() { EntryKind::Folder } else { EntryKind::File },
            );
        }
        let total = names.len() as u64;
        let entry = |(name, kind)| DirEntry { name, kind, ..DirEntry::default() };
        ready(Ok(Listing {
            entries: names.into_iter().take(how.limit).map(entry).collect(),
            total,
            denied: 0,
        }))
    }
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        let gone = self.files.lock().unwrap().remove(&at.real);
        ready(gone.map(|_| ()).ok_or(io::ErrorKind::NotFound.into()))
    }
    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        let mut files = self.files.lock().unwrap();
        let moved = files.remove(&from.real).map(|file| files.insert(to.real.clone(), file));
        ready(moved.map(|_| ()).ok_or(io::ErrorKind::NotFound.into()))
    }
}

impl Host for Shelf {
    fn name(&self) -> &'static str {
        "shelf"
    }
    fn style(&self) -> Style {
        Style::Posix
    }
    fn home(&self) -> &HostPath {
        &self.home
    }
    fn temp(&self) -> &HostPath {
        &self.home
    }
    fn caps(&self) -> Caps {
        Caps::default()
    }
    fn fs(&self) -> &dyn Fs {
        self
    }
    fn shell(&self) -> Option<&dyn Shell> {
        None
    }
    fn search(&self) -> Option<&dyn Search> {
        None
    }
}

#[tokio::test]
async fn the_file_and_search_tools_work_on_a_host_of_a_hundred_lines() {
    let root = HostPath::new(b"/books", Style::Posix).unwrap();
    let files = [("one/a.txt", "alpha\nbeta\n"), ("two.md", "beta\n")]
        .map(|(path, text)| (root.join(path).unwrap(), (Bytes::from(text), 0)));
    let shelf = Shelf { home: root.clone(), files: Arc::new(Mutex::new(files.into())) };
    let world = World::on(Arc::new(shelf), root, haft_tools::builtin());
    let call = async |tool, input| done(&world, tool, input).await;
    assert_eq!(call("read", json!({"path": "one/a.txt"})).await, "     1\talpha\n     2\tbeta");
    let shown = call("ls", json!({})).await;
    assert!(shown.contains("one/") && shown.contains("two.md"), "{shown}");
    let shown = call("grep", json!({"pattern": "^bet"})).await;
    assert!(shown.contains("one/a.txt:2:beta") && shown.contains("two.md:1:beta"), "{shown}");
    let shown = call("find", json!({"pattern": "*.txt"})).await;
    assert!(shown.contains("one/a.txt") && !shown.contains("two.md"), "{shown}");
    let edits = json!([{"old_text": "beta", "new_text": "gamma"}]);
    call("edit", json!({"path": "one/a.txt", "edits": edits})).await;
    call("write", json!({"path": "three/c.txt", "content": "delta\n"})).await;
    assert_eq!(world.read_bytes("one/a.txt").await.unwrap().unwrap(), b"alpha\ngamma\n");
    let shown = call("find", json!({"pattern": "c.txt"})).await;
    assert!(shown.contains("three/c.txt"), "{shown}");
    let shown = failed(&world, "read", json!({"path": "three"})).await;
    assert!(shown.contains("is a folder"), "{shown}");
}
