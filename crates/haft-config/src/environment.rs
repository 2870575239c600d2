//! The environment, read once when haft starts.
//!
//! **Invariant:** every variable that haft reads for itself is in [`VARIABLES`], or is one of a
//! server by its name; keys are wrapped, so that no print of anything shows one.

use std::{collections::BTreeMap, ffi::OsString, fmt, path::PathBuf};

use serde_json::{Map, Value};

use crate::ConfigError;

/// One variable that haft reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
}

/// Every environment variable that haft reads for itself, but for those of servers: their names
/// stand with the servers, see [`is_of_a_server`]. The search reads one more, `XDG_CONFIG_HOME`,
/// for the person's own ignore rules of git.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "HAFT_HOME",
        about: "Folder of all of haft's state, absolute or from `~/` on; `~/.haft` without it.",
    },
    Variable { name: "HAFT_MODEL", about: "The model, over settings and under `--model`." },
    Variable { name: "HAFT_EFFORT", about: "Thinking effort, over settings and under `--effort`." },
    Variable { name: "NO_COLOR", about: "Switches colour off when it is not empty." },
    Variable { name: "TERM", about: "`dumb` switches colour and cursor movement off." },
    Variable { name: "COLUMNS", about: "Width of the terminal where it cannot be asked." },
    Variable { name: "HOME", about: "The home folder, for `~` and the default of `HAFT_HOME`." },
    Variable { name: "USERPROFILE", about: "The home folder on Windows." },
];

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, for the one who needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// What the environment says. Empty values count as not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Where all state lives, where it was set or the home folder is known; see
    /// [`state_folder`](Self::state_folder).
    pub haft_home: Option<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// The thinking effort, unchecked.
    pub effort: Option<String>,
    /// Addresses and keys of servers, by the names of their variables.
    pub servers: BTreeMap<String, Secret>,
    /// True when colour is not wanted.
    pub no_color: bool,
    /// True for a terminal that knows no control sequences.
    pub dumb: bool,
    /// Width of the terminal in columns, where it was set.
    pub columns: Option<u16>,
}

/// Whether a variable can have the address or the key of a server, a person's own too.
pub fn is_of_a_server(variable: &str) -> bool {
    ["_BASE_URL", "_KEY", "_TOKEN"].iter().any(|end| variable.ends_with(end))
}

/// All variables of this process whose name and value are text, for what is told of them: which hold
/// secrets.
pub fn variables() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).collect()
}

impl Environment {
    /// Reads the environment of this process. Called once, by the binary.
    pub fn capture() -> Self {
        let known =
            |name: &str| VARIABLES.iter().any(|one| one.name == name) || is_of_a_server(name);
        let all =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        Self::of(all.filter(|(name, _)| known(name)))
    }

    /// What a variable holds that has the address or the key of a server.
    pub fn server(&self, variable: &str) -> Option<&Secret> {
        self.servers.get(variable)
    }

    /// Reads given variables; of several with one name the last counts.
    pub fn of<N: AsRef<str>>(variables: impl IntoIterator<Item = (N, OsString)>) -> Self {
        let mut read = Self::default();
        let mut profile = None;
        for (name, value) in variables {
            if value.is_empty() {
                continue;
            }
            let text =
                || value.to_str().map(str::trim).filter(|t| !t.is_empty()).map(str::to_owned);
            match name.as_ref() {
                "HOME" => read.home = Some(PathBuf::from(&value)),
                "USERPROFILE" => profile = Some(PathBuf::from(&value)),
                "HAFT_HOME" => read.haft_home = Some(PathBuf::from(&value)),
                "HAFT_MODEL" => read.model = text(),
                "HAFT_EFFORT" => read.effort = text(),
                "NO_COLOR" => read.no_color = true,
                "TERM" => read.dumb = value == "dumb",
                "COLUMNS" => read.columns = text().and_then(|text| text.parse().ok()),
                name if is_of_a_server(name) => {
                    let value = text().map(|text| (name.to_owned(), Secret(text)));
                    read.servers.extend(value);
                }
                _ => {}
            }
        }
        read.home = read.home.or(profile).filter(|home| home.is_absolute());
        read.haft_home = match (read.haft_home, &read.home) {
            (Some(set), Some(home)) => match set.strip_prefix("~") {
                // No shell did it: the variable came from a settings file of a desktop or editor.
                Ok(rest) => Some(home.join(rest)),
                Err(_) => Some(set),
            },
            (set, home) => set.or_else(|| home.as_ref().map(|home| home.join(".haft"))),
        };
        read
    }

