//! Names of models, and what they tell.

use std::fmt;

use crate::{LlmError, Preset};

/// A model, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelRef {
    /// `SERVER/NAME`: a model behind a server.
    Server(Preset, String),
    /// `script:FILE`: answers read from a file.
    Script(String),
}

impl ModelRef {
    /// The model's id as the server writes it; for a script its file.
    pub fn name(&self) -> &str {
        match self {
            Self::Server(_, name) | Self::Script(name) => name,
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(preset, name) => write!(f, "{}/{name}", preset.name),
            Self::Script(file) => write!(f, "{}:{file}", crate::script::NAME),
        }
    }
}

const FORMS: &str = "models are written anthropic/NAME, openai/NAME, ollama/NAME, SERVER/NAME of another \
                     server, or script:FILE";

/// Reads a model's name, of one of these servers.
///
/// # Errors
/// Fails with [`LlmError::Config`], which repeats the text and names the closest form.
pub fn parse_model(text: &str, servers: &[Preset]) -> Result<ModelRef, LlmError> {
    let wrong = |why: String| Err(LlmError::Config(format!("model {text:?}: {why}; {FORMS}")));
    let trimmed = text.trim();
    if let Some(file) = trimmed.strip_prefix("script:") {
        if file.is_empty() {
            return wrong("a file is missing after \"script:\"".into());
        }
        return Ok(ModelRef::Script(file.to_owned()));
    }
    let Some((server, name)) = trimmed.split_once('/') else {
        return wrong(match guess(trimmed, servers) {
            Some(full) => format!("the server is missing, did you mean {full:?}?"),
            None => "the server is missing".into(),
        });
    };
    let known = servers.iter().find(|known| known.name.eq_ignore_ascii_case(server));
    match known {
        _ if server == "script" => wrong(format!("did you mean \"script:{name}\"?")),
        _ if name.is_empty() => wrong(format!("a name is missing after \"{server}/\"")),
        _ if name.split('/').any(str::is_empty) => {
            let parts: Vec<&str> = trimmed.split('/').filter(|part| !part.is_empty()).collect();
            wrong(format!("there is a slash too much, did you mean {:?}?", parts.join("/")))
        }
        // No name there has one.
        Some(known) if !known.wire.has_slashes && name.contains('/') => {
            let last = name.rsplit('/').next().unwrap_or(name);
            wrong(format!("there is a slash too much, did you mean \"{server}/{last}\"?"))
        }
        Some(known) => Ok(ModelRef::Server(known.clone(), name.to_owned())),
        None => wrong(unknown(server, name, servers)),
    }
}

/// What is said of a server that is not known.
fn unknown(server: &str, name: &str, servers: &[Preset]) -> String {
    if let Some(close) = closest(server, servers) {
        return format!("there is no server {server:?}, did you mean \"{close}/{name}\"?");
    }
    let names: Vec<&str> = servers.iter().map(|server| &*server.name).collect();
    format!(
        "there is no server {server:?}; known are {}; another one gets its name by \
         providers.{server}.address in ~/.haft/settings.toml",
        names.join(", ")
    )
}

fn guess(name: &str, servers: &[Preset]) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let begins = |prefix: &String| lower.starts_with(&prefix.to_ascii_lowercase());
    let server = servers.iter().find(|server| server.prefixes.iter().any(begins))?;
    Some(format!("{}/{name}", server.name))
}

fn closest<'a>(server: &str, servers: &'a [Preset]) -> Option<&'a str> {
    let server = server.to_ascii_lowercase();
    let distance = |name: &&str| strsim::damerau_levenshtein(name, &server);
    // A third of the letters may differ: more is another word.
    let near = |name: &&str| distance(name) <= (name.len().min(server.len()) / 3).max(1);
    let names = servers.iter().map(|server| &*server.name).filter(near);
    names.min_by_key(distance)
}

