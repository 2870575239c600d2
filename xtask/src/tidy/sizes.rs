//! Rules over single sources: how long a file and a function may be, and how a module opens.
//!
//! Tests are held to the same measure. Functions are found by their tokens and measured from the
//! line of `fn` to the line of the closing brace. It does not know what is in them.

use super::Finding;
use super::source::{Source, is_word, occurrences};
use super::tree::{File, Tree, is_data};

/// Lines of a source file.
const LONGEST_FILE: usize = 800;
/// Lines of a function, its signature counted.
const LONGEST_FUNCTION: usize = 60;
/// Endings of what counts as a source.
const SOURCES: &[&str] = &["rs", "py", "sh", "js", "mjs", "ts"];

/// No source is too long to be read in one go.
pub(super) fn files(tree: &Tree) -> Vec<Finding> {
    let is_source = |file: &&File| {
        !is_data(&file.path)
            && file.path.rsplit_once('.').is_some_and(|(_, ending)| SOURCES.contains(&ending))
    };
    tree.files
        .iter()
        .filter(is_source)
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LONGEST_FILE)
        .map(|(file, lines)| {
            let wrong = format!("{lines} lines, more than {LONGEST_FILE}");
            Finding::new(&file.path, LONGEST_FILE + 1, wrong, "split it by what its parts know")
        })
        .collect()
}

/// No function is too long to be seen at once.
pub(super) fn functions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, source) in tree.rust() {
        for function in functions_of(source) {
            let first = file.line(function.start);
            let lines = file.line(function.end) - first + 1;
            if lines > LONGEST_FUNCTION {
                let name = &function.name;
                let wrong = format!("fn {name} has {lines} lines, more than {LONGEST_FUNCTION}");
                let remedy = "give its parts names of their own";
                findings.push(Finding::new(&file.path, first, wrong, remedy));
            }
        }
    }
    findings
}

/// Every module says first what it is.
pub(super) fn headers(tree: &Tree) -> Vec<Finding> {
    tree.rust()
        .filter(|(file, _)| !file.text.trim_start().starts_with("//!"))
        .map(|(file, _)| {
            let wrong = "the module does not open with `//!`";
            let remedy = "say what it does, its invariant, and what it does not know";
            Finding::new(&file.path, 1, wrong, remedy)
        })
        .collect()
}

/// A function with a body; offsets into the text.
struct Function {
    name: String,
    start: usize,
    /// Of the closing brace.
    end: usize,
}

fn functions_of(source: &Source) -> Vec<Function> {
    let code = source.code.as_bytes();
    let mut functions = Vec::new();
    for start in occurrences(&source.code, "fn") {
        let name_at = start + 2 + blanks(&code[start + 2..]);
        let length = code[name_at..].iter().take_while(|byte| is_word(**byte)).count();
        // Without a name it is a type, `fn(u8) -> u8`, or a pattern of a macro.
        if length == 0 || name_at == start + 2 {
            continue;
        }
        if let Some(end) = body_end(code, name_at + length) {
            let name = source.code[name_at..name_at + length].to_owned();
            functions.push(Function { name, start, end });
        }
    }
    functions
}

fn blanks(code: &[u8]) -> usize {
    code.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// The closing brace of the body that follows a signature; `None` when there is no body.
fn body_end(code: &[u8], from: usize) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for (at, byte) in code.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' if braces == 0 => brackets += 1,
            b')' | b']' if braces == 0 => brackets = brackets.saturating_sub(1),
            b';' if braces == 0 && brackets == 0 => return None,
            b'{' if brackets == 0 || braces > 0 => braces += 1,
            b'}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::tree::planted::files as tree_of;
    use super::*;

    fn function(lines: usize) -> String {
        let body = "    call();\n".repeat(lines.saturating_sub(2));
        format!("//! M.\nfn outer<T>(a: [u8; 3])\n -> T {{\n{body}}}\n").replace(")\n ->", ") ->")
    }

    #[test]
    fn a_file_of_800_lines_passes_and_one_more_does_not() {
        let fine = "x\n".repeat(800);
        let long = "x\n".repeat(801);
        let tree = tree_of(&[("a.rs", &fine), ("b.py", &long), ("c.md", &long)]);
        let findings = files(&tree);
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!((findings[0].file.as_str(), findings[0].line), ("b.py", 801));
    }

    #[test]
    fn a_function_of_60_lines_passes_and_one_more_does_not() {
        assert_eq!(functions(&tree_of(&[("a.rs", &function(60))])), []);
        let findings = functions(&tree_of(&[("a.rs", &function(61))]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].line, 2);
        assert!(findings[0].wrong.contains("fn outer has 61 lines"), "{}", findings[0].wrong);
    }

    #[test]
    fn braces_in_strings_types_and_signatures_do_not_confuse() {
        let text =
            "fn a() { let s = \"}}}{{\"; let c = '{'; }\nfn b(f: fn(u8) -> u8);\nfn c() {}\n";
        let first_line = text.find('\n').unwrap();
        let source = Source::of(text);
        let names: Vec<_> = functions_of(&source).into_iter().map(|it| (it.name, it.end)).collect();
        assert_eq!(names, [("a".to_owned(), first_line - 1), ("c".to_owned(), text.len() - 2)]);
    }

    #[test]
    fn a_module_without_its_opening_is_found() {
        let tree =
            tree_of(&[("a.rs", "\n//! Fine.\n"), ("b.rs", "use x;\n//! Late.\n"), ("c.rs", "")]);
        let found: Vec<_> = headers(&tree).into_iter().map(|finding| finding.file).collect();
        assert_eq!(found, ["b.rs", "c.rs"]);
    }
}
