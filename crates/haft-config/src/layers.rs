//! Settings from all places, laid over each other as JSON values.
//!
//! **Invariant:** the order is defaults, user, project, local, managed, environment, command line;
//! Claude Code's file of a layer stands right below haft's own. Each value is checked alone: one that
//! is wrong is named with its place and does not count, and the rest does. Lists of rules, hooks and
//! the table of models add up; everything else is replaced.

use std::{
    collections::BTreeMap,
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use haft_types::{Misfit, Mode};
use schemars::generate::SchemaSettings;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value};

use crate::{
    Environment, HookEntry, RuleCase, Settings, claude,
    entries::{self, Entries, Places},
    files, hooks,
    lines::{Lines, Starts},
};

/// Where a value came from, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Built in.
    Default,
    /// `settings.toml` in haft's home.
    User,
    /// `.haft/settings.toml` of the project.
    Project,
    /// `.haft/settings.local.toml` of the project, and what haft's home has for this project.
    Local,
    /// The file of whoever runs the machine.
    Managed,
    /// An environment variable.
    Environment,
    /// An option of the command line.
    CommandLine,
    /// Rules that a call is tried with in place of those of the settings.
    Given,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::User => "user settings",
            Self::Project => "project settings",
            Self::Local => "local settings",
            Self::Managed => "managed settings",
            Self::Environment => "environment",
            Self::CommandLine => "command line",
            Self::Given => "given rules",
        })
    }
}

/// Where settings are to be looked for.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// haft's home; none leaves the user's layer out.
    pub haft_home: Option<PathBuf>,
    /// The project root; none leaves its two layers out.
    pub project: Option<PathBuf>,
    /// True when the project's settings may count.
    pub trusted: bool,
    /// The file of whoever runs the machine, where there is such a thing.
    pub managed: Option<PathBuf>,
    /// Claude Code's file of whoever runs the machine, where there is such a thing.
    pub managed_claude: Option<PathBuf>,
    /// The environment.
    pub environment: Environment,
    /// What the command line sets, in the shape of the settings; null for nothing.
    pub command_line: Value,
}

/// What became of a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It is not there.
    Missing,
    /// It was read.
    Read,
    /// It is there, and was not opened because its folder is not trusted.
    Untrusted,
    /// It is there, and cannot be used; a problem says why.
    Broken,
}

/// One place where settings were looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileState {
    /// Its layer.
    pub layer: Layer,
    /// The file.
    pub path: PathBuf,
    /// What became of it.
    pub presence: Presence,
}

/// Something wrong with a value, or with a whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where it is: a file with its line, a variable or an option.
    pub place: String,
    /// The key, such as `tools.concurrency`; empty for a whole file.
    pub key: String,
    /// What is wrong, with the offending value, and what to do.
    pub message: String,
    /// True when going on without it could do harm: haft should not start.
    pub fatal: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.key.as_str() {
            "" => write!(f, "{}: {}", self.place, self.message),
            key => write!(f, "{}: {key}: {}", self.place, self.message),
        }
    }
}

/// One rule with the layer and the list that it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// Where it was written.
    pub layer: Layer,
    /// The list: `allow`, `ask` or `deny`.
    pub list: &'static str,
    /// As it was written.
    pub text: String,
    /// Where it is: a file with its line, a variable or an option.
    pub place: String,
    /// Whether it stands in a file of Claude Code.
    pub foreign: bool,
}

/// Settings with all that is known about how they came to be.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// What counts.
    pub settings: Settings,
    /// The layer of every value that is not the default, by its dotted key.
    pub origins: BTreeMap<String, Layer>,
    /// Rules of all layers in their order.
    pub rules: Vec<RuleText>,
    /// What the rules are tried with, each with its layer and place.
    pub tests: Vec<(Layer, String, RuleCase)>,
    /// Hooks of all layers in their order.
    pub hooks: Vec<HookEntry>,
    /// Variables for children, by Claude Code's settings; of one name the last counts.
    pub variables: Vec<(String, String)>,
    /// What was read and does nothing here, for whoever asks what works.
    pub aside: Vec<String>,
    /// Where the entries of other lists stand.
    pub(crate) places: Places,
    /// The files that were looked for.
    pub files: Vec<FileState>,
    /// What was wrong.
    pub problems: Vec<Problem>,
}

