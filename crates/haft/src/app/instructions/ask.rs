//! Files outside of the project that its instructions import: a person is asked about each once.
//!
//! **Invariant:** only the answer of a person is saved. Where nobody can answer, the file stays out
//! and that is told.

use std::{collections::BTreeSet, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use haft_agent::{
    BatchCall, Bus, CompactTrigger, HookMoment, Instruction, Outside, PromptSaid, TalkHooks, let_in,
};
use haft_config::Trust;
use haft_policy::Policy;
use haft_tool::{Conversation, Dispatcher, Session};
use haft_types::{
    AgentPath, Answerer, Body, Choice, HostPath, Level, Question, QuestionKind, Reply, TurnId,
};
use tokio_util::sync::CancellationToken;

use super::{ProjectInstructions, touch};
use crate::{app::session::NO_TURN, plain::safe};

/// The option that lets a file in, and the one that does not.
const YES: &str = "yes";
const NO: &str = "no";

/// Who asks: the agent, its turn, and what ends the question.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    pub session: &'a Session,
    pub conversation: &'a Conversation,
    pub agent: &'a AgentPath,
    pub turn: TurnId,
    pub stop: &'a CancellationToken,
}

impl Asker<'_> {
    fn notice(&self, level: Level, text: String) {
        // Nothing depends on it.
        drop(self.session.events.emit(self.agent, self.turn, Body::Notice { level, text }));
    }
}

/// What is told of a file that nobody was asked about.
pub fn unasked(outside: &Outside) -> String {
    format!(
        "{} is left out of the instructions: it lies outside of the project, {} imports it, and \
         nobody was asked; haft asks once in a talk",
        outside.path, outside.of
    )
}

impl ProjectInstructions {
    /// Asks about files outside of the project; gives those that were let in, with what they import
    /// within it, and what `keep` makes of each. It keeps them before anything else is told.
    pub(super) async fn ask<T>(
        &self,
        asker: Asker<'_>,
        policy: &Policy,
        outside: Vec<Outside>,
        keep: impl Fn(&[Instruction]) -> Vec<T>,
    ) -> (Vec<Instruction>, Vec<T>) {
        let (mut files, mut kept) = (Vec::new(), Vec::new());
        let mut met = BTreeSet::new();
        for one in outside {
            let key = one.at.text().into_owned();
            let known = self.found.lock().await.answers.get(&key).copied();
            if known == Some(false) || !met.insert(key.clone()) {
                continue;
            }
            if known.is_none() && !self.may_read(asker, &one, key).await {
                continue;
            }
            let mut found = self.found.lock().await;
            let judge = self.judge(policy, &found.answers);
            let allowed = |path: &HostPath| judge.allows(path);
            let barred = |path: &HostPath| judge.policy.bars_import(path);
            let answer = |path: &HostPath| judge.answer(path);
            let places = self.places(&allowed, &barred, &answer);
            let (new, _) = let_in(places, &one, self.left(&found, asker.conversation)).await;
            for text in new.left_out {
                if found.told.insert(text.clone()) {
                    asker.notice(Level::Warning, text);
                }
            }
            kept.extend(keep(&new.files));
            files.extend(new.files);
        }
        (files, kept)
    }

    /// Asks about one file, and keeps the answer of a person.
    async fn may_read(&self, asker: Asker<'_>, outside: &Outside, key: String) -> bool {
        let questions = &asker.session.questions;
        if !questions.is_somebody() {
            let text = unasked(outside);
            if self.found.lock().await.told.insert(text.clone()) {
                asker.notice(Level::Warning, text);
            }
            return false;
        }
        let question = question(outside, asker.agent, questions.next_id());
        let (reply, by) =
            questions.ask_of_turn(question, asker.agent, asker.turn, asker.stop).await;
        if !matches!(by, Answerer::Person(_)) {
            return false;
        }
        let counts = reply.option == YES;
        self.found.lock().await.answers.insert(key.clone(), counts);
        let saved = Trust::load(&self.state_folder)
            .and_then(|mut trust| trust.set_import(&self.folder, &key, counts));
        if let Err(error) = saved {
            asker.notice(Level::Warning, format!("the answer counts for this run alone: {error}"));
        }
        counts
    }
}

