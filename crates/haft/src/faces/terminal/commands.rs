//! Sent lines as commands, what becomes of them, and the commands of this front end.

use std::collections::BTreeSet;

use futures::FutureExt as _;
use haft_agent::{Command, CommandError, Done, JobsRequest};
use haft_session::SessionInfo;
use haft_tui::{
    app::{CommandRow, keymap},
    pager::Pager,
};
use haft_types::{AgentPath, Effort, Mode, Part, Queued, When};

use super::{
    Interface, Next,
    clipboard::{self, Copied},
    files, modes, notify, page, panels, style,
};
use crate::{
    app::{attachments::is_attached, constraints, git, skills::SkillStore, slash},
    faces::{
        doctor,
        session::session_line,
        view::{self, indent},
    },
};

/// The commands that this front end carries out.
pub(super) const OWN: &[&str] =
    &["clear", "resume", "copy", "transcript", "doctor", "keys", "redraw"];
/// Sessions that are listed.
const LISTED: usize = 20;

/// Something that was waited for.
pub(super) enum Answered {
    /// What became of a command.
    Command {
        /// Whether it was to begin a turn.
        begins: bool,
        /// Whether it asked why a question is asked.
        explains: bool,
        answer: Result<Done, CommandError>,
    },
    /// The transcript was read.
    Transcript(Result<Pager, String>),
    /// What was found out for the person.
    Said(String),
    /// A text was put on the clipboard, with what it was.
    Copied(String, Result<Copied, String>),
    /// The branch that is checked out.
    Branch(Option<String>),
    /// How commands are held, in words.
    Held(String),
    /// The files and folders of the workspace.
    Names(Vec<String>),
}

/// Rows for completion.
pub(super) fn rows(skills: &SkillStore) -> Vec<CommandRow> {
    let row = |spec: &haft_agent::CommandSpec| CommandRow {
        name: spec.name.to_owned(),
        arguments: spec.arguments.to_owned(),
        summary: spec.summary.to_owned(),
    };
    let started = |(name, arguments, summary): (String, String, String)| CommandRow {
        name: view::safe(&name),
        arguments: view::safe(&arguments),
        summary: view::safe(&summary),
    };
    slash::commands(OWN).map(row).chain(skills.rows().into_iter().map(started)).collect()
}

impl Interface {
    /// Carries a sent line out.
    pub(super) fn line(&mut self, text: &str, later: bool) {
        let text = text.trim();
        if !text.is_empty() {
            self.history.add(text);
        }
        self.carry_out(text, later);
    }

    /// The same for a line that the person did not type.
    pub(super) fn carry_out(&mut self, text: &str, later: bool) {
        if let Some(command) = text.strip_prefix('!').filter(|_| !text.contains('\n')) {
            self.send(Command::Run { line: command.trim().to_owned() });
            return;
        }
        let skills = self.core.base.skills.clone();
        match slash::read(text, OWN, Some(&skills)) {
            Ok(slash::Typed::Empty) => {}
            Ok(slash::Typed::Help) => self.finished.push_str(&help(&slash::skills_help(&skills))),
            Ok(slash::Typed::FrontEnd(name, rest)) => self.own(name, &rest),
            Ok(slash::Typed::Message(text)) => {
                let when = if later { When::FollowUp } else { When::Steer };
                self.say(&text, when);
            }
            Ok(slash::Typed::Command(Command::Jobs(JobsRequest { job: None, .. }))) => {
                let panel = panels::of_jobs(&self.core, None);
                if panel.rows.is_empty() {
                    self.tell("- there are no jobs");
                }
                self.app.show_panel(panel);
            }
            Ok(slash::Typed::Command(command)) => {
                self.ended |= command == Command::End;
                self.send(command);
            }
            Err(told) => self.finished.push_str(&self.view.broken(&told)),
        }
    }

    pub(super) fn say(&mut self, text: &str, when: When) {
        self.app.expect_turn(true);
        self.send(slash::message(text, when));
    }

    pub(super) fn send(&mut self, command: Command) {
        let begins = matches!(command, Command::Say { .. });
        let explains = matches!(command, Command::Explain { .. });
        // What a message offers goes with the next one, and where it is taken.
        if begins || matches!(command, Command::Permissions(_)) {
            self.app.set_offer(String::new());
        }
        self.spoke |= begins || matches!(command, Command::Run { .. });
        let Some(control) = &self.control else {
            self.unsent.push(command);
            return self.show_unsent();
        };
        let answer = control.send(command);
        let answered = answer.map(move |answer| Answered::Command { begins, explains, answer });
        self.sends.push(answered.boxed());
    }