/// Families of models that take no images, by how their names begin with those inside the
/// family that do.
///
/// Source: the providers' model lists and the model cards of open weights.
const BLIND: &[(&str, &[&str])] = &[
    ("claude-1", &[]),
    ("claude-2", &[]),
    ("claude-instant", &[]),
    ("codestral", &[]),
    ("deepseek", &["deepseek-vl", "deepseek-ocr"]),
    ("devstral", &[]),
    ("glm-4", &["glm-4v", "glm-4.1v", "glm-4.5v", "glm-4.6v"]),
    ("gpt-3.5", &[]),
    ("gpt-4", &["gpt-4-turbo", "gpt-4-vision", "gpt-4.", "gpt-4o"]),
    ("gpt-oss", &[]),
    ("kimi-k2", &["kimi-k2.5"]),
    ("llama-2", &[]),
    ("llama-3", &["llama-3.2-11b", "llama-3.2-90b"]),
    ("llama3", &["llama3.2-vision"]),
    ("mixtral", &[]),
    ("o1-mini", &[]),
    ("o1-preview", &[]),
    ("o3-mini", &[]),
    ("qwen2.5-coder", &[]),
    ("qwen3-coder", &[]),
];

impl ModelRef {
    /// Reports whether the model takes images, as far as its name tells.
    ///
    /// A name that is not known is taken for a model that does: newer ones do. Settings have the
    /// last word, because a server may call its models anything.
    pub fn takes_images(&self) -> bool {
        let name = self.name().to_ascii_lowercase();
        // Routers and servers put their own names before the model's: `meta/llama-3.3`.
        let name = name.rsplit('/').next().unwrap_or(&name);
        let begins = |start: &&str| name.starts_with(*start);
        let blind =
            |(family, seeing): &(&str, &[&str])| begins(family) && !seeing.iter().any(begins);
        matches!(self, Self::Script(_)) || !BLIND.iter().any(blind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_model(text: &str) -> Result<ModelRef, LlmError> {
        super::parse_model(text, &crate::presets())
    }

    #[test]
    fn good_names_are_read_and_written_back() {
        for text in [
            "anthropic/claude-opus-4-6",
            "openai/org/model:tag",
            "ollama/llama3",
            "llama.cpp/x",
            "openrouter/meta/llama-3:free",
            "script:/w/a b.jsonl",
        ] {
            assert_eq!(parse_model(text).unwrap().to_string(), text);
        }
        assert_eq!(parse_model("OpenAI/x").unwrap().to_string(), "openai/x");
    }

    #[test]
    fn bad_names_are_repeated_with_the_closest_form() {
        let cases = [
            ("claude-opus-4-6", "\"anthropic/claude-opus-4-6\""),
            ("gpt-5", "\"openai/gpt-5\""),
            ("antropic/x", "\"anthropic/x\""),
            ("script/x", "\"script:x\""),
            ("script:", "a file is missing"),
            ("openai/", "a name is missing"),
            ("gemini-2.5-pro", "\"gemini/gemini-2.5-pro\""),
            ("olama/llama3", "\"ollama/llama3\""),
            ("acme/large", "providers.acme.address"),
            ("anthropic//x", "slash too much, did you mean \"anthropic/x\""),
            ("openai/x/", "did you mean \"openai/x\""),
            ("anthropic/claude/opus", "did you mean \"anthropic/opus\""),
            ("", "anthropic/NAME"),
        ];
        for (text, part) in cases {
            let error = parse_model(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_name_tells_whether_images_are_taken() {
        let takes = |text: &str| parse_model(text).unwrap().takes_images();
        for text in [
            "anthropic/claude-opus-4-6",
            "anthropic/claude-3-haiku-20240307",
            "openai/gpt-4.1-mini",
            "openai/gpt-4-turbo",
            "openai/o3",
            "openai/meta-llama/Llama-3.2-11B-Vision-Instruct",
            "openai/something-new",
            "script:/deepseek/o1-mini",
        ] {
            assert!(takes(text), "{text}");
        }
        for text in [
            "anthropic/claude-2.1",
            "openai/gpt-4-0613",
            "openai/gpt-3.5-turbo",
            "openai/o3-mini",
            "openai/deepseek/deepseek-chat-v3.1:free",
            "openai/meta-llama/Llama-3.3-70B-Instruct",
            "openai/qwen3-coder:30b",
        ] {
            assert!(!takes(text), "{text}");
        }
    }
}
