//! grep: finds lines of files that match a pattern.
//!
//! **Invariant:** pages neither lose nor repeat results: `offset` counts exactly what the pages
//! before showed. An answer without matches says what was searched and what was not. It knows no
//! regular expressions and no ignore files: the host's search does.

use std::fmt::Write as _;

use haft_host::{GrepMode, GrepQuery, Skip, Skipped};
use haft_tool::{Cx, Room, Tool, schema_of};
use haft_types::{
    Budget, Cut, CutBy, Detail, Env, Guideline, Kind, Loading, MatchLine, Outcome, Place, Plan,
    Shape, Status, ToolError, ToolSpec,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::page::Page;
use crate::{
    search::{
        self, Root, SkippedData,
        globs::{self, Field},
        passed_over, quoted,
    },
    units,
};

mod forms;
mod page;

/// Characters of an answer.
const BUDGET: u64 = 100_000;
/// Longest line that is given whole, in characters.
const LINE: usize = 2_000;
/// Results of a page where none were asked for.
const PAGE: u64 = 250;
/// Most searches for one page: the second begins behind what no search keeps of one file, and more
/// are only needed where files change meanwhile.
const ROUNDS: usize = 4;
/// Most lines of context on either side.
const CONTEXT: u32 = 1_000;

/// Searches file contents.
#[derive(Clone, Copy, Debug, Default)]
pub struct Grep {}

/// What of a match is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// Rust regex of at most 2,048 characters (a{9} counts 9), e.g. "fn \\w+_id\\(".
    pattern: String,
    /// Folder or one file; default: the workspace root. Also an out:// address.
    path: Option<String>,
    /// Only files matching this, e.g. "*.{ts,tsx}" or "!*.md".
    glob: Option<String>,
    /// Only files of this type as ripgrep names it, e.g. "rust", "py".
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Default content: matching lines.
    output_mode: Option<OutputMode>,
    /// Lines of context after each match.
    #[serde(rename = "-A")]
    after: Option<u32>,
    /// Lines of context before each match.
    #[serde(rename = "-B")]
    before: Option<u32>,
    /// Lines of context on both sides.
    #[serde(rename = "-C")]
    context: Option<u32>,
    /// Ignore case.
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    /// Show line numbers; default true.
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    /// Take pattern as plain text.
    literal: Option<bool>,
    /// Let a match span lines; . matches line ends too.
    multiline: Option<bool>,
    /// Most matches (files in the other modes); default 250, 0 = all that fit.
    head_limit: Option<u64>,
    /// Results to skip, for the next page.
    offset: Option<u64>,
    /// Search hidden files; default true.
    hidden: Option<bool>,
    /// Search ignored files too; default false.
    no_ignore: Option<bool>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data<'a> {
    mode: OutputMode,
    /// Files of this page in order.
    files: Vec<FileData<'a>>,
    /// Matching lines of this page.
    matches: u64,
    files_with_matches: u64,
    /// Whether there is more.
    truncated: bool,
    /// The offset of what follows these data.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    /// Set where the text shows more matches than these data hold.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    less_than_text: bool,
    skipped: SkippedData,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileData<'a> {
    path: &'a str,
    matches: u64,
    /// Further lines that match behind binary content and are not given; at least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<u64>,
    /// Where binary content ended the search of the file, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    searched_to: Option<u64>,
    /// Shown lines; one without spans is context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<LineData<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LineData<'a> {
    number: u64,
    text: &'a str,
    /// Byte ranges of text that matched; the first 1,000 at most.
    spans: &'a [(u32, u32)],
}

