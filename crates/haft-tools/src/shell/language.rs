//! The language that a command is written in: the shell of the host, or PowerShell.
//!
//! **Invariant:** everything in which bash and powershell differ is here.

use haft_host::Program;
use haft_tool::{POWERSHELL, REPORTING_SCRIPT, schema_of};
use haft_types::{Loading, Schema, ToolSpec};

use super::Input;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Language {
    #[default]
    Shell,
    PowerShell {
        /// Whether the host has it.
        is_there: bool,
    },
}

impl Language {
    /// What runs a command.
    pub(super) fn program(self) -> Program {
        match self {
            Self::Shell => Program::Script { text: REPORTING_SCRIPT.to_owned(), args: Vec::new() },
            Self::PowerShell { .. } => {
                Program::Argv(POWERSHELL.iter().map(|word| word.as_bytes().to_vec()).collect())
            }
        }
    }

    /// Its tool, from that of the shell.
    pub(super) fn spec(self, spec: ToolSpec) -> ToolSpec {
        match self {
            Self::Shell => spec,
            Self::PowerShell { is_there } => ToolSpec {
                name: "powershell".into(),
                label: "Run PowerShell".into(),
                snippet: spec.snippet.replace("a shell command", "a PowerShell command").into(),
                guidelines: Vec::new(),
                hint: "run PowerShell, pwsh, cmdlet, script".into(),
                description: spec
                    .description
                    .replace("in the shell", "in PowerShell (pwsh, without a profile)")
                    .replace(" only in a session", " for one call alone")
                    .into(),
                input_schema: Schema::later(|| {
                    let mut schema = (*schema_of::<Input>()).clone();
                    if let Some(all) = schema["properties"].as_object_mut() {
                        all.shift_remove("session");
                    }
                    schema
                }),
                loading: Loading::Deferred,
                off: spec.off || !is_there,
                ..spec
            },
        }
    }
}
