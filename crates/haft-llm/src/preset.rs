//! Servers by name: where each is, what opens it, and which wire it speaks.
//!
//! Sources: the providers' own pages on their OpenAI-compatible addresses, and the defaults of the servers
//! that people run themselves.

/// The wire that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions.
    OpenAi,
}

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

use WireKind::{Anthropic, OpenAi};

const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/openai";

/// All that are built in; those without a variable for a key are servers of this machine.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("anthropic", &["claude", "opus", "sonnet", "haiku"], ANTHROPIC, "ANTHROPIC_BASE_URL", &["ANTHROPIC_API_KEY"], Anthropic),
    ("openai", &["gpt", "o1", "o3", "o4", "chatgpt"], OPENAI, "OPENAI_BASE_URL", &["OPENAI_API_KEY"], OpenAi),
    ("ollama", &[], "http://localhost:11434/v1", "OLLAMA_BASE_URL", &[], OpenAi),
    ("llama.cpp", &[], "http://localhost:8080/v1", "LLAMACPP_BASE_URL", &[], OpenAi),
    ("vllm", &[], "http://localhost:8000/v1", "VLLM_BASE_URL", &[], OpenAi),
    ("lmstudio", &[], "http://localhost:1234/v1", "LMSTUDIO_BASE_URL", &[], OpenAi),
    ("openrouter", &[], "https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", &["OPENROUTER_API_KEY"], OpenAi),
    ("gemini", &["gemini"], GEMINI, "GEMINI_BASE_URL", &["GEMINI_API_KEY", "GOOGLE_API_KEY"], OpenAi),
    ("groq", &[], "https://api.groq.com/openai/v1", "GROQ_BASE_URL", &["GROQ_API_KEY"], OpenAi),
    ("deepseek", &["deepseek"], "https://api.deepseek.com/v1", "DEEPSEEK_BASE_URL", &["DEEPSEEK_API_KEY"], OpenAi),
    ("mistral", &["mistral", "magistral", "codestral", "devstral"], "https://api.mistral.ai/v1", "MISTRAL_BASE_URL", &["MISTRAL_API_KEY"], OpenAi),
    ("together", &[], "https://api.together.xyz/v1", "TOGETHER_BASE_URL", &["TOGETHER_API_KEY"], OpenAi),
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
    };
    ROWS.iter().map(row).collect()
}

impl Preset {
    /// Whether it is the server of a wire's own maker, which takes its newest fields.
    pub(crate) fn is_makers(&self, address: &str) -> bool {
        let own = match self.wire {
            Anthropic => ANTHROPIC,
            OpenAi => OPENAI,
        };
        address.trim_end_matches('/') == own
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
            assert!(others().all(|other| other.url_variable != preset.url_variable), "{preset:?}");
            assert!(preset.url_variable.ends_with("_BASE_URL"), "{preset:?}");
            assert!(
                preset.key_variables.iter().all(|name| name.ends_with("_API_KEY")),
                "{preset:?}"
            );
            assert_eq!(preset.is_local(), preset.address.starts_with("http:"), "{preset:?}");
        }
    }
}