impl Loaded {
    /// The layer that a value came from.
    pub fn origin(&self, key: &str) -> Layer {
        self.origins.get(key).copied().unwrap_or(Layer::Default)
    }

    /// Where an entry of a list stands: a file with its line, a variable or an option.
    pub fn place_of(&self, key: &str, entry: &str) -> Option<&str> {
        let found = self.places.get(key)?.iter().find(|(text, _)| text == entry);
        found.map(|(_, place)| place.as_str())
    }

    /// Problems that haft should not start with.
    pub fn fatal(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.fatal)
    }
}

/// The JSON Schema of all settings, without references.
pub fn schema() -> Value {
    SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Settings>()
        .to_value()
}

/// Settings of the person alone; a name that ends with a dot stands for all below it.
pub(crate) const OWN: &[&str] = &[
    "terminal.",
    "claude.",
    "config.",
    "http.",
    "model.retry_seconds",
    "context.",
    "run.max_cost",
    "providers.",
    "undo.",
    "output.",
    "sandbox.",
    "shell.changes.",
    "shell.let_through",
    "secrets.not",
    "permissions.restricted",
    "web.",
];

/// Whether a setting, or a whole table of them, is the person's alone.
pub(crate) fn is_own(key: &str) -> bool {
    OWN.iter().any(|own| key.starts_with(own) || own.strip_suffix('.') == Some(key))
}

/// What a project must not decide for the person: not even once its folder is trusted.
fn is_reserved(key: &str, value: &Value) -> bool {
    let bypass = value.as_str().is_some_and(|v| v == "bypass" || v == "bypassPermissions");
    is_own(key) || (key == "mode" && bypass) || (key == "models" && changes_requests(value))
}

/// Whether what is said of models changes what is sent or spent.
fn changes_requests(models: &Value) -> bool {
    let mut models = models.as_object().into_iter().flatten();
    models.any(|(_, model)| {
        ["price", "extra", "output"].iter().any(|field| model.get(field).is_some())
    })
}

/// Reads all layers.
pub fn load(sources: &Sources) -> Loaded {
    let mut merge = Merge { project: sources.project.clone(), ..Merge::default() };
    let (claude, claude_managed) = claude::wanted(sources);
    merge.home.clone_from(&sources.environment.home);
    let home = sources.environment.home.as_ref().filter(|_| claude);
    if let Some(home) = home {
        merge.claude(Layer::User, &home.join(".claude/settings.json"), true);
    }
    if let Some(home) = &sources.haft_home {
        merge.file(Layer::User, &home.join("settings.toml"), true);
    }
    if let Some(project) = &sources.project {
        let theirs = project.join(".claude");
        // A talk in the home folder itself: the person's own file is no project's.
        let own = home.is_some_and(|home| home == project);
        let (ours, trusted) = (project.join(".haft"), sources.trusted);
        if claude && !own {
            merge.claude(Layer::Project, &theirs.join("settings.json"), trusted);
        }
        // In the home folder haft's own folder is the person's, too.
        let real = |folder: &Path| std::fs::canonicalize(folder).ok();
        let is_home = sources
            .haft_home
            .as_deref()
            .and_then(real)
            .is_some_and(|home| real(&ours).is_some_and(|ours| ours == home));
        if !is_home {
            merge.file(Layer::Project, &ours.join("settings.toml"), trusted);
        }
        if claude {
            merge.claude(Layer::Local, &theirs.join("settings.local.json"), trusted);
        }
        merge.file(Layer::Local, &ours.join(files::LOCAL_SETTINGS), trusted);
        // What the person keeps at home is none of the project's.
        let own = sources.haft_home.as_ref().map(|home| files::own_settings(home, project));
        if let Some(own) = own.filter(|own| own.symlink_metadata().is_ok()) {
            merge.file(Layer::Local, &own, true);
        }
    }
    if let Some(managed) = sources.managed_claude.as_ref().filter(|_| claude_managed) {
        merge.claude(Layer::Managed, managed, true);
    }
    if let Some(managed) = &sources.managed {
        merge.file(Layer::Managed, managed, true);
    }
    let environment = sources.environment.layer();
    merge.layer(Layer::Environment, &environment, &|key| Environment::variable(key).to_owned());
    merge.flags(&sources.command_line);
    merge.done()
}

