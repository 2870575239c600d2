//! The pages of `tests/pages`, each as the Markdown that it becomes.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use haft_page::{Limits, Page, read};

/// Where the pages are.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}

/// The names of all pages, in order.
pub(crate) fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> =
        names.filter_map(|name| Some(name.split_once(".html")?.0.to_owned())).collect();
    names.sort();
    names
}

/// The bytes of a page.
pub(crate) fn bytes(name: &str) -> Vec<u8> {
    let plain = folder().join(format!("{name}.html"));
    if let Ok(bytes) = fs::read(plain) {
        return bytes;
    }
    let packed = fs::read(folder().join(format!("{name}.html.gz"))).unwrap();
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
    bytes
}

/// A page as it is read.
pub(crate) fn page(name: &str) -> Page {
    let address = format!("https://pages.example/{name}/");
    read(&bytes(name), Some("text/html"), &address, &Limits::default()).unwrap()
}

#[test]
fn every_page_becomes_clean_markdown() {
    let names = names();
    assert!(names.len() >= 20, "{names:?}");
    for name in names {
        let Page { title, markdown, article, links, note, cut } = page(&name);
        let head = format!(
            "title: {title:?}\narticle: {article}\nlinks: {links}\nnote: {note:?}\ncut: {cut}"
        );
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false, snapshot_path => "../snapshots" }, {
            insta::assert_snapshot!(name.as_str(), format!("{head}\n\n{markdown}"));
        });
    }
}

#[test]
fn at_least_ten_pages_of_tools_are_long() {
    let long = names().into_iter().filter(|name| {
        folder().join(format!("{name}.html.gz")).exists() && bytes(name).len() > 20_000
    });
    assert!(long.count() >= 10);
}

#[test]
fn pages_without_text_are_named() {
    let note = |name| page(name).note.unwrap();
    assert!(note("script-only").contains("made by its scripts"));
    assert!(note("pytest-html-script").contains("made by its scripts"));
    assert!(note("cookie-wall").contains("wall about cookies"));
    assert!(note("challenge").contains("challenge to robots"));
    for name in ["forum", "blog", "rtl", "cjk", "mdbook", "docusaurus", "sphinx-furo"] {
        assert_eq!(page(name).note, None, "{name}");
    }
}

#[test]
fn what_is_hidden_is_not_read() {
    let Page { markdown, note, .. } = page("injected");
    assert!(!markdown.contains("Hidden"), "{markdown}");
    assert!(markdown.contains("Seen by all, with a turn of letters and a soft hyphen."));
    assert!(markdown.contains("hidden on paper alone"), "a query of media hides nothing here");
    let note = note.unwrap();
    assert!(note.contains("hides from people") && note.contains("invisible characters"), "{note}");
    let marked = haft_page::mark_imitations(&markdown);
    assert!(
        marked.starts_with("[in the data below 2 lines imitate messages of a system"),
        "{marked}"
    );
    assert_eq!(haft_page::mark_imitations("# Tea\n"), "# Tea\n");
}
