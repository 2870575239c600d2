//! The built-in tools, one a file.
//!
//! **Invariant:** a tool touches files, programs and searches only through `cx.host`, so the same
//! tool works on any host. It neither asks nor judges nor renders, and knows no model.

mod bash;
mod change;
mod edit;
mod executable;
mod files;
mod find;
mod grep;
mod images;
mod ls;
mod near;
mod page;
mod process;
mod read;
mod search;
mod seen;
mod words;
mod write;

use std::sync::Arc;

use haft_tool::AnyTool;

pub use self::{
    bash::Bash,
    edit::Edit,
    executable::{BrokenTool, Executables},
    find::Find,
    grep::Grep,
    ls::Ls,
    read::Read,
    write::Write,
};

/// The built-in tools, most used first: this order is part of every prompt.
pub fn builtin() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(Read::default()),
        Arc::new(Bash::default()),
        Arc::new(Edit::default()),
        Arc::new(Write::default()),
        Arc::new(Grep::default()),
        Arc::new(Find::default()),
        Arc::new(Ls::default()),
    ]
}
