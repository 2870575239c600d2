//! The fixed forms of one sentence.

/// Words that make a sentence a condition, a report or a wish that may not hold now.
const VOID: &[&str] = &[
    "after",
    "although",
    "as",
    "before",
    "complains",
    "could",
    "error",
    "except",
    "he",
    "if",
    "instead",
    "maybe",
    "might",
    "once",
    "otherwise",
    "perhaps",
    "said",
    "saying",
    "says",
    "she",
    "states",
    "suppose",
    "tell",
    "tells",
    "they",
    "told",
    "unless",
    "until",
    "wants",
    "warning",
    "when",
    "whenever",
    "where",
    "whether",
    "while",
    "why",
    "would",
    "wrote",
];

/// Words that may follow what is forbidden, or lead to it, and change nothing.
const POLITE: &[&str] = &["at", "all", "please", "thanks", "thank", "you", "ok", "okay"];

/// Programs that are taken as commands where they are not marked as code.
const PROGRAMS: &[&str] = &[
    "cargo",
    "cmake",
    "curl",
    "docker",
    "gh",
    "git",
    "gradle",
    "helm",
    "jest",
    "just",
    "kubectl",
    "make",
    "mvn",
    "npm",
    "npx",
    "pip",
    "pnpm",
    "podman",
    "psql",
    "pytest",
    "python",
    "python3",
    "rm",
    "rsync",
    "ssh",
    "sudo",
    "systemctl",
    "terraform",
    "tox",
    "uv",
    "wget",
    "yarn",
];

/// Commands that make a commit.
const COMMITS: &[&str] = &["commit", "merge", "cherry-pick", "revert", "am", "rebase"];
/// Commands that push.
const PUSHES: &[&str] = &["push", "send-pack"];

/// What is forbidden.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Edit,
    Run,
    Read,
    Reach,
}

/// A word, and whether it was marked as code.
struct Word<'a> {
    text: &'a str,
    is_code: bool,
    /// Whether a comma follows.
    ends: bool,
}

/// The deny rules that a sentence means; none where it is none of the forms.
pub(super) fn rules(sentence: &str, is_there: &dyn Fn(&str) -> bool) -> Option<Vec<String>> {
    if sentence.ends_with('?') || sentence.contains(['"', '\u{201c}', '\u{201d}', '\u{ab}']) {
        return None;
    }
    let words = words(sentence.trim_end_matches(['.', '!']))?;
    let is_void =
        |word: &Word<'_>| !word.is_code && VOID.contains(&word.text.to_ascii_lowercase().as_str());
    if words.iter().any(is_void) {
        return None;
    }
    let lower: Vec<String> = words.iter().map(|word| plain(word)).collect();
    let starts = (0..words.len()).filter(|at| is_start(&words, &lower, *at));
    let found: Vec<Vec<String>> =
        starts.filter_map(|at| form(&words[at..], &lower[at..], is_there)).collect();
    // Two clauses of which one is cut off by the other say something else.
    match <[_; 1]>::try_from(found) {
        Ok([rules]) => Some(rules),
        Err(_) => None,
    }
}

/// A word in lower case; of code nothing, since it is no word of a form.
fn plain(word: &Word<'_>) -> String {
    if word.is_code {
        String::new()
    } else {
        word.text.to_ascii_lowercase().replace('\u{2019}', "'")
    }
}

/// The words of a sentence, code as one each; none where a mark has no end.
fn words(sentence: &str) -> Option<Vec<Word<'_>>> {
    let mut words = Vec::new();
    let mut rest = sentence.trim_start();
    while !rest.is_empty() {
        let (text, is_code, behind) = if let Some(code) = rest.strip_prefix('`') {
            let (text, behind) = code.split_once('`')?;
            (text.trim(), true, behind)
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            (&rest[..end], false, &rest[end..])
        };
        let (text, behind, ends) = if is_code {
            let cut = behind.find(char::is_whitespace).unwrap_or(behind.len());
            match &behind[..cut] {
                "" => (text, behind, false),
                "," | ";" => (text, &behind[cut..], true),
                _ => return None,
            }
        } else {
            let bare = text.trim_end_matches([',', ';']);
            (bare, behind, bare.len() < text.len())
        };
        words.push(Word { text, is_code, ends });
        rest = behind.trim_start();
    }
    Some(words)
}

