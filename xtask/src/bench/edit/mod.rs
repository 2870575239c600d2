//! `cargo xtask bench edit`: how right the edit tool is, class by class.
//!
//! Changes are taken from the history of a git repository, made into calls, and the calls made to
//! miss the file in every way that is tolerated and in every way that is refused. All go through
//! one `haft mcp`. A wrong byte, a call that ends otherwise than it must, and a class of which too
//! few calls could be made are failures. Where old and new text slip, one wrong call of a thousand is
//! none, and where each slips in its own way they are counted alone. It does not know how the engine
//! works.

mod calls;
mod classes;
mod drive;
mod history;
mod refused;
mod slipped;
mod tolerated;

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use self::calls::{Case, Clean, Want};
use self::classes::{CLASSES, Class, Kind};
use self::drive::{Answer, Ended, Server};
use super::scratch::{Numbers, Scratch};
use super::table::Runs;
use super::{Bench, build_haft};
use crate::Usage;
use crate::measured;
use crate::project::Project;

/// What the command line asks for.
struct EditOptions {
    repository: Option<PathBuf>,
    clean: usize,
    per_class: usize,
    /// Calls of each class in which old and new text slip.
    per_slip: usize,
    seed: u64,
    profile: String,
    binary: Option<PathBuf>,
    /// Parts of the names of the classes that are run; all where there are none.
    only: Vec<String>,
    /// How many calls that ended otherwise than they must are shown.
    show: usize,
}

/// Calls of which one may be wrong where old and new text slip.
const WRONG: usize = 1000;

/// How the calls of one class ended.
struct Tally {
    class: &'static Class,
    wanted: usize,
    made: usize,
    right: usize,
    refused: usize,
    refused_wrongly: usize,
    poor: usize,
    wrong: usize,
    milliseconds: Vec<f64>,
}

impl Tally {
    fn fine(&self) -> bool {
        let ended = match self.class.kind {
            Kind::Clean | Kind::Tolerated | Kind::Refused => self.right == self.made,
            Kind::Slipped => self.poor == 0 && self.wrong * WRONG <= self.made,
            Kind::Apart => self.poor == 0,
        };
        self.made == self.wanted && ended
    }

    /// Wrong calls that a class may not have.
    const fn counts(&self) -> bool {
        !matches!(self.class.kind, Kind::Slipped | Kind::Apart)
    }
}

/// Runs every class; `false` when one missed.
///
/// # Errors
///
/// When the arguments are not understood, `haft` cannot be built, or git does not answer.
pub(super) fn run(project: &Project, arguments: &[String]) -> Result<bool> {
    let asked = parse(arguments)?;
    let haft = match &asked.binary {
        Some(binary) => binary.clone(),
        None => build_haft(project, &asked.profile)?,
    };
    let bench = Bench { project: project.clone(), haft, profile: Some(asked.profile.clone()) };
    let repository = asked.repository.clone().unwrap_or_else(|| project.root.clone());
    let mut numbers = Numbers::new(asked.seed);
    let changes = history::changes(project, &repository, asked.clean, &mut numbers)?;
    let (count, from_history) = (changes.clean.len(), changes.from_history);
    println!("{count} changes, {from_history} of them from the history; seed {}", asked.seed);
    let scratch = Scratch::new()?;
    let mut server = Server::start(&bench, &scratch)?;
    let mut tallies = Vec::new();
    let only = |class: &&Class| {
        asked.only.is_empty() || asked.only.iter().any(|part| class.name.contains(&**part))
    };
    for class in CLASSES.iter().filter(only) {
        let wanted = match class.kind {
            _ if class.name == "clean" => asked.clean,
            Kind::Slipped | Kind::Apart => asked.per_slip,
            _ => asked.per_class,
        };
        tallies.push(tally(class, wanted, &changes.clean, &mut server, &mut numbers, asked.show)?);
    }
    print!("\n{}", table(&tallies));
    let wrong = |counts: bool| -> usize {
        tallies.iter().filter(|tally| tally.counts() == counts).map(|tally| tally.wrong).sum()
    };
    let calls: usize = tallies.iter().map(|tally| tally.made).sum();
    let missed: Vec<&str> =
        tallies.iter().filter(|tally| !tally.fine()).map(|tally| tally.class.name).collect();
    let (wrong, slipped) = (wrong(true), wrong(false));
    let figure = format!(
        "{calls} calls in {} classes, wrong bytes: {wrong}; {slipped} where old_text slips",
        tallies.len()
    );
    println!("\n{}", measured::row("bench edit", &figure));
    if !missed.is_empty() {
        eprintln!("not all right: {}", missed.join(", "));
    }
    Ok(missed.is_empty())
}

