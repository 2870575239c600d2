//! Words of names, descriptions and queries: where they end, what they come from, and which mean the same.
//!
//! **Invariant:** a word of a tool and the same word of a query come to the same stem.

use std::{collections::HashSet, sync::LazyLock};

/// A word of a query.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Word {
    /// The stems that it may stand for, each with how much of it counts.
    pub forms: Vec<(String, f64)>,
    /// How much the word counts.
    pub weight: f64,
}

/// Most words of a text that are looked at.
const MOST: usize = 400;
/// How much a word counts that means the same as that of the query.
const SAME: f64 = 0.6;
/// How much a word counts that says little by itself.
const LITTLE: f64 = 0.3;

/// Words that say nothing about what a tool does.
const EMPTY: &str = "a an the of to in on at for from with by as is are be was were do does did can could \
     i me my we us our you your it its he she they them their this that these those there here what which \
     who whom when where why how and or but if then else so not no than into onto over under up out off \
     about any some each every please want wants need needs like just also too only now via per will would \
     should must may might let lets have has had been being get's id's one ones something someone anything \
     tool tools using use used uses able way";

/// Words that stand in many queries and tell tools apart rarely.
const COMMON: &str = "new all current given specific existing data information info details thing make give \
     take put go see know tell whole entire latest recent";

/// Words that mean much the same to people who ask for something. Each stands in a line with the others.
const GROUPS: &[&str] = &[
    "create add new open make insert register compose write start begin generate",
    "delete remove drop destroy erase discard trash purge wipe clear rid uninstall",
    "update edit change modify set alter adjust revise patch amend correct rewrite",
    "rename name title",
    "get fetch read show view display retrieve look see print describe inspect detail info tell load give check",
    "list show all enumerate browse overview every",
    "search find query lookup locate filter hunt seek",
    "send post message notify deliver email write tell say announce",
    "email mail message inbox",
    "reply answer respond response",
    "forward share pass",
    "move transfer relocate shift",
    "copy duplicate clone replicate",
    "run execute start launch trigger invoke perform kick",
    "start run launch boot begin resume spin",
    "stop cancel abort halt end terminate kill shut pause",
    "restart reboot reload",
    "close resolve finish complete done end",
    "reopen open again",
    "merge join combine unite",
    "split divide separate",
    "upload attach import put push",
    "download export save pull",
    "import load ingest",
    "comment note remark annotate feedback",
    "assign owner responsible delegate give hand",
    "approve accept confirm sign",
    "reject decline deny refuse dismiss",
    "invite add member",
    "issue ticket bug task problem defect",
    "task todo item job chore action",
    "pull_request pr merge_request mr",
    "repository repo project codebase",
    "folder directory",
    "file document doc",
    "image picture photo screenshot",
    "event meeting appointment",
    "calendar schedule agenda availability",
    "free busy available availability slot",
    "remind reminder alarm notification",
    "invoice bill",
    "pay payment charge transaction",
    "refund reimburse money return",
    "customer client buyer",
    "contact person people",
    "user member person people account teammate colleague",
    "team group",
    "permission access right role share grant privilege",
    "revoke withdraw remove",
    "spreadsheet sheet workbook",
    "row record entry line",
    "column field attribute",
    "cell range value",
    "database db",
    "query sql select",
    "table schema structure column",
    "chart graph plot visualize diagram",
    "metric stat statistic measure usage number count",
    "count number total many sum",
    "log trace output",
    "error exception crash failure fault fail",
    "deploy deployment release ship publish rollout",
    "rollback revert undo restore back",
    "restore recover undelete",
    "backup snapshot",
    "branch",
    "tag label",
    "version revision history",
    "history log past previous change activity",
    "diff compare difference change",
    "channel room",
    "thread conversation chat discussion",
    "page article",
    "site website web",
    "url link address",
    "price cost amount",
    "subscription plan",
    "product item goods",
    "order purchase",
    "stock inventory",
    "alert alarm incident warning",
    "monitor watch observe track health status",
    "status state progress health",
    "server host machine instance vm",
    "container pod",
    "secret credential key password token",
    "setting config configuration preference option",
    "place location position",
    "map direction route navigate",
    "weather forecast temperature",
    "time hour clock date",
    "click press tap",
    "type enter input fill",
    "open visit navigate browse go",
    "summary summarize digest",
    "translate translation language",
    "draft unsent",
    "archive store away",
    "star favorite bookmark pin",
    "follow subscribe watch",
    "mute silence snooze quiet",
    "block ban forbid",
    "lock protect freeze",
    "enable activate turn_on on",
    "disable deactivate turn_off off",
    "review check inspect",
    "test check verify validate",
    "estimate predict forecast",
    "deadline due",
    "priority urgent important",
    "sprint iteration cycle milestone",
    "board kanban",
    "sort order arrange",
    "child sub subtask nested",
    "parent ancestor",
    "function lambda",
    "bucket storage blob object",
    "dns domain",
    "workflow pipeline action build ci",
    "commit change",
    "author writer blame",
    "emoji reaction react",
    "attachment file",
    "template form",
];

