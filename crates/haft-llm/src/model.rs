//! Names of models, and what they tell.

use std::fmt;

use crate::LlmError;

/// A model, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ModelRef {
    /// `anthropic/NAME`: a model behind Anthropic Messages.
    Anthropic(String),
    /// `openai/NAME`: a model behind an OpenAI Chat-compatible server.
    OpenAi(String),
    /// `script:FILE`: answers read from a file.
    Script(String),
}

impl ModelRef {
    /// The provider's name, as it stands before the model's.
    pub const fn provider(&self) -> &'static str {
        match self {
            Self::Anthropic(_) => crate::anthropic::NAME,
            Self::OpenAi(_) => crate::openai::NAME,
            Self::Script(_) => crate::script::NAME,
        }
    }

    /// The model's id as the provider writes it; for a script its file.
    pub fn name(&self) -> &str {
        match self {
            Self::Anthropic(name) | Self::OpenAi(name) | Self::Script(name) => name,
        }
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if matches!(self, Self::Script(_)) { ':' } else { '/' };
        write!(f, "{}{separator}{}", self.provider(), self.name())
    }
}

const FORMS: &str = "models are written anthropic/NAME, openai/NAME or script:FILE";

/// Reads a model's name.
///
/// # Errors
/// Fails with [`LlmError::Config`], which repeats the text and names the closest form.
pub fn parse_model(text: &str) -> Result<ModelRef, LlmError> {
    let wrong = |why: String| Err(LlmError::Config(format!("model {text:?}: {why}; {FORMS}")));
    let trimmed = text.trim();
    if let Some(file) = trimmed.strip_prefix("script:") {
        if file.is_empty() {
            return wrong("a file is missing after \"script:\"".into());
        }
        return Ok(ModelRef::Script(file.to_owned()));
    }
    let Some((provider, name)) = trimmed.split_once('/') else {
        return wrong(match guess(trimmed) {
            Some(full) => format!("the provider is missing, did you mean {full:?}?"),
            None => "the provider is missing".into(),
        });
    };
    let known = |provider: &str| match provider {
        "anthropic" => Some(ModelRef::Anthropic(name.to_owned())),
        "openai" => Some(ModelRef::OpenAi(name.to_owned())),
        _ => None,
    };
    match known(&provider.to_ascii_lowercase()) {
        _ if name.is_empty() => wrong(format!("a name is missing after \"{provider}/\"")),
        Some(model) => Ok(model),
        None if provider == "script" => wrong(format!("did you mean \"script:{name}\"?")),
        None => match closest(provider) {
            Some(close) => wrong(format!(
                "there is no provider {provider:?}, did you mean \"{close}/{name}\"?"
            )),
            None => wrong(format!(
                "there is no provider {provider:?}; a compatible server is reached as \
                 \"openai/{trimmed}\" with OPENAI_BASE_URL set to its address"
            )),
        },
    }
}

fn guess(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    let provider = if ["claude", "opus", "sonnet", "haiku"].iter().any(|p| lower.starts_with(p)) {
        "anthropic"
    } else if ["gpt", "o1", "o3", "o4", "chatgpt"].iter().any(|p| lower.starts_with(p)) {
        "openai"
    } else {
        return None;
    };
    Some(format!("{provider}/{name}"))
}

fn closest(provider: &str) -> Option<&'static str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(name, &provider.to_ascii_lowercase());
    ["anthropic", "openai"].into_iter().filter(|name| distance(name) <= 3).min_by_key(distance)
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

    #[test]
    fn good_names_are_read_and_written_back() {
        let names = ["anthropic/claude-opus-4-6", "openai/org/model:tag", "script:/w/a b.jsonl"];
        for text in names {
            assert_eq!(parse_model(text).unwrap().to_string(), text);
        }
        assert_eq!(parse_model("OpenAI/x").unwrap(), ModelRef::OpenAi("x".into()));
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
            ("mistral/large", "OPENAI_BASE_URL"),
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