    /// Where all state lives.
    ///
    /// # Errors
    /// When neither `HAFT_HOME` nor a home folder is set, and when it is no absolute path.
    pub fn state_folder(&self) -> Result<&std::path::Path, ConfigError> {
        match self.haft_home.as_deref() {
            None => Err(ConfigError::NoHome),
            Some(folder) if folder.is_absolute() => Ok(folder),
            Some(folder) => Err(ConfigError::NotAbsolute(folder.to_owned())),
        }
    }

    /// Its layer of the settings.
    pub(crate) fn layer(&self) -> Value {
        let mut layer = Map::new();
        for (key, value) in [("model", &self.model), ("effort", &self.effort)] {
            if let Some(value) = value {
                layer.insert(key.to_owned(), Value::String(value.clone()));
            }
        }
        Value::Object(layer)
    }

    /// The variable that sets a key of the settings, for messages.
    pub(crate) fn variable(key: &str) -> &'static str {
        match key {
            "model" => "HAFT_MODEL",
            _ => "HAFT_EFFORT",
        }
    }
}

/// A text with the variables of this process in place of `$NAME` and `${NAME}`, as far as they are among
/// those `allowed`; others are empty.
pub fn expanded(text: &str, allowed: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = braced.unwrap_or_else(|| rest.split_at(end));
        if name.is_empty() {
            out.push('$');
            continue;
        }
        let is_it = |(own, _): &(OsString, OsString)| own.to_str() == Some(name);
        let value = allowed.iter().any(|one| one == name).then(|| std::env::vars_os().find(is_it));
        out.push_str(
            &value
                .flatten()
                .map(|(_, value)| value.to_string_lossy().into_owned())
                .unwrap_or_default(),
        );
        rest = behind;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        Environment::of(variables.iter().map(|(name, value)| (*name, OsString::from(value))))
    }

    #[test]
    fn keys_are_never_shown() {
        let read = read(&[("ANTHROPIC_API_KEY", " sk-very-secret\n"), ("HOME", "/home/me")]);
        let key = read.server("ANTHROPIC_API_KEY").unwrap();
        assert_eq!(key.expose(), "sk-very-secret");
        assert!(!format!("{read:?}{key:?}{key}").contains("very"));
    }

    #[test]
    fn state_lives_at_home_unless_moved() {
        let folder = |env: &Environment| env.state_folder().unwrap().to_owned();
        assert_eq!(folder(&read(&[("HOME", "/h")])), PathBuf::from("/h/.haft"));
        assert_eq!(folder(&read(&[("HOME", "/h"), ("HAFT_HOME", "/x")])), PathBuf::from("/x"));
        assert_eq!(folder(&read(&[("HOME", "/h"), ("HAFT_HOME", "")])), PathBuf::from("/h/.haft"));
        assert!(read(&[]).state_folder().unwrap_err().to_string().contains("HAFT_HOME"));
        for (set, wanted) in [("~/x", "/h/x"), ("~", "/h"), ("/~/x", "/~/x")] {
            let env = read(&[("HAFT_HOME", set), ("HOME", "/h")]);
            assert_eq!(folder(&env), PathBuf::from(wanted), "{set}");
        }
        for set in ["state", "./state", "~me/state"] {
            let error = read(&[("HAFT_HOME", set), ("HOME", "/h")]).state_folder().unwrap_err();
            assert!(error.to_string().contains(set), "{error}");
        }
    }

    #[test]
    fn only_variables_that_are_allowed_are_put_in() {
        let path = std::env::vars().find(|(name, _)| name == "PATH").unwrap().1;
        let allowed = ["PATH".to_owned()];
        let text = expanded("a $PATH ${PATH}x $HOME $ ${HOME} 5$", &allowed);
        assert_eq!(text, format!("a {path} {path}x  $  5$"));
    }

    #[test]
    fn empty_is_not_set_and_odd_widths_are_left_alone() {
        let env = read(&[("NO_COLOR", ""), ("COLUMNS", "wide"), ("OPENAI_BASE_URL", " ")]);
        assert!(!env.no_color && env.columns.is_none() && env.server("OPENAI_BASE_URL").is_none());
        assert!(read(&[("NO_COLOR", "0"), ("TERM", "dumb")]).no_color);
    }
}
