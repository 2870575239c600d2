//! What comes before a talk in a terminal: whether the folder is trusted, and which model answers.
//!
//! **Invariant:** nothing is asked where there is no terminal. What a folder brings along is settled
//! first: until then nothing of it counts, and no server is asked. Values of keys are never read.
//!
//! It is plain lines, so that both front ends of the terminal begin in the same way, and a screen
//! reader has no trouble with them.

mod brought;
mod prompter;

use std::fmt::Write as _;

use haft_config::{Environment, Loaded, Trust, set_model};
use tokio::sync::mpsc::UnboundedReceiver;

use self::prompter::{Answer, Prompter};
use super::{demo, line::Typed, view::safe};
use crate::{
    app::{
        agent,
        base::{self, folder, home, project_root},
        model::{Offers, named, servers},
    },
    cli::{
        Demo, Start,
        exit::{self, Failure, println},
    },
};

/// Choices that have a number, each one key.
const NUMBERED: usize = 9;
/// The exit code of a start without a model, as everywhere.
const NO_MODEL: u8 = 2;
/// The exit code of a start that was interrupted.
const INTERRUPTED: u8 = 130;

/// How a talk begins.
pub struct Begun {
    /// What is typed, where that is read already.
    pub typed: Option<UnboundedReceiver<Typed>>,
    /// Whether plain lines are wanted.
    pub is_read_out: bool,
}

/// Asks what has to be known before a talk. What was chosen stands in `start` then.
pub async fn begin(start: &mut Start) -> Result<Begun, Failure> {
    exit::hide(&base::known_secrets());
    let environment = Environment::capture();
    let mut prompter = Prompter::new(environment.dumb);
    ask_trust(start, &environment, &mut prompter).await?;
    let settings = settings(start, &environment)?;
    let is_read_out = settings.settings.terminal.reader;
    // Settings that cannot be used are told when the session opens.
    let is_open = settings.settings.model.name.is_none() && settings.fatal().next().is_none();
    if is_open && !agent::has_other_model(start) {
        let (name, is_stored) = choose(&settings, &environment, &mut prompter).await?;
        (start.common.model, start.model_once) = (Some(name), !is_stored);
    }
    Ok(Begun { typed: prompter.into_typed(), is_read_out })
}

/// The settings as they count for this start.
fn settings(start: &Start, environment: &Environment) -> Result<Loaded, Failure> {
    let project = project_root(&folder(None)?);
    let haft_home = home(environment)?;
    let trusted = start.common.trust || Trust::load(haft_home)?.trusted(&project) == Some(true);
    Ok(haft_config::load(&base::sources(environment, &start.common, &project, haft_home, trusted)))
}

/// Asks whether what the folder brings along counts, where that was never answered.
async fn ask_trust(
    start: &Start,
    environment: &Environment,
    prompter: &mut Prompter,
) -> Result<(), Failure> {
    let project = project_root(&folder(None)?);
    let haft_home = home(environment)?;
    let mut trust = Trust::load(haft_home)?;
    if start.common.trust || trust.trusted(&project).is_some() {
        return Ok(());
    }
    let Some(question) = brought::question(&project, environment, &start.common)? else {
        return Ok(());
    };
    exit::print(&question)?;
    let offered = [('t', "trust"), ('n', "not now"), ('x', "never")];
    match prompter.key(&offered).await? {
        Answer::Some('t') => trust.set_trust(&project, true)?,
        Answer::Some('x') => {
            trust.set_trust(&project, false)?;
            println("- `haft trust` lets it count after all")?;
        }
        Answer::Some(_) | Answer::End => {}
        Answer::Leave => return Err(Failure::Said(INTERRUPTED)),
    }
    println("")
}

/// A model that can be picked.
enum Choice {
    /// This one.
    Model(String),
    /// One of this server, whose name is asked for.
    Of(String),
}

/// Lets the person choose a model; gives its name, and whether it answers from now on.
async fn choose(
    loaded: &Loaded,
    environment: &Environment,
    prompter: &mut Prompter,
) -> Result<(String, bool), Failure> {
    let known = servers(&loaded.settings);
    let around = environment.clone();
    let offers = tokio::task::spawn_blocking(move || Offers::of(&known, &around)).await?;
    if offers.is_empty() {
        return Err(Failure::Usage(WAYS.to_owned()));
    }
    let (choices, told) = choices(&offers, loaded);
    let digits = choices.iter().zip('1'..).map(|((label, _), digit)| (digit, label.as_str()));
    let mut offered: Vec<(char, &str)> = digits.collect();
    offered.extend([('o', "another model"), ('d', "the demo"), ('q', "leave")]);
    loop {
        println(&told)?;
        let name = match prompter.key(&offered).await? {
            Answer::Some('d') => {
                Box::pin(demo::run(&Demo::default())).await?;
                println("")?;
                continue;
            }
            Answer::Some('o') => ask_name("", loaded, prompter).await?,
            Answer::Some(digit @ '1'..='9') => {
                let at = usize::try_from(u32::from(digit) - u32::from('1')).unwrap_or_default();
                match choices.get(at) {
                    Some((_, Choice::Model(name))) => Some(name.clone()),
                    Some((_, Choice::Of(server))) => {
                        ask_name(&format!("{server}/"), loaded, prompter).await?
                    }
                    None => None,
                }
            }
            Answer::Some(_) | Answer::End | Answer::Leave => {
                println("- no model is chosen: --model NAME names one, HAFT_MODEL too")?;
                return Err(Failure::Said(NO_MODEL));
            }
        };
        if let Some(name) = name {
            let is_stored = store(&name, environment, prompter).await?;
            return Ok((name, is_stored));
        }
    }
}

