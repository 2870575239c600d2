//! What follows from a model's name: how long its answers may be, and how it is told to think.
//!
//! An unknown name is taken for a newer model than this code.

use crate::Effort;

/// How a model is told to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thinking {
    /// It cannot.
    Never,
    /// By a number of tokens.
    Budget,
    /// By itself, guided by an effort.
    Adaptive,
}

/// Version in a name such as `claude-sonnet-4-5-20250929` or `claude-3-7-sonnet-latest`.
fn version(model: &str) -> Option<(u32, u32)> {
    let claude = model.find("claude-").map(|at| &model[at..])?;
    let mut numbers = claude
        .split(['-', '.', '@', ':'])
        .map(|word| if word.len() <= 2 { word.parse::<u32>().ok() } else { None });
    let major = numbers.by_ref().flatten().next()?;
    // Only a number right after the first belongs to the version.
    let mut words =
        claude.split(['-', '.', '@', ':']).skip_while(|word| *word != major.to_string());
    words.next();
    let minor = words.next().filter(|word| word.len() <= 2).and_then(|word| word.parse().ok());
    Some((major, minor.unwrap_or(0)))
}

fn thinking(model: &str) -> Thinking {
    match version(model) {
        Some(version) if version < (3, 7) => Thinking::Never,
        Some(version) if version < (4, 6) => Thinking::Budget,
        _ => Thinking::Adaptive,
    }
}

/// Tokens that an answer may have when nobody says.
pub(super) fn default_max_tokens(model: &str) -> u32 {
    match version(model) {
        Some(version) if version < (3, 5) => 4_096,
        Some(version) if version < (3, 7) => 8_192,
        _ => 32_000,
    }
}

/// Appends the fields that set how hard the model thinks, each with a leading comma. Returns the
/// effort that stands in `output_config`, if one does.
pub(super) fn push_thinking(
    out: &mut String,
    model: &str,
    effort: Option<Effort>,
    max: u32,
) -> Option<Effort> {
    let effort = effort?;
    match (thinking(model), effort) {
        (Thinking::Never, _) => {}
        (_, Effort::None) => out.push_str(",\"thinking\":{\"type\":\"disabled\"}"),
        (Thinking::Adaptive, _) => {
            out.push_str(",\"thinking\":{\"type\":\"adaptive\",\"display\":\"summarized\"}");
            return Some(effort);
        }
        (Thinking::Budget, _) => {
            let wanted = match effort {
                Effort::None | Effort::Low => 2_048,
                Effort::Medium => 8_192,
                Effort::High => 16_384,
                Effort::Max => 30_000,
            };
            // The budget is part of the answer's tokens; some must remain for the answer itself.
            let budget = wanted.min(max.saturating_sub(1_024));
            if budget >= 1_024 {
                out.push_str(",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":");
                out.push_str(&budget.to_string());
                out.push('}');
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_both_styles_of_names() {
        let cases = [
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-3-7-sonnet-latest", Some((3, 7))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-opus-4-6", Some((4, 6))),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", Some((4, 5))),
            ("claude-opus-5", Some((5, 0))),
            ("something-else", None),
        ];
        for (name, expected) in cases {
            assert_eq!(version(name), expected, "{name}");
        }
    }

    #[test]
    fn effort_becomes_what_the_model_understands() {
        let fields = |model: &str, effort: Option<Effort>, max: u32| {
            let mut out = String::new();
            let effort = push_thinking(&mut out, model, effort, max);
            out + effort.map_or("", Effort::name)
        };
        assert_eq!(fields("claude-opus-4-6", None, 9), "");
        assert_eq!(fields("claude-3-5-haiku-latest", Some(Effort::High), 8_192), "");
        assert!(fields("claude-sonnet-4-5", Some(Effort::Max), 32_000).contains(":30000}"));
        assert!(fields("claude-sonnet-4-5", Some(Effort::High), 4_096).contains(":3072}"));
        assert_eq!(fields("claude-sonnet-4-5", Some(Effort::High), 1_500), "");
        assert!(fields("claude-opus-4-6", Some(Effort::Low), 9).ends_with("}low"));
        assert!(fields("claude-opus-4-6", Some(Effort::None), 9).contains("disabled"));
    }
}
