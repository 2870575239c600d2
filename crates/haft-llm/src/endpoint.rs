//! Where a server is and what opens it. Values come from the caller, who alone knows the
//! environment; this crate knows the variables' names for its messages.

use std::fmt;

use crate::{LlmError, Preset, WIRES, WireKind, anthropic, openai, preset};

/// A server's address and key.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address that the wire's path is appended to.
    pub base_url: String,
    /// The key; none for servers that want none.
    pub key: Option<String>,
    /// The variable that sets the address, for messages.
    pub url_variable: String,
    /// The variable that sets the key, for messages.
    pub key_variable: String,
    /// True when the address is that of the wire's own maker, whose server takes its newest fields, or
    /// of one that hands requests on to that.
    pub is_makers: bool,
    /// True when the server answers nobody without a key.
    pub wants_key: bool,
    /// The wire that the server speaks.
    pub wire: WireKind,
}

impl Endpoint {
    /// A server that speaks Anthropic Messages; none or an empty address means the provider's.
    pub fn anthropic(base_url: Option<String>, key: Option<String>) -> Self {
        Self::named(anthropic::NAME, base_url, key)
    }

    /// A server that speaks OpenAI Chat; none or an empty address means the provider's.
    pub fn openai(base_url: Option<String>, key: Option<String>) -> Self {
        Self::named(openai::NAME, base_url, key)
    }

    fn named(name: &str, base_url: Option<String>, key: Option<String>) -> Self {
        let all = crate::presets();
        let at = all.iter().position(|preset| preset.name == name).unwrap_or_default();
        Self::of(&all[at], base_url, key)
    }

    /// A known server; none or an empty address means its own.
    pub fn of(preset: &Preset, base_url: Option<String>, key: Option<String>) -> Self {
        let said = |text: &String| !text.trim().is_empty();
        let base_url = base_url.filter(said).map(|url| url.trim().to_owned());
        let own = |url: &String| url.trim_end_matches('/') == preset.address;
        let is_own = base_url.as_ref().is_none_or(own);
        let base_url = base_url.unwrap_or_else(|| preset.address.clone());
        Self {
            is_makers: preset.passes_on
                || preset::makers(preset.wire)
                    .is_some_and(|makers| base_url.trim_end_matches('/') == makers.address),
            // Whoever sets another address may well have a server that needs none.
            wants_key: is_own && preset.wants_key,
            base_url,
            key: key.filter(said).map(|key| key.trim().to_owned()),
            url_variable: preset.url_variable.clone(),
            key_variable: preset.key_variables.first().cloned().unwrap_or_else(|| {
                // For messages about a key that a server of this machine asks for all the same.
                preset.url_variable.replace("_BASE_URL", "_API_KEY")
            }),
            wire: preset.wire,
        }
    }

    /// Looks for what would make every request fail, without asking the server.
    ///
    /// # Errors
    /// Says what is missing and where it belongs.
    pub fn check(&self) -> Result<(), LlmError> {
        let (key, url) = (&self.key_variable, &self.url_variable);
        let scheme = self.base_url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let host = self.base_url.split_once("://").is_some_and(|(_, rest)| !rest.starts_with('/'))
            && haft_net::host_and_port(&self.base_url).is_ok();
        let shown = haft_net::shown_url(&self.base_url);
        if !host || !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(LlmError::Config(format!(
                "{url} is {shown:?}, which is no address: write it as https://HOST or \
                 http://HOST:PORT"
            )));
        }
        if self.base_url.contains(['?', '#']) {
            return Err(LlmError::Config(format!(
                "{url} is {shown:?} with more behind a ? or #, where no path can follow: leave \
                 that out"
            )));
        }
        if let Some((foreign, right)) = self.foreign_path() {
            return Err(LlmError::Config(format!(
                "{url} is {shown:?}, which ends as requests of another kind of server do: set \
                 {right} and a model of that kind, or leave out {foreign:?}"
            )));
        }
        let fits = |c: char| c == '\t' || c == ' ' || c.is_ascii_graphic();
        if self.key.as_ref().is_some_and(|key| !key.chars().all(fits)) {
            return Err(LlmError::Config(format!(
                "{key} holds a character that no request can carry, such as a line break or one \
                 beyond ASCII: set it to the key alone"
            )));
        }
        if self.key.is_some() || !self.wants_key {
            return Ok(());
        }
        Err(LlmError::Config(format!(
            "{key} is not set: put the key for {} there, or set {url} to a server that needs none",
            self.base_url
        )))
    }

    /// The end of the address where it is that of another wire's requests, and the variable for a
    /// server of that wire.
    fn foreign_path(&self) -> Option<(&'static str, String)> {
        let address = self.base_url.trim_end_matches('/');
        let path = |kind: &WireKind| (kind.codec)(self).path();
        if address.ends_with(path(&self.wire)) {
            return None;
        }
        let foreign = WIRES.iter().find(|kind| address.ends_with(path(kind)))?;
        Some((path(foreign), preset::makers(*foreign)?.url_variable))
    }

    /// The text with the key in it replaced.
    pub(crate) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) if key.len() >= 4 => text.replace(key.as_str(), "[key]"),
            _ => text.to_owned(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &haft_net::shown_url(&self.base_url))
            .field("key", &self.key.as_ref().map(|_| "[key]"))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_values_are_none_and_the_key_is_never_shown() {
        let endpoint = Endpoint::openai(Some(" ".into()), Some("sk-1234\n".into()));
        assert_eq!(endpoint.base_url, "https://api.openai.com/v1");
        assert!(endpoint.is_makers && endpoint.wants_key);
        assert_eq!(endpoint.key.as_deref(), Some("sk-1234"));
        assert!(!format!("{endpoint:?}").contains("sk-1234"));
        let other = Endpoint::anthropic(Some("http://l:1".into()), None);
        assert!(!other.is_makers && !other.wants_key);
    }

    #[test]
    fn an_address_is_one_before_it_is_asked() {
        let check = |url: &str| Endpoint::openai(Some(url.into()), None).check();
        for url in ["http://localhost:8080/v1", "HTTPS://example.com"] {
            assert!(check(url).is_ok(), "{url}");
        }
        for url in [
            "nonsense",
            "localhost:8080",
            "ftp://example.com",
            "http://",
            "http:///ok",
            "http://[::1",
            "http://h:x",
        ] {
            let error = check(url).unwrap_err().to_string();
            assert!(
                error.contains("OPENAI_BASE_URL is") && error.contains("http://HOST"),
                "{error}"
            );
        }
        for url in ["http://h/ok/?x=secret", "http://h/ok#secret"] {
            let error = check(url).unwrap_err().to_string();
            assert!(error.contains("OPENAI_BASE_URL is") && !error.contains("secret"), "{error}");
        }
        let key = Endpoint::openai(None, Some("sk\nsecret".into())).check().unwrap_err();
        let key = key.to_string();
        assert!(key.contains("OPENAI_API_KEY") && !key.contains("secret"), "{key}");
    }
}
