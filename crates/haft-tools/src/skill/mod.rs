//! skill: gives the instructions of a skill, filled with arguments.
//!
//! **Invariant:** a body is read through the host, and its commands and files go through the
//! pipeline like any other call. What a skill of a project wants to do counts only where that is
//! trusted, and ends with the turn. A body stays in view until older messages are summed up, and
//! then stands behind the summary.

pub mod catalogue;
pub mod front_matter;
pub mod template;

use std::{
    fmt,
    fmt::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use haft_host::{FileKind, ListHow};
use haft_policy::{Rules, Scope, Verdict};
use haft_tool::{Cx, InvokedBy, SkillCommand, StateNote, Tool, WorkHooks, schema_of};
use haft_types::{
    Access, Budget, EntryKind, Env, Follow, Hash, HostPath, Kind, Loading, Outcome, Place, Plan,
    Shape, Status, Target, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::{
    catalogue::{Catalogue, SkillEntry, SkillOrigin, lines},
    front_matter::{FrontMatter, split},
    template::{Stretch, Template, Values, words},
};

/// Most bytes of a body; the rest is read when it is needed.
const BODY_MAX: usize = 90_000;
/// Most bytes of an answer with all that was put in.
const ANSWER_MAX: usize = 98_000;
/// Characters of an answer.
const BUDGET: u64 = 100_000;
/// Most bytes of arguments.
const ARGUMENTS_MAX: usize = 32 << 10;
/// Most bytes of a name.
const NAME_MAX: usize = 300;
/// Most bytes of a command's output, and of a file.
const OUTPUT_MAX: usize = 16 << 10;
/// Most bytes of a body that stand behind a summary.
const KEPT_MAX: usize = 20_000;
/// Most files of a skill that are named, and how deep they may lie.
const FILES: (usize, usize) = (50, 3);
/// What the keys of the state begin with that has the skills in use.
const KEY: &str = "skill ";

/// Where skills come from.
pub trait SkillSource: Send + Sync {
    /// The skills and commands, as they were found last.
    fn catalogue(&self) -> Arc<Catalogue>;

    /// Looks for them again.
    fn refresh(&self) -> Arc<Catalogue>;

    /// The project's root, for bodies that ask for it.
    fn project(&self) -> String;
}

/// The skills of a run; none by default.
#[derive(Clone, Default)]
pub struct Skills(pub Option<Arc<dyn SkillSource>>);

impl fmt::Debug for Skills {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Skills").field(&self.0.is_some()).finish()
    }
}

impl Skills {
    fn catalogue(&self) -> Arc<Catalogue> {
        self.0.as_ref().map(|source| source.catalogue()).unwrap_or_default()
    }
}

/// Gives the instructions of skills.
#[derive(Clone, Debug, Default)]
pub struct Skill {
    /// The skills that there are.
    pub skills: Skills,
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Its name as listed, or words that say what it does.
    skill: String,
    /// As the skill wants them.
    args: Option<String>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Its name.
    name: String,
    /// The file with its instructions; none where haft brings them along.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Rules that count until the turn ends.
    rules: Vec<String>,
    /// Whether its instructions were in view already.
    known: bool,
}

impl Tool for Skill {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Skill".into()],
            snippet: "Get the instructions of a skill".into(),
            hint: "skill instructions how to procedure workflow template command".into(),
            kind: Kind::Read,
            primary: "skill".into(),
            loading: Loading::Deferred,
            budget: Budget::Chars(BUDGET),
            ..ToolSpec::new(
                "skill",
                "Skill",
                "Get the instructions of a skill, before you begin what it is for. A wrong name \
                 lists the nearest.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let name = front_matter::one_line(&input.skill);
        bounded(&name, input.args.as_deref().unwrap_or_default())?;
        let state = Target::State { name: "skills".into() };
        let Some(entry) = self.skills.catalogue().find(&name).cloned() else {
            return Ok(Plan::new(place, format!("Skill: {name}")).with(Access::Observe, state));
        };
        let plan = Plan::new(place, format!("Skill: {}", entry.name)).with(Access::Modify, state);
        Ok(match (entry.text, entry.is_command) {
            (Some(_), _) => plan,
            (None, true) => plan.reads(entry.file.clone()),
            (None, false) => plan.reads(entry.file.clone()).searches(entry.folder.clone()),
        })
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let name = front_matter::one_line(&input.skill);
        let Some(entry) = self.skills.catalogue().find(&name).cloned() else {
            return self.late(&name, &input, cx).await;
        };
        if entry.head.is_for_people && !cx.is_typed() {
            let text = format!("only a person starts {}", entry.name);
            return Err(ToolError::new(text)
                .hint(format!("Ask the person to type /{}, or go on without it.", entry.name)));
        }
        let body = body(&entry, cx).await?;
        let arguments = input.args.as_deref().unwrap_or_default();
        let Lent { rules, mut notes } = lend(&entry, &body.head, cx);
        let text = self.filled(&entry, &body, arguments, cx).await?;
        let mut text = framed(&entry, &text);
        if !entry.is_command {
            push_files(&mut text, &entry, cx).await;
        }
        notes.extend(unusual(&entry, &body.head, cx));
        let known = !entry.is_command && keep(&entry, &text, cx)?;
        if known {
            text = format!(
                "The instructions of {} with these arguments are in view already, unchanged.",
                entry.name
            );
        }
        for note in &notes {
            let _ = write!(text, "\n[{note}]");
        }
        let file = entry.text.is_none().then(|| entry.file.text().into_owned());
        let data = json!(Data { name: entry.name.clone(), file, rules, known });
        let about = entry.head.listed();
        let colon = if about.is_empty() { "" } else { ": " };
        let detail = Shape::Markdown { text: format!("{}{colon}{about}", entry.name) };
        let mut outcome = Outcome::text(text).with_data(data).with_detail(detail);
        outcome.notes = notes.into_iter().map(|note| format!("[{note}]")).collect();
        Ok(outcome)
    }
}

/// Refuses names and arguments that are too long to mean anything.
fn bounded(name: &str, arguments: &str) -> Result<(), ToolError> {
    if name.is_empty() {
        let error = ToolError::new("skill is empty");
        return Err(error.hint("Give the name of a skill, or words that say what it does."));
    }
    if name.len() > NAME_MAX {
        let text = format!("skill has {} bytes; at most {NAME_MAX} are taken", name.len());
        return Err(ToolError::new(text).hint("Give the name of a skill."));
    }
    if arguments.len() > ARGUMENTS_MAX {
        let text = format!("args has {} bytes; at most {ARGUMENTS_MAX} are taken", arguments.len());
        return Err(ToolError::new(text).hint("Put it into a file, and give its path."));
    }
    Ok(())
}

impl Skill {
    /// A name that was not found: looks again, and names the nearest.
    async fn late(&self, name: &str, input: &Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let Some(source) = self.skills.0.clone() else {
            let error = ToolError::new("there are no skills here");
            return Err(error.hint("Go on without them."));
        };
        let looking = tokio::task::spawn_blocking(move || source.refresh());
        let catalogue = looking.await.unwrap_or_default();
        // Planned anew, it declares what it reads.
        if catalogue.find(name).is_some() && !cx.is_nested() {
            return Ok(cx.call("skill", json!({"skill": name, "args": input.args})).await);
        }
        let near = catalogue.nearest(name);
        let shown: String = name.chars().take(100).collect();
        let error = ToolError::new(format!("there is no skill named {shown:?}"));
        Err(error.hint(if near.is_empty() {
            let all = catalogue.listed().count();
            format!("None of the {all} skills is near it: try other words, or go on without one.")
        } else {
            format!("Call skill with one of these names:{}", lines(&near))
        }))
    }

    /// The body with everything put in.
    async fn filled(
        &self,
        entry: &SkillEntry,
        body: &Body,
        arguments: &str,
        cx: &Cx,
    ) -> Result<String, ToolError> {
        let template = Template::parse(&body.text, &body.head.arguments, entry.is_command);
        let folder = entry.folder.text().into_owned();
        let project = self.skills.0.as_ref().map(|source| source.project()).unwrap_or_default();
        let session = cx.session().id.clone();
        let variables = template::VARIABLES.iter().map(|name| {
            let value = match () {
                () if name.ends_with("SKILL_DIR") => &folder,
                () if name.ends_with("SESSION_ID") => &session,
                () => &project,
            };
            (*name, value.clone())
        });
        let values =
            Values { all: arguments, words: words(arguments), variables: variables.collect() };
        let mut text = String::new();
        for (index, stretch) in template.stretches.iter().enumerate() {
            let more = match stretch {
                Stretch::Text(pieces) => values.text(pieces),
                Stretch::Run(pieces) => Some(ran(entry, (&values, pieces), index, cx).await),
                Stretch::File(pieces) => match values.text(pieces) {
                    Some(path) => Some(attached(entry, &path, cx).await),
                    None => None,
                },
            };
            let more = more.filter(|more| text.len() + more.len() <= ANSWER_MAX);
            let Some(more) = more else {
                let text = format!(
                    "{} grows to more than {ANSWER_MAX} bytes with these arguments, its commands \
                     and files",
                    entry.name
                );
                return Err(ToolError::new(text)
                    .hint("Call it with shorter arguments, or read its file instead."));
            };
            text.push_str(&more);
        }
        if !template.takes_arguments {
            template::push_arguments(&mut text, arguments);
        }
        if body.left_out > 0 {
            let _ = write!(
                text,
                "\n[{} bytes more are left out here: read {} from line {} on]",
                body.left_out,
                entry.file.text(),
                body.lines + 1
            );
        }
        Ok(text)
    }
}

/// The body of a skill as it is now.
struct Body {
    head: FrontMatter,
    text: String,
    /// Bytes of the file behind it.
    left_out: u64,
    /// Lines of the file up to its end.
    lines: usize,
}

async fn body(entry: &SkillEntry, cx: &Cx) -> Result<Body, ToolError> {
    let (text, left_out) = match entry.text {
        Some(text) => (text.to_owned(), 0),
        None => read(&entry.file, cx).await.map_err(|why| {
            let path = entry.file.text();
            ToolError::new(format!("{path} cannot be read: {why}"))
                .hint("Go on without this skill, or mend the file.")
        })?,
    };
    let lines = text.lines().count();
    let (head, rest) = match split(&text) {
        (Some(Some(yaml)), rest) => (FrontMatter::parse(yaml), rest.to_owned()),
        (Some(None), _) => {
            let text = format!("the front matter of {} is not closed", entry.name);
            return Err(ToolError::new(text).hint("Go on without it, or mend the file."));
        }
        (None, rest) => (FrontMatter::default(), rest.to_owned()),
    };
    Ok(Body { head, text: rest.trim().to_owned(), left_out, lines })
}

/// The begin of a file, up to the end of a line, and how many bytes follow.
async fn read(file: &HostPath, cx: &Cx) -> Result<(String, u64), String> {
    let told = |error: std::io::Error| error.to_string();
    let at = cx.host.fs().locate(file, Follow::Yes).await.map_err(told)?;
    if at.kind == FileKind::Missing {
        return Err("it is gone".to_owned());
    }
    let bytes = cx.host.fs().read(&at, 0, BODY_MAX).await.map_err(told)?;
    let mut kept = &bytes[..];
    if at.size() > kept.len() as u64 {
        let end = kept.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        kept = &kept[..end];
    }
    let decoded = haft_text::decode(kept).map_err(|error| error.to_string())?;
    Ok((decoded.text().to_owned(), at.size().saturating_sub(kept.len() as u64)))
}

/// What became of the rules of a skill.
struct Lent {
    rules: Vec<String>,
    notes: Vec<String>,
}

/// Lets the rules of a skill count for the turn. Denials count whoever wrote them.
fn lend(entry: &SkillEntry, head: &FrontMatter, cx: &Cx) -> Lent {
    let scope = match entry.origin {
        SkillOrigin::Project => Scope::Project,
        SkillOrigin::Person | SkillOrigin::Shipped => Scope::User,
    };
    let (mut rules, mut notes) = (Rules::default(), Vec::new());
    head.disallowed_tools.iter().for_each(|rule| rules.add(Verdict::Deny, scope, rule));
    match entry.withheld {
        None => head.allowed_tools.iter().for_each(|rule| rules.add(Verdict::Allow, scope, rule)),
        Some(why) if !head.allowed_tools.is_empty() => {
            notes.push(format!("its allowed-tools do not count: {why}"));
        }
        Some(_) => {}
    }
    notes
        .extend(rules.problems().iter().take(5).map(|problem| format!("allowed-tools: {problem}")));
    let taken: Vec<String> = rules.rules().iter().map(ToString::to_string).collect();
    if !taken.is_empty() {
        cx.session().turn_rules.add(cx.agent(), cx.turn, rules);
    }
    Lent { rules: taken, notes }
}

/// What the output of a command is, in its place.
async fn ran(
    entry: &SkillEntry,
    (values, pieces): (&Values<'_>, &[template::Piece]),
    index: usize,
    cx: &Cx,
) -> String {
    let command = match values.command(pieces) {
        Ok(command) => command,
        Err(why) => return format!("[not run: {why}]"),
    };
    if let Some(why) = entry.withheld {
        return format!("[not run, for {why}: {command}]");
    }
    if let Some(hooks) = cx.service::<dyn WorkHooks>() {
        let about = SkillCommand {
            command: command.clone(),
            id: format!("{}-{index}", cx.call.0),
            name: entry.name.clone(),
            source: entry.origin.name().to_owned(),
            invoked_by: if cx.is_typed() { InvokedBy::User } else { InvokedBy::Model },
        };
        if let Some(why) = hooks.skill_command(&about).await {
            return format!("[not run, for a hook refused it: {}]", cut(&why));
        }
    }
    let outcome = cx.call("bash", json!({"command": command})).await;
    let text = cut(&outcome.joined_text());
    match outcome.status {
        Status::Done => text,
        _ => format!("[{command} did not run well: {text}]"),
    }
}

/// A file in its place, behind its name as it is written; where there is none, the name alone.
async fn attached(entry: &SkillEntry, path: &str, cx: &Cx) -> String {
    if path.is_empty() {
        return "@".to_owned();
    }
    if entry.withheld.is_some() {
        return format!("@{path}");
    }
    let outcome = cx.call("read", json!({"path": path})).await;
    match outcome.status {
        Status::Done => {
            format!("{path}:\n<file path=\"{path}\">\n{}\n</file>", cut(&outcome.joined_text()))
        }
        _ => format!("@{path}"),
    }
}

/// A text within the bytes of an output.
fn cut(text: &str) -> String {
    let text = text.trim_end();
    let end = text.floor_char_boundary(OUTPUT_MAX);
    match text.len() - end {
        0 => text.to_owned(),
        left => format!("{}\n[{left} bytes more are left out]", &text[..end]),
    }
}

/// Instructions between marks, with where their relative paths begin.
fn framed(entry: &SkillEntry, text: &str) -> String {
    if entry.is_command {
        return text.to_owned();
    }
    let folder = match entry.text {
        Some(_) => String::new(),
        None => format!("\nIts folder, where its relative paths begin: {}", entry.folder.text()),
    };
    format!("<skill_content name=\"{}\">\n{text}\n</skill_content>{folder}", entry.name)
}

/// Names the files of a skill; none is read.
async fn push_files(text: &mut String, entry: &SkillEntry, cx: &Cx) {
    if entry.text.is_some() {
        return;
    }
    let (most, deepest) = FILES;
    let (mut names, mut more) = (Vec::new(), false);
    let mut open = vec![(entry.folder.clone(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = open.pop() {
        let Ok(at) = cx.host.fs().locate(&folder, Follow::Yes).await else { continue };
        let how = ListHow { limit: 200, stat: false };
        let Ok(listing) = cx.host.fs().list(&at, how).await else { continue };
        more |= listing.total - listing.denied > listing.entries.len() as u64;
        for one in listing.entries {
            let Ok(name) = String::from_utf8(one.name) else { continue };
            if name == ".git" || name == "node_modules" {
                continue;
            }
            // A name of several lines would look like more than a name.
            if name.contains(char::is_control) {
                more = true;
                continue;
            }
            let path = format!("{prefix}{name}");
            match one.kind {
                EntryKind::Folder if depth < deepest => {
                    if let Ok(below) = folder.join(&name) {
                        open.push((below, format!("{path}/"), depth + 1));
                    }
                }
                EntryKind::File if path.eq_ignore_ascii_case("SKILL.md") => {}
                EntryKind::File if names.len() < most => names.push(path),
                _ => more = true,
            }
        }
    }
    if names.is_empty() {
        return;
    }
    names.sort();
    let _ = write!(text, "\n<skill_resources>\n{}\n", names.join("\n"));
    if more {
        text.push_str("[there are more]\n");
    }
    text.push_str("</skill_resources>");
}

/// Whether it was told that no skill has a conversation of its own.
#[derive(Default)]
struct ForkTold(AtomicBool);

/// What a person and the model should know of a skill that wants more than there is.
fn unusual(entry: &SkillEntry, head: &FrontMatter, cx: &Cx) -> Option<String> {
    let is_new = || !cx.session().map.get::<ForkTold>().0.swap(true, Ordering::Relaxed);
    (head.is_forked && is_new()).then(|| {
        format!(
            "{} asks for a conversation of its own (context: fork): it runs in this one",
            entry.name
        )
    })
}

/// Keeps the instructions for when older messages leave view. True where they are in view as they
/// are, so that they need not be given again.
fn keep(entry: &SkillEntry, text: &str, cx: &Cx) -> Result<bool, ToolError> {
    let key = format!("{KEY}{}", entry.name);
    let hash = Hash::of(text.as_bytes()).to_string();
    let before = cx.conversation().value(&key);
    let field = |value: &Value, key: &str| value.get(key).cloned().unwrap_or_default();
    let is_same = before.as_ref().is_some_and(|value| field(value, "hash") == json!(hash));
    let stands = cx.standing();
    let is_in_view = is_same
        && stands.is_some()
        && before.as_ref().is_some_and(|value| field(value, "standing") == json!(stands));
    if is_in_view {
        return Ok(true);
    }
    let all = cx.conversation().values(KEY);
    let last = all.iter().filter_map(|(_, value)| StateNote::of(value)).map(|note| note.order);
    let again = format!("{}: call skill again for its instructions", entry.name);
    let end = text.floor_char_boundary(KEPT_MAX);
    let rest = if end < text.len() { format!("\n[cut; {again}]") } else { String::new() };
    let note = StateNote {
        heading: "Instructions of skills in use, word for word".to_owned(),
        words: format!("{}{rest}", &text[..end]),
        again,
        order: last.max().unwrap_or_default() + 1,
        ..StateNote::default()
    };
    let value = json!({StateNote::FIELD: note, "hash": hash, "standing": stands});
    cx.record(key, value)?;
    Ok(false)
}