/// What only whoever runs the machine can forbid, each with the place where that stands.
#[derive(Default)]
pub(crate) struct Forbidden {
    /// Mode bypass.
    pub bypass: Option<String>,
    /// Hooks of all others.
    pub hooks: Option<String>,
}

#[derive(Default)]
pub(crate) struct Merge {
    /// Made once something is to be checked: most runs have no settings at all.
    schema: Option<Arc<Value>>,
    pub(crate) loaded: Loaded,
    merged: Map<String, Value>,
    /// Whether what is taken stands in a file of Claude Code.
    foreign: bool,
    /// The home folder, for `~` in those.
    pub(crate) home: Option<PathBuf>,
    /// The project root, where their relative folders start.
    pub(crate) project: Option<PathBuf>,
    /// The mode that the person's own settings choose.
    chosen: Option<Mode>,
    /// What the file of whoever runs the machine forbids.
    pub(crate) forbidden: Forbidden,
    /// The layer whose file of Claude Code switched the hooks of all of them off.
    pub(crate) no_hooks: Option<Layer>,
}

impl Merge {
    fn file(&mut self, layer: Layer, path: &Path, trusted: bool) {
        self.read(layer, path, trusted, Self::text);
    }

    fn claude(&mut self, layer: Layer, path: &Path, trusted: bool) {
        self.foreign = true;
        self.read(layer, path, trusted, claude::text);
        self.foreign = false;
    }

    fn read(
        &mut self,
        layer: Layer,
        path: &Path,
        trusted: bool,
        take: fn(&mut Self, Layer, &Path, &str) -> Presence,
    ) {
        let mut presence = Presence::Missing;
        if !trusted {
            if path.symlink_metadata().is_ok() {
                presence = Presence::Untrusted;
            }
            self.loaded.files.push(FileState { layer, path: path.to_owned(), presence });
            return;
        }
        match files::read(path) {
            Ok(None) => {}
            Ok(Some(text)) => {
                presence = take(self, layer, path, &text);
            }
            Err(error) => {
                presence = Presence::Broken;
                let place = path.display().to_string();
                let message = error.to_string();
                let message =
                    message.strip_prefix(&format!("{place}: ")).unwrap_or(&message).to_owned();
                self.problem(place, "", message, true);
            }
        }
        self.loaded.files.push(FileState { layer, path: path.to_owned(), presence });
    }

    fn text(&mut self, layer: Layer, path: &Path, text: &str) -> Presence {
        let shown = path.display();
        match toml::from_str::<Value>(text) {
            Ok(mut value) => {
                let lines = Lines::of_toml(text);
                let place = |key: &str| match lines.line(key) {
                    Some(line) => format!("{shown}:{line}"),
                    None => shown.to_string(),
                };
                if let Some(fields) = value.as_object_mut().filter(|_| layer == Layer::Managed) {
                    claude::forbid(self, fields, &place);
                }
                self.layer(layer, &value, &place);
                Presence::Read
            }
            Err(error) => {
                let line = error.span().map(|span| Starts::of(text).line(span.start));
                let place = line.map_or_else(|| shown.to_string(), |l| format!("{shown}:{l}"));
                let message = format!("{}; correct the file", error.message().trim());
                self.problem(place, "", message, true);
                Presence::Broken
            }
        }
    }

    pub(crate) fn layer(&mut self, layer: Layer, value: &Value, place: &dyn Fn(&str) -> String) {
        let entries = value.as_object().filter(|entries| !entries.is_empty());
        let Some(entries) = entries else { return };
        let schema = self.schema.get_or_insert_with(|| Arc::new(schema())).clone();
        for (key, value) in entries {
            self.entry(layer, &schema, key, value, place);
        }
    }

