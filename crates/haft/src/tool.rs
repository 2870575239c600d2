//! `haft tool`: any tool from a shell.
//!
//! Mode ask on a terminal, dont-ask elsewhere: a script is never held up by a question.

use std::{
    io::{IsTerminal as _, Read as _},
    sync::Arc,
};

use haft_policy::Mode;
use haft_tool::{AnyTool, ToolSet};
use haft_types::{Outcome, Part, Status};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    agent::Signals,
    cli::Tool,
    core::{Base, Core, Which},
    exit::{Ending, Failure, print, println},
    face, input, line,
};

/// Lists tools, shows one, or calls one.
pub async fn run(arguments: &Tool, more: &[Arc<dyn AnyTool>]) -> Ending {
    let mut base = Base::load(&arguments.common, None)?;
    match arguments.name.as_str() {
        "list" => return list(&base, arguments, more).await,
        "spec" => return spec(&base, arguments, more).await,
        _ => {}
    }
    if let Some(extra) = &arguments.of {
        return Err(Failure::Usage(format!(
            "{extra:?} is one argument too many: give the tool's arguments as --input JSON"
        )));
    }
    let value = arguments_of(arguments)?;
    let terminal = is_terminal();
    if !terminal && arguments.common.mode.is_none() && base.mode == Mode::Ask {
        base.mode = Mode::DontAsk;
    }
    let which = arguments.session.clone().map_or(Which::IfNeeded, Which::Named);
    let style = face::Style::plain(&base.environment);
    let env = base.env(None, terminal)?;
    let core = Core::open(base, &arguments.common, which, &env, more).await?;
    if core.dispatcher.tools.spec(&arguments.name).is_none() {
        let error = core.dispatcher.tools.unknown(&arguments.name);
        return Err(Failure::Usage(face::sentence(&error.to_string())));
    }
    let stop = CancellationToken::new();
    let asking = terminal.then(|| line::answer_questions(&core, &style));
    let running = core.dispatcher.call(&arguments.name, value, stop.clone());
    let mut running = std::pin::pin!(running);
    let mut signals = Signals::new()?;
    let (call, outcome) = tokio::select! {
        ended = &mut running => ended,
        _ = signals.received() => { stop.cancel(); running.await }
    };
    if let Some(asking) = asking {
        asking.abort();
    }
    core.close().await;
    tell(arguments, &outcome, core.session_id(), &call.to_string())
}

async fn list(base: &Base, arguments: &Tool, more: &[Arc<dyn AnyTool>]) -> Ending {
    let tools = tools(base, arguments, more).await?;
    for spec in tools.specs() {
        if arguments.json {
            println(&serde_json::to_string(&**spec)?)?;
        } else {
            let text = if spec.snippet.is_empty() { &spec.description } else { &spec.snippet };
            println(&format!("{:<12} {}", spec.name, face::safe(text)))?;
        }
    }
    Ok(())
}

async fn spec(base: &Base, arguments: &Tool, more: &[Arc<dyn AnyTool>]) -> Ending {
    let Some(name) = &arguments.of else {
        return Err(Failure::Usage("`haft tool spec` wants the name of a tool".into()));
    };
    let tools = tools(base, arguments, more).await?;
    match tools.spec(name) {
        Some(spec) => println(&serde_json::to_string_pretty(&**spec)?),
        None => Err(Failure::Usage(face::sentence(&tools.unknown(name).to_string()))),
    }
}

/// Reports whether someone is there who can answer.
fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The tools as the model of the settings gets them, where there is one.
async fn tools(
    base: &Base,
    arguments: &Tool,
    more: &[Arc<dyn AnyTool>],
) -> Result<ToolSet, Failure> {
    let env = base.env(base.loaded.settings.model.as_deref(), is_terminal())?;
    base.tools(&arguments.common, &env, more).await
}

/// The arguments: given, from standard input, or none.
fn arguments_of(arguments: &Tool) -> Result<Value, Failure> {
    let text = match arguments.input.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().lock().take(64 << 20).read_to_string(&mut text).map_err(|error| {
                Failure::Usage(format!("standard input cannot be read as text: {error}"))
            })?;
            if text.trim().is_empty() {
                let text = "standard input is empty: it must hold the tool's arguments as JSON";
                return Err(Failure::Usage(text.into()));
            }
            text
        }
        Some(text) => text.to_owned(),
        None => input::read(false)?.filter(|text| !text.trim().is_empty()).unwrap_or("{}".into()),
    };
    serde_json::from_str(&text).map_err(|error| {
        let start: String = text.chars().take(80).collect();
        Failure::Usage(format!("--input is not JSON: {error}: {start:?}"))
    })
}

fn tell(arguments: &Tool, outcome: &Outcome, session: &str, call: &str) -> Ending {
    if arguments.json {
        let mut value = serde_json::to_value(outcome)?;
        value["call"] = json!(call);
        value["session"] = json!(session);
        println(&value.to_string())?;
    } else {
        for part in &outcome.content {
            let text = match part {
                Part::Text { text } => face::printable(text).into_owned(),
                Part::Image { blob } => format!("[{} of {} bytes]", blob.mime, blob.len),
                _ => continue,
            };
            print(&text)?;
            if !text.ends_with('\n') {
                print("\n")?;
            }
        }
    }
    match outcome.status {
        Status::Done => Ok(()),
        _ => Err(Failure::Said(1)),
    }
}
