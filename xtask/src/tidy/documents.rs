//! Rules over documents: those that must be there are, their generated parts are fresh, they are short
//! enough to be read, and what they name exists.
//!
//! It does not know how a part is generated: see [`crate::docs`]. It does not judge what a text says.

use super::Finding;
use super::tree::{File, Tree};

/// Documents that others point to.
const WANTED: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "docs/environment.md",
    "docs/measured.md",
];

/// Documents with the most lines that they may have.
const LENGTHS: &[(&str, usize)] = &[("README.md", 150), ("ARCHITECTURE.md", 250)];
/// What is read from its begin to its end: documents, and folders of them.
const READ: &[&str] = &["README.md", "ARCHITECTURE.md", "docs/guide/", "docs/design/"];
/// Most lines of a paragraph.
const PARAGRAPH: usize = 6;
/// How the names of files of the repository begin, in texts; a crate's name may stand for its folder.
const ROOTS: &[&str] = &["crates/", "xtask/", "docs/", "fuzz/", "haft/", "haft-"];

/// Every wanted document is there, and every generated part is as it would be generated.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let missing = WANTED
        .iter()
        .filter(|path| tree.file(path).is_none())
        .map(|path| Finding::new(path, 1, "the document is missing", "write it"));
    let stale = tree
        .stale
        .iter()
        .map(|(path, wrong)| Finding::new(path, 1, wrong, "run `cargo xtask docs`"));
    let mut findings: Vec<Finding> = missing.chain(stale).collect();
    let is_read = |file: &&File| {
        READ.iter()
            .any(|read| file.path == *read || read.ends_with('/') && file.path.starts_with(read))
    };
    for file in tree.files.iter().filter(is_read) {
        findings.extend(length(file));
        findings.extend(paragraphs(file));
        findings.extend(names(file, tree));
    }
    findings
}

/// The document is short enough.
fn length(file: &File) -> Option<Finding> {
    let (_, most) = LENGTHS.iter().find(|(path, _)| *path == file.path)?;
    let lines = file.text.lines().count();
    let wrong = format!("{lines} lines, more than {most}");
    (lines > *most).then(|| {
        Finding::new(
            &file.path,
            most + 1,
            wrong,
            "move what few readers need into docs/guide or docs/design",
        )
    })
}

/// Lines of text outside code, each with its number from 1.
fn prose(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    file.text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// No paragraph is longer than what is seen at once.
fn paragraphs(file: &File) -> Vec<Finding> {
    let (mut findings, mut begun, mut last) = (Vec::new(), 0, 0);
    for (number, line) in prose(file) {
        let text = line.trim_start();
        let is_item = text.starts_with("- ")
            || text.split_once(". ").is_some_and(|(mark, _)| mark.parse::<u32>().is_ok());
        let is_apart = text.is_empty() || text.starts_with(['|', '#', '<']);
        if is_apart || is_item || number != last + 1 {
            begun = if is_apart { number + 1 } else { number };
        }
        last = number;
        if !is_apart && number + 1 - begun == PARAGRAPH + 1 {
            let wrong = format!("the paragraph has more than {PARAGRAPH} lines");
            findings.push(Finding::new(
                &file.path,
                begun,
                wrong,
                "cut it where a new thought begins",
            ));
        }
    }
    findings
}

/// Files that are named are there, and so are the functions named behind them: `PATH::NAME`.
fn names(file: &File, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(file) {
        let quoted = line.split('`').skip(1).step_by(2);
        let linked = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for name in quoted.chain(linked).flat_map(|text| text.split([' ', ',', '#'])) {
            if let Some(wrong) = wrong_name(name, tree) {
                let remedy = "write the name that it has now";
                findings.push(Finding::new(&file.path, number, wrong, remedy));
            }
        }
    }
    findings
}

fn wrong_name(name: &str, tree: &Tree) -> Option<String> {
    let is_path = ROOTS.iter().any(|root| name.starts_with(root))
        && name.contains('/')
        && !name.contains(['*', '<', '{', '$']);
    if !is_path {
        return None;
    }
    let (path, item) =
        name.split_once("::").map_or((name, None), |(path, item)| (path, Some(item)));
    // A line, or several, may stand behind a file: `a.rs:10-20`.
    let path = path.split(':').next().unwrap_or(path).trim_end_matches('/');
    let path = if path.starts_with("haft") { format!("crates/{path}") } else { path.to_owned() };
    let folder = format!("{path}/");
    if !tree.files.iter().any(|file| file.path == path || file.path.starts_with(&folder)) {
        return Some(format!("there is no {path}"));
    }
    let item = item?;
    let begins = [format!("fn {item}("), format!("fn {item}<")];
    let holds =
        |file: &File| file.path == path && begins.iter().any(|begin| file.text.contains(begin));
    (!tree.files.iter().any(holds)).then(|| format!("{path} has no function {item}"))
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files;
    use super::*;

    #[test]
    fn missing_and_stale_documents_are_found() {
        let all: Vec<_> = WANTED.iter().map(|path| (*path, "text")).collect();
        let mut tree = files(&all);
        assert_eq!(check(&tree), []);
        tree.stale.push(("README.md".to_owned(), "the part is stale".to_owned()));
        tree.files.remove(1);
        let found: Vec<_> = check(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(found, ["ARCHITECTURE.md", "README.md"]);
    }

    /// What is said of one document beside the others.
    fn found(path: &str, text: &str) -> Vec<String> {
        let mut all: Vec<_> = WANTED.iter().map(|path| (*path, "text")).collect();
        all.retain(|(wanted, _)| *wanted != path);
        all.extend([(path, text), ("crates/haft-x/src/a.rs", "//! A.\nfn b() {}\n")]);
        check(&files(&all)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_too_long_is_found() {
        assert_eq!(found("README.md", &"# a\n".repeat(150)), [""; 0]);
        assert_eq!(found("README.md", &"# a\n".repeat(151)).len(), 1);
        let six = "line\n".repeat(6);
        let fine = format!(
            "# Title\n{six}\n- {six}- {six}```\n{six}{six}```\n| a |\n{}",
            "| b |\n".repeat(9)
        );
        assert_eq!(found("docs/guide/a.md", &fine), [""; 0]);
        assert_eq!(found("docs/hooks.md", &"line\n".repeat(9)), [""; 0]);
        let wrong = found("docs/design/a.md", &format!("# Title\n\n{six}more\nand more\n"));
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].starts_with("docs/design/a.md:3: "), "{wrong:?}");
    }

    #[test]
    fn names_of_what_is_not_there_are_found() {
        let fine = "`crates/haft-x/src/a.rs`, `haft-x/src/a.rs:1-2`, `haft-x/src/a.rs::b`, `haft-x/src`, \
                    [a](crates/haft-x/src/a.rs#L1), `docs/*.md`, `read/write`\n```\ndocs/none.md\n```\n";
        assert_eq!(found("README.md", fine), [""; 0]);
        for wrong in ["`haft-x/src/b.rs`", "`haft-x/src/a.rs::c`", "[a](docs/none.md)"] {
            assert_eq!(found("README.md", wrong).len(), 1, "{wrong}");
        }
    }
}
