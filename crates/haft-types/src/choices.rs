//! Choices that a person makes by name: how much is asked, how hard a model thinks.
//!
//! **Invariant:** knows names only; what a choice means is decided elsewhere.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How much a person is asked during a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Mode {
    /// Reads inside the workspace are allowed; everything else asks.
    #[default]
    Ask,
    /// As ask, but file changes inside the workspace that can be undone are allowed too.
    AcceptEdits,
    /// Only calls that change nothing are allowed; the rest is denied.
    Plan,
    /// Calls that a sandbox confines are allowed; without a sandbox the same as ask.
    Auto,
    /// Calls that would ask are denied.
    DontAsk,
    /// Everything is allowed except denials, explicit ask rules, protected paths and credentials.
    Bypass,
}

/// A text that names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no mode: use ask, accept-edits, plan, auto, dont-ask or bypass")]
pub struct UnknownMode(pub String);

impl Mode {
    /// All modes, the most careful kind of use first.
    pub const ALL: [Self; 6] =
        [Self::Ask, Self::AcceptEdits, Self::Plan, Self::Auto, Self::DontAsk, Self::Bypass];

    /// The stricter of two modes: the one that allows less.
    #[must_use]
    pub const fn narrower(self, other: Self) -> Self {
        if self.width() <= other.width() { self } else { other }
    }

    /// How much goes on in it, beside the others.
    const fn width(self) -> u8 {
        match self {
            Self::Plan => 0,
            Self::DontAsk => 1,
            Self::Ask => 2,
            Self::AcceptEdits => 3,
            Self::Auto => 4,
            Self::Bypass => 5,
        }
    }

    /// Its name, as settings and the command line write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Plan => "plan",
            Self::Auto => "auto",
            Self::DontAsk => "dont-ask",
            Self::Bypass => "bypass",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let aliased = match text {
            "default" => "ask",
            "acceptEdits" => "accept-edits",
            "dontAsk" => "dont-ask",
            "bypassPermissions" => "bypass",
            other => other,
        };
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == aliased)
            .ok_or_else(|| UnknownMode(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for Mode {
    type Error = UnknownMode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// How hard a model is asked to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Effort {
    /// No thinking, where the model can be told so.
    None,
    /// A little.
    Low,
    /// As much as most tasks need.
    Medium,
    /// Much.
    High,
    /// As much as the model can.
    Max,
}

/// A text that names no effort.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no effort: use none, low, medium, high or max")]
pub struct UnknownEffort(pub String);

impl Effort {
    /// All efforts, the least first.
    pub const ALL: [Self; 5] = [Self::None, Self::Low, Self::Medium, Self::High, Self::Max];

    /// Its name, as settings and the command line write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|effort| effort.name() == text);
        known.ok_or_else(|| UnknownEffort(text.chars().take(80).collect()))
    }
}

impl TryFrom<String> for Effort {
    type Error = UnknownEffort;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effort_is_taken_by_its_name() {
        for effort in Effort::ALL {
            assert_eq!(effort.name().parse(), Ok(effort));
            let json = serde_json::to_string(&effort).unwrap();
            assert_eq!(json, format!("{:?}", effort.name()));
            assert_eq!(serde_json::from_str::<Effort>(&json).unwrap(), effort);
        }
        let error = "huge".parse::<Effort>().unwrap_err().to_string();
        assert!(error.contains("\"huge\"") && error.contains("medium"), "{error}");
        assert!(serde_json::from_str::<Effort>("\"huge\"").is_err());
    }

    #[test]
    fn every_mode_and_alias_is_taken() {
        for mode in Mode::ALL {
            assert_eq!(mode.name().parse(), Ok(mode));
            let json = serde_json::to_string(&mode).unwrap();
            assert_eq!(json, format!("{:?}", mode.name()));
            assert_eq!(serde_json::from_str::<Mode>(&json).unwrap(), mode);
        }
        assert_eq!("default".parse(), Ok(Mode::Ask));
        assert_eq!("acceptEdits".parse(), Ok(Mode::AcceptEdits));
        assert_eq!("dontAsk".parse(), Ok(Mode::DontAsk));
        assert_eq!("bypassPermissions".parse(), Ok(Mode::Bypass));
        let error = "yolo".parse::<Mode>().unwrap_err().to_string();
        assert!(error.contains("\"yolo\"") && error.contains("accept-edits"), "{error}");
    }
}
