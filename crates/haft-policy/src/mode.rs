//! How much is asked. Knows names only; what a mode means is decided in `decide`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How much a person is asked during a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Mode {
    /// Reads inside the workspace go on, everything else asks.
    #[default]
    Ask,
    /// As ask, but changes of files inside the workspace that can be undone go on too.
    AcceptEdits,
    /// Only what leaves everything as it was; the rest is denied.
    Plan,
    /// What a sandbox holds goes on; without one the same as ask.
    Auto,
    /// What would ask is denied.
    DontAsk,
    /// Everything goes on but denials, explicit ask rules, protected paths and credentials.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_alias_is_taken() {
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
