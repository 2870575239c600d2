//! Hooks as settings have them, in Claude Code's form, read one by one.
//!
//! **Invariant:** each part that cannot be read is told with its place, and takes the safe side: the
//! hook runs more often rather than less, and then may only hold back.
//!
//! **Does not know:** what a matcher or a rule matches, and how a hook is run.

use std::{collections::BTreeMap, time::Duration};

use schemars::{Schema, json_schema};
use serde_json::{Map, Value};

use crate::{
    Layer, Loaded, Problem, claude,
    layers::{closest, short, unknown},
};

/// When a hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A call was read, and nothing of it is judged.
    PreToolUse,
    /// A tool did its work.
    PostToolUse,
    /// A tool failed.
    PostToolUseFailure,
    /// A person would be asked about a call.
    PermissionRequest,
    /// The person said something.
    UserPromptSubmit,
    /// The model is done.
    Stop,
    /// A talk begins.
    SessionStart,
    /// A talk ends.
    SessionEnd,
    /// Somebody is asked something.
    Notification,
    /// A command or skill takes the place of what was typed.
    UserPromptExpansion,
    /// A command line of a skill is about to run.
    PreSkillShellCommand,
    /// All calls of an answer have ended.
    PostToolBatch,
    /// The server of the model gave no answer, and the turn ends by that.
    StopFailure,
    /// A call was denied, and neither a person nor a hook did that.
    PermissionDenied,
    /// A task was made.
    TaskCreated,
    /// A task is to be completed.
    TaskCompleted,
    /// The older part of a talk is to be summed up.
    PreCompact,
    /// It was.
    PostCompact,
    /// Another model is to answer.
    PreModelSwitch,
    /// Another model answers from now on.
    PostModelSwitch,
    /// A file of instructions was read.
    InstructionsLoaded,
}

/// All events that haft has a cause for.
pub const EVENTS: [HookEvent; 21] = [
    HookEvent::PreToolUse,
    HookEvent::PostToolUse,
    HookEvent::PostToolUseFailure,
    HookEvent::PermissionRequest,
    HookEvent::UserPromptSubmit,
    HookEvent::Stop,
    HookEvent::SessionStart,
    HookEvent::SessionEnd,
    HookEvent::Notification,
    HookEvent::UserPromptExpansion,
    HookEvent::PreSkillShellCommand,
    HookEvent::PostToolBatch,
    HookEvent::StopFailure,
    HookEvent::PermissionDenied,
    HookEvent::TaskCreated,
    HookEvent::TaskCompleted,
    HookEvent::PreCompact,
    HookEvent::PostCompact,
    HookEvent::PreModelSwitch,
    HookEvent::PostModelSwitch,
    HookEvent::InstructionsLoaded,
];

/// Other events of Claude Code: their hooks wait until haft has what causes them.
const WAITING: &[&str] = &[
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "Elicitation",
    "ElicitationResult",
    "FileChanged",
    "MessageDisplay",
    "Setup",
    "SubagentStart",
    "SubagentStop",
    "TeammateIdle",
    "WorktreeCreate",
    "WorktreeRemove",
];

impl HookEvent {
    /// Its name, as settings and answers write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::Stop => "Stop",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Notification => "Notification",
            Self::UserPromptExpansion => "UserPromptExpansion",
            Self::PreSkillShellCommand => "PreSkillShellCommand",
            Self::PostToolBatch => "PostToolBatch",
            Self::StopFailure => "StopFailure",
            Self::PermissionDenied => "PermissionDenied",
            Self::TaskCreated => "TaskCreated",
            Self::TaskCompleted => "TaskCompleted",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::PreModelSwitch => "PreModelSwitch",
            Self::PostModelSwitch => "PostModelSwitch",
            Self::InstructionsLoaded => "InstructionsLoaded",
        }
    }

    /// Whether a hook of it can hold something back that nobody else would.
    const fn guards(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PermissionRequest
                | Self::UserPromptSubmit
                | Self::UserPromptExpansion
                | Self::PreSkillShellCommand
                | Self::PreModelSwitch
        )
    }

    /// Whether it is about a call of a tool.
    pub const fn is_of_tools(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PermissionRequest
                | Self::PermissionDenied
        )
    }
}