impl Tool for Grep {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data<'_>>(),
            snippet: "Search file contents by regular expression (ignores what git ignores)".into(),
            guidelines: vec![Guideline {
                text: "Prefer grep, find and ls over bash for searching and listing files \
                       (faster, and they ignore what git ignores)"
                    .into(),
                with: vec!["bash".into(), "find".into(), "ls".into()],
                without: Vec::new(),
            }],
            hint: "search text in file contents by regex, ripgrep".into(),
            kind: Kind::Search,
            primary: "pattern".into(),
            loading: Loading::Always,
            budget: Budget::Chars(BUDGET),
            ..ToolSpec::new(
                "grep",
                "Search contents",
                "Search file contents with ripgrep. Gives path:line:text with paths from the \
                 workspace root, 250 matches a page; the answer names the offset of the next page. \
                 Ignores what git ignores; lines over 2,000 characters are cut around the match. \
                 To find files by name use find.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        if let Some(glob) = input.glob() {
            globs::check(glob, Field::Glob)?;
        }
        let verb = format!("Searching {}", quoted(&input.pattern));
        search::plan(place, input.path.as_deref(), &verb, Field::Glob)
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let root = search::root(cx, input.path.as_deref(), Field::Glob).await?;
        let query = input.query(&root);
        let (mut page, mut skipped) = paged(&input, query.clone(), cx, &root).await?;
        let mut forms = Forms::default();
        if page.seen == 0
            && !cx.stop.is_cancelled()
            && let Some((pattern, name)) = forms::other(&input.pattern, query.literal)
            && let Ok(other) = paged(&input, GrepQuery { pattern, ..query }, cx, &root).await
        {
            forms.tried = Some(name);
            if other.0.seen > 0 {
                forms.found = true;
                (page, skipped) = other;
            }
        }
        let none = skipped.searched + skipped.binary + skipped.unread == 0;
        if let Some(glob) = input.glob().filter(|_| none) {
            root.explain(glob, Field::Glob, false).await;
        }
        page.hide(&root, cx).await;
        Ok(outcome(&input, page, (&skipped, forms), cx, &root))
    }
}

/// Whether the other Unicode form of the pattern was searched for.
#[derive(Clone, Copy, Debug, Default)]
struct Forms {
    /// What that form is called.
    tried: Option<&'static str>,
    /// Whether the results are its.
    found: bool,
}

impl Forms {
    /// What is said of it.
    fn note(self) -> Option<String> {
        let name = self.tried?;
        Some(if self.found {
            format!(
                "the pattern as written matches nothing; what is shown matches its Unicode form {name}"
            )
        } else {
            format!("its other Unicode form ({name}) was searched for, too")
        })
    }
}

/// The page that was asked for, with as many searches as it takes.
async fn paged<'a>(
    input: &Input,
    mut query: GrepQuery,
    cx: &'a Cx,
    root: &'a Root,
) -> Result<(Page<'a>, Skipped), ToolError> {
    for _ in 0..ROUNDS {
        let mut page = Page::new(input, &query, &cx.place, root);
        let skipped = root.grep(&query, search::walk(cx), &mut |file| page.take(file)).await?;
        match page.elsewhere.take() {
            Some(skip) => query.skip = skip,
            None => return Ok((page, skipped)),
        }
    }
    let offset = input.offset.unwrap_or(0);
    Err(ToolError::new(format!(
        "where match {offset} is could not be found out: files changed while they were searched"
    ))
    .hint("Call again when nothing writes to them, or give a smaller path or glob."))
}

impl Input {
    const fn mode(&self) -> OutputMode {
        match self.output_mode {
            Some(mode) => mode,
            None => OutputMode::Content,
        }
    }

    fn limit(&self) -> u64 {
        self.head_limit.unwrap_or(PAGE)
    }

    fn glob(&self) -> Option<&str> {
        self.glob.as_deref().filter(|glob| !glob.is_empty())
    }

    fn kind(&self) -> Option<&str> {
        self.kind.as_deref().filter(|kind| !kind.is_empty())
    }

    /// Lines of context that were asked for on one side.
    fn context(&self, lines: Option<u32>) -> u32 {
        lines.or(self.context).unwrap_or(0)
    }

    fn query(&self, root: &Root) -> GrepQuery {
        let context = |lines: Option<u32>| self.context(lines).min(CONTEXT);
        let limit = self.limit();
        let needed = self.offset.unwrap_or(0).saturating_add(limit).saturating_add(1);
        GrepQuery {
            pattern: self.pattern.clone(),
            literal: self.literal.unwrap_or(false),
            ignore_case: self.ignore_case.unwrap_or(false),
            multiline: self.multiline.unwrap_or(false),
            globs: self
                .glob()
                .map(|glob| globs::normal(glob, Field::Glob, &root.path))
                .into_iter()
                .collect(),
            types: self.kind().map(str::to_owned).into_iter().collect(),
            hidden: self.hidden.unwrap_or(true),
            no_ignore: self.no_ignore.unwrap_or(false),
            mode: match self.mode() {
                OutputMode::Content => GrepMode::Content,
                OutputMode::FilesWithMatches => GrepMode::Files,
                OutputMode::Count => GrepMode::Count,
            },
            before: context(self.before),
            after: context(self.after),
            // Of no file more is wanted than this page and the sign that there is another.
            per_file: match (self.mode(), limit) {
                (OutputMode::Content, 1..) => needed,
                _ => 0,
            },
            max_line: LINE,
            // Of one file it is known at once which matches lie before the page.
            skip: Skip {
                path: None,
                lines: if root.is_file() { self.offset.unwrap_or(0) } else { 0 },
            },
            // The call's own answer showed it, too.
            unmarked: root.is_kept,
        }
    }
}

