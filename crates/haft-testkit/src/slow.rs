//! A host in memory whose file system answers when the test lets it.
//!
//! **Invariant:** it differs from [`Memory`] only in when it answers to being looked at.

use std::io;

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{
    Caps, Fs, Host, ListHow, Listing, Located, Memory, Search, Shell, Staged, WriteHow,
};
use haft_types::{Follow, HostPath, Style};

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A path is looked up.
    Locate,
    /// A file is read.
    Read,
}

/// See the module; the function says how long a look at a path waits.
pub struct Slow<W> {
    inner: Memory,
    wait: W,
}

impl<W> Slow<W>
where
    W: Fn(Look, &HostPath) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    /// These files, each look at them behind what `wait` gives.
    pub const fn new(inner: Memory, wait: W) -> Self {
        Self { inner, wait }
    }
}

impl<W> Host for Slow<W>
where
    W: Fn(Look, &HostPath) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn style(&self) -> Style {
        self.inner.style()
    }
    fn home(&self) -> &HostPath {
        self.inner.home()
    }
    fn temp(&self) -> &HostPath {
        self.inner.temp()
    }
    fn caps(&self) -> Caps {
        self.inner.caps()
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

impl<W> Fs for Slow<W>
where
    W: Fn(Look, &HostPath) -> BoxFuture<'static, ()> + Send + Sync + 'static,
{
    fn locate<'a>(&'a self, path: &'a HostPath, how: Follow) -> BoxFuture<'a, io::Result<Located>> {
        (self.wait)(Look::Locate, path).then(move |()| self.inner.locate(path, how)).boxed()
    }
    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        self.inner.child(folder, name, follow)
    }
    fn read<'a>(
        &'a self,
        at: &'a Located,
        from: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        (self.wait)(Look::Read, &at.real).then(move |()| self.inner.read(at, from, len)).boxed()
    }
    fn stage<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Box<dyn Staged>>> {
        self.inner.stage(at, data, how)
    }
    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        self.inner.list(at, how)
    }
    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.inner.remove(at)
    }
    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        self.inner.rename(from, to)
    }
}