/// What a hook runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HookRun {
    /// A script for the shell, or a program where there are arguments.
    Command {
        /// The script or the program.
        command: String,
        /// Arguments of the program; none for a script.
        args: Option<Vec<String>>,
    },
    /// An address that is posted to.
    Http {
        /// The address.
        url: String,
        /// Headers, whose values may name variables.
        headers: BTreeMap<String, String>,
        /// The variables that they may name.
        variables: Vec<String>,
    },
    /// Nothing, and why.
    Nothing(String),
}

/// One hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEntry {
    /// Where it was written.
    pub layer: Layer,
    /// Whether that is a file of Claude Code.
    pub foreign: bool,
    /// The file with its line.
    pub place: String,
    /// When it is called.
    pub event: HookEvent,
    /// What the event has to be about; everything where it is empty.
    pub matcher: String,
    /// The rule that a call has to touch.
    pub condition: Option<String>,
    /// What is run.
    pub run: HookRun,
    /// How long it may take, where that was said.
    pub timeout: Option<Duration>,
    /// Whether its failure holds back what it was asked about.
    pub fail_closed: bool,
    /// Whether it may only hold back, as a part of it could not be read.
    pub limited: bool,
}

/// The schema of `hooks`.
pub(crate) fn schema() -> Schema {
    let text = || serde_json::json!({"type": "string"});
    json_schema!({
        "type": "object",
        "additionalProperties": {"type": "array", "items": {"type": "object", "properties": {
            "matcher": text(),
            "hooks": {"type": "array", "items": {"type": "object", "properties": {
                "type": {"type": "string", "enum": ["command", "http"]},
                "command": text(),
                "args": {"type": "array", "items": text()},
                "url": text(),
                "headers": {"type": "object", "additionalProperties": text()},
                "allowedEnvVars": {"type": "array", "items": text()},
                "timeout": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_SECONDS},
                "if": text(),
                "fail_closed": {"type": "boolean"},
            }}},
        }}},
    })
}

/// Longest that a hook may take, in seconds.
const MOST_SECONDS: f64 = 86_400.0;

/// Keys of a group, and of a hook. Those behind `statusMessage` concern looks or other agents' ways
/// of starting hooks, and are left alone.
const GROUP: &[&str] = &["matcher", "hooks", "description"];
const HOOK: &[&str] = &[
    "type",
    "command",
    "args",
    "url",
    "headers",
    "allowedEnvVars",
    "timeout",
    "if",
    "fail_closed",
    "failClosed",
    "onFailure",
    "statusMessage",
    "description",
    "name",
    "async",
    "asyncRewake",
    "once",
    "shell",
    "prompt",
    "model",
    "server",
    "tool",
    "input",
];

/// Types of hooks that Claude Code has and haft does not.
const THEIRS: &[&str] = &["agent", "mcp_tool", "prompt"];

/// Takes the hooks of one layer.
pub(crate) struct Reader<'a> {
    pub layer: Layer,
    /// Whether it is a file of Claude Code.
    pub foreign: bool,
    pub place: &'a dyn Fn(&str) -> String,
    pub loaded: &'a mut Loaded,
}