    /// Carries out a command of this front end.
    fn own(&mut self, name: &str, rest: &str) {
        match name {
            "clear" => self.go_to(Next::New),
            "resume" if rest.is_empty() => self.list_sessions(),
            "resume" => self.resume(rest),
            "copy" => self.copy(rest),
            "transcript" => self.read_transcript(),
            "keys" => self.tell(&format!("\n{}", keys())),
            "doctor" => self.examine(),
            "redraw" => self.redraw(),
            _ => {}
        }
    }

    /// Ends this session for another one, where nothing is lost by that.
    fn go_to(&mut self, next: Next) {
        if self.app.is_busy()
            || self.app.question().is_some()
            || !self.sends.is_empty()
            || !self.unsent.is_empty()
        {
            self.tell("! haft is at work: stop it with esc first");
            return;
        }
        let jobs = self.core.jobs().all();
        let running = jobs.iter().filter(|job| job.end().is_none());
        let named: Vec<String> = running.map(|job| job.named()).collect();
        if !named.is_empty() && self.unconfirmed.as_ref() != Some(&next) {
            let named = view::safe(&named.join(", "));
            self.tell(&format!("! this stops what runs: {named}; say it once more to do so"));
            self.unconfirmed = Some(next);
            return;
        }
        self.next = Some(next);
        self.ended = true;
    }

    fn resume(&mut self, id: &str) {
        let found = self.core.base.store().map_err(|error| error.to_string());
        let found = found.and_then(|store| {
            crate::app::base::find(&store, id).map_err(|error| error.to_string())
        });
        match found {
            Ok(id) if id.as_str() == self.core.session_id() => self.tell("- it is this session"),
            Ok(id) => self.go_to(Next::Open(id.as_str().to_owned())),
            Err(error) => {
                let text = self.view.broken(&format!("! {error}"));
                self.finished.push_str(&text);
            }
        }
    }

    /// The other sessions of this folder, the newest first: their ids, each with what it was.
    fn other_sessions(&self) -> Result<Vec<(String, String)>, String> {
        let store = self.core.base.store().map_err(|error| error.to_string())?;
        let listing = store.list().map_err(|error| error.to_string())?;
        let cwd = &self.core.base.place.cwd;
        let here = listing.sessions.iter().filter(|info| info.cwd.as_ref() == Some(cwd));
        let others = here.filter(|info| info.id.as_str() != self.core.session_id());
        let row = |info: &SessionInfo| {
            let line = session_line(info);
            let id = info.id.short().to_owned();
            let about = line.strip_prefix(&*id).unwrap_or(&line).trim().to_owned();
            (id, about)
        };
        Ok(others.map(row).collect())
    }

    /// Lists the newest sessions of this folder.
    fn list_sessions(&mut self) {
        let others = match self.other_sessions() {
            Ok(others) => others,
            Err(error) => return self.tell(&format!("! {error}")),
        };
        let line = |(id, about): &(String, String)| format!("{id}  {about}");
        let lines: Vec<String> = others.iter().take(LISTED).map(line).collect();
        if lines.is_empty() {
            self.tell("- there is no other session of this folder");
        } else {
            self.tell(&format!("{}\n- /resume ID opens one", lines.join("\n")));
        }
    }

    /// Puts the last answer on the clipboard, or a code block of it.
    fn copy(&mut self, which: &str) {
        let answer = self.answer.trim().to_owned();
        let (what, text) = match which.parse::<usize>() {
            _ if answer.is_empty() => return self.tell("! there is no answer yet"),
            _ if which.is_empty() => ("the answer".to_owned(), Some(answer)),
            Ok(number) => (format!("code block {number}"), clipboard::code_block(&answer, number)),
            Err(_) => return self.tell("! /copy takes the number of a code block, from 1"),
        };
        let Some(text) = text else {
            return self.tell(&format!("! the last answer has no {what}"));
        };
        let copying = tokio::task::spawn_blocking(move || clipboard::copy(&text));
        let copied = copying.map(move |copied| {
            let copied = copied.unwrap_or_else(|error| Err(error.to_string()));
            Answered::Copied(what, copied)
        });
        self.looks.push(copied.boxed_local());
    }

    /// Has the machine and the settings checked.
    fn examine(&mut self) {
        let core = self.core.clone();
        self.looks
            .push(async move { Answered::Said(doctor::report(&core.base).await) }.boxed_local());
    }