fn question(outside: &Outside, agent: &AgentPath, id: haft_types::QuestionId) -> Question {
    let (path, of) = (outside.path.text(), &outside.of);
    let leads = if outside.at == outside.path {
        String::new()
    } else {
        format!(" It leads to {}.", safe(&outside.at.text()))
    };
    let choice = |id: &str, key: char, label: &str| Choice {
        id: id.to_owned(),
        key,
        label: label.to_owned(),
    };
    Question {
        id,
        call: None,
        agent: agent.clone(),
        kind: QuestionKind::Choice,
        text: format!(
            "{} imports {}, which lies outside of the project.{leads} Shall the model get it as \
             instructions?",
            safe(of),
            safe(&path)
        ),
        command: None,
        preview: None,
        options: vec![
            choice(YES, 'y', "yes, in this project from now on"),
            choice(NO, 'n', "no, never in this project"),
        ],
        form: None,
        if_nobody: Reply::pick(NO),
    }
}

/// Asks what is to be asked with the first message, before hooks see that.
pub struct Talk {
    /// The instructions.
    pub instructions: Arc<ProjectInstructions>,
    /// The main agent's calls.
    pub dispatcher: Arc<Dispatcher>,
    /// The events of the session.
    pub bus: Bus,
    /// Hooks of the person.
    pub hooks: Option<Arc<dyn TalkHooks>>,
}

impl Talk {
    /// The words for the model about files that a person let in.
    async fn let_in(&self) -> Vec<String> {
        let ProjectInstructions { found, .. } = &*self.instructions;
        let outside = std::mem::take(&mut found.lock().await.start.outside);
        if outside.is_empty() {
            return Vec::new();
        }
        let (session, agent) = (&*self.dispatcher.session, AgentPath::default());
        let conversation = &*self.dispatcher.conversation;
        let stop = CancellationToken::new();
        let asker = Asker { session, conversation, agent: &agent, turn: NO_TURN, stop: &stop };
        let policy = self.dispatcher.permissions().policy.clone();
        let one = |file: &Instruction| {
            let (key, value) = touch::kept(file, None);
            let state = Body::State { key: key.clone().into(), value: value.clone() };
            self.bus.emit_or_show(&agent, NO_TURN, state);
            conversation.note(&key, value);
            touch::words(file)
        };
        let keep = |files: &[Instruction]| files.iter().map(one).collect();
        let (files, words) = self.instructions.ask(asker, &policy, outside, keep).await;
        self.instructions.hooked(&files).await;
        words
    }
}

impl TalkHooks for Talk {
    fn prompt(self: Arc<Self>, text: String) -> BoxFuture<'static, PromptSaid> {
        async move {
            let words = self.let_in().await;
            let said = match &self.hooks {
                Some(hooks) => hooks.clone().prompt(text).await,
                None => PromptSaid::default(),
            };
            PromptSaid { words: [words, said.words].concat(), ..said }
        }
        .boxed()
    }

    fn stop(self: Arc<Self>, said: String, again: bool) -> BoxFuture<'static, Option<String>> {
        match &self.hooks {
            Some(hooks) => hooks.clone().stop(said, again),
            None => std::future::ready(None).boxed(),
        }
    }

    fn sees(&self, moment: HookMoment) -> bool {
        self.hooks.as_ref().is_some_and(|hooks| hooks.sees(moment))
    }

    fn batch(self: Arc<Self>, calls: Vec<BatchCall>) -> BoxFuture<'static, PromptSaid> {
        match &self.hooks {
            Some(hooks) => hooks.clone().batch(calls),
            None => std::future::ready(PromptSaid::default()).boxed(),
        }
    }

    fn failed(
        self: Arc<Self>,
        error: &'static str,
        details: String,
        said: String,
    ) -> BoxFuture<'static, ()> {
        match &self.hooks {
            Some(hooks) => hooks.clone().failed(error, details, said),
            None => std::future::ready(()).boxed(),
        }
    }

    fn before_compaction(
        self: Arc<Self>,
        trigger: CompactTrigger,
        instructions: Option<String>,
    ) -> BoxFuture<'static, Option<String>> {
        match &self.hooks {
            Some(hooks) => hooks.clone().before_compaction(trigger, instructions),
            None => std::future::ready(None).boxed(),
        }
    }

    fn after_compaction(self: Arc<Self>, trigger: CompactTrigger, summary: String) {
        if let Some(hooks) = &self.hooks {
            hooks.clone().after_compaction(trigger, summary);
        }
    }

    fn ended(&self) -> Option<String> {
        self.hooks.as_ref().and_then(|hooks| hooks.ended())
    }
}
