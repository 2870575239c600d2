//! What a confined command tried of the network, as far as its monitor knows it. That is each
//! refused socket, one by one, and what the first process of its namespaces counted, at its end.
//!
//! **Invariant:** a program that wants a socket waits for the monitor alone, never for haft.
//! However many sockets are wanted, at most one message about them is under way.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use haft_sandbox::{Attempts, Listener};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// See the module.
#[derive(Debug)]
pub(super) struct Refusing {
    /// Where sockets are heard of; none where they are not.
    listener: Option<Listener>,
    /// Whether they ever were.
    hears: bool,
    /// Where what was counted comes.
    counted: OwnedFd,
    tried: Attempts,
    /// Whether haft has not heard of what was said to it last.
    unheard: bool,
    /// Whether there is more than haft was told.
    more: bool,
    /// A call that waits for its answer.
    waits: Option<u64>,
}

impl Refusing {
    pub(super) fn new(listener: Option<Listener>, counted: OwnedFd) -> Self {
        let (tried, unheard, more, waits) = Default::default();
        Self { hears: listener.is_some(), listener, counted, tried, unheard, more, waits }
    }

    /// What is watched.
    pub(super) fn listener(&self) -> Option<BorrowedFd<'_>> {
        self.listener.as_ref().map(AsFd::as_fd)
    }

    /// What haft is told at the start: that it is heard of them.
    pub(super) fn at_start(&self) -> Option<Attempts> {
        self.listener.as_ref().map(|_| self.tried)
    }

    /// Takes a call in. Where haft is to hear of it now, what it is told; the call is answered then, else at once.
    pub(super) fn refuse(&mut self) -> Option<Attempts> {
        let listener = self.listener.as_ref()?;
        // Where nothing came, hearing would wait, on older kernels for good.
        let mut polled = [PollFd::new(listener, PollFlags::IN)];
        let came = poll(&mut polled, Some(&Timespec::default())).is_ok();
        let [found] = polled.map(|fd| fd.revents());
        if came && found.contains(PollFlags::IN) {
            self.waits = listener.hear().ok().flatten();
        } else if came && !found.is_empty() {
            // Nobody is left who could make one.
            self.listener = None;
        }
        self.waits?;
        self.tried.sockets += 1;
        self.more = true;
        let told = self.news();
        if told.is_none() {
            self.answer();
        }
        told
    }

    /// Answers the call that waits.
    pub(super) fn answer(&mut self) {
        if let (Some(listener), Some(call)) = (&self.listener, self.waits.take()) {
            listener.refuse(call);
        }
    }

    /// Haft has heard; what it is told next.
    pub(super) fn heard(&mut self) -> Option<Attempts> {
        self.unheard = false;
        self.news()
    }

    fn news(&mut self) -> Option<Attempts> {
        let told = (self.more && !self.unheard).then_some(self.tried)?;
        (self.unheard, self.more) = (true, false);
        Some(told)
    }

    /// What haft is told at the end of the command: all of it, where it was counted.
    pub(super) fn at_end(&mut self) -> Option<Attempts> {
        let mut bytes = [0; 64];
        let length = rustix::io::read(&self.counted, &mut bytes).unwrap_or_default();
        Attempts::from_bytes(&bytes[..length]).or_else(|| self.hears.then_some(self.tried))
    }
}