fn outcome(
    input: &Input,
    page: Page<'_>,
    (skipped, forms): (&Skipped, Forms),
    cx: &Cx,
    root: &Root,
) -> Outcome {
    let stopped = cx.stop.is_cancelled();
    let (from, to) = (page.first(), page.last());
    let content = input.mode() == OutputMode::Content;
    let unit = if content { ["match", "matches"] } else { ["file", "files"] };
    let span = units::span(unit, from, to);
    let mut notes = Vec::new();
    if page.shown() == 0 && page.files.is_empty() {
        notes.push(nothing(input, &page, (skipped, forms), root, stopped));
    } else if page.more {
        notes.push(format!(
            "[{span} of at least {} so far; for the next ones call again with \
             offset={to}]",
            page.seen
        ));
    } else if from > 1 && page.shown() > 0 {
        notes.push(format!("[{span} of {}{}]", page.seen, so_far(stopped)));
    }
    let left = passed_over(skipped, false);
    if page.shown() > 0 && !left.is_empty() {
        notes.push(format!("[not searched: {left}]"));
    }
    if page.shown() > 0 {
        notes.extend(forms.note().map(|note| format!("[{note}]")));
        notes.extend(limits(input, skipped).map(|limit| format!("[{limit}]")));
    }
    if page.shown() > 0 && input.context(input.before).max(input.context(input.after)) > CONTEXT {
        notes.push(format!("[at most {CONTEXT} lines of context are shown; read shows more]"));
    }
    notes.extend(root.gap.iter().map(|gap| format!("[{gap}]")));
    if stopped {
        notes.push("[cancelled: this is what was found so far]".to_owned());
    }
    let cut = (page.more || (from > 1 && to >= from)).then(|| Cut {
        from,
        to,
        total: (!page.more && !stopped).then_some(page.seen),
        by: CutBy::Items,
        rest: None,
        end: None,
    });
    let data = serde_json::to_value(data(input, &page, skipped, cx.data_room(BUDGET))).ok();
    let text = format!("{}{}", page.text, notes.join("\n"));
    let shape = Shape::Matches { root: cx.place.cwd.clone(), files: page.files };
    Outcome {
        status: if stopped { Status::Cancelled } else { Status::Done },
        data,
        detail: Some(Detail { shape, cut }),
        ..Outcome::text(text.trim_end_matches('\n'))
    }
}

const fn so_far(stopped: bool) -> &'static str {
    if stopped { " so far" } else { "" }
}

/// What is said where nothing is shown.
fn nothing(
    input: &Input,
    page: &Page<'_>,
    (skipped, forms): (&Skipped, Forms),
    root: &Root,
    stopped: bool,
) -> String {
    if page.seen > 0 {
        let (offset, seen) = (input.offset.unwrap_or(0), page.seen);
        let left = passed_over(skipped, false);
        let mut left = if left.is_empty() { left } else { format!(" Not searched: {left}.") };
        for limit in limits(input, skipped) {
            let _ = write!(left, " {limit}.");
        }
        let words = match input.mode() {
            OutputMode::Content => ["match", "matches"],
            OutputMode::FilesWithMatches | OutputMode::Count => {
                ["file with matches", "files with matches"]
            }
        };
        return search::past_the_end(offset, seen, words, stopped) + &left;
    }
    let (pattern, place) = (quoted(&input.pattern), root.name());
    let mut text = format!("No matches for {pattern} in {place} ({}).", files_searched(skipped));
    if let Some(why) = left_out(input, skipped, root) {
        text.push_str(&why);
    } else if let Some(why) = misread(&input.pattern, input.literal.unwrap_or(false)) {
        text.push_str(why);
    }
    text.push_str(&root.elsewhere());
    let left = passed_over(skipped, true);
    if !left.is_empty() {
        text.push_str(" Not searched: ");
        text.push_str(&left);
        text.push('.');
    }
    if let Some(note) = forms.note() {
        let (first, rest) = note.split_at(1);
        let _ = write!(text, " {}{rest}.", first.to_uppercase());
    }
    for limit in limits(input, skipped) {
        let _ = write!(text, " {limit}.");
    }
    text
}

