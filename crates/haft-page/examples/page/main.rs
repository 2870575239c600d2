//! Reads pages: `page FILE [ADDRESS]` prints the Markdown of one; `page --time N FILE` tells N times
//! how long one took, for `cargo xtask bench`; `page --score PAGES PEER` counts the words of a folder
//! of pages beside those of a folder with a peer's Markdown, for `cargo xtask score`.

#[allow(dead_code, reason = "a test uses the rest")]
mod shares;

use std::error::Error;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use std::{fs, io};

use haft_page::{Limits, Page, read};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--time", runs, file] => time(runs.parse()?, file)?,
        ["--score", pages, peer] => return score(Path::new(pages), Path::new(peer)),
        [file, rest @ ..] => {
            let address = rest.first().copied().unwrap_or("https://page.example/");
            let page = page(&bytes(Path::new(file))?, address)?;
            if let Some(note) = page.note {
                writeln!(io::stderr(), "note: {note}")?;
            }
            io::stdout().write_all(page.markdown.as_bytes())?;
        }
        [] => return Err("a file of HTML is wanted".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn time(runs: usize, file: &str) -> Fallible<()> {
    let bytes = bytes(Path::new(file))?;
    for _ in 0..runs {
        let start = Instant::now();
        black_box(page(&bytes, "https://page.example/")?);
        let taken = start.elapsed().as_secs_f64() * 1e6;
        writeln!(io::stdout(), "page: {taken:.1} us")?;
    }
    Ok(())
}

/// The lines of the peer, to be written down, and then the table; it fails where we are below.
fn score(pages: &Path, peer: &Path) -> Fallible<ExitCode> {
    let mut rows = Vec::new();
    for name in shares::names(pages)? {
        let plain = pages.join(format!("{name}.html"));
        let file = if plain.exists() { plain } else { pages.join(format!("{name}.html.gz")) };
        let ours = page(&bytes(&file)?, "https://page.example/")?.markdown;
        let theirs = fs::read_to_string(peer.join(format!("{name}.md")))?;
        let (ours, peer) =
            (shares::shares(pages, &name, &ours)?, shares::shares(pages, &name, &theirs)?);
        writeln!(io::stdout(), "{}", shares::line(&name, peer))?;
        rows.push(shares::Row { name, ours, peer });
    }
    write!(io::stdout(), "\n{}", shares::table(&rows))?;
    let (ours, peer) = shares::averages(&rows);
    let fine = ours.kept >= peer.kept && ours.let_in <= peer.let_in;
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The bytes of a page, unpacked where they are packed.
fn bytes(file: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(file)?;
    if file.extension().is_none_or(|ending| ending != "gz") {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}

fn page(bytes: &[u8], address: &str) -> Fallible<Page> {
    Ok(read(bytes, None, address, &Limits::default())?)
}
