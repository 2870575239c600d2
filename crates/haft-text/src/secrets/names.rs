//! Which names indicate a secret, and which values under such a name are one.
//!
//! **Invariant:** pure, and the only place that decides this. The same test decides what is
//! withheld from programs, what is hidden in texts and what a user lists. A value that looks
//! harmless is not a secret, so that programs and models find what they need.

/// How parts of names end that tell of a secret.
const NAMED: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "KEYS",
    "TOKENS",
    "SECRETS",
    "PASSWORDS",
    "CREDENTIALS",
];
/// Words that end like one and are none.
const WORDS: &[&str] = &["MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY"];
/// Fewer characters than this are no secret worth the name.
pub(super) const SHORTEST: usize = 12;

/// The keys that haft itself talks to models with, whatever they look like.
const OWN: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"];

/// Reports whether a variable holds a key that haft itself talks to models with.
pub fn is_own(name: &str) -> bool {
    OWN.contains(&name)
}

/// Names of variables and keys that hold secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names that count beside those that tell of a secret by themselves; letter case counts not.
    pub more: Vec<String>,
    /// Names that never count.
    pub not: Vec<String>,
}

impl Names {
    /// Reports whether a variable of this name and value holds a secret: named like one or listed,
    /// and a value of 12 characters or more that is no word, number, path, host or plain address.
    pub fn is_secret(&self, name: &str, value: &str) -> bool {
        self.tells(name) && is_value(value) && !is_git_setting(name, value)
    }

    /// Reports whether a name tells of a secret.
    pub fn tells(&self, name: &str) -> bool {
        let among = |all: &[String]| all.iter().any(|other| other.eq_ignore_ascii_case(name));
        !among(&self.not) && (among(&self.more) || is_named(name))
    }
}

/// Reports whether it is the name of a setting, in a variable that names one for git. One with an
/// address in it may hold a password (`url.https://NAME:PASSWORD@HOST.insteadOf`).
pub(super) fn is_git_setting(name: &str, value: &str) -> bool {
    let number = name.rsplit('.').next().and_then(|last| last.strip_prefix("GIT_CONFIG_KEY_"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let part = |part: &str| {
        let letters = part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-');
        letters && (1..=40).contains(&part.len())
    };
    number.is_some_and(is_number) && value.contains('.') && value.split('.').all(part)
}

fn is_named(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    name.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        let part = part.trim_end_matches(|c: char| c.is_ascii_digit());
        !WORDS.contains(&part)
            && (part == "PASS" || part == "PWD" || NAMED.iter().any(|named| part.ends_with(named)))
    })
}

/// Reports whether a value under such a name is a secret: long enough, and no word, number, path,
/// host or plain address.
pub fn is_value(value: &str) -> bool {
    value.chars().count() >= SHORTEST
        && !word(value)
        && value.parse::<f64>().is_err()
        && !path(value)
        && !host(value)
        && !address(value)
}

/// Letters of one case, or of a name with a capital.
fn word(value: &str) -> bool {
    let rest = value.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(value);
    let all = |is: fn(&char) -> bool| value.chars().all(|c| is(&c));
    rest.chars().all(|c| c.is_ascii_lowercase()) || all(char::is_ascii_uppercase)
}

fn path(value: &str) -> bool {
    let begins = ["/", "~/", "./", "../"].iter().any(|begin| value.starts_with(begin));
    begins && !value.contains(['+', '='])
}

/// Names of lower case with dots between, and perhaps a port.
fn host(value: &str) -> bool {
    let (name, port) = value.split_once(':').unwrap_or((value, "1"));
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    // The last label of a name has no digits.
    let top =
        name.rsplit('.').next().is_some_and(|top| top.bytes().all(|b| b.is_ascii_lowercase()));
    name.contains('.') && name.split('.').all(label) && top && port.parse::<u16>().is_ok()
}

/// An address that carries no name, password or question.
fn address(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+') && !rest.contains(['@', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(variable: &str) -> bool {
        let (name, value) = variable.split_once('=').unwrap();
        let names = Names { more: vec!["licence".to_owned()], not: vec!["MY_TOKEN".to_owned()] };
        names.is_secret(name, value)
    }

    #[test]
    fn secrets_are_told_from_what_is_only_named_so() {
        for variable in [
            "GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "DB_PASSWORD=correct horse battery",
            "db_password=correct-horse-battery-9",
            "DB_PASS=correct-horse-battery-9",
            "APIKEY=sk-1234567890abcdef",
            "MY_CREDENTIALS={\"type\": \"service_account\"}",
            "DEPLOY_TOKENS=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcDEF",
            "SECRET_URL=https://user:pass@example.com/",
            "SIGNED_URL_TOKEN=https://example.com/x?sig=12345678",
            "SECRET=/+8kYp3q/zzT1w==",
            "VAULT_TOKEN=hvs.0a1b2c3d4e5f60718293a4b5",
            "LICENCE=0a1b2c3d4e5f60718293a4b5",
            "GIT_CONFIG_KEY_0=url.https://me:a9b8c7d6e5f4@host/.insteadOf",
            "GIT_CONFIG_KEY_0=hvs.0a1b2c3d4e5f60718293a4b5",
            "GIT_CONFIG_KEY_X=core.hooksPath9",
            "MY_KEY_1=core.hooksPath9",
        ] {
            assert!(held(variable), "{variable}");
        }
        for variable in [
            "PATH=wJalrXUtnFEMIK7MDENG",
            "DEBUG=true",
            "PASSWORD=test",
            "GITHUB_TOKEN=short",
            "MY_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "KEY_FILE=/home/me/.ssh/id_ed25519",
            "SSH_KEY=~/.ssh/id_ed25519",
            "KEYBOARD_LAYOUT=us-international-1",
            "BYPASS=us-international-1",
            "MONKEY=us-international-1",
            "TOKEN_LIMIT=100000000000",
            "TOKENIZER=bert-base-uncased-v2",
            "SECRET_HOST=vault.example.com:8200",
            "TOKEN_URL=https://login.example.com/token",
            "SECRET_MODE=environment",
            "SECRET_BACKEND=Automatically",
            "GIT_CONFIG_KEY_1=core.hooksPath",
            "GIT_CONFIG_KEY_10=submodule.x.fetchRecurseSubmodules",
        ] {
            assert!(!held(variable), "{variable}");
        }
    }
}