/// What a pattern that matched nothing may have been meant for, as a sentence with a space before.
fn misread(pattern: &str, literal: bool) -> Option<&'static str> {
    let within = |sign: char| {
        let inner = pattern.strip_prefix(sign).and_then(|rest| rest.strip_suffix(sign));
        inner.is_some_and(|inner| !inner.is_empty())
    };
    if within('"') || within('\'') {
        return Some(" The quotes count as part of the pattern.");
    }
    if within('/') {
        return Some(" The slashes count as part of the pattern: leave them out.");
    }
    if literal {
        let escaped = pattern.contains('\\');
        return escaped.then_some(" With literal a \\ stands for itself: leave it out.");
    }
    if pattern.contains("\\|") {
        return Some(" \\| is a bar itself: for one or the other write |.");
    }
    if pattern.contains("\\(") && pattern.contains("\\)") {
        return Some(" \\( and \\) are the brackets themselves: a group is written ( ).");
    }
    None
}

/// What was searched otherwise than the pattern says, each as a sentence without its full stop.
fn limits(input: &Input, skipped: &Skipped) -> impl Iterator<Item = String> {
    let parts = (skipped.parts > 0).then(|| in_parts(skipped));
    let unread = (skipped.unread > 0).then(|| {
        let (files, were) = match skipped.unread {
            1 => ("1 file in another encoding".to_owned(), "was"),
            many => (format!("{many} files in other encodings"), "were"),
        };
        format!(
            "{files} {were} not searched for {} (over 8 MiB, or in an encoding that cannot be told): \
             convert to UTF-8 first, or search for ASCII text near it",
            quoted(&input.pattern)
        )
    });
    parts.into_iter().chain(unread)
}

/// Says of files with lines without end how they were searched.
fn in_parts(skipped: &Skipped) -> String {
    let files = match skipped.parts {
        1 => "1 file has".to_owned(),
        many => format!("{many} files have"),
    };
    format!(
        "{files} lines of many MB: they were searched in parts of 4 MB at most. What goes over \
         from one part into the next is not found; each part counts as a line, also for ^ and $"
    )
}

fn files_searched(skipped: &Skipped) -> String {
    let files = if skipped.searched == 1 { "file" } else { "files" };
    format!("{} {files} searched", skipped.searched)
}

/// Why there was no file to search, where the arguments left out all of them.
fn left_out(input: &Input, skipped: &Skipped, root: &Root) -> Option<String> {
    let met = skipped.searched + skipped.binary + skipped.unread;
    if met + skipped.denied + skipped.unreadable > 0 {
        return None;
    }
    let (glob, kind) = (input.glob(), input.kind());
    let named = [("glob", glob), ("type", kind)];
    let named: Vec<String> = named
        .iter()
        .filter_map(|(name, value)| value.map(|value| format!("{name} {}", quoted(value))))
        .collect();
    let doubt = |glob| root.doubt(glob, Field::Glob);
    let doubt = glob.map_or_else(String::new, doubt);
    (!named.is_empty())
        .then(|| format!(" No file there is left by {}.{doubt}", named.join(" and ")))
}

/// What programs read of a page: as much of it as there is room for, and where to go on.
fn data<'a>(input: &Input, page: &'a Page<'_>, skipped: &Skipped, mut room: Room) -> Data<'a> {
    let of_lines = input.mode() == OutputMode::Content;
    let (mut files, mut taken, mut full) = (Vec::with_capacity(page.files.len()), 0, false);
    for (file, end) in page.files.iter().zip(&page.ends) {
        let head = FileData {
            path: &file.path,
            matches: file.count,
            hidden: (end.hidden > 0).then_some(end.hidden),
            searched_to: end.until,
            lines: Vec::new(),
        };
        // The list of lines has a name as well, which is not written while it is empty.
        full = !room.take(&(&head, "lines: []"));
        if full {
            break;
        }
        let lines: Vec<_> = file.lines.iter().map(line).take_while(|l| room.take(l)).collect();
        full = lines.len() < file.lines.len();
        let given = lines.iter().filter(|line| !line.spans.is_empty()).count() as u64;
        taken += if of_lines { given } else { 1 };
        if !full || given > 0 {
            let matches = if of_lines { given } else { file.count };
            files.push(FileData { matches, lines, ..head });
        }
        if full {
            break;
        }
    }
    Data {
        mode: input.mode(),
        matches: files.iter().map(|file| file.matches).sum(),
        files_with_matches: files.len() as u64,
        files,
        truncated: full || page.more || skipped.stopped,
        next_offset: (full || page.more).then(|| page.first().saturating_sub(1) + taken),
        less_than_text: full,
        skipped: skipped.into(),
    }
}

fn line(line: &MatchLine) -> LineData<'_> {
    LineData { number: line.number, text: &line.text, spans: &line.spans }
}
