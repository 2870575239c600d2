//! haft as a program that others can build, with tools of their own.
//!
//! ```no_run
//! # struct MyTool;
//! # impl haft_tool::Tool for MyTool {
//! #     type Input = serde_json::Value;
//! #     fn spec(&self, _: &haft_types::Env) -> haft_types::ToolSpec { Default::default() }
//! #     async fn run(&self, _: serde_json::Value, _: &haft_tool::Cx)
//! #         -> Result<haft_types::Outcome, haft_types::ToolError> { Ok(Default::default()) }
//! # }
//! fn main() -> std::process::ExitCode {
//!     haft::Runner::new().tool(MyTool).run()
//! }
//! ```

use std::{
    ffi::OsString,
    io::IsTerminal as _,
    process::ExitCode,
    sync::{Arc, Weak},
    time::Duration,
};

use clap::{Args as _, FromArgMatches as _, Parser as _};
use haft_agent::Control;
use haft_tool::Tool;

use crate::{
    app::{
        agent, base,
        session::{Core, Extensions},
    },
    cli::{
        Cli, Command, Start, Tool as Called, arguments,
        exit::{self, Ending, Failure},
    },
    faces::{
        completions, demo, doctor, line, mcp, models, print, session, skill, terminal, tool, trust,
        undo, welcome, why,
    },
};

/// Builds and runs the program.
#[derive(Clone, Default)]
pub struct Runner {
    extensions: Extensions,
}

