//! What a model's glob means, for grep and find alike, and why one may match nothing.
//!
//! **Invariant:** a glob is compared with paths below the searched folder. A glob that can match
//! nothing there is refused, with the call that was probably meant. If a glob matched nothing, a
//! likely reason is reported. It searches nothing itself.

use haft_types::{HostPath, ToolError};

use super::quoted;

/// Whose glob it is, named as its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// The files that grep searches.
    Glob,
    /// The names that find gives.
    Pattern,
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Pattern => "pattern",
        }
    }

    /// How one is written.
    pub(crate) const fn advice(self) -> &'static str {
        match self {
            Self::Glob => "Write it like *.rs, src/**/*.{ts,tsx} or !*.md.",
            Self::Pattern => "Write it like *.rs, src/**/*.{ts,tsx} or **/test*/.",
        }
    }
}

/// Refuses a glob that names nothing, or what is not below the searched folder.
pub(crate) fn check(glob: &str, field: Field) -> Result<(), ToolError> {
    let (name, plain) = (field.name(), plain(glob, field));
    if plain.split('/').all(|name| matches!(name, "" | ".")) {
        let text = format!("the {name} {glob:?} names nothing");
        return Err(ToolError::new(text).hint(format!("{} * is everything.", field.advice())));
    }
    if !climbs(plain) && !plain.starts_with("~/") {
        return Ok(());
    }
    let (folder, rest) = split(plain);
    let text = format!(
        "the {name} {} can match nothing: names are compared with paths below the searched folder",
        quoted(glob)
    );
    Err(ToolError::new(text).hint(elsewhere(&folder, &rest, field)))
}

/// The glob as a search takes it: from the searched folder where it names that folder whole, and
/// without names that say nothing (`./`, `//`). For grep a folder stands for what is in it.
pub(crate) fn normal(glob: &str, field: Field, root: &HostPath) -> String {
    let text = plain(glob, field);
    let not = &glob[..glob.len() - text.len()];
    let inside = root.as_str().and_then(|root| text.strip_prefix(root));
    let text =
        inside.filter(|rest| matches!(rest.chars().next(), None | Some('/'))).unwrap_or(text);
    let anchored = text.starts_with('/') || text.starts_with("./");
    let names = text.split('/').filter(|name| !matches!(*name, "" | "."));
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        // The searched folder itself: all that is in it.
        return format!("{not}**");
    }
    let mut text = format!(
        "{}{}{}",
        if anchored { "/" } else { "" },
        names.join("/"),
        if text.ends_with('/') { "/" } else { "" }
    );
    if field == Field::Glob {
        if not.is_empty() && text.ends_with('/') {
            let anywhere = if anchored || names.len() > 1 { "" } else { "**/" };
            text = format!("{anywhere}{text}**");
        }
        // Ignore files, whose rules these follow, have comments.
        if text.starts_with('#') {
            text.insert(0, '\\');
        }
    }
    format!("{not}{text}")
}