    /// What the command line sets: its flags name no other keys and have no numbers, so that the
    /// schema, which takes long to make, is not asked.
    fn flags(&mut self, flags: &Value) {
        let mut leaf = |key: &str, value: &Value| {
            let place = |_: &str| "command line".to_owned();
            self.leaf(Layer::CommandLine, &Value::Null, key, value, &place);
        };
        for (key, value) in flags.as_object().into_iter().flatten() {
            match value {
                Value::Object(inner) => {
                    inner.iter().for_each(|(name, value)| leaf(&format!("{key}.{name}"), value));
                }
                value if key == "model" => leaf("model.name", value),
                value => leaf(key, value),
            }
        }
    }

    fn entry(
        &mut self,
        layer: Layer,
        schema: &Value,
        key: &str,
        value: &Value,
        place: &dyn Fn(&str) -> String,
    ) {
        let (name, parent) = key.rsplit_once('.').map_or((key, ""), |(p, n)| (n, p));
        let Some(known) = schema.get("properties").and_then(Value::as_object) else { return };
        let Some(inner) = known.get(name) else {
            let message = unknown(name, known.keys());
            // A misspelt list of rules may be one that denies.
            self.problem(place(key), key, message, parent == "permissions" || name == "permission");
            return;
        };
        match (value, inner.get("properties")) {
            // A text is the name.
            (value, Some(_)) if key == "model" && !value.is_object() => {
                self.entry(layer, inner, "model.name", value, &|_| place("model"));
            }
            (Value::Object(entries), Some(_)) => {
                for (name, value) in entries {
                    self.entry(layer, inner, &format!("{key}.{name}"), value, place);
                }
            }
            _ => self.leaf(layer, inner, key, value, place),
        }
    }

    pub(crate) fn leaf(
        &mut self,
        layer: Layer,
        schema: &Value,
        key: &str,
        value: &Value,
        place: &dyn Fn(&str) -> String,
    ) {
        if matches!(layer, Layer::Project | Layer::Local) && is_reserved(key, value) {
            let message = format!(
                "a project may not set this to {}; set it in the user's settings",
                short(value)
            );
            self.problem(place(key), key, message, false);
            return;
        }
        if key == "mode" && self.raises(layer, value) {
            let chosen = self.chosen.map_or("", Mode::name);
            let text = format!(
                "a project may not set this to {}, where the user's settings chose {chosen:?}: it \
                 would ask less; use --mode for one run",
                short(value)
            );
            self.problem(place(key), key, text, false);
            return;
        }
        if key == "hooks" {
            let read =
                hooks::Reader { layer, foreign: self.foreign, place, loaded: &mut self.loaded };
            return read.all(value);
        }
        let mut names: Vec<&str> = key.split('.').collect();
        let wrong = match unfit(&names, value) {
            Some(misfit) => Some((misfit, culprit(&mut names, value))),
            None => out_of_range(schema, value, &mut names),
        };
        if let Some((wrong, value)) = wrong {
            let shown = short(value);
            let message = match wrong {
                Misfit { got: Some(_), wanted } => {
                    format!("{shown} does not fit, wanted: {wanted}")
                }
                Misfit { wanted, .. } if wanted.starts_with(&shown) => wanted,
                Misfit { wanted, .. } => format!("{shown} does not fit: {wanted}"),
            };
            let key = names.join(".");
            self.problem(place(&key), &key, message, true);
            return;
        }
        self.rules(layer, key, value, place);
        let value = &self.entries(key, value, place);
        self.loaded.origins.insert(key.to_owned(), layer);
        put(&mut self.merged, key, value);
    }

    /// Whether a project wants more to go on without a question than the person chose.
    fn raises(&mut self, layer: Layer, value: &Value) -> bool {
        let Ok(mode) = Mode::deserialize(value) else { return false };
        match layer {
            Layer::User => self.chosen = Some(mode),
            Layer::Project | Layer::Local => {
                return self.chosen.is_some_and(|chosen| freedom(mode) > freedom(chosen));
            }
            _ => {}
        }
        false
    }