    /// Has the whole session read, to be shown on the alternate screen.
    pub(super) fn read_transcript(&mut self) {
        if self.control.is_none() {
            // There is no log yet.
            self.reads_later = true;
            return;
        }
        let fold = self.view.last_fold();
        let (core, columns) = (self.core.clone(), self.screen.size().columns);
        let style = style(&core, columns);
        let reading = tokio::task::spawn_blocking(move || page::read(&core, style, fold));
        let read = reading
            .map(|read| Answered::Transcript(read.unwrap_or_else(|error| Err(error.to_string()))));
        self.looks.push(read.boxed_local());
    }

    /// Offers files and folders for a name, at once or when they are known.
    pub(super) fn complete_file(&mut self, asked: String) {
        let root = &self.core.base.place.cwd;
        if files::is_elsewhere(&asked) {
            let names = files::listed(root, &asked);
            return self.app.offer(&asked, names);
        }
        if let Some(names) = self.index.matching(&asked) {
            self.app.offer(&asked, names);
        }
        if self.index.begin(asked) {
            let root = std::path::PathBuf::from(&*root.text());
            let walking = tokio::task::spawn_blocking(move || files::walk(&root));
            let names = walking.map(|names| Answered::Names(names.unwrap_or_default()));
            self.looks.push(names.boxed_local());
        }
    }

    /// Offers values for the argument of a command.
    pub(super) fn offer_values(&mut self, command: &str) {
        let plain = |name: &str| (name.to_owned(), String::new());
        let values = match command {
            "mode" => Mode::ALL.into_iter().map(|mode| plain(mode.name())).collect(),
            "effort" => Effort::ALL.into_iter().map(|effort| plain(effort.name())).collect(),
            "model" => {
                let settings = &self.core.base.loaded.settings;
                let mut names: BTreeSet<&str> =
                    settings.models.keys().map(|name| &**name).collect();
                names.extend(settings.model.name.as_deref());
                names.into_iter().map(plain).collect()
            }
            "diff" => vec![plain("session")],
            "permissions" => vec![plain("take"), plain("drop")],
            "jobs" => self.job_values(),
            "resume" => self.other_sessions().unwrap_or_default(),
            _ => Vec::new(),
        };
        self.app.set_values(command, values);
    }

    /// The jobs with their titles, and how each that runs is stopped.
    fn job_values(&self) -> Vec<(String, String)> {
        let jobs = self.core.jobs().all();
        let rows = jobs.iter().flat_map(|job| {
            let title = view::safe(job.title());
            let stop = (format!("{} stop", job.id()), format!("stop {title}"));
            let stop = job.end().is_none().then_some(stop);
            std::iter::once((job.id().to_owned(), title)).chain(stop)
        });
        rows.collect()
    }

    /// Tells a person who looks elsewhere that something is there.
    pub(super) fn notify(&self, text: &'static str) {
        modes::notify(text);
        let command = self.core.base.loaded.settings.terminal.notify_command.clone();
        if !command.is_empty() {
            let told =
                async move { Answered::Said(notify::run(command, text).await.unwrap_or_default()) };
            self.looks.push(told.boxed_local());
        }
    }

    /// Has it found out which branch is checked out.
    pub(super) fn look_at_branch(&self) {
        let core = self.core.clone();
        let branch = async move { Answered::Branch(git::branch(&core.base).await) };
        self.looks.push(branch.boxed_local());
    }

    /// Has it found out how commands are held in a mode. What a person allows runs with all rights
    /// unless the settings say otherwise, and then nothing needs to be tried out.
    pub(super) fn look_at_sandbox(&mut self, mode: Mode) {
        let core = self.core.clone();
        let sandbox = &core.base.loaded.settings.sandbox;
        if mode != Mode::Auto && !sandbox.always && sandbox.require.is_none() {
            "no sandbox".clone_into(&mut self.facts.sandbox);
            return self.app.set_facts(self.facts.clone());
        }
        self.looks
            .push(async move { Answered::Held(doctor::held(&core.base).await) }.boxed_local());
    }

