//! Measures what a program costs that is held to limits, beside one that is not:
//! `cargo run --release -p haft-host --example confined`; the supervisor must be built beside it.
//!
//! The limits are those of a command in a project: it may write there, keys of the home folder are
//! hidden, and what makes programs run is protected.

use std::{
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    time::{Duration, Instant},
};

use futures::StreamExt as _;
use haft_host::{Host, Level, Limits, Local, Output, Program, Spawn, in_trees};
use haft_types::{HostPath, Style};

/// Samples of one run, and runs.
const SAMPLES: usize = 60;
const RUNS: usize = 5;

/// What is protected in a project.
const PROTECTED: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".claude",
    ".envrc",
    ".gitmodules",
    ".npmrc",
    ".cargo/config.toml",
    "rust-toolchain.toml",
    ".haft",
];

fn path(path: &Path) -> io::Result<HostPath> {
    HostPath::new(path.as_os_str().as_bytes(), Style::Posix).map_err(io::Error::other)
}

fn limits(folder: &Path, level: Level, write: bool) -> io::Result<Limits> {
    let work = path(&folder.join("work"))?;
    let write = if write { vec![work] } else { Vec::new() };
    Ok(Limits {
        protected: in_trees(&write, PROTECTED),
        hidden: vec![path(&folder.join("home/.ssh"))?, path(&folder.join("home/.netrc"))?],
        write,
        level: Some(level),
        ..Limits::default()
    })
}

async fn sample(host: &Local, folder: &HostPath, confine: Option<&Limits>) -> io::Result<Duration> {
    let program = Program::Argv(vec![b"/bin/true".to_vec()]);
    let spawn = Spawn { confine: confine.cloned(), ..Spawn::new(program, folder.clone()) };
    let begun = Instant::now();
    let shell = host.shell().ok_or_else(|| io::Error::other("there is no shell"))?;
    let mut running = shell.spawn(spawn).await?;
    while let Some(output) = running.output.next().await {
        if let Output::Exit(exit) = output?
            && exit.code != Some(0)
        {
            return Err(io::Error::other(format!("{exit:?}")));
        }
    }
    Ok(begun.elapsed())
}

async fn measure() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    for name in ["work/.git/hooks", "work/.vscode", "home/.ssh", "home/src"] {
        std::fs::create_dir_all(folder.path().join(name))?;
    }
    for name in ["work/.git/config", "work/.git/hooks/pre-commit.sample", "home/.netrc"] {
        std::fs::write(folder.path().join(name), "x".repeat(500))?;
    }
    let host = Local::new();
    let work = path(&folder.path().join("work"))?;
    let probes = match host.shell() {
        Some(shell) => shell.levels().await,
        None => Vec::new(),
    };
    let mut cases = vec![("free", None)];
    for probe in probes.iter().filter(|probe| probe.works()) {
        let names = match probe.level {
            Level::Landlock => ["level L", "level L, only reading"],
            Level::Namespaces => ["level N", "level N, only reading"],
        };
        for (name, write) in names.into_iter().zip([true, false]) {
            cases.push((name, Some(limits(folder.path(), probe.level, write)?)));
        }
    }
    for _ in 0..RUNS {
        let mut all = vec![Vec::with_capacity(SAMPLES); cases.len()];
        for _ in 0..SAMPLES {
            for ((_, limits), samples) in cases.iter().zip(&mut all) {
                samples.push(sample(&host, &work, limits.as_ref()).await?);
            }
        }
        for ((name, _), samples) in cases.iter().zip(&mut all) {
            samples.sort();
            let median = samples[samples.len() / 2].as_secs_f64() * 1e6;
            writeln!(io::stdout(), "{name}: {median:.0} us")?;
        }
    }
    haft_host::end_supervisor();
    Ok(())
}

fn main() -> io::Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(measure())
}