    /// A list without the entries that mean nothing, which are told; any other value as it is.
    fn entries(&mut self, key: &str, value: &Value, place: &dyn Fn(&str) -> String) -> Value {
        let Some(Entries { good, wrong }) = entries::read(key, value, place) else {
            return value.clone();
        };
        for (place, message) in wrong {
            self.problem(place, key, message, false);
        }
        let left = good.iter().map(|(text, _)| Value::String(text.clone())).collect();
        self.loaded.places.insert(key.to_owned(), good);
        left
    }

    /// Takes note of where rules, and what they are tried with, come from.
    fn rules(&mut self, layer: Layer, key: &str, value: &Value, place: &dyn Fn(&str) -> String) {
        let items = || value.as_array().into_iter().flatten().enumerate();
        let at = |index: usize| place(&format!("{key}.{index}"));
        for list in ["allow", "ask", "deny"] {
            if key.strip_prefix("permissions.") == Some(list) {
                let texts = items().filter_map(|(index, text)| Some((index, text.as_str()?)));
                self.loaded.rules.extend(texts.map(|(index, text)| RuleText {
                    layer,
                    list,
                    text: text.to_owned(),
                    place: at(index),
                    foreign: self.foreign,
                }));
            }
        }
        if key == "permissions.tests" {
            let cases = items().filter_map(|(index, case)| {
                Some((layer, at(index), RuleCase::deserialize(case).ok()?))
            });
            self.loaded.tests.extend(cases);
        }
    }

    pub(crate) fn problem(&mut self, place: String, key: &str, message: String, fatal: bool) {
        let key = key.to_owned();
        self.loaded.problems.push(Problem { place, key, message, fatal });
    }

    /// Takes mode bypass away where it is forbidden: what asks then is the default.
    fn without_bypass(&mut self) {
        let Some(place) = self.forbidden.bypass.take() else { return };
        let mode = self.merged.get("mode").and_then(|mode| Mode::deserialize(mode).ok());
        if mode != Some(Mode::Bypass) {
            return;
        }
        self.merged.remove("mode");
        let from = self.loaded.origins.remove("mode").unwrap_or(Layer::Default);
        let typed = from == Layer::CommandLine;
        let end = if typed { "use another one" } else { "mode ask counts" };
        let message = format!(
            "mode bypass of the {from} is forbidden by whoever runs this machine \
             (disableBypassPermissionsMode); {end}"
        );
        self.problem(place, "mode", message, typed);
    }

    pub(crate) fn done(mut self) -> Loaded {
        if let Some(by) = self.no_hooks {
            // Whoever runs the machine is not switched off by the person.
            let stays = |hook: &HookEntry| {
                !hook.foreign || (hook.layer == Layer::Managed && by != Layer::Managed)
            };
            self.loaded.hooks.retain(stays);
            let text = "disableAllHooks leaves the hooks of Claude Code's settings out";
            self.loaded.aside.push(text.to_owned());
        }
        if let Some(place) = self.forbidden.hooks.take() {
            let others = |hook: &&HookEntry| hook.layer != Layer::Managed;
            let count = self.loaded.hooks.iter().filter(others).count();
            self.loaded.hooks.retain(|hook| !others(&hook));
            if count > 0 {
                let text =
                    format!("{place}: allowManagedHooksOnly leaves {count} hooks of others out");
                self.loaded.aside.push(text);
            }
        }
        self.without_bypass();
        // Every leaf was taken alone before, so the whole fits as well; were it not so, the
        // defaults would count and the problem say why.
        match Settings::deserialize(Value::Object(self.merged)) {
            Ok(settings) => self.loaded.settings = settings,
            Err(error) => self.loaded.problems.push(Problem {
                place: "settings".to_owned(),
                key: String::new(),
                message: Misfit::of(&error).to_string(),
                fatal: true,
            }),
        }
        self.loaded
    }
}

