//! Claude Code's settings files: what of them haft takes, and what it leaves aside.
//!
//! **Invariant:** what is taken is checked like haft's own settings of the same layer; what could
//! hold something back and is not taken is told, and all else that does nothing is kept for whoever asks.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::{
    EVENTS, HookEvent, Layer, Presence, Sources, files,
    layers::{Merge, closest, short, unknown},
    lines::Lines,
    reserved::is_reserved,
};

/// Keys that concern looks, accounts and comfort: left alone without a word.
const LOOKS: &[&str] = &[
    "$schema",
    "attribution",
    "autoUpdatesChannel",
    "cleanupPeriodDays",
    "companyAnnouncements",
    "feedbackSurveyRate",
    "fileSuggestion",
    "forceLoginMethod",
    "forceLoginOrgUUID",
    "includeCoAuthoredBy",
    "keybindings",
    "language",
    "outputStyle",
    "prefersReducedMotion",
    "respectGitignore",
    "showTurnDuration",
    "spinnerTipsEnabled",
    "spinnerTipsOverride",
    "spinnerVerbs",
    "statusLine",
    "syntaxHighlightingDisabled",
    "terminalProgressBarEnabled",
    "theme",
    "tui",
    "verbose",
    "viewMode",
];

/// Keys that would hold something back, and that haft does not follow.
const HOLDING: &[&str] = &[
    "allowManagedHooksOnly",
    "allowManagedPermissionRulesOnly",
    "allowManagedMcpServersOnly",
    "allowedHttpHookUrls",
    "disableAutoMode",
    "disableBypassPermissionsMode",
    "httpHookAllowedEnvVars",
];

/// Keys of `sandbox`: those that hold something back, which haft does not follow, with what holds the same
/// back in haft; and those that only loosen, of which none is needed.
const SANDBOX: &[(&str, Option<&str>)] = &[
    (
        "enabled",
        Some("sandbox.always = true in ~/.haft/settings.toml holds all commands in haft's own"),
    ),
    ("failIfUnavailable", Some("sandbox.require = \"landlock\" in ~/.haft/settings.toml does it")),
    (
        "allowUnsandboxedCommands",
        Some("sandbox.unsandboxed = false in ~/.haft/settings.toml does it"),
    ),
    ("filesystem.denyRead", Some("a rule in permissions.deny does it, such as Read(~/.aws/**)")),
    (
        "filesystem.denyWrite",
        Some("a rule in permissions.deny does it, such as Edit(/migrations/**)"),
    ),
    ("filesystem.allowManagedReadPathsOnly", Some("haft has nothing for it")),
    (
        "network.allowedDomains",
        Some(
            "haft's own lets commands reach the hosts of sandbox.hosts in ~/.haft/settings.toml alone",
        ),
    ),
    ("network.deniedDomains", Some("haft has nothing for it")),
    ("network.allowManagedDomainsOnly", Some("haft has nothing for it")),
    ("autoAllowBashIfSandboxed", None),
    ("enableWeakerNestedSandbox", None),
    ("enableWeakerNetworkIsolation", None),
    ("excludedCommands", None),
    ("filesystem.allowRead", None),
    ("filesystem.allowWrite", None),
    ("ignoreViolations", None),
    ("network.allowAllUnixSockets", None),
    ("network.allowLocalBinding", None),
    ("network.allowUnixSockets", None),
    ("network.httpProxyPort", None),
    ("network.socksProxyPort", None),
];

/// Keys of `permissions` that haft takes.
const PERMISSIONS: [&str; 5] = ["allow", "ask", "deny", "additionalDirectories", "defaultMode"];

/// Whether Claude Code's settings count at all, and whether those of whoever runs the machine do: of
/// the latter the person decides nothing.
pub(crate) fn wanted(sources: &Sources) -> (bool, bool) {
    let own = sources.haft_home.as_ref().map(|home| home.join("settings.toml"));
    let said = |path: PathBuf| {
        let text = files::read(&path).ok()??;
        let value: Value = toml::from_str(&text).ok()?;
        value.pointer("/claude/settings")?.as_bool()
    };
    let managed = sources.managed.clone().and_then(said);
    (managed.or_else(|| own.and_then(said)).unwrap_or(true), managed.unwrap_or(true))
}

