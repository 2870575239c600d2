//! The settings that the model may see and change: those that the person lists, in the person's own
//! file.
//!
//! **Invariant:** what no model may have is not there, whatever is listed. What counts in this run
//! stays as it was; a change counts from the next start.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use haft_config::{
    Layer, Loaded, Settings, check_setting, closest, never, set_value, value_of, wrong_names,
};
use haft_tool::{SettingAccess, SettingChange, SettingValue};
use haft_types::ToolError;
use serde_json::Value;

use super::{problem::Problems, rules::at};
use crate::plain::sentence;

/// The key of the list.
const LIST: &str = "config.model_may";

/// Settings of the person, by name.
pub struct PersonsSettings {
    /// Those that are listed, with where they were set.
    listed: BTreeMap<String, (Value, Layer)>,
    /// Those that were changed in this run.
    saved: Mutex<BTreeMap<String, Value>>,
    file: PathBuf,
    /// The person's own folder, which is shown as `~`.
    user_home: Option<PathBuf>,
}

impl PersonsSettings {
    /// The settings that are listed, in this file; names that do not count are told.
    pub fn of(
        loaded: &Loaded,
        (file, user_home): (PathBuf, Option<PathBuf>),
        problems: &Problems,
    ) -> Self {
        let names = &loaded.settings.config.model_may;
        // The names that haft lists itself are right.
        let wrong =
            if loaded.origin(LIST) == Layer::Default { Vec::new() } else { wrong_names(names) };
        for (name, why) in &wrong {
            let text = format!("{LIST}: {name:?} does not count: {}", sentence(why));
            problems.warn(at(loaded, LIST, name, &text));
        }
        let is_right = |name: &&String| {
            never(name).is_none() && !wrong.iter().any(|(wrong, _)| wrong == *name)
        };
        let one =
            |name: &String| (name.clone(), (value_of(&loaded.settings, name), loaded.origin(name)));
        let listed = names.iter().filter(is_right).map(one).collect();
        Self { listed, saved: Mutex::default(), file, user_home }
    }

    fn listed(&self, name: &str) -> Result<&(Value, Layer), ToolError> {
        self.listed.get(name).ok_or_else(|| {
            let shown: String = name.chars().take(100).collect();
            let names: Vec<&str> = self.listed.keys().map(String::as_str).collect();
            let hint = match (closest(name, &names), &names[..]) {
                (Some(near), _) => format!("Did you mean {near}?"),
                (None, []) => format!("None is listed in {LIST}."),
                (None, names) => format!("Those that you may have: {}.", names.join(", ")),
            };
            let text = match never(name) {
                Some(why) => format!("no model may have the setting {shown:?}: {why}"),
                None => format!("{shown:?} is no setting that you may have"),
            };
            ToolError::new(text).hint(hint)
        })
    }

    fn saved(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Value>> {
        self.saved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shown_file(&self) -> String {
        match self.user_home.as_ref().map(|home| self.file.strip_prefix(home)) {
            Some(Ok(within)) => format!("~/{}", within.display()),
            _ => self.file.display().to_string(),
        }
    }
}

impl SettingAccess for PersonsSettings {
    fn names(&self) -> Vec<String> {
        self.listed.keys().cloned().collect()
    }

    fn get(&self, name: &str) -> Result<SettingValue, ToolError> {
        let (value, layer) = self.listed(name)?;
        Ok(match self.saved().get(name) {
            Some(saved) => {
                let from = format!("in {}, from the next start on", self.shown_file());
                SettingValue { value: saved.clone(), from }
            }
            None => SettingValue { value: value.clone(), from: layer.to_string() },
        })
    }

    fn check(&self, name: &str, value: &Value) -> Result<SettingChange, ToolError> {
        let (_, layer) = self.listed(name)?;
        check_setting(name, value)
            .map_err(|why| ToolError::new(format!("{name}: {why}")).hint("Nothing was changed."))?;
        let note = (*layer > Layer::User)
            .then(|| format!("The {layer} set it, too, which counts more than that file."));
        let then = match value {
            Value::Null => value_of(&Settings::default(), name),
            value => value.clone(),
        };
        Ok(SettingChange {
            name: name.to_owned(),
            old: self.get(name)?.value,
            new: value.clone(),
            then,
            file: self.shown_file(),
            note,
        })
    }

    fn save(&self, change: &SettingChange) -> Result<(), ToolError> {
        let SettingChange { name, new, then, .. } = change;
        self.listed(name)?;
        set_value(&self.file, name, new)
            .map_err(|error| ToolError::new(error.to_string()).hint("Nothing was changed."))?;
        self.saved().insert(name.clone(), then.clone());
        Ok(())
    }
}