/// A name as a glob that stands for it alone.
pub(crate) fn escaped(name: &str) -> String {
    let mut glob = String::with_capacity(name.len());
    for sign in name.chars() {
        if matches!(sign, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        glob.push(sign);
    }
    glob
}

/// What brackets in a glob stand for, where those of a name may be meant, as a sentence.
pub(crate) fn brackets(glob: &str) -> Option<String> {
    let group = |open: char, close: char| {
        let start = glob.match_indices(open).find(|(at, _)| !glob[..*at].ends_with('\\'))?.0;
        let end = start + glob[start..].find(close)? + 1;
        Some(&glob[start..end])
    };
    let alone = group('{', '}').filter(|group| !group.contains([',', '.']));
    let (meaning, found) = match group('[', ']') {
        Some(class) => ("[ ] stands for one of the characters in it", class),
        None => ("{ } stands for one of the words in it", alone?),
    };
    let written = quoted(&escaped(found));
    Some(format!("{meaning}: for a name with {} write {written}.", quoted(found)))
}

/// A likely reason why a glob matched nothing, as a sentence with a space before it.
pub(crate) fn doubt(glob: &str, field: Field, root: &HostPath) -> String {
    let plain = plain(glob, field);
    let wild = plain.contains(['*', '?', '[', '{']);
    let regex = [".*", ".+", "\\.", "$", "^", "(", "|"];
    // A bracket in a name is a name; what stands beside a class is an expression all the same.
    let expression = regex.iter().any(|sign| *sign != "(" && plain.contains(sign));
    let sentence = if plain.starts_with('/') {
        let (folder, rest) = split(plain);
        format!(
            "With a slash in front it is compared with paths below that. {}",
            elsewhere(&folder, &rest, field)
        )
    } else if let Some((first, _)) = plain.split_once('/')
        && let Some(name) = root.file_name().and_then(|name| str::from_utf8(name).ok())
        && one_of(first, name)
    {
        format!("It is compared with paths below {}: leave that out.", quoted(name))
    } else if plain.split('/').any(|name| name == ".git") {
        "What is in .git is left out unless path leads there.".to_owned()
    } else if field == Field::Pattern && plain.starts_with('!') {
        "A pattern of find leaves nothing out: ! stands for itself.".to_owned()
    } else if let Some(brackets) = brackets(plain).filter(|_| !expression) {
        brackets
    } else if let Some(joined) = joined(plain) {
        format!("Several are written as one: {}.", quoted(&joined))
    } else if regex.iter().any(|sign| plain.contains(sign)) {
        "It is a glob, not a regular expression: *.rs stands for all names that end in .rs."
            .to_owned()
    } else if plain.contains('\\') {
        "Names of folders are parted by /; \\ makes the next character stand for itself.".to_owned()
    } else if plain.ends_with('/') && field == Field::Glob {
        "With a slash at the end it is all in a folder of that name.".to_owned()
    } else if plain.ends_with('/') {
        "A slash at the end stands for folders alone.".to_owned()
    } else if !wild && field == Field::Glob && !plain.contains('.') {
        let inside = format!("{plain}/**");
        format!("Without * it is the name of a file; {} is all in a folder.", quoted(&inside))
    } else if !wild {
        "Without * it must be a whole name, in its case.".to_owned()
    } else if plain.contains(char::is_uppercase) {
        "Case counts.".to_owned()
    } else {
        return String::new();
    };
    format!(" {sentence}")
}

/// Reports whether a name is what a piece of a glob stands for, or one of the words in its braces.
fn one_of(piece: &str, name: &str) -> bool {
    let words = piece.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(piece);
    words.split(',').any(|word| word == name)
}

/// Several globs in one text, as braces would join them; none where it is one.
fn joined(text: &str) -> Option<String> {
    if text.contains(['{', '}', '\\', '[']) {
        return None;
    }
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let parts: Vec<&str> = parts.collect();
    // A name with spaces is one name.
    let several = parts.len() > 1 && (text.contains(',') || parts.iter().all(|p| p.contains('*')));
    several.then(|| format!("{{{}}}", parts.join(",")))
}

/// The folder and the glob in a path that was given with a glob in it, as advice.
pub(crate) fn in_path(path: &str, field: Field) -> Option<String> {
    if !path.contains(['*', '?', '[', '{']) {
        return None;
    }
    let (folder, rest) = split(path);
    let (folder, name, rest) = (quoted(&folder), field.name(), quoted(&rest));
    let before = match field {
        Field::Pattern if matches!(&*rest, "*" | "**") => {
            format!(", or with {rest}/ in front of yours")
        }
        _ => String::new(),
    };
    Some(format!("path takes no glob: give path {folder} with {name} {rest}{before}."))
}

/// The glob without the sign that turns it round, which only grep knows.
fn plain(glob: &str, field: Field) -> &str {
    match field {
        Field::Glob => glob.strip_prefix('!').unwrap_or(glob),
        Field::Pattern => glob,
    }
}

fn climbs(glob: &str) -> bool {
    glob.split('/').any(|name| name == "..")
}

/// The folder that a glob seems to name, and the rest.
fn split(glob: &str) -> (String, String) {
    let wild = glob.find(['*', '?', '[', '{']).unwrap_or(glob.len());
    let (folder, rest) = match glob[..wild].rfind('/') {
        Some(0) => ("/", &glob[1..]),
        Some(end) => (&glob[..end], &glob[end + 1..]),
        None if climbs(&glob[..wild]) => (&glob[..wild], &glob[wild..]),
        None => (".", glob),
    };
    // What climbs behind a glob names no folder.
    let (folder, rest) = if climbs(rest) { ("..", "*") } else { (folder, rest) };
    let rest = rest.trim_start_matches('/');
    (folder.to_owned(), if rest.is_empty() { "*" } else { rest }.to_owned())
}

/// How what a glob seems to mean is asked for.
fn elsewhere(folder: &str, rest: &str, field: Field) -> String {
    let name = field.name();
    format!("To look elsewhere give path {} with {name} {}.", quoted(folder), quoted(rest))
}

#[cfg(test)]
mod tests {
    use haft_types::Style;

    use super::*;

    #[test]
    fn globs_are_taken_as_they_are_meant() {
        let root = HostPath::new(b"/w/p", Style::Posix).unwrap();
        for (glob, lines, names) in [
            ("*.rs", "*.rs", "*.rs"),
            ("./src/*.rs", "/src/*.rs", "/src/*.rs"),
            ("!./a.md", "!/a.md", "!./a.md"),
            ("/w/p/src/*.rs", "/src/*.rs", "/src/*.rs"),
            ("/w/pp/*.rs", "/w/pp/*.rs", "/w/pp/*.rs"),
            ("src//a/./b.rs", "src/a/b.rs", "src/a/b.rs"),
            ("src/", "**/src/**", "src/"),
            ("a/src/", "a/src/**", "a/src/"),
            ("/w/p/", "**", "**"),
            ("/w/p", "**", "**"),
            ("!src/", "!src/", "!src/"),
            ("#x", "\\#x", "#x"),
        ] {
            assert_eq!(normal(glob, Field::Glob, &root), lines, "{glob}");
            assert_eq!(normal(glob, Field::Pattern, &root), names, "{glob}");
        }
    }

    #[test]
    fn what_leads_out_is_refused_with_where_it_seems_to_lead() {
        for (glob, folder, rest) in [
            ("../x", "..", "x"),
            ("..", "..", "*"),
            ("~/src/*.rs", "~/src", "*.rs"),
            ("src/../*.md", "src/..", "*.md"),
            ("*/../a", "..", "*"),
        ] {
            let error = check(glob, Field::Glob).unwrap_err();
            let wanted = format!("give path {folder} with glob {rest}.");
            assert!(error.to_string().contains(&wanted), "{glob}: {error}");
        }
        for glob in ["!", ".", "./", "/", "!/", "//", ".//."] {
            assert!(check(glob, Field::Glob).is_err(), "{glob}");
        }
        for glob in ["/x", "a..b", "*.rs", "~x", "./x"] {
            assert!(check(glob, Field::Pattern).is_ok(), "{glob}");
        }
    }

    #[test]
    fn brackets_of_names_are_told_wherever_nothing_was_found() {
        let root = HostPath::new(b"/w/src", Style::Posix).unwrap();
        for (glob, written) in [
            ("[name].ts", "write \\[name\\]."),
            ("**/[id]/**", "write \\[id\\]."),
            ("(app)/[id]/page.tsx", "write \\[id\\]."),
            ("[...all].ts", "write \\[...all\\]."),
            ("{a}.ts", "write \\{a\\}."),
        ] {
            let told = doubt(glob, Field::Pattern, &root);
            assert!(told.contains(written), "{glob}: {told}");
        }
        for (glob, told) in [
            ("\\[name\\].ts", "\\ makes the next"),
            ("[a-z]+\\.rs$", "not a regular expression"),
            ("{src,lib}/**", "compared with paths below src"),
            ("src/**", "compared with paths below src"),
        ] {
            assert!(doubt(glob, Field::Glob, &root).contains(told), "{glob}");
        }
        assert_eq!(escaped("a[b]{c}*?\\d"), "a\\[b\\]\\{c\\}\\*\\?\\\\d");
    }

    #[test]
    fn several_globs_in_one_text_are_joined() {
        assert_eq!(joined("*.rs,*.md").as_deref(), Some("{*.rs,*.md}"));
        assert_eq!(joined("*.rs *.md").as_deref(), Some("{*.rs,*.md}"));
        for one in ["*.{rs,md}", "my file.txt", "*.rs", "a *.txt", ","] {
            assert_eq!(joined(one), None, "{one}");
        }
    }
}
