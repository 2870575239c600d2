//! Measures the first page of a search beside the whole of it, both in this process and through
//! the pipeline: `cargo run --release -p haft-tools --example first_page -- FOLDER WORD`.
//!
//! It prints `first page: N us` and `first page, whole search: N us` for each run. The whole search
//! counts the lines of every file.

use std::{
    env,
    error::Error,
    io::{self, Write as _},
    path::Path,
    sync::Arc,
    time::Instant,
};

use haft_host::Local;
use haft_testkit::world::World;
use haft_types::Status;
use serde_json::{Value, json};

/// Runs of each; one more comes before and is not told.
const RUNS: usize = 5;

/// Microseconds that a call takes.
async fn took(world: &World, input: Value) -> Result<f64, Box<dyn Error>> {
    let before = Instant::now();
    let outcome = world.call("grep", input).await;
    let took = before.elapsed();
    if outcome.status != Status::Done {
        return Err(outcome.joined_text().into());
    }
    let found = outcome.data.as_ref().and_then(|data| data["matches"].as_u64());
    match found {
        Some(1..) => Ok(took.as_secs_f64() * 1e6),
        _ => Err("nothing was found: give a word that is common in the folder".into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [folder, common] = &words[..] else {
        return Err("give a folder and a word that is common in its files".into());
    };
    let root = Local::path(&Path::new(folder).canonicalize()?)?;
    let world = World::on(Arc::new(Local::new()), root, haft_tools::builtin());
    let mut out = io::stdout().lock();
    for run in 0..=RUNS {
        let page = took(&world, json!({"pattern": common})).await?;
        let whole = json!({"pattern": common, "output_mode": "count", "head_limit": 0});
        let whole = took(&world, whole).await?;
        if run > 0 {
            writeln!(out, "first page: {page:.0} us\nfirst page, whole search: {whole:.0} us")?;
        }
    }
    Ok(())
}