/// Takes what whoever runs the machine forbids out of their file; what cannot be read counts.
pub(crate) fn forbid(
    merge: &mut Merge,
    fields: &mut Map<String, Value>,
    place: &dyn Fn(&str) -> String,
) {
    let hooks = fields.remove("allowManagedHooksOnly");
    let inner = fields.get_mut("permissions").and_then(Value::as_object_mut);
    let inner = inner.and_then(|inner| inner.remove("disableBypassPermissionsMode"));
    let inner = inner.map(|value| ("permissions.", value));
    let outer = fields.remove("disableBypassPermissionsMode").map(|value| ("", value));
    for (start, value) in inner.into_iter().chain(outer) {
        let key = format!("{start}disableBypassPermissionsMode");
        if value != "disable" {
            let message = format!("{} does not fit, wanted: \"disable\"; it counts", short(&value));
            merge.problem(place(&key), &key, message, false);
        }
        merge.forbidden.bypass = Some(place(&key));
    }
    if let Some(value) = hooks.filter(|value| value != &Value::Bool(false)) {
        let key = "allowManagedHooksOnly";
        if !value.is_boolean() {
            let message =
                format!("{} does not fit, wanted: true or false; true counts", short(&value));
            merge.problem(place(key), key, message, false);
        }
        merge.forbidden.hooks = Some(place(key));
    }
}

/// What to do about one that cannot be used.
pub(crate) const fn way_out(layer: Layer) -> &'static str {
    match layer {
        Layer::Managed => "whoever runs this machine has to correct the file",
        _ => {
            "correct the file, or leave Claude Code's settings out with claude.settings = false in \
             settings.toml"
        }
    }
}

/// Takes one file.
pub(crate) fn text(merge: &mut Merge, layer: Layer, path: &Path, text: &str) -> Presence {
    let shown = path.display();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Presence::Read;
    }
    let end = way_out(layer);
    let value = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(value)) => value,
        Ok(other) => {
            let message = format!("it holds {}, wanted: an object; {end}", short(&other));
            merge.problem(shown.to_string(), "", message, true);
            return Presence::Broken;
        }
        Err(error) => {
            let place = format!("{shown}:{}", error.line());
            merge.problem(place, "", format!("{error}; {end}"), true);
            return Presence::Broken;
        }
    };
    let lines = Lines::of_json(text);
    if twice(merge, path, &lines) {
        return Presence::Broken;
    }
    // Where haft has another name for the key, its own stands for it.
    let place = |key: &str| {
        let theirs = match key.split_once('.') {
            Some(("permissions", rest)) => {
                let rest = rest.replacen("additional_directories", "additionalDirectories", 1);
                format!("permissions.{rest}")
            }
            _ if key == "mode" => "permissions.defaultMode".to_owned(),
            _ => key.to_owned(),
        };
        match lines.line(&theirs) {
            Some(line) => format!("{shown}:{line}"),
            None => shown.to_string(),
        }
    };
    Conversion { merge, layer, place: &place }.all(value);
    Presence::Read
}

/// Keys that parsers read as the last of them alone; true where something that holds back may be lost.
fn twice(merge: &mut Merge, path: &Path, lines: &Lines) -> bool {
    let mut lost = false;
    for (key, line) in &lines.twice {
        let first = key.split('.').next();
        let holds = matches!(first, Some("permissions" | "hooks" | "disableAllHooks"));
        lost |= holds;
        let end = if holds { "write it once" } else { "the last one counts" };
        let message = format!("this key stands a second time; {end}");
        merge.problem(format!("{}:{line}", path.display()), key, message, holds);
    }
    lost
}