/// The words of a text: they end at marks, blanks and digits, and where capital letters begin.
fn split(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut word = String::new();
    let chars: Vec<char> = text.chars().take(MOST * 20).collect();
    for (at, c) in chars.iter().enumerate() {
        if !c.is_alphanumeric() {
            if *c != '\'' && *c != '\u{2019}' {
                push(&mut out, &mut word);
            }
            continue;
        }
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        // `createIssue`, and `HTTPServer`.
        let begins = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || before.is_some_and(char::is_uppercase)
                    && after.is_some_and(|c| c.is_lowercase()));
        let digits =
            before.is_some_and(|b| b.is_alphanumeric() && b.is_numeric() != c.is_numeric());
        if begins || digits {
            push(&mut out, &mut word);
        }
        word.extend(c.to_lowercase());
    }
    push(&mut out, &mut word);
    out.truncate(MOST);
    out
}

fn push(out: &mut Vec<String>, word: &mut String) {
    if !word.is_empty() {
        out.push(std::mem::take(word));
    }
}

/// The words that say nothing, and those that say little.
static WORTHLESS: LazyLock<[HashSet<&str>; 2]> =
    LazyLock::new(|| [EMPTY, COMMON].map(|list| list.split_ascii_whitespace().collect()));

/// The stems of words that mean the same, by groups, and the pairs of words among them.
static STEMS: LazyLock<(Vec<Vec<String>>, HashSet<&str>)> = LazyLock::new(|| {
    let words = |group: &'static &str| group.split_ascii_whitespace();
    let stems = GROUPS.iter().map(|group| words(group).map(stem).collect()).collect();
    let pairs = GROUPS.iter().flat_map(words).filter(|word| word.contains('_')).collect();
    (stems, pairs)
});

fn says_nothing(word: &str) -> bool {
    WORTHLESS[0].contains(word)
}

/// The stems of a text, without words that say nothing.
pub fn stems(text: &str) -> Vec<String> {
    let words = split(text).into_iter().filter(|word| !says_nothing(word));
    words.map(|word| stem(&word)).collect()
}

/// The words of a query, each once.
pub(super) fn of_query(query: &str) -> Vec<Word> {
    let words = split(query);
    let mut out: Vec<Word> = Vec::new();
    let mut add = |word: &str| {
        let own = stem(word);
        if out.iter().any(|other| other.forms[0].0 == own) {
            return;
        }
        let mut forms = vec![(own.clone(), 1.0)];
        for other in same(&own) {
            if forms.iter().all(|(form, _)| form != other) {
                forms.push((other.to_owned(), SAME));
            }
        }
        let weight = if WORTHLESS[1].contains(word) { LITTLE } else { 1.0 };
        out.push(Word { forms, weight });
    };
    for pair in words.windows(2) {
        let joined = pair.join("_");
        if STEMS.1.contains(&*joined) {
            add(&joined);
        }
    }
    for word in words.iter().filter(|word| !says_nothing(word)) {
        add(word);
    }
    out
}

