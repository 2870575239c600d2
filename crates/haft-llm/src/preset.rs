//! Servers by name: where each is, what opens it, and which wire it speaks.
//!
//! Sources: the providers' own pages on their OpenAI-compatible addresses, and the defaults of the servers
//! that people run themselves.

use crate::{WireKind, anthropic, catalogue, openai, responses};

/// A server that models are reached by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Stands before the model's name: `NAME/MODEL`.
    pub name: String,
    /// How names of its models begin, to tell which server is meant where none is named.
    pub prefixes: Vec<String>,
    /// The address that the wire's path is appended to.
    pub address: String,
    /// The variable that holds another address.
    pub url_variable: String,
    /// The variables that may hold the key, the first one first.
    pub key_variables: Vec<String>,
    /// What it speaks.
    pub wire: WireKind,
    /// Whether it answers nobody without a key.
    pub wants_key: bool,
    /// Whether it hands requests on to the wire's own maker as they are.
    pub passes_on: bool,
}

/// The row of a preset: name, prefixes, address, variable of the address, those of the key, wire.
type Row = (
    &'static str,
    &'static [&'static str],
    &'static str,
    &'static str,
    &'static [&'static str],
    WireKind,
);

const ANTHROPIC: WireKind = anthropic::KIND;
const OPENAI: WireKind = openai::KIND;
const RESPONSES: WireKind = responses::KIND;
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/openai";

/// All that are built in; those without a variable for a key are servers of this machine. The
/// server of a wire's own maker has the name of the wire.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("anthropic", &["claude", "opus", "sonnet", "haiku"], "https://api.anthropic.com", "ANTHROPIC_BASE_URL", &["ANTHROPIC_API_KEY"], ANTHROPIC),
    ("openai", &["gpt", "o1", "o3", "o4", "chatgpt"], "https://api.openai.com/v1", "OPENAI_BASE_URL", &["OPENAI_API_KEY"], OPENAI),
    ("openai-responses", &[], "https://api.openai.com/v1", "OPENAI_BASE_URL", &["OPENAI_API_KEY"], RESPONSES),
    ("azure", &[], "", "AZURE_OPENAI_BASE_URL", &["AZURE_OPENAI_API_KEY"], RESPONSES),
    ("ollama", &[], "http://localhost:11434/v1", "OLLAMA_BASE_URL", &[], OPENAI),
    ("llama.cpp", &[], "http://localhost:8080/v1", "LLAMACPP_BASE_URL", &[], OPENAI),
    ("vllm", &[], "http://localhost:8000/v1", "VLLM_BASE_URL", &[], OPENAI),
    ("lmstudio", &[], "http://localhost:1234/v1", "LMSTUDIO_BASE_URL", &[], OPENAI),
    ("openrouter", &[], "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", &["OPENROUTER_API_KEY"], OPENAI),
    ("gemini", &["gemini"], GEMINI, "GEMINI_BASE_URL", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], OPENAI),
    ("groq", &[], "https://api.groq.com/openai/v1", "GROQ_BASE_URL", &["GROQ_API_KEY"], OPENAI),
    ("deepseek", &["deepseek"], "https://api.deepseek.com/v1", "DEEPSEEK_BASE_URL", &["DEEPSEEK_API_KEY"], OPENAI),
    ("mistral", &["mistral", "magistral", "codestral", "devstral"], "https://api.mistral.ai/v1", "MISTRAL_BASE_URL", &["MISTRAL_API_KEY"], OPENAI),
    ("together", &[], "https://api.together.xyz/v1", "TOGETHER_BASE_URL", &["TOGETHER_API_KEY"], OPENAI),
];

/// The servers that haft knows.
pub fn presets() -> Vec<Preset> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let row = |(name, prefixes, address, url, keys, wire): &Row| Preset {
        name: (*name).to_owned(),
        prefixes: owned(prefixes),
        address: (*address).to_owned(),
        url_variable: (*url).to_owned(),
        key_variables: owned(keys),
        wire: *wire,
        wants_key: !keys.is_empty(),
        passes_on: false,
    };
    ROWS.iter().map(row).collect()
}

/// The server of a wire's own maker, where it is built in.
pub(crate) fn makers(wire: WireKind) -> Option<Preset> {
    presets().into_iter().find(|preset| preset.wire == wire && preset.is_makers())
}

impl Preset {
    /// The preset for one model of it, at its own address or another one. OpenAI's own server takes
    /// its thinking models by Responses: by Chat Completions they forget what they thought.
    #[must_use]
    pub fn for_model(self, name: &str, is_makers: bool) -> Self {
        if self.name != openai::NAME || self.wire != OPENAI || !is_makers {
            return self;
        }
        let known = catalogue().get(&format!("{}/{name}", self.name));
        let thinks =
            known.map_or_else(|| responses::reasons(name), |entry| !entry.efforts.is_empty());
        let wire = if thinks { RESPONSES } else { self.wire };
        Self { wire, ..self }
    }

    /// Whether it is the server of its wire's own maker.
    pub fn is_makers(&self) -> bool {
        self.name == self.wire.name
    }

    /// Whether it is a server of this machine, as far as its own address tells.
    pub fn is_local(&self) -> bool {
        ["http://localhost:", "http://127.0.0.1:"]
            .iter()
            .any(|start| self.address.starts_with(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_told_apart() {
        let all = presets();
        for (at, preset) in all.iter().enumerate() {
            let others = || all[..at].iter();
            assert!(others().all(|other| other.name != preset.name), "{preset:?}");
            // One server may have two wires, and stand here twice.
            let is_other = |other: &Preset| {
                other.url_variable != preset.url_variable
                    || (&other.address, &other.key_variables)
                        == (&preset.address, &preset.key_variables)
            };
            assert!(others().all(is_other), "{preset:?}");
            assert!(preset.url_variable.ends_with("_BASE_URL"), "{preset:?}");
            assert!(
                preset.key_variables.iter().all(|name| name.ends_with("_API_KEY")),
                "{preset:?}"
            );
            assert_eq!(preset.is_local(), preset.address.starts_with("http:"), "{preset:?}");
        }
    }
}
