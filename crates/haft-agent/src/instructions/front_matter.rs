//! The one key of a rule's front matter that counts here: `paths`.
//!
//! **Invariant:** a value of any other form than a text, a list of texts in brackets, or a list of
//! lines is an error, never half of a list.

/// Most globs of a rule.
const MOST: usize = 100;

/// Parts a file: its globs, none where it names none, and the text behind the front matter.
///
/// # Errors
/// What is wrong with `paths`.
pub(super) fn parted(text: &str) -> (Result<Vec<String>, String>, &str) {
    let Some((head, body)) = split(text) else { return (Ok(Vec::new()), text) };
    (paths(head), body)
}

/// The front matter and what stands behind it; none where there is none that ends.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn paths(head: &str) -> Result<Vec<String>, String> {
    let lines: Vec<&str> = head.lines().collect();
    let is_key = |line: &&str| {
        line.strip_prefix("paths").is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let mut found = lines.iter().enumerate().filter(|(_, line)| is_key(line));
    let Some((at, line)) = found.next() else { return Ok(Vec::new()) };
    if found.next().is_some() {
        return Err("it has paths twice".to_owned());
    }
    let value = line.split_once(':').map(|(_, value)| uncommented(value)).unwrap_or_default();
    let below = lines[at + 1..].iter().map(|line| uncommented(line));
    let below =
        below.take_while(|line| line.is_empty() || line.starts_with([' ', '\t', '-', ']', '#']));
    let globs = match value.trim() {
        "" => items(below)?,
        flow if flow.starts_with('[') => {
            let more: Vec<&str> = below.collect();
            flowed(&format!("{flow} {}", more.join(" ")))?
        }
        "|" | ">" | "|-" | ">-" => return Err("paths is a block of text".to_owned()),
        map if map.starts_with('{') && !map.contains(['*', '/', '.']) => {
            return Err("paths is a table".to_owned());
        }
        one => pieces(&scalar(one)?),
    };
    let globs: Vec<String> = globs.into_iter().filter(|glob| !glob.is_empty()).collect();
    if globs.len() > MOST {
        return Err(format!("paths has {} globs, and {MOST} are the most", globs.len()));
    }
    Ok(globs)
}

/// A line without its comment; a `#` in quotes, or without a blank before it, begins none.
fn uncommented(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, sign) in line.char_indices() {
        match quote {
            Some(open) if open == sign => quote = None,
            None if sign == '#' && before.is_whitespace() => return line[..at].trim_end(),
            None if matches!(sign, '"' | '\'') && !before.is_alphanumeric() => quote = Some(sign),
            Some(_) | None => {}
        }
        before = sign;
    }
    line.trim_end()
}

/// The lines of a list.
fn items<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let item = line.strip_prefix('-').filter(|item| item.starts_with([' ', '\t']));
        let Some(item) = item else {
            return Err(format!("{line:?} in paths is no item of a list"));
        };
        found.push(scalar(item.trim())?);
    }
    Ok(found)
}

/// A list in brackets.
fn flowed(text: &str) -> Result<Vec<String>, String> {
    let open = || format!("the list {text:?} in paths does not end where it should");
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let inner = inner.ok_or_else(open)?;
    let pieces = pieces(inner);
    pieces.iter().map(|piece| scalar(piece)).collect()
}

/// Parts a text at its commas, but for those in braces, brackets and quotes.
fn pieces(text: &str) -> Vec<String> {
    let (mut depth, mut quote) = (0_usize, None);
    let mut found = vec![String::new()];
    for sign in text.chars() {
        match (quote, sign) {
            (Some(open), sign) if open == sign => quote = None,
            (None, '"' | '\'') => quote = Some(sign),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                found.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(sign);
        }
    }
    found.into_iter().map(|piece| piece.trim().to_owned()).collect()
}

/// A text, with or without quotes.
fn scalar(text: &str) -> Result<String, String> {
    let text = text.trim();
    for quote in ['"', '\''] {
        let Some(rest) = text.strip_prefix(quote) else { continue };
        let inner = rest.strip_suffix(quote).filter(|inner| !inner.contains(quote));
        return match inner {
            Some(inner) => Ok(inner.to_owned()),
            None => Err(format!("the quotes of {text} in paths are not closed")),
        };
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_every_form_that_people_write() {
        let wanted = ["src/**/*.{ts,tsx}", "docs/*.md"];
        for head in [
            "paths: src/**/*.{ts,tsx}, docs/*.md",
            "paths: \"src/**/*.{ts,tsx}, docs/*.md\"",
            "paths: [src/**/*.{ts,tsx}, 'docs/*.md']  # both",
            "paths: [\n  \"src/**/*.{ts,tsx}\",\n  docs/*.md,\n]",
            "paths:\n  - src/**/*.{ts,tsx}\n\n  # more\n  - \"docs/*.md\" # here",
            "description: a: b\npaths:\n- 'src/**/*.{ts,tsx}'\n- docs/*.md\nalwaysApply: false",
        ] {
            let text = format!("---\n{head}\n---\nBody\n");
            let (globs, body) = parted(&text);
            assert_eq!((globs.unwrap(), body), (wanted.map(str::to_owned).to_vec(), "Body\n"));
        }
        let (globs, body) = parted("---\r\npaths: a#b\r\n---\r\nBody");
        assert_eq!((globs.unwrap(), body), (vec!["a#b".to_owned()], "Body"));
    }

    #[test]
    fn what_has_no_paths_counts_as_it_is() {
        for (text, body) in [
            ("Body", "Body"),
            ("---\nname: x\n---\nBody", "Body"),
            ("---\npaths:\n---\nBody", "Body"),
            ("---\npaths: []\n---\nBody", "Body"),
            // No front matter ends here.
            ("---\npaths: a\nBody", "---\npaths: a\nBody"),
            (" ---\npaths: a\n---\nBody", " ---\npaths: a\n---\nBody"),
        ] {
            assert_eq!(parted(text), (Ok(Vec::new()), body), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let many = format!("paths: {}", "a,".repeat(MOST + 1));
        for (head, wanted) in [
            ("paths: [a, b", "does not end"),
            ("paths: \"a", "not closed"),
            ("paths:\n  key: a", "no item of a list"),
            ("paths: |\n  a", "block of text"),
            ("paths: {a: b}", "table"),
            ("paths: a\npaths: b", "twice"),
            (&*many, "101 globs"),
        ] {
            let text = format!("---\n{head}\n---\nBody");
            let (globs, body) = parted(&text);
            let error = globs.unwrap_err();
            assert!(error.contains(wanted) && body == "Body", "{head}: {error}");
        }
    }
}
