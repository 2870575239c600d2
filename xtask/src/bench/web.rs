//! A page of 1 MB to Markdown, inside the process, beside `trafilatura` on the same page.
//!
//! The example `page` of haft-page reads the page and prints how long it took, and so does
//! `tests/python/pages.py` for the peer. The page does not say where its text is, so that it is looked
//! for. Memory is that of a whole process that reads the page once.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result};

use super::memory::peak;
use super::overhead::line;
use super::scratch::{Numbers, Scratch, line as words};
use super::table::{Row, Runs};
use super::turns::output;
use super::{Bench, RUNS};
use crate::process::{cargo, command, run};
use crate::score;

/// Bytes of the page.
const SIZE: usize = 1 << 20;

/// Two rows: how long it takes, and the most memory.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let scratch = Scratch::new()?;
    let page = scratch.make("page")?.join("page.html");
    fs::write(&page, html()).context("the page cannot be written")?;
    let python = score::environment(&bench.project)?;
    let example = example(bench)?;
    let ours = |first: &[&str]| {
        let mut command = Command::new(&example);
        command.args(first).arg(&page);
        command
    };
    let theirs = || {
        let mut script = command(&bench.project, &python);
        script.arg(score::SCRIPT).args(["--time", "1"]).arg(&page);
        script
    };
    let mut values = [const { Vec::new() }; 4];
    for _ in 0..RUNS {
        values[0].push(milliseconds(&output(&mut ours(&["--time", "1"]))?)?);
        values[1].push(milliseconds(&output(&mut theirs())?)?);
        values[2].push(peak(&mut ours(&["--time", "1"]))?);
        values[3].push(peak(&mut theirs())?);
    }
    let runs = |values| Runs::new(values).context("no run was measured");
    let [time, their_time, memory, their_memory] = values;
    let row = |name: &str, unit, value, peer| -> Result<Row> {
        Ok(Row {
            name: name.to_owned(),
            unit,
            value: runs(value)?,
            peer: Ok(("trafilatura".to_owned(), runs(peer)?)),
        })
    };
    Ok(vec![
        row("a page of 1 MB to Markdown", "ms", time, their_time)?,
        row("most memory: a page of 1 MB to Markdown", "MiB", memory, their_memory)?,
    ])
}

/// Builds the example with the profile of the figures, and says where it is.
fn example(bench: &Bench) -> Result<PathBuf> {
    let profile = bench.beside();
    let words = ["build", "--quiet", "--package", "haft-page", "--example", "page", "--profile"];
    run(cargo(&bench.project, &words).arg(profile))?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(bench.project.target.join(folder).join("examples").join("page"))
}

/// The one time that was printed.
fn milliseconds(text: &str) -> Result<f64> {
    let (_, microseconds) = line(text.lines().next().context("no time was printed")?)?;
    Ok(microseconds / 1e3)
}

/// A page of sections with links, lists, code and tables, between navigation and a footer.
fn html() -> String {
    let mut numbers = Numbers::new(0x5EED);
    let mut page =
        String::from("<!DOCTYPE html><html><head><title>Long</title></head><body><ul class=nav>");
    for at in 0..100 {
        let _ = write!(page, "<li><a href=\"/{at}\">part {at}</a></li>");
    }
    page.push_str("</ul><div id=content><h1>Long</h1>");
    let mut section = 0;
    while page.len() < SIZE {
        section += 1;
        let mut text = String::new();
        (0..12).for_each(|_| words(&mut numbers, &mut text));
        let (first, rest) = text.split_at(text.len() / 2);
        let _ = write!(
            page,
            "<h2 id=s{section}>Section {section}</h2><p class=text>{first}, <a href=\"/x/{section}\">a \
             link</a>, and <em>then</em> {rest}.</p><ul><li>one <code>{section}</code></li><li>two</li>\
             </ul><pre><code class=\"language-rust\">{text}</code></pre><table><tr><th>a</th><th>b</th>\
             </tr><tr><td>{section}</td><td>text</td></tr></table>"
        );
    }
    page.push_str("</div><div class=footer>End</div></body></html>");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_as_long_as_it_is_said_to_be_and_the_same_each_time() {
        let page = html();
        assert!(page.len() >= SIZE && page.len() < SIZE + 4096);
        assert_eq!(page, html());
    }

    #[test]
    fn a_time_is_read() {
        assert!((milliseconds("page: 1500.0 us\n").unwrap() - 1.5).abs() < 1e-9);
        assert!(milliseconds("").is_err());
    }
}