/// Lays a value at a dotted key; lists of permissions and the models grow, all else is replaced.
fn put(map: &mut Map<String, Value>, key: &str, value: &Value) {
    let (first, rest) = key.split_once('.').map_or((key, None), |(a, b)| (a, Some(b)));
    match rest {
        Some(rest) => {
            let inner = map.entry(first.to_owned()).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
        None => match (map.get_mut(first), value) {
            // What is known of one model says nothing about the others.
            (Some(Value::Object(known)), Value::Object(more)) if first == "models" => {
                for (name, model) in more {
                    match (known.get_mut(name), model) {
                        (Some(Value::Object(fields)), Value::Object(more)) => {
                            fields.extend(more.clone());
                        }
                        _ => {
                            known.insert(name.clone(), model.clone());
                        }
                    }
                }
            }
            (Some(Value::Object(known)), Value::Object(more)) if first == "providers" => {
                known.extend(more.clone());
            }
            (Some(Value::Array(known)), Value::Array(more))
                if matches!(
                    first,
                    "allow" | "ask" | "deny" | "additional_directories" | "tests"
                ) =>
            {
                known.extend(more.iter().cloned());
            }
            _ => {
                map.insert(first.to_owned(), value.clone());
            }
        },
    }
}

/// How much goes on in a mode without a question; where as much does, a refusal and a question are alike.
const fn freedom(mode: Mode) -> u8 {
    match mode {
        Mode::Plan => 0,
        Mode::Ask | Mode::DontAsk => 1,
        Mode::AcceptEdits => 2,
        Mode::Auto => 3,
        Mode::Bypass => 4,
    }
}

/// The first number in a value that is out of its range; the names that lead to it are added.
fn out_of_range<'v>(
    schema: &Value,
    value: &'v Value,
    names: &mut Vec<&'v str>,
) -> Option<(Misfit, &'v Value)> {
    // What is optional may be null in JSON.
    let kinds = schema.get("anyOf").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for kind in kinds {
        if let Some(wrong) = out_of_range(kind, value, names) {
            return Some(wrong);
        }
    }
    if let Value::Object(fields) = value {
        for (name, inner) in fields {
            let known = schema.get("properties").and_then(|known| known.get(name));
            let Some(known) = known.or_else(|| schema.get("additionalProperties")) else {
                continue;
            };
            names.push(name);
            if let Some(wrong) = out_of_range(known, inner, names) {
                return Some(wrong);
            }
            names.pop();
        }
        return None;
    }
    let number = value.as_f64()?;
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let wanted = match (limit("minimum"), limit("maximum")) {
        (Some(least), _) if number < least => format!("it must be at least {least}"),
        (_, Some(most)) if number > most => format!("it must be at most {most}"),
        _ => return None,
    };
    Some((Misfit { got: None, wanted }, value))
}

/// What to say of a key that is none of those known, with the one that may be meant.
pub fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let short: String = name.chars().take(80).collect();
    match closest(name, &known) {
        Some(closest) => format!("there is no key {short:?}; did you mean {closest:?}?"),
        None => format!("there is no key {short:?}; known here: {}", known.join(", ")),
    }
}

/// The known name that this one may be a misspelling of, in whatever case.
pub fn closest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > 80 {
        return None;
    }
    let lower = name.to_lowercase();
    let far = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    // A third of the letters may differ: more is another word.
    let near = |other: &&str| far(other) <= (lower.chars().count().min(other.len()) / 3).max(1);
    known.iter().copied().filter(near).min_by_key(|other| far(other))
}

/// At most 80 characters of a value.
pub(crate) fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Why a value alone is no setting of this name; none where it is one.
fn unfit(names: &[&str], value: &Value) -> Option<Misfit> {
    let alone = names.iter().rev().fold(value.clone(), |value, name| {
        Value::Object(Map::from_iter([((*name).to_owned(), value)]))
    });
    Settings::deserialize(alone).err().map(|error| Misfit::of(&error))
}

/// The innermost value that does not fit; its names are added.
fn culprit<'v>(names: &mut Vec<&'v str>, value: &'v Value) -> &'v Value {
    let Value::Object(entries) = value else { return value };
    for (name, inner) in entries {
        names.push(name);
        if unfit(names, inner).is_some() {
            return culprit(names, inner);
        }
        names.pop();
    }
    value
}
