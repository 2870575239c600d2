//! The fields of a form, as a person reads them before they fill it in.
//!
//! **Invariant:** words, options and what these mean are never cut. Previews share one amount of
//! room, and what is left out of them is counted.

use std::borrow::Cow;

use super::{
    Extent,
    blocks::{Block, behind_bar},
    shares,
};
use crate::{
    clean::exact,
    form::{Field, FieldKind, FieldOption, Form},
    line::{GOES_ON, Page, Style, lines},
    terminal::hanging,
};

/// Shows the fields; gives how many lines of previews are left out.
pub(super) fn show(form: &Form, extent: Extent, page: &mut Page) -> u64 {
    let options = form.fields().iter().flat_map(options);
    let previews: Vec<Option<Block<'_>>> =
        options.map(|option| option.preview.as_deref().map(preview)).collect();
    let each = || previews.iter().map(Option::as_ref);
    let rows = shares(each().map(|block| block.map_or(0, Block::lines)).collect(), extent.lines);
    let chars = shares(each().map(|block| block.map_or(0, Block::chars)).collect(), extent.chars);
    let mut shown = previews.iter().zip(rows).zip(chars);
    let all = form.fields().len();
    let mut left_out = 0;
    for (number, field) in (1..).zip(form.fields()) {
        head((number, all), field, page);
        for (number, option) in (1..).zip(options_of(field)) {
            let label = one_line(&option.label);
            let text = match &option.description {
                Some(description) => format!("  {number}  {label}: {}", one_line(description)),
                None => format!("  {number}  {label}"),
            };
            hanging(&text, Style::Plain, GOES_ON, page);
            if let Some(((Some(block), lines), chars)) = shown.next() {
                left_out += block.show(Extent { lines, chars }, page);
            }
        }
    }
    left_out
}

fn options_of(field: &Field) -> &[FieldOption] {
    match &field.kind {
        FieldKind::Choice { options, .. } => options,
        _ => &[],
    }
}

fn options(field: &Field) -> impl Iterator<Item = &FieldOption> {
    options_of(field).iter()
}

fn preview(text: &str) -> Block<'_> {
    Block::of_lines(lines(text.trim_end()).map(str::to_owned).collect())
}

/// What a field is called, and the words that it is asked for with.
fn head((number, all): (usize, usize), field: &Field, page: &mut Page) {
    let title = field.description.as_ref().map(|_| one_line(&field.title));
    let place = (all > 1).then(|| format!("{number} of {all}"));
    let head = match (place, title) {
        (Some(place), Some(title)) => format!("{place}  {title}"),
        (Some(head), None) => head,
        (None, Some(title)) => title.into_owned(),
        (None, None) => String::new(),
    };
    if !head.is_empty() {
        hanging(&head, Style::Bold, GOES_ON, page);
    }
    let words = field.description.as_ref().unwrap_or(&field.title);
    for line in exact(words).lines() {
        behind_bar(line, page);
    }
}

/// A text without ends of lines, every character to be seen.
fn one_line(text: &str) -> Cow<'_, str> {
    match exact(text) {
        text if text.contains('\n') => Cow::Owned(text.replace('\n', " ")),
        text => text,
    }
}
