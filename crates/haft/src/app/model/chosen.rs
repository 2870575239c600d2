//! Which model answers where neither flags, environment nor settings name one.
//!
//! **Invariant:** what cannot be used is not chosen, and nothing is asked of a server. The choice
//! comes with its reason, which every front end says. Values of keys are never read.

use std::{fs, path::Path};

use haft_config::{Environment, Settings, save};
use haft_llm::{ModelRef, catalogue};

use super::{Offers, endpoint, named, servers};

/// The file in haft's home that has the name.
const FILE: &str = "last-model";
/// Most bytes of it that are read.
const MOST: u64 = 4_096;

/// A model that was not named, and why it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name, as `--model` takes it.
    pub name: String,
    /// Why, as a part of a sentence.
    pub why: String,
}

/// The model that was chosen last, else the usual one of the only key.
pub fn unnamed(settings: &Settings, environment: &Environment, home: &Path) -> Option<Chosen> {
    last_chosen(settings, environment, home).or_else(|| of_only_key(settings, environment))
}

/// Notes the model that a person has chosen. A script is no choice of a model.
pub fn note(settings: &Settings, home: &Path, name: &str) {
    if matches!(named(name, settings), Ok(ModelRef::Server(..))) {
        // The next start asks, or takes the only key's: nothing is lost.
        drop(save(&home.join(FILE), name.as_bytes()));
    }
}

fn last_chosen(settings: &Settings, environment: &Environment, home: &Path) -> Option<Chosen> {
    let path = home.join(FILE);
    let is_there = fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MOST);
    let text = is_there.then(|| fs::read_to_string(&path).ok()).flatten()?;
    let name = text.trim();
    let Ok(ModelRef::Server(preset, _)) = named(name, settings) else { return None };
    endpoint(&preset, environment).check().ok()?;
    Some(Chosen { name: name.to_owned(), why: "the one chosen last".to_owned() })
}

fn of_only_key(settings: &Settings, environment: &Environment) -> Option<Chosen> {
    let keys = Offers::keys(&servers(settings), environment);
    let [(variable, server)] = &keys[..] else { return None };
    let name = catalogue().default_of(server)?;
    Some(Chosen { name: name.to_owned(), why: format!("the only key is {variable}") })
}