struct Conversion<'a> {
    merge: &'a mut Merge,
    layer: Layer,
    place: &'a dyn Fn(&str) -> String,
}

impl Conversion<'_> {
    fn all(mut self, mut value: Map<String, Value>) {
        if self.layer == Layer::Managed {
            forbid(self.merge, &mut value, self.place);
        }
        let switched = value.get("disableAllHooks") == Some(&Value::Bool(true));
        let of_project = matches!(self.layer, Layer::Project | Layer::Local);
        if switched && of_project {
            let text = "a project may not switch hooks off; they count";
            self.told("disableAllHooks", text.to_owned());
        }
        if switched && !of_project {
            self.merge.no_hooks = Some(self.layer);
        }
        value.remove("disableAllHooks");
        let mut ours = Map::new();
        if let Some(permissions) = value.remove("permissions") {
            self.permissions(permissions, &mut ours);
        }
        let hooks = value.remove("hooks").filter(|hooks| !hooks.is_null());
        ours.extend(hooks.map(|hooks| ("hooks".to_owned(), hooks)));
        self.merge.layer(self.layer, &Value::Object(ours), self.place);
        if let Some(env) = value.remove("env") {
            self.env(&env);
        }
        self.rest(&value);
    }

    fn permissions(&mut self, permissions: Value, ours: &mut Map<String, Value>) {
        let Value::Object(mut fields) = permissions else {
            let text = format!("{} does not fit, wanted: an object", short(&permissions));
            let place = (self.place)("permissions");
            return self.merge.problem(place, "permissions", text, true);
        };
        let mut taken = Map::new();
        for list in ["allow", "ask", "deny"] {
            taken.extend(fields.remove(list).map(|value| (list.to_owned(), value)));
        }
        if let Some(folders) = fields.remove("additionalDirectories") {
            taken.insert("additional_directories".to_owned(), self.folders(folders));
        }
        ours.insert("permissions".to_owned(), Value::Object(taken));
        ours.extend(fields.remove("defaultMode").map(|mode| ("mode".to_owned(), mode)));
        let (holding, other): (Vec<String>, Vec<String>) =
            fields.keys().cloned().partition(|key| HOLDING.contains(&key.as_str()));
        for key in holding {
            self.told(&format!("permissions.{key}"), not_followed(&key));
        }
        // A misspelt list of rules may be one that denies.
        let known = PERMISSIONS.map(str::to_owned);
        for key in other {
            self.told(&format!("permissions.{key}"), unknown(&key, known.iter()));
        }
    }

    /// Folders of the workspace: from the project root or the home folder, as far as they are there.
    fn folders(&mut self, folders: Value) -> Value {
        let Value::Array(items) = &folders else { return folders };
        let mut found = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let Some(text) = item.as_str() else { return folders };
            let (home, project) = (self.merge.home.clone(), self.merge.project.clone());
            let path = match text.strip_prefix("~/").zip(home) {
                Some((rest, home)) => home.join(rest),
                None => project.unwrap_or_default().join(text),
            };
            if path.is_dir() {
                found.push(json!(path.to_string_lossy()));
            } else {
                let key = format!("permissions.additional_directories.{index}");
                self.told(&key, format!("{text:?} is no folder here; it is left out"));
            }
        }
        Value::Array(found)
    }

    /// Variables for children.
    fn env(&mut self, env: &Value) {
        let Value::Object(variables) = env else {
            return self.told("env", format!("{} does not fit, wanted: an object", short(env)));
        };
        for (name, value) in variables {
            let key = format!("env.{name}");
            let value = match value {
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => value.to_string(),
                other => {
                    self.told(&key, format!("{} does not fit, wanted: a text", short(other)));
                    continue;
                }
            };
            if is_reserved(name) && matches!(self.layer, Layer::Project | Layer::Local) {
                let text = "a project may not set this variable; set it in your own settings";
                self.told(&key, text.to_owned());
                continue;
            }
            let variables = &mut self.merge.loaded.variables;
            variables.retain(|(other, _)| other != name);
            variables.push((name.clone(), value));
        }
    }

    /// What haft has nothing for.
    fn rest(&mut self, value: &Map<String, Value>) {
        let keys = value.keys().filter(|key| !LOOKS.contains(&key.as_str()));
        let (holding, other): (Vec<&String>, Vec<&String>) =
            keys.partition(|key| HOLDING.contains(&key.as_str()));
        for key in holding {
            self.told(key, not_followed(key));
        }
        for key in other {
            if key == "sandbox" {
                self.sandbox(&value[key]);
            } else if let Some(message) = misplaced(key) {
                self.told(key, message);
            } else {
                let text = format!("{}: {key} does nothing here", (self.place)(key));
                self.merge.loaded.aside.push(text);
            }
        }
    }

    /// The sandbox of Claude Code: haft has its own, and settings of its own for that.
    fn sandbox(&mut self, sandbox: &Value) {
        let Value::Object(fields) = sandbox else {
            let text = format!("{} does not fit, wanted: an object", short(sandbox));
            return self.told("sandbox", text);
        };
        for (key, value) in fields {
            match value {
                Value::Object(inner) if matches!(&**key, "network" | "filesystem") => {
                    inner.iter().for_each(|(name, value)| {
                        self.of_sandbox(&format!("{key}.{name}"), value);
                    });
                }
                value => self.of_sandbox(key, value),
            }
        }
    }

    fn of_sandbox(&mut self, key: &str, value: &Value) {
        let full = format!("sandbox.{key}");
        let holds = match SANDBOX.iter().find(|(name, _)| *name == key) {
            // These hold nothing back so, and are as they are without them.
            Some(("allowUnsandboxedCommands", _)) if value == &Value::Bool(true) => None,
            Some((_, Some(_)))
                if value == &Value::Bool(false) && key != "allowUnsandboxedCommands" =>
            {
                None
            }
            Some((_, instead)) => *instead,
            None => Some("haft does not know it"),
        };
        if let Some(instead) = holds {
            return self.told(&full, format!("{NOT_FOLLOWED}; {instead}"));
        }
        let text = format!("{}: {full} does nothing here", (self.place)(&full));
        self.merge.loaded.aside.push(text);
    }

    fn told(&mut self, key: &str, message: String) {
        self.merge.problem((self.place)(key), key, message, false);
    }
}