    /// Something that was waited for is there.
    pub(super) fn done(&mut self, answered: Answered) -> crate::cli::exit::Ending {
        match answered {
            Answered::Command { begins, explains, answer } => {
                self.answered(begins, explains, answer);
            }
            Answered::Transcript(Ok(pager)) => return self.open_page(pager),
            Answered::Copied(what, Ok(Copied::ByTool(tool))) => {
                self.tell(&format!("- copied {what} ({tool})"));
            }
            Answered::Copied(what, Ok(Copied::ByTerminal(sequence))) => {
                modes::emit(&sequence);
                self.tell(&format!("- gave {what} to the terminal's clipboard"));
            }
            Answered::Branch(branch) => {
                self.facts.branch = view::safe(&branch.unwrap_or_default());
                self.app.set_facts(self.facts.clone());
            }
            Answered::Held(text) => {
                self.facts.sandbox = text;
                self.app.set_facts(self.facts.clone());
            }
            Answered::Said(text) => {
                let text = self.view.broken(&text);
                self.finished.push_str(&text);
            }
            Answered::Names(names) => {
                self.index.set(names);
                // Not the whole of a completion: that could begin the next walk, and so on.
                if let Some(asked) = self.index.take_asked()
                    && let Some(names) = self.index.matching(&asked)
                {
                    self.app.offer(&asked, names);
                }
            }
            Answered::Transcript(Err(error)) | Answered::Copied(_, Err(error)) => {
                let text = self.view.broken(&format!("! {error}"));
                self.finished.push_str(&text);
            }
        }
        Ok(())
    }

    fn answered(&mut self, begins: bool, explains: bool, answer: Result<Done, CommandError>) {
        match answer {
            Ok(Done::Nothing) => {}
            Ok(Done::Detail { detail }) => {
                let text = self.view.shown(&detail);
                self.finished.push_str(&text);
            }
            Ok(Done::Text { text }) => {
                let text = self.view.broken(&text);
                self.finished.push_str(&text);
                if explains {
                    self.put_again();
                }
            }
            Ok(Done::Offered { text, offers }) => {
                let text = self.view.broken(&text);
                self.finished.push_str(&text);
                self.app.set_offer(constraints::offered(&offers));
            }
            Ok(Done::GivenBack { parts }) => self.give_back(&parts),
            Err(error) => {
                if begins {
                    self.app.expect_turn(false);
                }
                let text = self.view.broken(&format!("! {error}"));
                self.finished.push_str(&text);
            }
        }
    }

    /// Puts messages that were not sent before what is typed.
    pub(super) fn give_back(&mut self, parts: &[Part]) {
        let typed = parts.iter().filter(|part| !is_attached(part));
        let texts = typed.filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.rev().for_each(|text| self.app.give_back(text));
    }

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.send(Command::Mode { mode: Some(mode) });
    }

    /// Shows the messages that wait for the session to be there.
    fn show_unsent(&mut self) {
        let says = self.unsent.iter().filter_map(|command| match command {
            Command::Say { parts, when, .. } => Some((parts.clone(), *when)),
            _ => None,
        });
        let queued = (1..).zip(says).map(|(id, (parts, when))| Queued { id, when, parts });
        self.app.set_queue(queued.collect());
    }

    pub(super) fn withdraw(&mut self) {
        if self.control.is_none() {
            let says = |command: &mut Command| matches!(command, Command::Say { .. });
            for command in self.unsent.extract_if(.., says).collect::<Vec<_>>().iter().rev() {
                if let Command::Say { parts, .. } = command {
                    self.give_back(parts);
                }
            }
            self.app.expect_turn(false);
            return self.show_unsent();
        }
        self.send(Command::Withdraw { agent: AgentPath::default(), id: None });
    }
}

fn keys() -> String {
    let keys = keymap::KEYS.iter().filter(|binding| !binding.about.is_empty());
    let rows: Vec<String> =
        keys.map(|binding| format!("{:15} {}", binding.key, binding.about)).collect();
    indent(&rows.join("\n"), "  ")
}

/// The commands and the keys, for people.
fn help(skills: &str) -> String {
    let more = [
        ("!COMMAND", "run a command yourself; the model is told what it gave"),
        ("@PATH", "in a message: what the file, image or folder holds goes along"),
    ];
    let skills = if skills.is_empty() { String::new() } else { format!("\n{skills}") };
    format!("\nCommands\n{}{skills}\nKeys\n{}\n", slash::help(OWN, &more), keys())
}

#[cfg(test)]
mod tests {
    use haft_agent::RunBy;

    use super::*;

    #[test]
    fn help_has_each_command_and_key() {
        let help = help("");
        for spec in haft_agent::COMMANDS {
            assert_eq!(spec.run_by == RunBy::FrontEnd, OWN.contains(&spec.name), "{}", spec.name);
            assert!(help.contains(&format!("  /{}", spec.name)), "{}", spec.name);
        }
        for binding in keymap::KEYS.iter().filter(|binding| !binding.about.is_empty()) {
            assert!(help.contains(binding.about), "{}", binding.key);
        }
    }
}