/// Stems of words that mean the same as this one.
fn same(own: &str) -> impl Iterator<Item = &'static str> {
    let groups = STEMS.0.iter().filter(move |group| group.iter().any(|stem| stem == own));
    let others = groups.flatten().flat_map(|stem| stem.split('_'));
    others.filter(move |other| *other != own)
}

/// What a word comes from: without the ends of plurals, times and persons.
fn stem(word: &str) -> String {
    let mut word = word.to_owned();
    let ends = |word: &str, end: &str, least: usize| {
        word.strip_suffix(end).filter(|rest| rest.len() >= least).map(str::to_owned)
    };
    if let Some(rest) = ends(&word, "ies", 2) {
        word = rest + "y";
    } else if !word.ends_with("ss")
        && !word.ends_with("us")
        && !word.ends_with("is")
        && let Some(rest) = ends(&word, "s", 2)
    {
        let is_long = ["sse", "she", "che", "xe", "zze"].iter().any(|end| rest.ends_with(end));
        word = if is_long { rest[..rest.len() - 1].to_owned() } else { rest };
    }
    for end in [
        "ations", "ation", "ating", "ated", "ator", "ate", "ings", "ing", "ed", "ments", "ment",
        "ers", "er", "ors", "or", "ions", "ion", "ly",
    ] {
        let is_long = matches!(end, "er" | "or" | "ating" | "ated" | "ator" | "ate");
        let least = if is_long { 4 } else { 3 };
        if let Some(rest) = ends(&word, end, least) {
            word = doubled(rest);
            break;
        }
    }
    if let Some(rest) = ends(&word, "e", 3) {
        word = rest;
    }
    if let Some(rest) = ends(&word, "y", 3) {
        word = rest + "i";
    }
    word
}

/// A stem without the letter that was doubled for its end: `stopp` of `stopped`.
fn doubled(mut word: String) -> String {
    let mut last = word.bytes().rev();
    if let (Some(a), Some(b)) = (last.next(), last.next())
        && a == b
        && !matches!(a, b'l' | b's' | b'z' | b'e' | b'o')
    {
        word.pop();
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_marks_and_capital_letters() {
        let words = |text| split(text).join(" ");
        assert_eq!(words("mcp__git-hub.createIssue"), "mcp git hub create issue");
        assert_eq!(words("getHTTPServer2Logs, don't"), "get http server 2 logs dont");
        assert_eq!(words("Stra\u{df}e \u{e9}t\u{e9}"), "stra\u{df}e \u{e9}t\u{e9}");
        assert_eq!(split(&"word ".repeat(100_000)).len(), MOST);
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["create", "creates", "created", "creating"][..],
            &["message", "messages", "messaging"],
            &["query", "queries"],
            &["stop", "stops", "stopped", "stopping"],
            &["branch", "branches"],
            &["deploy", "deploys", "deployed", "deployment", "deploying"],
            &["search", "searches", "searching"],
            &["list", "lists", "listing"],
            &["migrate", "migrates", "migrated", "migrating", "migration", "migrations"],
            &["database", "databases"],
            &["process", "processes", "processing"],
            &["test", "tests", "tested", "testing"],
        ] {
            let stems: Vec<String> = forms.iter().map(|word| stem(word)).collect();
            assert!(stems.iter().all(|other| *other == stems[0]), "{stems:?}");
        }
        for word in ["", "s", "ed", "ing", "is", "\u{e9}s", "\u{df}ed"] {
            assert!(!stem(word).is_empty() || word.is_empty(), "{word}");
        }
    }
}