/// Reports whether a key speaks of denials.
pub(crate) fn denies(key: &str) -> bool {
    let lower = key.to_lowercase();
    ["den", "disallow", "forbid"].iter().any(|start| lower.starts_with(start))
}

/// Reports whether a key of `permissions` is Claude Code's, and no list of rules.
pub(crate) fn is_other(key: &str) -> bool {
    HOLDING.contains(&key) || matches!(key, "additionalDirectories" | "defaultMode")
}

/// What to say of a key at the top that was likely to hold something back.
fn misplaced(key: &str) -> Option<String> {
    let rules = if denies(key) { Some("deny") } else { closest(key, &["allow", "ask"]) };
    let events = EVENTS.map(HookEvent::name);
    let home = match (rules, closest(key, &events)) {
        (Some(list), _) => ("permissions", list),
        (None, Some(event)) => ("hooks", event),
        (None, None) => {
            let home = closest(key, &["permissions", "hooks"])?;
            return Some(format!("there is no key {key:?}; did you mean {home:?}?"));
        }
    };
    Some(format!("this stands in {:?}, as {0}.{}", home.0, home.1))
}

/// What to say of a key that would hold something back.
fn not_followed(key: &str) -> String {
    match key {
        "allowManagedHooksOnly" | "disableBypassPermissionsMode" => {
            "it counts in the settings of whoever runs the machine alone".to_owned()
        }
        _ => NOT_FOLLOWED.to_owned(),
    }
}

const NOT_FOLLOWED: &str =
    "haft does not follow this setting of Claude Code: it holds nothing back here";
