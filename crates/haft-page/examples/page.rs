//! Reads pages and prints them: `page FILE [ADDRESS]` gives the Markdown of one; `page --time N FILE`
//! tells N times how long it took, for `cargo xtask bench`.

use std::error::Error;
use std::hint::black_box;
use std::io::Write as _;
use std::time::Instant;
use std::{fs, io};

use haft_page::{Limits, Page, PageError, read};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--time", runs, file] => {
            let bytes = fs::read(file)?;
            for _ in 0..runs.parse::<usize>()? {
                let start = Instant::now();
                black_box(page(&bytes, "https://page.example/")?);
                let taken = start.elapsed().as_secs_f64() * 1e6;
                writeln!(io::stdout(), "page: {taken:.1} us")?;
            }
        }
        [file, rest @ ..] => {
            let address = rest.first().copied().unwrap_or("https://page.example/");
            let page = page(&fs::read(file)?, address)?;
            if let Some(note) = page.note {
                writeln!(io::stderr(), "note: {note}")?;
            }
            io::stdout().write_all(page.markdown.as_bytes())?;
        }
        [] => return Err("a file of HTML is wanted".into()),
    }
    Ok(())
}

fn page(bytes: &[u8], address: &str) -> Result<Page, PageError> {
    read(bytes, None, address, &Limits::default())
}
