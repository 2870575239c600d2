//! The front matter of skills and commands: YAML between two lines `---` at the begin of a file.
//!
//! **Invariant:** reading never fails for what stands in a field. YAML that cannot be read is read
//! line by line, which is told; no alias is followed, and depth and size are bounded.

use serde_json::{Map, Value};

/// Most bytes of a name.
const NAME_MAX: usize = 64;
/// Most characters of a description that count.
const DESCRIPTION_MAX: usize = 1_024;
/// Most characters of description and `when_to_use` together.
const LISTED_MAX: usize = 1_536;
/// Most entries of a list.
const LIST_MAX: usize = 200;

/// Fields of the specification and of Claude Code that have no effect here.
const IDLE: &[&str] = &["agent", "background", "effort", "hooks", "model", "paths", "shell"];
/// Fields that are known and need no word.
const KNOWN: &[&str] = &[
    "allowed-tools",
    "argument-hint",
    "arguments",
    "compatibility",
    "context",
    "description",
    "disable-model-invocation",
    "disallowed-tools",
    "license",
    "metadata",
    "name",
    "user-invocable",
    "version",
    "when_to_use",
];

/// What the head of a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// The name that it gives; none where it gives none.
    pub name: Option<String>,
    /// What it is for.
    pub description: String,
    /// When it is to be used, as far as the description does not say so.
    pub when_to_use: String,
    /// How its arguments are written, for people.
    pub argument_hint: String,
    /// Names of its arguments, in their order.
    pub arguments: Vec<String>,
    /// Rules for what it may do without a question in its turn.
    pub allowed_tools: Vec<String>,
    /// Rules for what is denied in its turn.
    pub disallowed_tools: Vec<String>,
    /// Whether only a person may start it.
    pub is_for_people: bool,
    /// Whether only the model may start it.
    pub is_for_models: bool,
    /// Whether it asks to run in a conversation of its own.
    pub is_forked: bool,
    /// What is unusual about it, for people, each a sentence without its full stop.
    pub warnings: Vec<String>,
}

/// The front matter of a file, and the rest behind it; none where the file has none. `None` as the
/// front matter says that it is not closed.
pub fn split(text: &str) -> (Option<Option<&str>>, &str) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(first) = text.split_inclusive('\n').next().filter(|line| line.trim_end() == "---")
    else {
        return (None, text);
    };
    let mut at = first.len();
    for line in text[first.len()..].split_inclusive('\n') {
        if line.trim_end() == "---" {
            return (Some(Some(&text[first.len()..at])), &text[at + line.len()..]);
        }
        at += line.len();
    }
    (Some(None), "")
}

impl FrontMatter {
    /// Reads the lines between the marks.
    pub fn parse(yaml: &str) -> Self {
        let mut warnings = Vec::new();
        let map = match strictly(yaml) {
            Ok(map) => map,
            Err(why) => {
                warnings.push(format!("its front matter is no YAML ({why}), and is read by lines"));
                by_lines(yaml)
            }
        };
        let text = |key: &str| map.get(key).map(as_text).unwrap_or_default();
        let is = |key: &str| map.get(key).and_then(as_bool);
        let description = text("description");
        if description.chars().count() > DESCRIPTION_MAX {
            warnings.push(format!("its description has more than {DESCRIPTION_MAX} characters"));
        }
        let idle: Vec<&str> = IDLE.iter().copied().filter(|key| map.contains_key(*key)).collect();
        if !idle.is_empty() {
            warnings.push(format!("these fields do nothing here: {}", idle.join(", ")));
        }
        let odd = map.keys().filter(|key| !KNOWN.contains(&&***key) && !IDLE.contains(&&***key));
        let odd: Vec<&str> = odd.take(5).map(String::as_str).collect();
        if !odd.is_empty() {
            warnings.push(format!("these fields are not known: {}", odd.join(", ")));
        }
        Self {
            name: map.get("name").map(as_text).filter(|name| !name.is_empty()),
            when_to_use: text("when_to_use"),
            argument_hint: text("argument-hint"),
            arguments: words(map.get("arguments")),
            allowed_tools: rules(map.get("allowed-tools")),
            disallowed_tools: rules(map.get("disallowed-tools")),
            is_for_people: is("disable-model-invocation") == Some(true),
            is_for_models: is("user-invocable") == Some(false),
            is_forked: text("context") == "fork",
            description,
            warnings,
        }
    }

    /// What a listing says of it, on one line.
    pub fn listed(&self) -> String {
        let both = [&*self.description, &*self.when_to_use];
        let both: Vec<&str> = both.into_iter().filter(|text| !text.is_empty()).collect();
        one_line(&both.join(" ")).chars().take(LISTED_MAX).collect()
    }
}

/// What is wrong with a name, as the specification has it; none where nothing is.
pub fn wrong_name(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.len() > NAME_MAX {
        Some("it has more than 64 characters")
    } else if !name.chars().all(fits) {
        Some("it has other signs than a to z, 0 to 9 and hyphens")
    } else if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        Some("its hyphens do not stand singly between letters")
    } else {
        None
    }
}

/// A text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn strictly(yaml: &str) -> Result<Map<String, Value>, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_aliases: 0,
            max_depth: 8,
            max_nodes: 2_000,
            max_documents: 1,
        },
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("it is no list of fields".to_owned()),
        Err(error) => {
            let text = error.to_string();
            Err(one_line(text.lines().next().unwrap_or_default()).chars().take(120).collect())
        }
    }
}

