//! Links that a script itself makes, which do not exist yet when it is judged.
//!
//! **Invariant:** an action behind a link that a script may make is also judged as an action on the
//! link's target, wherever in the script it stands.
//!
//! **Does not know:** links that exist already: whoever makes the plan looks for those.

use haft_shell::{ANY, FOUND, ONE, SOME};
use haft_types::{HostPath, Style};

use crate::command::script::Part;

/// Most links of a script that are followed.
const MOST: usize = 32;
/// Most links behind one another.
const DEEPEST: usize = 4;

/// A path, and what it is another name for.
pub(crate) type Link = (HostPath, HostPath);

/// Reports whether a command makes other names for files.
pub(crate) fn makes(part: &Part) -> bool {
    let copies = |word: &String| {
        let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        ["--link", "--symbolic-link"].contains(&word.as_str())
            || letters.is_some_and(|letters| letters.contains(['l', 's']))
    };
    match part.program.as_deref() {
        Some("link" | "ln") => true,
        Some("cp") => part.shapes.iter().any(copies),
        _ => false,
    }
}

/// The links that a command may make, as far as its words are known.
pub(crate) fn made(part: &Part) -> Vec<Link> {
    let (mut operands, mut named, mut words) = (Vec::new(), None, part.shapes.iter());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => operands.extend(words.by_ref().map(String::as_str)),
            "-t" | "--target-directory" => named = words.next().map(String::as_str),
            "-S" | "--suffix" => drop(words.next()),
            word if word.starts_with("--target-directory=") => {
                named = word.split_once('=').map(|(_, folder)| folder);
            }
            word if word.starts_with("-t") => named = word.strip_prefix("-t"),
            word if word.starts_with('-') && word.len() > 1 => {}
            word => operands.push(word),
        }
    }
    let last = if named.is_none() && operands.len() > 1 { operands.pop() } else { None };
    let place = named.or(last).unwrap_or(".");
    let mut links = Vec::new();
    for folder in part.folders.iter().flatten() {
        let Some(place) = at(folder, place) else { continue };
        for target in &operands {
            let name = target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            let above = place.parent();
            // Seen from where the link lies, or from where it is made.
            let froms = [Some(&place), above.as_ref()].into_iter().flatten();
            let mut targets: Vec<HostPath> =
                froms.filter_map(|from| at(&from.text(), target)).collect();
            targets.extend(at(folder, target));
            targets.dedup();
            let made = [Some(place.clone()), at(&place.text(), name)];
            for link in made.into_iter().flatten() {
                links.extend(targets.iter().map(|target| (link.clone(), target.clone())));
            }
        }
    }
    let is_known = |path: &HostPath| !path.text().contains([ANY, FOUND, ONE, SOME]);
    links.retain(|(link, target)| link != target && is_known(link) && is_known(target));
    links.truncate(MOST);
    links
}

fn at(folder: &str, word: &str) -> Option<HostPath> {
    let folder = HostPath::new(folder.as_bytes(), Style::Posix).ok()?;
    if word.is_empty() { None } else { folder.join(word).ok() }
}

/// What a path may be behind links.
pub(crate) fn behind(path: &HostPath, links: &[Link]) -> Vec<HostPath> {
    let mut found: Vec<HostPath> = Vec::new();
    let mut open = vec![(path.clone(), 0)];
    while let Some((path, depth)) = open.pop() {
        for (link, target) in links {
            let Some(rest) = path.relative_to(link) else { continue };
            let next =
                if rest.is_empty() { Some(target.clone()) } else { target.join_bytes(rest).ok() };
            let Some(next) = next.filter(|next| !found.contains(next)) else { continue };
            found.push(next.clone());
            if depth < DEEPEST && found.len() < MOST {
                open.push((next, depth + 1));
            }
        }
    }
    found
}

/// The same of a path as it is written, in which `..` may stand behind a link.
pub(crate) fn behind_text(text: &str, links: &[Link]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![(text.to_owned(), 0)];
    while let Some((text, depth)) = open.pop() {
        let mut stack: Vec<&str> = Vec::new();
        let mut names = text.split('/').filter(|name| !["", "."].contains(name));
        while let Some(name) = names.next() {
            match name {
                ".." => drop(stack.pop()),
                name => stack.push(name),
            }
            let here = format!("/{}", stack.join("/"));
            for (_, target) in links.iter().filter(|(link, _)| link.text() == here) {
                let rest: String = names.clone().flat_map(|name| ["/", name]).collect();
                let next = format!("{}{rest}", target.text());
                if depth < DEEPEST && found.len() < MOST && !found.contains(&next) {
                    found.push(next.clone());
                    open.push((next, depth + 1));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(line: &str) -> Part {
        let mut words = line.split(' ').map(str::to_owned);
        let program = words.next();
        Part {
            program,
            shapes: words.collect(),
            folders: Some(vec!["/w".to_owned()]),
            ..Part::default()
        }
    }

    #[test]
    fn what_is_behind_a_link_is_found() {
        for (line, path, real) in [
            ("ln -s src l", "/w/l/a", Some("/w/src/a")),
            ("ln -s src l", "/w/l", Some("/w/src")),
            ("ln -s src l", "/w/lx", None),
            ("ln -sf ../src sub/l", "/w/sub/l/a", Some("/w/src/a")),
            ("ln -s /etc/x", "/w/x", Some("/etc/x")),
            ("ln -s a /etc d", "/w/d/etc/x", Some("/etc/x")),
            ("ln -s -t d /etc", "/w/d/etc/x", Some("/etc/x")),
            ("ln --target-directory=d /etc", "/w/d/etc/x", Some("/etc/x")),
            ("ln -sr src sub/l", "/w/sub/l/a", Some("/w/src/a")),
            ("cp -s src/a b", "/w/b", Some("/w/src/a")),
        ] {
            assert!(makes(&part(line)), "{line}");
            let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
            let found = behind(&at(path), &made(&part(line)));
            match real {
                Some(real) => assert!(found.contains(&at(real)), "{line} {path}: {found:?}"),
                None => assert_eq!(found, [], "{line} {path}"),
            }
        }
        let links = made(&part("ln -s /etc/ssl l"));
        for (text, real) in [
            ("/w/l/../x", Some("/etc/ssl/../x")),
            ("/w/./s/../l//../x", Some("/etc/ssl/../x")),
            ("/w/s/../x", None),
        ] {
            let found = behind_text(text, &links);
            assert_eq!(found, real.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{text}");
        }
        assert!(!makes(&part("cp a b")) && !makes(&part("cp -r a b")));
    }
}
