//! Programs of the person around calls and turns.

pub(crate) mod calls;
pub(crate) mod talk;
pub(crate) mod work;
