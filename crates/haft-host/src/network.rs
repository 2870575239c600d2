//! A network that several programs of a session share.
//!
//! **Invariant:** the network is created once, for the first program that needs it. Only its
//! holders keep it open. It ends with them and with the last program in it, however haft ends.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// A network that programs share; it is created once the first of them needs it.
#[derive(Clone, Debug, Default)]
pub struct Network(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unmade,
    Made(Arc<haft_sandbox::Network>),
    /// It could not be made: each program has one of its own.
    Failed,
}

impl Network {
    /// The network, made the first time; none where that failed.
    pub(crate) fn get(
        &self,
        make: impl FnOnce() -> io::Result<haft_sandbox::Network>,
    ) -> Option<Arc<haft_sandbox::Network>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Unmade) {
            *state = make().map_or(State::Failed, |made| State::Made(Arc::new(made)));
        }
        match &*state {
            State::Made(network) => Some(Arc::clone(network)),
            State::Unmade | State::Failed => None,
        }
    }
}

impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Network {}