impl Runner {
    /// haft without additions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. A built-in tool of the same name takes precedence.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        self.extensions.tools.push(Arc::new(tool));
        self
    }

    /// Adds a service that each session gets, and that tools ask for by [`Cx::service`]. `make`
    /// gets the session as a weak reference, so that no service keeps the session alive that holds
    /// it.
    ///
    /// [`Cx::service`]: haft_tool::Cx::service
    #[must_use]
    pub fn service<T: ?Sized + Send + Sync + 'static>(
        mut self,
        make: impl Fn(Weak<Core>) -> Arc<T> + Send + Sync + 'static,
    ) -> Self {
        self.extensions.service(make);
        self
    }

    /// Adds a front end of this name, beside the one that the flags choose. `start` gets its control
    /// once the main agent is there, on the runtime of the program, and does not block.
    #[must_use]
    pub fn front_end(
        mut self,
        name: &str,
        start: impl Fn(Control) + Send + Sync + 'static,
    ) -> Self {
        self.extensions.front_ends.push((name.to_owned(), Arc::new(start)));
        self
    }

    /// Runs the program with the arguments of this process.
    pub fn run(self) -> ExitCode {
        let arguments: Vec<OsString> = std::env::args_os().collect();
        // Before anything is built: scripts ask for the version often.
        if let [_, only] = &arguments[..]
            && (only == "--version" || only == "-V")
        {
            return exit::code(&exit::println(concat!("haft ", env!("CARGO_PKG_VERSION"))));
        }
        if let Some(code) = crate::started_anew() {
            return code;
        }
        let arguments = arguments::joined(arguments);
        match only_tool(&arguments).map_or_else(|| Cli::try_parse_from(&arguments), Ok) {
            Ok(cli) => {
                let code = exit::code(&self.with(cli));
                haft_host::end_supervisor();
                code
            }
            Err(error) if error.use_stderr() => {
                // What was typed is quoted in it. Nobody is told when even standard error is closed.
                let error = in_signs(&arguments).unwrap_or(error);
                let error = arguments::suggested(error, &arguments);
                exit::hide(&base::known_secrets());
                let (text, is_seen) = (error.render(), std::io::stderr().is_terminal());
                let text = if is_seen { text.ansi().to_string() } else { text.to_string() };
                exit::say_as_it_is(text.trim_end());
                if arguments::want_json(&arguments) {
                    // A pipe that is closed has nobody to tell.
                    drop(print::misused(&error.render().to_string()));
                }
                ExitCode::from(2)
            }
            Err(help) if std::io::stdout().is_terminal() => {
                // Nothing that was typed is in it.
                exit::code(&exit::print_behind(&help.render().ansi().to_string(), ""))
            }
            Err(help) => exit::code(&exit::print(&help.render().to_string())),
        }
    }

    fn with(self, cli: Cli) -> Ending {
        match cli.command {
            Some(Command::Session(arguments)) => session::run(&arguments),
            Some(Command::Models(arguments)) => models::run(&arguments),
            Some(Command::Skill(arguments)) => skill::run(&arguments),
            Some(Command::Trust(arguments)) => trust::run(&arguments),
            Some(Command::Completions(arguments)) => completions::run(&arguments),
            command => {
                // One call and its end need no threads of their own, which take time to start.
                let mut runtime = match command {
                    Some(Command::Tool(_)) => tokio::runtime::Builder::new_current_thread(),
                    _ => tokio::runtime::Builder::new_multi_thread(),
                };
                let runtime = runtime
                    .worker_threads(4)
                    .enable_all()
                    .build()
                    .map_err(|error| Failure::Failed(format!("no threads: {error}")))?;
                let ending = runtime.block_on(async move {
                    agent::outlive_limits()?;
                    match command {
                        None => Box::pin(self.start(cli.start)).await,
                        Some(Command::Demo(arguments)) => demo::run(&arguments).await,
                        Some(Command::Tool(arguments)) => {
                            tool::run(&arguments, &self.extensions).await
                        }
                        Some(Command::Why(arguments)) => {
                            why::run(&arguments, &self.extensions).await
                        }
                        Some(Command::Mcp(arguments)) => {
                            mcp::run(&arguments, &self.extensions).await
                        }
                        Some(Command::Undo(arguments)) => undo::undo(&arguments).await,
                        Some(Command::Redo(arguments)) => undo::redo(&arguments).await,
                        Some(Command::Doctor(arguments)) => doctor::run(&arguments).await,
                        Some(Command::Debug(arguments)) => {
                            doctor::debug(&arguments, &self.extensions).await
                        }
                        Some(
                            Command::Session(_)
                            | Command::Models(_)
                            | Command::Skill(_)
                            | Command::Trust(_)
                            | Command::Completions(_),
                        ) => Ok(()),
                    }
                });
                // What still runs is dropped, and children die with it; a thread that waits for
                // standard input must not hold the end up.
                runtime.shutdown_timeout(Duration::from_millis(300));
                ending
            }
        }
    }

    async fn start(&self, mut start: Start) -> Ending {
        if start.print.is_some() {
            return Box::pin(print::run(&start, &self.extensions)).await;
        }
        if let Some(text) = start.prompt.as_deref().and_then(arguments::no_command) {
            return Err(Failure::Usage(text));
        }
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let mut typed = None;
        if is_terminal {
            let begun = Box::pin(welcome::begin(&mut start)).await?;
            typed = begun.typed;
            start.line |= begun.is_read_out;
        }
        if !start.line && terminal::is_there() {
            return Box::pin(terminal::run(&start, &self.extensions, typed)).await;
        }
        if start.line || is_terminal {
            return Box::pin(line::run(&start, &self.extensions, typed)).await;
        }
        Err(Failure::Usage(
            "there is no terminal here: use `haft -p PROMPT` for one run, or `haft --line` for \
             plain lines"
                .into(),
        ))
    }
}

/// The arguments of `haft tool`, where they are right: scripts call it often, and the other commands
/// take longer to build than all of it to read. Help and errors speak of them, so they do not come
/// from here.
fn only_tool(arguments: &[OsString]) -> Option<Cli> {
    let [_, name, given @ ..] = arguments else { return None };
    let command = Called::augment_args(clap::Command::new("tool").no_binary_name(true));
    let matches = (name == "tool").then(|| command.try_get_matches_from(given))?.ok()?;
    let command = Some(Command::Tool(Called::from_arg_matches(&matches).ok()?));
    Some(Cli { command, start: Start::default() })
}

/// What is wrong with arguments of which nothing acts on a terminal any more.
fn in_signs(arguments: &[OsString]) -> Option<clap::Error> {
    let shown = |argument: &OsString| haft_render::clean(&argument.to_string_lossy()).into_owned();
    Cli::try_parse_from(arguments.iter().map(shown)).err()
}
