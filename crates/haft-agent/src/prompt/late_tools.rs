//! What the prompt says of tools that the model gets to know later: their short names by server.
//!
//! **Invariant:** it takes at most its budget, whatever tools are called and however many there are. It
//! depends on the tools alone, so it stays the same from request to request.

use std::{collections::BTreeMap, fmt::Write as _};

use haft_tool::ToolSet;
use haft_types::{Origin, ToolSpec};

use super::{Moves, Section, own};

/// The server that haft's own tools stand under.
const HAFT: &str = "haft";
/// The longest name, in bytes, that is listed.
const NAME: usize = 64;
/// Room, in bytes, for the count of what is not listed.
const REST: usize = 80;

/// The tools of one server.
struct Server<'a> {
    name: &'a str,
    names: Vec<&'a str>,
    is_listed: bool,
}

impl Server<'_> {
    /// What all names begin with that is not the name itself: up to the last mark between words.
    fn prefix(&self) -> &str {
        let [first, rest @ ..] = &self.names[..] else { return "" };
        let same = rest.iter().fold(first.len(), |length, name| {
            first.bytes().zip(name.bytes()).take(length).take_while(|(a, b)| a == b).count()
        });
        let same = if rest.is_empty() { 0 } else { same };
        let end = first[..first.floor_char_boundary(same)].rfind(['_', '-', '.', '/', ':']);
        end.map_or("", |end| &first[..=end])
    }

    /// All names, short, behind what stands before each.
    fn whole(&self) -> String {
        let prefix = self.prefix();
        let short: Vec<&str> = self.names.iter().map(|name| &name[prefix.len()..]).collect();
        let before = if prefix.is_empty() { String::new() } else { format!(" ({prefix}...)") };
        format!("- {}{before}: {}\n", self.name, short.join(", "))
    }

    fn count(&self) -> String {
        let (count, tools) =
            (self.names.len(), if self.names.len() == 1 { "tool" } else { "tools" });
        format!("- {}: {count} {tools}, search for them\n", self.name)
    }

    fn line(&self) -> String {
        if self.is_listed { self.whole() } else { self.count() }
    }
}

/// The section about tools that are found by a search, within so many tokens; none where there are none.
pub fn late_tools(tools: &ToolSet, most: u64) -> Option<Section> {
    let finder = tools.listed().find(|spec| spec.finds);
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for spec in tools.deferred() {
        servers.entry(server(spec)).or_default().push(&spec.name);
    }
    if servers.is_empty() {
        return None;
    }
    let how = match finder {
        Some(finder) => format!(
            "These are there, too. `{}` loads them: by words, or by `select:` and names.\n",
            finder.name
        ),
        None => "These are there, too; call them by their names:\n".to_owned(),
    };
    let most = usize::try_from(most.saturating_mul(4)).unwrap_or(usize::MAX);
    let servers = servers.into_iter().map(|(name, names)| {
        let is_listed = false;
        Server { name, names, is_listed }
    });
    let text = format!("{how}{}", listed(servers.collect(), most.saturating_sub(how.len())));
    Some(own("late tools", "More tools", text.trim_end().to_owned(), Moves::Fixed))
}

/// The lines of servers within so many bytes: first a count of each, then the names of the smallest ones.
fn listed(mut servers: Vec<Server<'_>>, most: usize) -> String {
    // haft's own first, the others by their names.
    servers.sort_by_key(|server| server.name != HAFT);
    let mut left = most;
    let mut fitting = 0;
    for server in &servers {
        let line = server.count().len();
        let is_last = fitting + 1 == servers.len();
        let Some(rest) = left.checked_sub(line + if is_last { 0 } else { REST }) else { break };
        left = rest + if is_last { 0 } else { REST };
        fitting += 1;
    }
    let rest = servers.split_off(fitting);
    if !rest.is_empty() {
        left = left.saturating_sub(REST);
    }
    let mut order: Vec<usize> = (0..servers.len()).collect();
    order.sort_by_key(|at| servers[*at].whole().len());
    for at in order {
        let server = &mut servers[at];
        let is_fit =
            |name: &&str| name.len() <= NAME && name.bytes().all(|byte| byte.is_ascii_graphic());
        let more = server.whole().len().saturating_sub(server.count().len());
        if server.names.iter().all(is_fit)
            && let Some(rest) = left.checked_sub(more)
        {
            (left, server.is_listed) = (rest, true);
        }
    }
    let mut text: String = servers.iter().map(Server::line).collect();
    if !rest.is_empty() {
        let count: usize = rest.iter().map(|server| server.names.len()).sum();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {} more servers: {count} tools, search for them", rest.len());
    }
    text
}

/// The server that a tool is listed under.
fn server(spec: &ToolSpec) -> &str {
    match &spec.origin {
        Origin::Builtin => HAFT,
        Origin::Mcp { server, .. }
            if server.len() <= NAME && !server.contains(char::is_control) =>
        {
            server
        }
        Origin::Mcp { .. } => "other servers",
        Origin::Executable { .. } => "programs",
        Origin::Embedder => "others",
    }
}
