//! `cargo xtask shot SCRIPT`: a session of the scripted model in the terminal interface, as a picture.
//!
//! A script is JSON: the size, the files of the workspace, what the model answers, and what a person
//! types. tmux is the terminal; what stands there in the end becomes an SVG.

mod ansi;
mod svg;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use self::svg::Theme;
use crate::{
    Usage,
    process::{answer, cargo},
    project::Project,
};

/// How long something that a script waits for may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the terminal is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long nothing is typed before each step that types: a question takes no key at once.
const PAUSE: Duration = Duration::from_millis(400);

/// What the command line says.
struct Order<'a> {
    script: &'a str,
    columns: Option<u64>,
    theme: Theme,
    out: Option<&'a str>,
}

/// Draws a session; `false` when something that was waited for did not come.
///
/// # Errors
/// When the arguments or the script are not understood, or tmux or haft cannot be started.
pub(crate) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let order = parse(arguments)?;
    let text = fs::read_to_string(order.script)
        .with_context(|| Usage(format!("the script {} cannot be read", order.script)))?;
    let script: Value = serde_json::from_str(&text).context("the script is no JSON")?;
    anyhow::ensure!(
        answer(&mut cargo(project, &["build", "--quiet", "-p", "haft", "--bin", "haft"])).is_some(),
        "haft does not build"
    );
    let columns = order.columns.or(script["columns"].as_u64()).unwrap_or(80);
    let rows = script["rows"].as_u64().unwrap_or(30);
    let terminal = Terminal::start(project, &script, columns, rows)?;
    let mut is_fine = true;
    for step in script["steps"].as_array().into_iter().flatten() {
        is_fine &= terminal.step(step)?;
    }
    let screen = terminal.tmux(&["capture-pane", "-p", "-e", "-N"])?;
    let mut look = ansi::Look::default();
    let lines: Vec<_> = screen.lines().map(|line| ansi::cells(line, &mut look)).collect();
    let out =
        order.out.map_or_else(|| Path::new(order.script).with_extension("svg"), PathBuf::from);
    fs::write(&out, svg::picture(&lines, usize::try_from(columns)?, order.theme))?;
    println!("{}", out.display());
    Ok(is_fine)
}

fn parse(arguments: &[String]) -> Result<Order<'_>> {
    let mut order = Order { script: "", columns: None, theme: Theme::Dark, out: None };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value =
            |what: &str| words.next().with_context(|| Usage(format!("{word} needs {what}")));
        match word.as_str() {
            "--columns" => {
                let columns = value("a number of columns")?;
                let number = columns.parse().ok().filter(|number| *number > 0);
                order.columns = Some(number.with_context(|| {
                    Usage(format!("--columns needs a whole number from 1 on, not {columns:?}"))
                })?);
            }
            "--theme" => {
                order.theme = match value("dark or light")?.as_str() {
                    "dark" => Theme::Dark,
                    "light" => Theme::Light,
                    other => {
                        return Err(
                            Usage(format!("--theme is dark or light, not {other:?}")).into()
                        );
                    }
                }
            }
            "--out" => order.out = Some(value("a file")?),
            _ if order.script.is_empty() && !word.starts_with('-') => order.script = word,
            _ => return Err(Usage(format!("shot does not understand {word:?}")).into()),
        }
    }
    if order.script.is_empty() {
        return Err(Usage("shot needs a script, such as docs/shots/edit.json".to_owned()).into());
    }
    Ok(order)
}

/// tmux with haft in it, in a folder of its own.
struct Terminal {
    folder: PathBuf,
}

impl Terminal {
    fn start(project: &Project, script: &Value, columns: u64, rows: u64) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("haft-shot-{}", std::process::id()));
        let work = folder.join("work");
        fs::create_dir_all(&work)?;
        let terminal = Self { folder };
        for (name, content) in script["files"].as_object().into_iter().flatten() {
            let path = work.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, content.as_str().unwrap_or_default())?;
        }
        let answers = script["answers"].as_array().cloned().unwrap_or_default();
        let lines: Vec<String> = answers.iter().map(Value::to_string).collect();
        fs::write(terminal.folder.join("model.jsonl"), lines.join("\n"))?;
        let haft = project.target.join("debug/haft");
        let flags = script["flags"].as_str().unwrap_or_default();
        let program = format!("'{}' --model script:../model.jsonl {flags}", haft.display());
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut tmux = terminal.command();
        tmux.args(["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", &rows]);
        tmux.arg(program).current_dir(&work);
        for (name, value) in
            [("HOME", &terminal.folder), ("HAFT_HOME", &terminal.folder.join("haft"))]
        {
            tmux.env(name, value);
        }
        tmux.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        if !tmux.status().context("tmux cannot be started")?.success() {
            bail!("tmux cannot begin a session");
        }
        Ok(terminal)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.folder.join("tmux"));
        command
    }

    fn tmux(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command().args(arguments).output().context("tmux cannot be started")?;
        anyhow::ensure!(output.status.success(), "tmux {} failed", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Does what a step says: `{"type": TEXT}`, `{"key": NAME}` as tmux names keys, or
    /// `{"see": TEXT}`, which waits for it. False where that did not come.
    fn step(&self, step: &Value) -> Result<bool> {
        if let Some(text) = step["type"].as_str() {
            sleep(PAUSE);
            self.tmux(&["send-keys", "-l", text])?;
        } else if let Some(key) = step["key"].as_str() {
            sleep(PAUSE);
            self.tmux(&["send-keys", key])?;
        } else if let Some(text) = step["see"].as_str() {
            let start = Instant::now();
            while !self.tmux(&["capture-pane", "-p"])?.contains(text) {
                if start.elapsed() > PATIENCE {
                    eprintln!("{text:?} did not come");
                    return Ok(false);
                }
                sleep(LOOK);
            }
        } else {
            bail!(
                "a step is {{\"type\": TEXT}}, {{\"key\": NAME}} or {{\"see\": TEXT}}, not {step}"
            );
        }
        Ok(true)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself, and what stays in a temporary folder harms nobody.
        drop(self.command().arg("kill-server").status());
        drop(fs::remove_dir_all(&self.folder));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["", "--theme red x", "--columns 0 x", "--columns", "a b", "--what x"] {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let Err(error) = parse(&words) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
        let words = ["a.json", "--columns", "160", "--theme", "light"].map(str::to_owned);
        let order = parse(&words).unwrap();
        assert_eq!((order.script, order.columns, order.theme), ("a.json", Some(160), Theme::Light));
    }
}
