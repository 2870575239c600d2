//! A host that gives a tool exactly what its plan declared, and nothing else.
//!
//! **Invariant:** what was located and judged is what is touched; whatever the plan did not
//! declare is refused, whoever asks. A tool cannot tell this host from a bare one.

use std::{io, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt as _, future::BoxFuture};
use haft_host::{
    Caps, Confine, FindQuery, Found, Fs, FsSearch, GrepQuery, Host, ListHow, Listing, Located,
    Running, Search, SearchError, Shell, Sink, Skipped, Spawn, Walk, WriteHow, Written,
};
use haft_types::{Access, Effect, FileMatches, Follow, HostPath, Style, Target};

use crate::pipeline::Lost;

/// Reports whether a path below a declared tree may be seen.
pub(crate) type Visible = Arc<dyn Fn(&HostPath) -> bool + Send + Sync>;

/// One declared effect with what was found for it.
pub(crate) struct Declared {
    pub effect: Effect,
    pub located: Option<Result<Located, Lost>>,
}

/// See the module.
pub(crate) struct Guarded {
    pub inner: Arc<dyn Host>,
    pub declared: Vec<Declared>,
    /// What searches and walks below declared trees may see.
    pub visible: Visible,
    /// The most that may happen: `Observe` while a call is only checked.
    pub most: Access,
    /// What children may touch.
    pub confine: Option<Confine>,
}

impl Guarded {
    fn anything(&self) -> bool {
        self.declared.iter().any(|d| d.effect.target == Target::Anything)
            && self.most == Access::Destroy
    }

    /// Reports whether the plan declares this access to a real path.
    fn declares(&self, real: &HostPath, access: Access) -> bool {
        access <= self.most
            && ((self.anything() && (self.visible)(real))
                || self.declared.iter().any(|declared| {
                    declared.effect.access >= access && declared.covers(real, &self.visible)
                }))
    }

    fn need(&self, real: &HostPath, access: Access) -> io::Result<()> {
        if self.declares(real, access) { Ok(()) } else { refuse(real, access) }
    }
}

fn refuse<T>(real: &HostPath, access: Access) -> io::Result<T> {
    let verb = if access == Access::Observe { "reading" } else { "changing" };
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{verb} {real} is not part of what this call declared"),
    ))
}

impl Declared {
    fn covers(&self, real: &HostPath, visible: &Visible) -> bool {
        let Some(Ok(located)) = &self.located else { return false };
        match self.effect.target {
            Target::Path { .. } => *real == located.real,
            Target::Tree { .. } => real.is_within(&located.real) && visible(real),
            _ => false,
        }
    }

    fn names(&self, path: &HostPath, wanted: Follow) -> bool {
        match &self.effect.target {
            Target::Path { path: declared, follow } => declared == path && *follow == wanted,
            Target::Tree { root } => root == path,
            _ => false,
        }
    }
}

impl Host for Guarded {
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
        self.inner.shell().map(|_| self as &dyn Shell)
    }
    fn search(&self) -> Option<&dyn Search> {
        // Where the host has none its files are searched, with the same filter.
        Some(self)
    }
}