/// Whether a clause begins at a word: the sentence, or what stands behind a comma, `but` or `and`.
fn is_start(words: &[Word<'_>], lower: &[String], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    // What leads to a form belongs to it.
    if is_lead(&lower[before]) && is_start(words, lower, before) {
        return false;
    }
    words[before].ends || matches!(lower[before].as_str(), "and" | "but" | "-" | "\u{2013}")
}

/// Takes so many words off the front, where they are these.
fn led<'a>(lower: &'a [String], start: &[&str]) -> Option<&'a [String]> {
    let is_it = lower.len() >= start.len() && lower.iter().zip(start).all(|(a, b)| a == b);
    is_it.then(|| &lower[start.len()..])
}

/// The rules of a clause that reaches to the end of its sentence.
fn form(
    words: &[Word<'_>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    // A banner that was pasted.
    if words.iter().filter(|word| !word.is_code).take(3).all(|word| is_loud(word.text)) {
        return None;
    }
    let skipped = lower.iter().take_while(|word| is_lead(word)).count();
    let (words, lower) = (&words[skipped..], &lower[skipped..]);
    let rest = |left: &[String]| &words[words.len() - left.len()..];
    if let Some(left) = led(lower, &["leave"]) {
        return left_alone(rest(left), left, is_there);
    }
    if let Some(left) = led(lower, &["no"]) {
        return never_git(rest(left), left, true);
    }
    for start in [&["only"][..], &["you", "may", "only"], &["you", "must", "only"]] {
        if let Some(left) = led(lower, start).and_then(changes) {
            return only(rest(left), left, is_there);
        }
    }
    let changing = changes(lower).and_then(|left| led(left, &["only"]));
    let making =
        led(lower, &["only", "make", "changes"]).or(led(lower, &["make", "changes", "only"]));
    let making = making.and_then(|left| led(left, &["in"]).or(led(left, &["under"])));
    if let Some(left) = changing.or(making) {
        return only(rest(left), left, is_there);
    }
    let nots = [
        &["do", "not"][..],
        &["don't"],
        &["dont"],
        &["never"],
        &["you", "must", "not"],
        &["you", "may", "not"],
    ];
    let left = nots.into_iter().find_map(|start| led(lower, start))?;
    let left = led(left, &["ever"]).unwrap_or(left);
    not(rest(left), left, is_there)
}

/// Whether a word may lead to a form.
fn is_lead(word: &str) -> bool {
    matches!(word, "please" | "and" | "but" | "also" | "so")
}

fn is_loud(word: &str) -> bool {
    word.len() > 1
        && word.chars().any(|c| c.is_ascii_uppercase())
        && !word.chars().any(|c| c.is_ascii_lowercase())
}

/// What stands behind a word for changing something.
fn changes(lower: &[String]) -> Option<&[String]> {
    match verb(lower) {
        Some((Verb::Edit, left)) => Some(left),
        _ => None,
    }
}

fn verb(lower: &[String]) -> Option<(Verb, &[String])> {
    let forms = [
        (&["edit"][..], Verb::Edit),
        (&["touch"], Verb::Edit),
        (&["change"], Verb::Edit),
        (&["modify"], Verb::Edit),
        (&["write", "to"], Verb::Edit),
        (&["run"], Verb::Run),
        (&["execute"], Verb::Run),
        (&["read"], Verb::Read),
        (&["open"], Verb::Read),
        (&["look", "at"], Verb::Read),
        (&["connect", "to"], Verb::Reach),
        (&["fetch", "from"], Verb::Reach),
        (&["contact"], Verb::Reach),
    ];
    forms.into_iter().find_map(|(form, verb)| Some((verb, led(lower, form)?)))
}

/// `only touch X`.
fn only(
    words: &[Word<'_>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let paths = paths(words, lower, is_there)?;
    let mut patterns = paths.iter().map(|path| placed(path, true));
    match paths.len() {
        1 => Some(vec![format!("Edit(not {})", patterns.next()?)]),
        // One rule, since each of several holds.
        _ => Some(vec![format!("Edit(not {{{}}})", patterns.collect::<Vec<_>>().join(","))]),
    }
}

/// `leave X alone`.
fn left_alone(
    words: &[Word<'_>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let alone = lower.iter().position(|word| word == "alone")?;
    polite(&lower[alone + 1..])?;
    denied("Edit", &paths(&words[..alone], &lower[..alone], is_there)?)
}

/// `do not VERB, VERB or VERB X`.
fn not(
    words: &[Word<'_>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    if matches!(lower.first()?.as_str(), "commit" | "push" | "make") {
        let left = led(lower, &["make"]).map(|left| led(left, &["any"]).unwrap_or(left));
        let (left, is_noun) = (left.unwrap_or(lower), left.is_some());
        return never_git(&words[words.len() - left.len()..], left, is_noun);
    }
    let (mut verbs, mut left) = (Vec::new(), lower);
    while let Some((verb, behind)) = verb(left) {
        verbs.push(verb);
        let joined = [&["or"][..], &["and"], &["nor"]].into_iter().find_map(|w| led(behind, w));
        // A word behind `or` that is no verb is what is forbidden.
        left = joined.filter(|left| self::verb(left).is_some()).unwrap_or(behind);
    }
    let words = &words[words.len() - left.len()..];
    if verbs == [Verb::Edit] {
        let thing = ["anything", "files", "code", "things"];
        let thing = thing.into_iter().find_map(|thing| led(left, &[thing]));
        let outside = thing.and_then(|left| {
            led(left, &["outside", "of"])
                .or(led(left, &["outside"]))
                .or(led(left, &["other", "than"]))
        });
        if let Some(left) = outside {
            return only(&words[words.len() - left.len()..], left, is_there);
        }
    }
    let mut rules = Vec::new();
    for verb in &verbs {
        rules.extend(match verb {
            Verb::Edit => denied("Edit", &paths(words, left, is_there)?)?,
            Verb::Read => match host(words, left) {
                Some(host) => vec![format!("WebFetch(domain:{host})")],
                None => denied("Read", &paths(words, left, is_there)?)?,
            },
            Verb::Run => vec![format!("Bash({} *)", command(words, left, is_there)?)],
            Verb::Reach => vec![format!("WebFetch(domain:{})", host(words, left)?)],
        });
    }
    (!rules.is_empty()).then_some(rules)
}

fn denied(tool: &str, paths: &[&str]) -> Option<Vec<String>> {
    let rules: Vec<_> =
        paths.iter().map(|path| format!("{tool}({})", placed(path, false))).collect();
    (!rules.is_empty()).then_some(rules)
}

/// `commits`, `commits or pushes`, and with verbs `commit or push anything`.
fn never_git(words: &[Word<'_>], lower: &[String], is_noun: bool) -> Option<Vec<String>> {
    let (commit, push) = if is_noun {
        (["commit", "commits"], ["push", "pushes"])
    } else {
        (["commit", "commit"], ["push", "push"])
    };
    let mut commands: Vec<&str> = Vec::new();
    let mut left = lower;
    loop {
        let word = left.first()?.as_str();
        if commit.contains(&word) {
            commands.extend(COMMITS);
        } else if push.contains(&word) {
            commands.extend(PUSHES);
        } else {
            return None;
        }
        left = &left[1..];
        let no = if is_noun { "no" } else { "or" };
        let joined = [&["or"][..], &["and"], &["nor"], &["and", no], &["or", no]];
        match joined.into_iter().rev().find_map(|start| led(left, start)) {
            Some(behind) => left = behind,
            None => break,
        }
    }
    let left = led(left, &["anything"]).filter(|_| !is_noun).unwrap_or(left);
    polite(left)?;
    let is_plain = words.iter().all(|word| !word.is_code);
    is_plain.then(|| commands.iter().map(|name| format!("Bash(git {name} *)")).collect())
}

/// Nothing but polite words.
fn polite(lower: &[String]) -> Option<()> {
    lower.iter().all(|word| POLITE.contains(&word.as_str())).then_some(())
}

/// The paths that a clause ends with; none where one of its words is none.
fn paths<'a>(
    words: &[Word<'a>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<Vec<&'a str>> {
    let mut paths = Vec::new();
    let mut at = 0;
    loop {
        if matches!(lower.get(at).map(String::as_str), Some("files" | "anything")) {
            let within = ["in", "under", "below", "inside"];
            at += 1;
            at += usize::from(within.contains(&lower.get(at)?.as_str()));
        }
        let has_article = matches!(lower.get(at)?.as_str(), "the" | "my" | "our");
        at += usize::from(has_article);
        let word = words.get(at)?;
        let kind = lower.get(at + 1).map_or("", String::as_str);
        let is_named = matches!(kind, "folder" | "directory" | "dir" | "file");
        if !is_path(word, is_named, has_article, is_there) {
            return None;
        }
        paths.push(word.text);
        let mut ends = word.ends;
        at += 1;
        if is_named {
            ends = words.get(at)?.ends;
            at += 1;
        }
        let joins = |word: Option<&String>| {
            word.is_some_and(|word| matches!(word.as_str(), "and" | "or" | "nor"))
        };
        match lower.get(at) {
            joined if joins(joined) => at += 1,
            Some(word) if ends && !POLITE.contains(&word.as_str()) => {}
            _ => break,
        }
    }
    polite(&lower[at..])?;
    Some(paths)
}

/// Whether a word is a path: one that is there, or is written as nothing else is.
fn is_path(
    word: &Word<'_>,
    is_named: bool,
    has_article: bool,
    is_there: &dyn Fn(&str) -> bool,
) -> bool {
    let text = word.text;
    let fits = |c: char| c.is_alphanumeric() || "_-./*~@+".contains(c);
    let is_plain = text.len() <= 200
        && text.chars().all(fits)
        && text.chars().any(char::is_alphanumeric)
        && !text.starts_with(['-', '@'])
        && !text.trim_start_matches("../").contains("..");
    if !is_plain {
        return false;
    }
    let starts = ["./", "../", "~/", "/", "*."].iter().any(|start| text.starts_with(start));
    let is_written = text.ends_with('/') || text.contains("/*") || starts;
    let inner = text.rsplit('/').next().unwrap_or(text);
    let has_end = inner.rsplit_once('.').is_some_and(|(_, end)| {
        (1..=8).contains(&end.len()) && end.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let is_marked = word.is_code || is_named;
    is_written
        || has_end && (text.contains('/') || is_marked)
        || is_there(text) && (is_marked || text.contains(['/', '.']) || !has_article)
}

/// A path as the pattern of a rule; where `here`, a bare name is the one in the working folder.
fn placed(path: &str, here: bool) -> String {
    let inner = path.trim_end_matches('/');
    let is_bare = !inner.contains('/') && !inner.starts_with('~') && !inner.is_empty();
    if path.starts_with('/') {
        format!("/{path}")
    } else if is_bare && (here && !path.contains('*') || path.ends_with('/')) {
        format!("./{path}")
    } else {
        path.to_owned()
    }
}

/// The command that a clause ends with.
fn command(
    words: &[Word<'_>],
    lower: &[String],
    is_there: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let first = words.first()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || " _-./:@+=".contains(c);
    let is_plain = |text: &str| !text.is_empty() && text.len() <= 100 && text.chars().all(fits);
    if first.is_code {
        polite(&lower[1..])?;
        return is_plain(first.text).then(|| first.text.to_owned());
    }
    let count = lower.iter().take_while(|word| !POLITE.contains(&word.as_str())).count();
    polite(&lower[count..])?;
    let is_script =
        first.text.starts_with("./") || first.text.contains('/') && is_there(first.text);
    if is_script && count == 1 && is_plain(first.text) {
        return Some(first.text.to_owned());
    }
    let named = &lower[..count];
    let is_word = |word: &String| word.chars().all(|c| c.is_ascii_lowercase() || "-_:".contains(c));
    let is_known = PROGRAMS.contains(&named.first()?.as_str());
    let is_meant = |word: &String| is_word(word) && !TALK.contains(&word.as_str());
    let ends = words[..count].iter().any(|word| word.ends);
    (is_known && count <= 3 && !ends && named.iter().all(is_meant)).then(|| named.join(" "))
}

/// Words behind a program that are none of its command.
const TALK: &[&str] = &[
    "a", "again", "and", "any", "anything", "anymore", "because", "but", "by", "command",
    "commands", "either", "ever", "for", "from", "here", "in", "it", "locally", "manually", "more",
    "now", "on", "or", "script", "scripts", "that", "the", "there", "this", "to", "today", "twice",
    "with", "without", "yet", "yourself",
];

/// How names of hosts end; what ends otherwise and has no scheme may be a file.
const TOPS: &[&str] = &["com", "org", "net", "io", "dev", "app", "ai", "de", "eu", "local"];

/// The host that a clause ends with.
fn host(words: &[Word<'_>], lower: &[String]) -> Option<String> {
    let word = words.first()?;
    polite(lower.get(1..)?)?;
    let bare = ["https://", "http://"].iter().find_map(|start| word.text.strip_prefix(start));
    let host = bare.unwrap_or(word.text).trim_end_matches('/').to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let top = host.rsplit('.').next().unwrap_or_default();
    let is_host = host.contains('.') && host.chars().all(fits) && host.len() <= 253;
    (is_host && (bare.is_some() || TOPS.contains(&top))).then_some(host)
}