impl Reader<'_> {
    pub fn all(mut self, hooks: &Value) {
        let Value::Object(events) = hooks else {
            return self.wrong("hooks", hooks, "a table of events", true);
        };
        for (name, groups) in events {
            let key = format!("hooks.{name}");
            let event = EVENTS.into_iter().find(|event| event.name() == name);
            let Some(event) = event else {
                self.absent(&key, name, groups);
                continue;
            };
            let Value::Array(groups) = groups else {
                self.wrong(&key, groups, "a list of {matcher, hooks}", true);
                continue;
            };
            for (index, group) in groups.iter().enumerate() {
                self.group(event, &format!("{key}.{index}"), group);
            }
        }
    }

    /// An event that haft has no cause for.
    fn absent(&mut self, key: &str, name: &str, groups: &Value) {
        if WAITING.contains(&name) {
            let place = (self.place)(key);
            let text = format!("{place}: hooks of {name} wait: haft has no such event yet");
            return self.loaded.aside.push(text);
        }
        let known: Vec<String> = EVENTS.iter().map(|event| event.name().to_owned()).collect();
        let text = unknown(name, known.iter()).replacen("there is no key", "there is no event", 1);
        // One that is misspelt was to do something; others may be new ones of Claude Code.
        let is_meant = closest(name, &EVENTS.map(HookEvent::name)).is_some();
        let is_empty = groups.as_array().is_some_and(Vec::is_empty);
        self.told(key, text, is_meant && !is_empty);
    }

    fn group(&mut self, event: HookEvent, key: &str, group: &Value) {
        let Value::Object(fields) = group else {
            return self.wrong(key, group, "a table with matcher and hooks", true);
        };
        self.unknown_keys(key, fields, GROUP);
        let mut limited = false;
        let matcher = match fields.get("matcher") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                limited = true;
                self.wrong(
                    &format!("{key}.matcher"),
                    other,
                    "a text; it matches everything",
                    false,
                );
                String::new()
            }
        };
        match fields.get("hooks") {
            Some(Value::Array(hooks)) => {
                for (index, hook) in hooks.iter().enumerate() {
                    let key = format!("{key}.hooks.{index}");
                    let read = self.hook(event, &key, hook);
                    self.loaded.hooks.extend(read.map(|hook| HookEntry {
                        matcher: matcher.clone(),
                        limited: hook.limited || limited,
                        ..hook
                    }));
                }
            }
            Some(other) => self.wrong(&format!("{key}.hooks"), other, "a list of hooks", true),
            None => self.told(key, "it names no hooks: give a list `hooks`".to_owned(), true),
        }
    }

    fn hook(&mut self, event: HookEvent, key: &str, hook: &Value) -> Option<HookEntry> {
        let Value::Object(fields) = hook else {
            self.wrong(key, hook, "a table with type and command or url", true);
            return None;
        };
        self.unknown_keys(key, fields, HOOK);
        for (name, wanted) in [("async", "waited for"), ("asyncRewake", "waited for")] {
            if fields.get(name) == Some(&Value::Bool(true)) {
                let text = format!("{}: {name}: such a hook is {wanted} here", (self.place)(key));
                self.loaded.aside.push(text);
            }
        }
        let mut limited = false;
        let condition = match fields.get("if") {
            None | Some(Value::Null) => None,
            Some(Value::String(rule)) => Some(rule.clone()),
            Some(other) => {
                limited = true;
                self.wrong(&format!("{key}.if"), other, "a rule; it runs for every call", false);
                None
            }
        };
        let timeout = self.timeout(key, fields);
        let mut fail_closed = self.fail_closed(key, fields);
        let run = self.run(key, fields).unwrap_or_else(|why| {
            // Claude Code runs those: what they guard there goes on here no more freely.
            let kind = fields.get("type").and_then(Value::as_str);
            let is_theirs = self.foreign && kind.is_some_and(|kind| THEIRS.contains(&kind));
            let is_said = ["fail_closed", "failClosed", "onFailure"]
                .iter()
                .any(|key| fields.contains_key(*key));
            let guards = is_theirs && event.guards() && self.layer != Layer::Project;
            let refuses = guards && !is_said;
            let end = if refuses {
                "; what it is asked about is refused, unless it has \"failClosed\": false"
            } else {
                ""
            };
            fail_closed |= refuses;
            self.told(key, format!("this hook runs nothing: {why}{end}"), !is_theirs);
            HookRun::Nothing(why)
        });
        let (layer, place) = (self.layer, (self.place)(key));
        let matcher = String::new();
        Some(HookEntry {
            layer,
            foreign: self.foreign,
            place,
            event,
            matcher,
            condition,
            run,
            timeout,
            fail_closed,
            limited,
        })
    }

    fn timeout(&mut self, key: &str, fields: &Map<String, Value>) -> Option<Duration> {
        let value = fields.get("timeout").filter(|value| !value.is_null())?;
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= MOST_SECONDS);
        if seconds.is_none() {
            let wanted = "seconds above 0 and up to 86400; the default counts";
            self.wrong(&format!("{key}.timeout"), value, wanted, false);
        }
        seconds.map(Duration::from_secs_f64)
    }

    /// A wish to hold back that cannot be read counts as one.
    fn fail_closed(&mut self, key: &str, fields: &Map<String, Value>) -> bool {
        let mut closed = false;
        for name in ["fail_closed", "failClosed"] {
            match fields.get(name) {
                None | Some(Value::Null | Value::Bool(false)) => {}
                Some(Value::Bool(true)) => closed = true,
                Some(other) => {
                    closed = true;
                    self.wrong(
                        &format!("{key}.{name}"),
                        other,
                        "true or false; true counts",
                        false,
                    );
                }
            }
        }
        match fields.get("onFailure") {
            None | Some(Value::Null) => {}
            Some(Value::String(word)) if word == "continue" => {}
            Some(Value::String(word)) if word == "block" => closed = true,
            Some(other) => {
                closed = true;
                let wanted = "\"block\" or \"continue\"; \"block\" counts";
                self.wrong(&format!("{key}.onFailure"), other, wanted, false);
            }
        }
        closed
    }

    /// What is run, or why nothing is.
    fn run(&mut self, key: &str, fields: &Map<String, Value>) -> Result<HookRun, String> {
        let text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(other) => Err(format!("{name} is {}, wanted: a text", short(other))),
            None => Err(format!("{name} is missing")),
        };
        let kind = match (fields.get("type"), fields.contains_key("url")) {
            (None | Some(Value::Null), true) => "http".to_owned(),
            (None | Some(Value::Null), false) => "command".to_owned(),
            _ => text("type")?,
        };
        match kind.as_str() {
            "command" => {
                let shell = fields.get("shell").and_then(Value::as_str);
                if let Some(shell) = shell.filter(|shell| *shell != "bash") {
                    return Err(format!("its shell is {shell:?}, and haft runs hooks in yours"));
                }
                let args = match fields.get("args") {
                    None | Some(Value::Null) => None,
                    Some(list) => Some(texts(list).ok_or("args is no list of texts")?),
                };
                Ok(HookRun::Command { command: text("command")?, args })
            }
            "http" => {
                let headers = match fields.get("headers") {
                    None | Some(Value::Null) => BTreeMap::new(),
                    Some(table) => pairs(table).ok_or("headers is no table of texts")?,
                };
                let variables = fields.get("allowedEnvVars").filter(|list| !list.is_null());
                let variables = variables.map_or(Some(Vec::new()), texts);
                let mut variables = variables.ok_or("allowedEnvVars is no list of texts")?;
                if matches!(self.layer, Layer::Project | Layer::Local) && !variables.is_empty() {
                    let text = "a project's hooks send no variables: this counts for nothing";
                    self.told(&format!("{key}.allowedEnvVars"), text.to_owned(), false);
                    variables.clear();
                }
                let url = text("url")?;
                let starts = |scheme: &str| {
                    url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
                };
                if !starts("http://") && !starts("https://") {
                    return Err("its url begins with neither http:// nor https://".to_owned());
                }
                Ok(HookRun::Http { url, headers, variables })
            }
            other => Err(format!("haft has no hooks of type {other:?}: use command or http")),
        }
    }

    fn unknown_keys(&mut self, key: &str, fields: &Map<String, Value>, known: &[&str]) {
        let all: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            self.told(&format!("{key}.{name}"), unknown(name, all.iter()), false);
        }
    }

    fn wrong(&mut self, key: &str, value: &Value, wanted: &str, structural: bool) {
        let text = format!("{} does not fit, wanted: {wanted}", short(value));
        self.told(key, text, structural);
    }

    /// Where a hook is lost, haft does not start, except with those of a project.
    fn told(&mut self, key: &str, message: String, lost: bool) {
        let fatal = lost && self.layer != Layer::Project;
        let end = match (fatal && self.foreign, self.layer) {
            (false, _) => String::new(),
            (true, layer) => format!("; {}", claude::way_out(layer)),
        };
        let (place, key, message) = ((self.place)(key), key.to_owned(), message + &end);
        self.loaded.problems.push(Problem { place, key, message, fatal });
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

fn pairs(value: &Value) -> Option<BTreeMap<String, String>> {
    let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    value.as_object()?.iter().map(text).collect()
}
