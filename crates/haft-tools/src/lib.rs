//! The built-in tools, one per module.
//!
//! **Invariant:** a tool touches files, programs and searches only through `cx.host`, so the same
//! tool works on any host. It never asks whether it may, nor judges nor renders, and knows no model.

mod ask_user;
mod brief;
mod checklist;
mod config;
mod edit;
mod executable;
mod files;
mod find;
mod grep;
mod job;
mod ls;
mod notebook_edit;
mod plan_mode;
mod ranking;
mod read;
mod search;
mod send_file;
mod shell;
mod skill;
mod sleep;
mod snip;
mod structured_output;
mod tasks;
mod think;
mod todo;
mod tool_search;
mod units;
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

use haft_tool::{AnyTool, Exceptions};

#[cfg(feature = "pdf")]
pub use crate::read::readers::pdf::{PdfReader, read_pdf};
pub use crate::{
    ask_user::AskUser,
    brief::Brief,
    config::Config,
    edit::Edit,
    executable::{BrokenTool, Executables},
    find::Find,
    grep::Grep,
    job::Job,
    ls::Ls,
    notebook_edit::NotebookEdit,
    plan_mode::{EnterPlan, ExitPlan, PLAN_ENDS, PLAN_MAX, PlanFile, plan_begins},
    ranking::{Candidate, Index, stems},
    read::Read,
    send_file::SendFile,
    shell::{Bash, sessions::Shells},
    skill::{
        Skill, SkillSource, Skills,
        catalogue::{Catalogue, SkillEntry, SkillOrigin, lines as skill_lines},
        front_matter::{FrontMatter, one_line, split as split_front_matter, wrong_name},
    },
    sleep::Sleep,
    snip::Snip,
    structured_output::StructuredOutput,
    tasks::{TaskCreate, TaskGet, TaskList, TaskUpdate},
    think::Think,
    todo::Todo,
    tool_search::ToolSearch,
    web_fetch::WebFetch,
    web_search::{EngineKind, ProviderSearch, Search, SearchEngine, WebSearch},
    write::Write,
};

/// What a person may set about the built-in tools.
#[derive(Clone, Debug)]
pub struct Options {
    /// Lines that `read` gives without a limit of its own, from 1; 2,000 by default.
    pub read_lines: u64,
    /// Bytes that one answer of `read` has at most, up to 524,288; 100,000 by default.
    pub read_bytes: u64,
    /// Milliseconds that `bash` lets a command run when the call says nothing, from 1 to 600,000;
    /// 120,000 by default.
    pub command_ms: u64,
    /// Whether a command whose time is over goes on as a job instead of being stopped; false by
    /// default.
    pub command_promote: bool,
    /// Names of programs that go on as a job when their command ends, such as build daemons; none
    /// by default.
    pub command_keep: Vec<String>,
    /// Whether there is a tool for PowerShell, and then whether the host has a `pwsh`; without it the
    /// tool is off. None by default.
    pub powershell: Option<bool>,
    /// Whether `edit` takes only text that is there exactly, and `edit` and `write` change only files
    /// that the conversation has read as they are; without it, near misses that can mean one place
    /// alone are tolerated, and so is exact text in other files, and told. False by default.
    pub edit_strict: bool,
    /// Milliseconds that `ask_user` waits for an answer; none, for as long as it takes, by default.
    pub ask_ms: Option<u64>,
    /// The skills and commands of the run; none by default.
    pub skills: Skills,
    /// Hosts with their ports that `web_fetch` may ask although they are private; none by default.
    pub web_private: Exceptions,
    /// Who searches for `web_search`; without it there is no such tool. None by default.
    pub search: Option<Search>,
    /// Where `read` has PDF documents read; on a thread of this process by default.
    #[cfg(feature = "pdf")]
    pub pdf: PdfReader,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_lines: 2_000,
            read_bytes: 100_000,
            command_ms: 120_000,
            command_promote: false,
            command_keep: Vec::new(),
            powershell: None,
            edit_strict: false,
            ask_ms: None,
            skills: Skills::default(),
            web_private: Exceptions::default(),
            search: None,
            #[cfg(feature = "pdf")]
            pdf: PdfReader::default(),
        }
    }
}

/// The built-in tools as they are without settings.
pub fn builtin() -> Vec<Arc<dyn AnyTool>> {
    with(&Options::default())
}

/// The built-in tools, most used first: this order is part of every prompt.
pub fn with(options: &Options) -> Vec<Arc<dyn AnyTool>> {
    let mut tools: Vec<Arc<dyn AnyTool>> = vec![
        Arc::new(Read::new(options)),
        Arc::new(Bash::new(options)),
        Arc::new(Edit { strict: options.edit_strict }),
        Arc::new(Write { strict: options.edit_strict }),
        Arc::new(Grep::default()),
        Arc::new(Find::default()),
        Arc::new(Ls::default()),
        Arc::new(Job),
        Arc::new(AskUser::new(options)),
        Arc::new(EnterPlan::default()),
        Arc::new(ExitPlan::default()),
        Arc::new(NotebookEdit),
        Arc::new(Skill { skills: options.skills.clone() }),
        Arc::new(Snip::default()),
        Arc::new(Todo::default()),
        Arc::new(TaskCreate::default()),
        Arc::new(TaskGet::default()),
        Arc::new(TaskList::default()),
        Arc::new(TaskUpdate::default()),
        Arc::new(ToolSearch::default()),
        Arc::new(Think::default()),
        Arc::new(Sleep::default()),
        Arc::new(Brief::default()),
        Arc::new(SendFile::default()),
        Arc::new(Config::default()),
        Arc::new(WebFetch::new(options)),
    ];
    match options.search.clone() {
        Some(Search::Engine(engine)) => tools.push(Arc::new(WebSearch::new(engine))),
        Some(Search::Provider(domains)) => tools.push(Arc::new(ProviderSearch::new(domains))),
        None => {}
    }
    if let Some(is_there) = options.powershell {
        tools.push(Arc::new(Bash::powershell(options, is_there)));
    }
    tools
}
