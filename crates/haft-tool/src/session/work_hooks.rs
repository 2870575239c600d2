//! Hooks of the person about what tools and commands do that is no call.

use futures::future::BoxFuture;

/// A task of the session's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFacts {
    /// Its number.
    pub id: String,
    /// Its subject.
    pub subject: String,
    /// Its description; empty for none.
    pub description: String,
}

/// What a prompt is expanded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpansionKind {
    /// A command file or a skill.
    #[default]
    Command,
    /// A prompt of an MCP server.
    McpPrompt,
}

/// A prompt that is about to take the place of what the person typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// What it comes from.
    pub kind: ExpansionKind,
    /// The command or skill, without its slash.
    pub name: String,
    /// What stands behind the name.
    pub arguments: String,
    /// Where the command comes from, such as `project`; empty where that is not known.
    pub source: String,
    /// What the person typed.
    pub prompt: String,
}

/// What hooks say of an expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpansionSaid {
    /// Why it is not expanded; none where it is.
    pub refused: Option<String>,
    /// More words for the model, to be sent behind it.
    pub context: Vec<String>,
}

/// Who began the loading of a skill or command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvokedBy {
    /// The person.
    User,
    /// The model.
    Model,
    /// Something else.
    #[default]
    Other,
}

/// A command line in the text of a skill or command that is about to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillCommand {
    /// As it would run, arguments filled in.
    pub command: String,
    /// Names the command, and no call.
    pub id: String,
    /// The skill or command whose text has it.
    pub name: String,
    /// Where that comes from, such as `project`; empty where that is not known.
    pub source: String,
    /// Who began it.
    pub invoked_by: InvokedBy,
}

/// Hooks about what tools and commands do: a service of the session, there where hooks are.
pub trait WorkHooks: Send + Sync {
    /// Called with a task that was made. Gives why it is to be taken back.
    fn task_created<'a>(&'a self, task: &'a TaskFacts) -> BoxFuture<'a, Option<String>>;

    /// Called with a task that is to be completed. Gives why it is not.
    fn task_completed<'a>(&'a self, task: &'a TaskFacts) -> BoxFuture<'a, Option<String>>;

    /// Called before a command or skill takes the place of what was typed.
    fn expands<'a>(&'a self, expansion: &'a Expansion) -> BoxFuture<'a, ExpansionSaid>;

    /// Called before a command line of a skill runs. Gives why it does not.
    fn skill_command<'a>(&'a self, command: &'a SkillCommand) -> BoxFuture<'a, Option<String>>;
}