impl Fs for Guarded {
    fn locate<'a>(
        &'a self,
        path: &'a HostPath,
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        let mut named = self.declared.iter().filter(|declared| declared.names(path, follow));
        if let Some(found) = named.find_map(|declared| declared.located.as_ref()) {
            return std::future::ready(found.clone().map_err(io::Error::from)).boxed();
        }
        async move {
            if !self.declared.iter().any(|d| d.effect.path().is_some_and(|p| path.is_within(p)))
                && !self.anything()
            {
                return refuse(path, Access::Observe);
            }
            let located = self.inner.fs().locate(path, follow).await?;
            self.need(&located.real, Access::Observe)?;
            Ok(located)
        }
        .boxed()
    }

    fn child<'a>(
        &'a self,
        folder: &'a Located,
        name: &'a [u8],
        follow: Follow,
    ) -> BoxFuture<'a, io::Result<Located>> {
        async move {
            self.need(&folder.real.join_bytes(name).map_err(io::Error::other)?, Access::Observe)?;
            let located = self.inner.fs().child(folder, name, follow).await?;
            self.need(&located.real, Access::Observe)?;
            Ok(located)
        }
        .boxed()
    }

    fn read<'a>(
        &'a self,
        at: &'a Located,
        offset: u64,
        len: usize,
    ) -> BoxFuture<'a, io::Result<Bytes>> {
        // What a change declares it may also read: an edit looks at what it replaces.
        match self.need(&at.real, Access::Observe) {
            Ok(()) => self.inner.fs().read(at, offset, len),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn write<'a>(
        &'a self,
        at: &'a Located,
        data: Bytes,
        how: WriteHow,
    ) -> BoxFuture<'a, io::Result<Written>> {
        match self.need(&at.real, Access::Modify) {
            Ok(()) => self.inner.fs().write(at, data, how),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn list<'a>(&'a self, at: &'a Located, how: ListHow) -> BoxFuture<'a, io::Result<Listing>> {
        match self.need(&at.real, Access::Observe) {
            Ok(()) => self.inner.fs().list(at, how),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn remove<'a>(&'a self, at: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        match self.need(&at.real, Access::Destroy) {
            Ok(()) => self.inner.fs().remove(at),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn rename<'a>(&'a self, from: &'a Located, to: &'a Located) -> BoxFuture<'a, io::Result<()>> {
        let both = self
            .need(&from.real, Access::Modify)
            .and_then(|()| self.need(&to.real, Access::Modify));
        match both {
            Ok(()) => self.inner.fs().rename(from, to),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }
}

impl Shell for Guarded {
    fn spawn(&self, spawn: Spawn) -> BoxFuture<'_, io::Result<Running>> {
        let declared = self.declared.iter().any(|declared| {
            matches!(declared.effect.target, Target::Command { .. } | Target::Anything)
                // A check runs no program, however harmless it is: nobody has judged it for that.
                && self.most > Access::Observe
        });
        match self.inner.shell() {
            Some(shell) if declared => {
                shell.spawn(Spawn { confine: self.confine.clone(), ..spawn })
            }
            Some(_) => std::future::ready(Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "running a program is not part of what this call declared",
            )))
            .boxed(),
            None => std::future::ready(Err(io::ErrorKind::Unsupported.into())).boxed(),
        }
    }
}

impl Guarded {
    /// The walk that the caller wants, within what the plan declares and the rules let it see.
    fn narrowed(&self, walk: Walk) -> Walk {
        let (visible, wanted) = (self.visible.clone(), walk.allowed);
        Walk { allowed: Arc::new(move |path| visible(path) && wanted(path)), ..walk }
    }
}

impl Search for Guarded {
    fn grep<'a>(
        &'a self,
        at: &'a Located,
        query: &'a GrepQuery,
        walk: Walk,
        sink: Sink<'a, FileMatches>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        match (self.need(&at.real, Access::Observe), self.inner.search()) {
            (Ok(()), Some(search)) => search.grep(at, query, self.narrowed(walk), sink),
            (Ok(()), None) => {
                let (fs, walk) = (self.inner.fs(), self.narrowed(walk));
                async move { FsSearch(fs).grep(at, query, walk, sink).await }.boxed()
            }
            (Err(error), _) => std::future::ready(Err(error.into())).boxed(),
        }
    }

    fn find<'a>(
        &'a self,
        at: &'a Located,
        query: &'a FindQuery,
        walk: Walk,
        sink: Sink<'a, Found>,
    ) -> BoxFuture<'a, Result<Skipped, SearchError>> {
        match (self.need(&at.real, Access::Observe), self.inner.search()) {
            (Ok(()), Some(search)) => search.find(at, query, self.narrowed(walk), sink),
            (Ok(()), None) => {
                let (fs, walk) = (self.inner.fs(), self.narrowed(walk));
                async move { FsSearch(fs).find(at, query, walk, sink).await }.boxed()
            }
            (Err(error), _) => std::future::ready(Err(error.into())).boxed(),
        }
    }
}
