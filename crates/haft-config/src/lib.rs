//! What haft is told from outside: settings in layers, the environment, and trusted folders.
//!
//! **Invariant:** every value knows the layer that it came from; nothing that is wrong is passed
//! over in silence; a project's settings are not even read before its folder is trusted.
//!
//! **Does not know:** what settings do. The binary hands them to whom they concern.

mod claude;
mod entries;
mod environment;
mod files;
mod hooks;
mod layers;
mod lines;
mod model_may;
mod model_names;
#[cfg(test)]
mod reference;
mod reserved;
mod rule_file;
mod settings;
mod trust;
mod web_settings;

pub use crate::{
    environment::{Environment, Secret, VARIABLES, Variable, expanded, is_of_a_server, variables},
    files::{
        ConfigError, LOCAL_SETTINGS, MAX_FILE, add_rule, keep_from_git, make_folder, own_settings,
        save, set_model, set_value,
    },
    hooks::{EVENTS, HookEntry, HookEvent, HookRun},
    layers::{
        FileState, Layer, Loaded, Presence, Problem, RuleText, Sources, closest, load, schema,
        unknown,
    },
    model_may::{check_setting, never, value_of, wrong_names},
    rule_file::rule_file,
    settings::{
        Changes, Claude, Context, Edit, Http, Instructions, Limits, Model, ModelPrice, ModelTier,
        Output, Permissions, Read, RuleCase, Run, Sandbox, SandboxLevel, Secrets, Server,
        ServerWire, Settings, Shell, Theme, TodoKind, ToolProfile, Tools, Undo,
    },
    trust::Trust,
    web_settings::{SearchEngineName, Web, WebSearch},
};
