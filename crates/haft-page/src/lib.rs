//! Pages of the web as clean Markdown: the article where there is one, else the whole page.
//!
//! [`read`] takes the bytes of a page of HTML and gives Markdown: headings, lists, tables, code with
//! its language and its exact whitespace, absolute links. What the page does not show is left out:
//! scripts, styles, navigation, banners, and text that is hidden from people.
//!
//! **Invariant:** every page comes to an end. Work and memory are bounded by the bytes and by
//! [`Limits`], however deep the page nests and whatever it repeats; nothing here panics or asks a
//! clock. What is left out for its size is said by [`Page::cut`], and for other reasons by
//! [`Page::note`].
//!
//! **Does not know:** the network, files, tools, or who asks.
//!
//! ```
//! let html = b"<title>Tea</title><h1>Tea</h1><p>Steep for <b>three</b> <a href=/min>minutes</a>.";
//! let limits = haft_page::Limits::default();
//! let page = haft_page::read(html, Some("text/html"), "https://tea.example/", &limits)?;
//! assert_eq!(
//!     page.markdown,
//!     "# Tea\n\nSteep for **three** [minutes](https://tea.example/min).\n"
//! );
//! # Ok::<(), haft_page::PageError>(())
//! ```

mod article;
mod charset;
mod clean;
mod dom;
mod look;
mod markdown;
mod notes;
mod out;
mod parse;
mod view;

use std::borrow::Cow;

use url::Url;

use self::view::View;

/// Most characters of a title.
const TITLE: usize = 300;

/// A page that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// What the page is called.
    pub title: Option<String>,
    /// The text; it ends with a line end unless it is empty.
    pub markdown: String,
    /// Whether the article was taken; `false`: the whole page.
    pub article: bool,
    /// How many links the text has.
    pub links: usize,
    /// What is wrong with the page, or was left out of it, and what to do next.
    pub note: Option<String>,
    /// Whether some of the page is missing for its size.
    pub cut: bool,
}

/// What reading a page may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of the page that are looked at.
    pub bytes: usize,
    /// Most elements and texts of the page.
    pub nodes: usize,
    /// Most bytes of Markdown.
    pub markdown: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 10 << 20, nodes: 500_000, markdown: 10 << 20 }
    }
}

/// Why there is no page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The answer has no bytes.
    #[error("The page is empty: the server sent no bytes. Check the address.")]
    Empty,
    /// The bytes are no text.
    #[error("It is no page but {kind}. Use what reads that, or ask for another address.")]
    Binary {
        /// What it is, as `PNG image`.
        kind: &'static str,
    },
}

/// Reads a page; `url` is where it came from, and what relative links are resolved against.
///
/// # Errors
/// When there are no bytes, or they are no text.
pub fn read(
    bytes: &[u8],
    content_type: Option<&str>,
    url: &str,
    limits: &Limits,
) -> Result<Page, PageError> {
    let cut = bytes.len() > limits.bytes;
    let bytes = &bytes[..bytes.len().min(limits.bytes)];
    if bytes.is_empty() {
        return Err(PageError::Empty);
    }
    let (html, charset) = charset::html(bytes, content_type);
    if html.contains('\0') && is_binary(bytes, charset) {
        return Err(PageError::Binary { kind: haft_text::decode::binary_kind(bytes) });
    }
    let parsed = parse::parse(&html, limits.nodes);
    drop(html);
    let view = View::of(parsed.dom);
    let title = title(&view);
    let (root, article) = article::find(&view);
    let base = base(&view, url);
    let written = markdown::write(&view, root, base.as_ref(), limits.markdown);
    let (markdown, unseen) = clean::clean(written.text);
    let note = notes::of(&view, title.as_deref(), view.length(root));
    let left_out = notes::left_out(&view, unseen);
    Ok(Page {
        title,
        markdown,
        article,
        links: written.links,
        note: match (note, left_out) {
            (Some(note), Some(left_out)) => Some(format!("{note} {left_out}")),
            (note, left_out) => note.or(left_out),
        },
        cut: cut || parsed.cut || written.cut,
    })
}

/// Whether bytes with a NUL are no text.
fn is_binary(bytes: &[u8], charset: &str) -> bool {
    let zeros = bytes.iter().take(4096).filter(|byte| **byte == 0).count();
    !charset.starts_with("UTF-16") && zeros > 8
}

/// What the page is called, on one line.
fn title(view: &View) -> Option<String> {
    let text = view.dom.all_text(view.dom.find("title")?);
    let words: Vec<_> = text.split_whitespace().collect();
    let text: String = words.join(" ").chars().take(TITLE).collect();
    let text = clean::short(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// What links are relative to.
fn base(view: &View, url: &str) -> Option<Url> {
    let page = Url::parse(url).ok();
    let told = view.dom.find("base").and_then(|id| view.dom.attr(id, "href"));
    match (told, page) {
        (Some(told), Some(page)) => page.join(told).ok().or(Some(page)),
        (Some(told), None) => Url::parse(told).ok(),
        (None, page) => page,
    }
}

/// Decodes text that is no HTML, by its mark, its `Content-Type`, or by what it looks like; with
/// the name of its charset.
pub fn text_charset<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
) -> (Cow<'a, str>, &'static str) {
    charset::text(bytes, content_type)
}

/// Says above a text which of its lines imitate messages of a system; most texts stay as they are.
///
/// Results of tools need no call of this: the stage `redact` says the same below each of them.
pub fn mark_imitations(text: &str) -> Cow<'_, str> {
    match haft_text::spoofed_messages::of_system(text) {
        Some(told) => {
            let told = told.replacen("in the data above", "in the data below", 1);
            Cow::Owned(format!("{told}\n\n{text}"))
        }
        None => Cow::Borrowed(text),
    }
}