/// What can be picked by a number, each with its words, and the whole list for people.
fn choices(offers: &Offers, loaded: &Loaded) -> (Vec<(String, Choice)>, String) {
    let local = offers.servers.iter().flat_map(|server| {
        let named = server.models.iter().map(|model| format!("{}/{model}", server.name));
        named.map(|name| (safe(&name), Choice::Model(name)))
    });
    let configured = loaded.settings.models.keys().filter(|name| {
        let of_server = |(_, server): &(String, String)| name.starts_with(&format!("{server}/"));
        offers.keys.iter().any(of_server)
    });
    let configured = configured.map(|name| (safe(name), Choice::Model(name.clone())));
    let keys = offers.keys.iter().map(|(variable, server)| {
        let label = format!("a model of {}, by its name ({variable} is set)", safe(server));
        (label, Choice::Of(server.clone()))
    });
    // Keys last, but never pushed out: a server with many models must not hide them.
    let of_keys: Vec<(String, Choice)> = keys.collect();
    let room = NUMBERED.saturating_sub(of_keys.len().min(4));
    let mut all: Vec<(String, Choice)> = configured.chain(local).collect();
    let mut left = all.len().saturating_sub(room);
    all.truncate(room);
    all.extend(of_keys);
    left += all.len().saturating_sub(NUMBERED);
    all.truncate(NUMBERED);
    let told = shown(offers, &all, left);
    (all, told)
}

/// What was found and can be picked, for people; `left` models have no number.
fn shown(offers: &Offers, choices: &[(String, Choice)], left: usize) -> String {
    let mut told = String::from("Welcome to haft. No model is chosen yet. Found here:\n");
    for (variable, server) in &offers.keys {
        // Writing to a string cannot fail.
        let _ = writeln!(told, "  a key for {}: {variable}", safe(server));
    }
    for server in &offers.servers {
        let models = match server.models.len() {
            1 => "1 model".to_owned(),
            count => format!("{count} models"),
        };
        let (name, address) = (safe(&server.name), safe(&server.address));
        let _ = writeln!(told, "  {name} on this machine, {address}: {models}");
    }
    told.push_str("\nWhich model shall answer?\n");
    for ((label, _), digit) in choices.iter().zip('1'..) {
        let _ = writeln!(told, "  [{digit}] {label}");
    }
    if left > 0 {
        let _ = writeln!(told, "      and {left} more, by their names");
    }
    told.push_str("  [o] another model, by its name: SERVER/NAME\n");
    told.push_str("  [d] none yet: see the demo, which needs no model\n  [q] leave");
    told
}

/// Asks for the name of a model; none where nothing usable was typed.
async fn ask_name(
    before: &str,
    loaded: &Loaded,
    prompter: &mut Prompter,
) -> Result<Option<String>, Failure> {
    let typed = match prompter.line(&format!("  its name: {}", safe(before))).await? {
        Answer::Some(typed) if typed.is_empty() => return Ok(None),
        Answer::Some(typed) => typed,
        Answer::End | Answer::Leave => return Err(Failure::Said(INTERRUPTED)),
    };
    // Also where somebody typed it whole.
    let typed = typed.strip_prefix(before).unwrap_or(&typed);
    let name = format!("{before}{typed}");
    match named(&name, &loaded.settings) {
        Ok(_) => Ok(Some(name)),
        Err(error) => {
            println(&format!("! {}\n", safe(&error.to_string())))?;
            Ok(None)
        }
    }
}

/// Asks whether the model is the person's from now on, and stores it so; false where it is not.
async fn store(
    name: &str,
    environment: &Environment,
    prompter: &mut Prompter,
) -> Result<bool, Failure> {
    let file = home(environment)?.join("settings.toml");
    let shown = safe(&file.display().to_string());
    println(&format!(
        "\nShall {} answer from now on? `model` in {shown} names it then.\n  [y] yes\n  [n] no, \
         for this session alone",
        safe(name)
    ))?;
    match prompter.key(&[('y', "yes"), ('n', "for this session")]).await? {
        Answer::Some('y') => match set_model(&file, name) {
            Ok(()) => {
                println("")?;
                Ok(true)
            }
            // It answers all the same, in this session.
            Err(error) => {
                println(&format!("! it was not stored: {}\n", safe(&error.to_string())))?;
                Ok(false)
            }
        },
        Answer::Some(_) | Answer::End => {
            println("")?;
            Ok(false)
        }
        Answer::Leave => Err(Failure::Said(INTERRUPTED)),
    }
}

/// What is said where nothing was found.
const WAYS: &str = "no model is chosen, and nothing was found here that has one. Ways to begin:
  a key      set ANTHROPIC_API_KEY or OPENAI_API_KEY, then haft --model anthropic/NAME
  a server   start ollama, llama.cpp, vllm or lmstudio on this machine; then haft offers its models
  for good   `model = \"SERVER/NAME\"` in ~/.haft/settings.toml, or HAFT_MODEL
  neither    haft demo shows how it works, without a key and without a network";