/// What can be made of lines `key: value` with whatever stands indented below them.
fn by_lines(yaml: &str) -> Map<String, Value> {
    let mut map: Map<String, Value> = Map::new();
    let mut last: Option<String> = None;
    for line in yaml.lines() {
        let is_below = line.starts_with([' ', '\t', '-']);
        let begins = line.split_once(':').filter(|(key, rest)| {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let ends = rest.is_empty() || rest.starts_with([' ', '\t']);
            !is_below && !key.is_empty() && key.chars().all(is_word) && ends
        });
        if let Some((key, value)) = begins {
            map.insert(key.to_owned(), Value::String(bare(value)));
            last = Some(key.to_owned());
        } else if let Some(Value::String(text)) = last.as_ref().and_then(|key| map.get_mut(key)) {
            let more = line.trim();
            let item = more.strip_prefix("- ").map(bare);
            // A block begins with its sign alone.
            let is_block = matches!(&**text, "|" | ">" | "|-" | ">-");
            let before = if is_block { "" } else { &**text };
            let joint = match &item {
                _ if before.is_empty() => "",
                Some(_) => ", ",
                None => " ",
            };
            *text = format!("{before}{joint}{}", item.as_deref().unwrap_or(more));
        }
    }
    map
}

/// A value without the quotes around it.
fn bare(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\''].into_iter().find_map(|sign| {
        value.strip_prefix(sign)?.strip_suffix(sign).filter(|inner| !inner.contains(sign))
    });
    inner.unwrap_or(value).to_owned()
}

fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Null => String::new(),
        Value::Array(all) => all.iter().map(as_text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn as_bool(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is) => Some(*is),
        Value::String(text) => match &*text.to_ascii_lowercase() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Words of a text, or the entries of a list.
fn words(value: Option<&Value>) -> Vec<String> {
    let text = match value {
        Some(Value::Array(all)) => all.iter().map(as_text).collect(),
        Some(value) => as_text(value).split_whitespace().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    text.into_iter().take(LIST_MAX).collect()
}

/// Rules: the entries of a list, or what stands between blanks or commas outside parentheses.
fn rules(value: Option<&Value>) -> Vec<String> {
    if let Some(Value::Array(all)) = value {
        return all.iter().map(as_text).filter(|rule| !rule.is_empty()).take(LIST_MAX).collect();
    }
    let text = value.map(as_text).unwrap_or_default();
    let (mut depth, mut all, mut rule) = (0_usize, Vec::new(), String::new());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c.is_whitespace() || c == ',') {
            all.push(std::mem::take(&mut rule));
        } else {
            rule.push(c);
        }
    }
    all.push(rule);
    all.into_iter().filter(|rule| !rule.is_empty()).take(LIST_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_split_at_its_marks() {
        for (text, head, rest) in [
            ("---\na: 1\n---\nbody", Some(Some("a: 1\n")), "body"),
            ("\u{feff}---\r\na: 1\r\n---\r\nb", Some(Some("a: 1\r\n")), "b"),
            ("---\n---\n", Some(Some("")), ""),
            ("---\na: 1\n", Some(None), ""),
            ("--- \nx", Some(None), ""),
            ("body\n---\n", None, "body\n---\n"),
            ("", None, ""),
        ] {
            assert_eq!(split(text), (head, rest), "{text:?}");
        }
    }

    #[test]
    fn the_fields_are_read_whatever_their_form() {
        let head = FrontMatter::parse(
            "name: 12\ndescription: >\n  One\n  two\nwhen_to_use: later\nallowed-tools: Bash(git \
             log:*), Read Grep\narguments: [a, b]\ndisable-model-invocation: yes\nuser-invocable: \
             false\ncontext: fork\nmodel: x\nodd: 1\n",
        );
        assert_eq!((head.name.as_deref(), &*head.description), (Some("12"), "One two"));
        assert_eq!(head.listed(), "One two later");
        assert_eq!(head.allowed_tools, ["Bash(git log:*)", "Read", "Grep"]);
        assert_eq!(head.arguments, ["a", "b"]);
        assert!(head.is_for_people && head.is_for_models && head.is_forked);
        assert_eq!(
            head.warnings,
            ["these fields do nothing here: model", "these fields are not known: odd"]
        );
        let head = FrontMatter::parse("allowed-tools:\n  - Bash(a, b)\n  - Read\n");
        assert_eq!(head.allowed_tools, ["Bash(a, b)", "Read"]);
    }

    #[test]
    fn what_is_no_yaml_is_read_by_lines() {
        let head = FrontMatter::parse(
            "name: colons\ndescription: Use when: the user asks: why\nallowed-tools:\n  - Read\n  \
             - Bash(x)\n",
        );
        assert_eq!(head.description, "Use when: the user asks: why");
        assert_eq!(head.allowed_tools, ["Read", "Bash(x)"]);
        assert!(head.warnings[0].contains("is no YAML"), "{:?}", head.warnings);
        // Nothing grows from what refers to itself.
        let bomb = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a]\nc: [*b,*b]\nname: n\n";
        let head = FrontMatter::parse(bomb);
        assert_eq!(head.name.as_deref(), Some("n"));
        assert!(head.warnings[0].contains("is no YAML"), "{:?}", head.warnings);
        let deep = format!("name: n\nx: {}\n", "[".repeat(5_000));
        assert_eq!(FrontMatter::parse(&deep).name.as_deref(), Some("n"));
        assert_eq!(FrontMatter::parse("- a\n- b\n").name, None);
    }

    #[test]
    fn names_are_those_of_the_specification() {
        for name in ["a", "pdf-2", "0"] {
            assert_eq!(wrong_name(name), None, "{name}");
        }
        for name in ["A", "a_b", "-a", "a-", "a--b", "\u{e9}", &"a".repeat(65)] {
            assert!(wrong_name(name).is_some(), "{name}");
        }
    }
}