/// Makes the calls of a class and sends them.
fn tally(
    class: &'static Class,
    wanted: usize,
    clean: &[Clean],
    server: &mut Server,
    numbers: &mut Numbers,
    show: usize,
) -> Result<Tally> {
    let mut tally = Tally {
        class,
        wanted,
        made: 0,
        right: 0,
        refused: 0,
        refused_wrongly: 0,
        poor: 0,
        wrong: 0,
        milliseconds: Vec::new(),
    };
    // A class of which a change gives no call gets one from another; the rounds differ in chance. Of
    // few changes hardly one is in an encoding that lacks characters.
    let tries = if class.kind == Kind::Clean && wanted == clean.len() { 1 } else { 300 };
    for change in clean.iter().cycle().take(clean.len() * tries) {
        if tally.made == wanted {
            break;
        }
        let Some(case) = (class.make)(change, numbers) else { continue };
        let answer = server.run(&case)?;
        tally.made += 1;
        tally.milliseconds.push(answer.milliseconds);
        match answer.ended {
            Ended::Right => tally.right += 1,
            Ended::Refused => tally.refused += 1,
            Ended::RefusedWrongly => tally.refused_wrongly += 1,
            Ended::PoorMessage => tally.poor += 1,
            Ended::WrongBytes => tally.wrong += 1,
        }
        let fine = matches!(answer.ended, Ended::Right | Ended::Refused);
        if !fine && tally.made - tally.right - tally.refused <= show {
            tell(class, &case, &answer);
        }
    }
    Ok(tally)
}

/// Shows a call that did not end as it must.
fn tell(class: &Class, case: &Case, answer: &Answer) {
    println!("\n{}: {:?}", class.name, answer.ended);
    println!("file: {:?}", cut(&String::from_utf8_lossy(&case.file)));
    println!("call: {}", cut(&case.call.to_string()));
    match &case.want {
        Want::Bytes(bytes) | Want::BytesOrRefused(bytes) => {
            println!("want: {:?}", cut(&String::from_utf8_lossy(bytes)));
        }
        Want::Refused(words) => println!("want: {words:?}"),
    }
    println!("said: {}", cut(&answer.said));
}

fn cut(text: &str) -> String {
    text.chars().take(3000).collect()
}

/// The tallies as a table in Markdown.
fn table(tallies: &[Tally]) -> String {
    let mut text = String::from(
        "| class | calls | applied right | refused right | refused wrongly | poor message | \
         wrong bytes | ms, median |\n|---|---|---|---|---|---|---|---|\n",
    );
    for tally in tallies {
        let refused = tally.class.kind == Kind::Refused;
        let (applied, refused) =
            if refused { (0, tally.right) } else { (tally.right, tally.refused) };
        let median = Runs::new(tally.milliseconds.clone()).map_or(0.0, |runs| runs.median());
        let Tally { class, made, refused_wrongly, poor, wrong, .. } = tally;
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {made} | {applied} | {refused} | {refused_wrongly} | {poor} | {wrong} | \
             {median:.1} |",
            class.name
        );
    }
    text
}

fn parse(arguments: &[String]) -> Result<EditOptions> {
    let mut asked = EditOptions {
        repository: None,
        clean: 1000,
        per_class: 100,
        per_slip: 1000,
        seed: 1,
        profile: "dist".to_owned(),
        binary: None,
        only: Vec::new(),
        show: 3,
    };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let text = words.next().map_or("", String::as_str);
        let number = || {
            text.parse().ok().filter(|number| *number > 0).with_context(|| {
                Usage(format!("{word} needs a whole number from 1 on, not {text:?}"))
            })
        };
        let path = || {
            let path = PathBuf::from(text);
            path.canonicalize().with_context(|| Usage(format!("{word}: there is no {text:?}")))
        };
        match word.as_str() {
            "--repo" => asked.repository = Some(path()?),
            "--clean" => asked.clean = number()?,
            "--per-class" => asked.per_class = number()?,
            "--per-slip" => asked.per_slip = number()?,
            "--seed" => asked.seed = number()? as u64,
            "--show" => asked.show = number()?,
            "--profile" => text.clone_into(&mut asked.profile),
            "--only" => asked.only = text.split(',').map(str::to_owned).collect(),
            "--binary" => asked.binary = Some(path()?),
            other => {
                let text = format!(
                    "bench edit takes --repo, --clean, --per-class, --per-slip, --seed, --show, \
                     --only, --profile and --binary, not {other:?}"
                );
                return Err(Usage(text).into());
            }
        }
    }
    Ok(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_not_understood_is_a_usage_error() {
        for line in ["--clean 0", "--seed", "--repo /no/such/folder", "history"] {
            let Err(error) = parse(&words(line)) else { panic!("{line} was taken") };
            assert!(error.is::<Usage>(), "{line}: {error}");
        }
        let asked = parse(&words("--clean 5 --per-class 7 --seed 9 --profile dev")).unwrap();
        assert_eq!((asked.clean, asked.per_class, asked.seed), (5, 7, 9));
    }
}
