//! `haft tool`: calls any tool from a shell.
//!
//! The mode is ask on a terminal and dont-ask elsewhere: a question never blocks a script.

use std::{
    io::{IsTerminal as _, Read as _},
    time::Duration,
};

use haft_host::Host;
use haft_policy::{Ask, Grants, Mode};
use haft_tool::ToolSet;
use haft_types::{Access, Body, CallId, Follow, HostPath, Outcome, Part, Plan, Status, Target};
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{line, view};
use crate::{
    app::{
        agent::Signals,
        base::Base,
        session::{Core, Extensions, SessionBuilder, SessionChoice},
    },
    cli::{
        Tool,
        exit::{Ending, Failure, print_data, println, println_json, say},
        stdin,
    },
};

/// Most bytes of arguments from standard input.
const ARGUMENTS_MAX: u64 = 64 << 20;
/// Longest that paths are looked up for a hint.
const LOOK_UP: Duration = Duration::from_secs(1);

/// Lists tools, shows one, or calls one.
pub async fn run(arguments: &Tool, extensions: &Extensions) -> Ending {
    let mut base = super::base(&arguments.common, None)?;
    base.every_tool = true;
    match arguments.name.as_str() {
        "list" => {
            if let Some(extra) = &arguments.of {
                return Err(Failure::Usage(format!(
                    "`haft tool list` takes no name, {extra:?} is one argument too many: \
                     haft tool spec {extra} shows one tool"
                )));
            }
            return list(&base, arguments, extensions).await;
        }
        "spec" => return spec(&base, arguments, extensions).await,
        _ => {}
    }
    if let Some(extra) = &arguments.of {
        return Err(Failure::Usage(format!(
            "{extra:?} is one argument too many: give the tool's arguments as --input JSON"
        )));
    }
    base.called = Some(arguments.name.clone());
    let raw = arguments_of(arguments)?;
    let terminal = is_terminal();
    if !terminal && arguments.common.mode.is_none() && base.mode == Mode::Ask {
        base.mode = Mode::DontAsk;
    }
    let which = arguments.session.clone().map_or(SessionChoice::IfNeeded, SessionChoice::Named);
    let style = view::Style::plain(&base.environment);
    let env = base.env(None, terminal)?;
    let common = &arguments.common;
    let core = super::open(SessionBuilder { base, common, which, env, extensions }).await?;
    let told = view::notices(&core.bus);
    let alone = "haft tool makes one call, and everything ends with it";
    core.jobs().refuse(alone);
    core.shells().refuse(alone);
    if core.dispatcher.tools.spec(&arguments.name).is_none() {
        let why = core.base.taken_away(common, &core.env, &arguments.name);
        let unknown =
            || view::sentence(&core.dispatcher.tools.unknown(&arguments.name).to_string());
        return Err(Failure::Usage(why.unwrap_or_else(unknown)));
    }
    let plan = plans(&core);
    let stop = CancellationToken::new();
    let asking = terminal.then(|| line::answer_questions(&core, &style));
    let running = core.dispatcher.call_written(&arguments.name, raw, stop.clone());
    let mut signals = Signals::new()?;
    let signal = async || {
        signals.received().await;
    };
    let ended = until_dropped(running, &stop, signal).await;
    if let Some(asking) = asking {
        asking.abort();
    }
    let Some((call, outcome)) = ended else {
        let text = "ended by the second signal: what still ran is given up, its result is lost";
        return Err(Failure::Failed(text.into()));
    };
    end(&core, arguments, (&call, &outcome), (plan, told)).await
}

/// Tells what came of a call, and what a person can do about it.
async fn end(
    core: &Core,
    arguments: &Tool,
    (call, outcome): (&CallId, &Outcome),
    (plan, told): (JoinHandle<Option<Plan>>, JoinHandle<()>),
) -> Ending {
    let cut = outcome.detail.as_ref().and_then(|detail| detail.cut.as_ref());
    // A text may hold the address of the call though nothing is there.
    let named = || {
        outcome.detail.is_none()
            && outcome.joined_text().contains(&call.address())
            && core.dispatcher.session.outs.open(call).is_some()
    };
    let whole = match cut {
        Some(cut) => cut.rest.clone(),
        None => named().then(|| call.address()),
    };
    // What was only observed is not kept as a rule; here something refers to it.
    let kept = if whole.is_some() { core.bus.keep() } else { Ok(()) };
    super::close(core).await;
    // What was noticed meanwhile is said before the result.
    drop(told.await);
    let ending = tell(arguments, outcome, core.session_id(), &call.to_string());
    if let Err(error) = kept {
        say(&format!("haft: the whole result is lost: {error}"));
    } else if let Some(address) = whole.filter(|_| !arguments.json) {
        say(&format!(
            "haft: what is kept of it: haft tool read --session {} --input '{}'",
            core.session_id(),
            json!({"path": address})
        ));
    }
    if outcome.status == Status::Denied
        && let Some(plan) = plan.await.ok().flatten()
        && let Some(text) = would_allow(core, &arguments.name, outcome, &plan).await
    {
        say(&format!("haft: {}", view::safe(&text)));
    }
    ending
}

/// Runs to the end. The first signal stops what runs, which then ends as it can; the second one
/// gives it up, and then there is no result.
async fn until_dropped<T>(
    running: impl Future<Output = T>,
    stop: &CancellationToken,
    mut signal: impl AsyncFnMut(),
) -> Option<T> {
    let mut running = std::pin::pin!(running);
    tokio::select! {
        ended = &mut running => return Some(ended),
        () = signal() => stop.cancel(),
    }
    tokio::select! {
        ended = running => Some(ended),
        () = signal() => None,
    }
}

/// Takes note of what the call plans, to the end of the session's events.
fn plans(core: &Core) -> JoinHandle<Option<Plan>> {
    let mut feed = core.bus.subscribe();
    tokio::spawn(async move {
        let mut last = None;
        while let Some(event) = feed.next().await {
            if let Body::CallStarted { plan, .. } = &event.body {
                last.clone_from(plan);
            }
        }
        last
    })
}

/// The flags with which a call goes on that was refused for want of a rule; none where no flag
/// would help.
async fn would_allow(core: &Core, name: &str, outcome: &Outcome, plan: &Plan) -> Option<String> {
    if !outcome.joined_text().contains("no rule allows") {
        return None;
    }
    let spec = core.dispatcher.tools.spec(name)?;
    let base = &core.base;
    let real = timeout(LOOK_UP, real_paths(&*base.host, plan)).await.ok()??;
    let quoted = |rule: &String| format!(" --allow {}", shell_word(rule));
    if base.mode == Mode::Auto {
        // The sandbox holds the command itself; what it needs beyond that is what was asked about.
        let beyond = base.policy.rules_beyond(plan, &real, |path| base.place.holds(path));
        let hosts = plan.effects.iter().filter_map(|effect| match &effect.target {
            Target::Net { host } => Some(host.as_str()),
            _ => None,
        });
        let hosts: Vec<&str> = hosts.collect();
        let flags: String = beyond.iter().map(quoted).collect();
        let hosts = (!hosts.is_empty()).then(|| format!("set sandbox.hosts = {}", json!(hosts)));
        let flags = (!flags.is_empty()).then(|| format!("add{flags}"));
        let both: Vec<String> = flags.into_iter().chain(hosts).collect();
        if !both.is_empty() {
            return Some(format!("to allow it, {}", both.join(", and ")));
        }
    }
    let rules = base.policy.rules_for(&Ask {
        tool: spec,
        input: &Value::Null,
        plan,
        real: &real,
        agent: &core.dispatcher.agent,
        mode: base.mode,
        place: &base.place,
        grants: &Grants::default(),
        walls: None,
        veil: None,
    });
    if rules.is_empty() {
        return None;
    }
    let flags: String = rules.iter().map(quoted).collect();
    let inside = real.iter().all(|real| real.as_ref().is_some_and(|real| base.place.holds(real)));
    let other = plan.access() == Access::Modify && inside && base.mode != Mode::AcceptEdits;
    let mode = if other { " or --mode accept-edits" } else { "" };
    Some(format!("to allow it, add{flags}{mode}"))
}

/// A text as a word of any shell, in one line: names may hold ends of lines.
fn shell_word(text: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    if !text.contains(|c: char| c.is_ascii_control()) {
        return quoted(text);
    }
    let written = text.replace('\\', r"\\").replace('%', "%%");
    let written: String = written
        .chars()
        .map(|c| if c.is_ascii_control() { format!("\\{:03o}", u32::from(c)) } else { c.into() })
        .collect();
    format!("\"$(printf {})\"", quoted(&written))
}

/// Where the paths of a plan really lie, one for each effect; none where one cannot be found out.
async fn real_paths(host: &dyn Host, plan: &Plan) -> Option<Vec<Option<HostPath>>> {
    let mut real = Vec::with_capacity(plan.effects.len());
    for effect in &plan.effects {
        let (path, follow) = match &effect.target {
            Target::Path { path, follow } => (path, *follow),
            Target::Tree { root } => (root, Follow::Yes),
            _ => {
                real.push(None);
                continue;
            }
        };
        real.push(Some(host.fs().locate(path, follow).await.ok()?.real.clone()));
    }
    Some(real)
}

async fn list(base: &Base, arguments: &Tool, extensions: &Extensions) -> Ending {
    let tools = tools(base, arguments, extensions).await?;
    for spec in tools.specs().iter().map(|spec| &**spec).chain(tools.unattended()) {
        if arguments.json {
            println_json(&serde_json::to_string(spec)?)?;
        } else {
            let text = if spec.snippet.is_empty() { &spec.description } else { &spec.snippet };
            println(&format!("{:<12} {}", spec.name, view::safe(text)))?;
        }
    }
    Ok(())
}

async fn spec(base: &Base, arguments: &Tool, extensions: &Extensions) -> Ending {
    let Some(name) = &arguments.of else {
        return Err(Failure::Usage("`haft tool spec` wants the name of a tool".into()));
    };
    let tools = tools(base, arguments, extensions).await?;
    let unattended = || tools.unattended_spec(name);
    match tools.spec(name).map(|spec| &**spec).or_else(unattended) {
        Some(spec) => println_json(&serde_json::to_string_pretty(spec)?),
        None => Err(Failure::Usage(view::sentence(&tools.unknown(name).to_string()))),
    }
}

/// Reports whether someone is there who can answer.
fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// The tools as the model of the settings gets them, where there is one.
async fn tools(base: &Base, arguments: &Tool, extensions: &Extensions) -> Result<ToolSet, Failure> {
    let env = base.env(base.loaded.settings.model.name.as_deref(), is_terminal())?;
    let registry = base.registry(&arguments.common, &env, &extensions.tools).await;
    Ok(super::built(&base.problems, registry)?.assemble(&env))
}

/// The arguments as they were written: given, from standard input, or none.
fn arguments_of(arguments: &Tool) -> Result<String, Failure> {
    let text = match arguments.input.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let mut stdin = std::io::stdin().lock().take(ARGUMENTS_MAX + 1);
            stdin.read_to_string(&mut text).map_err(|error| {
                Failure::Usage(format!("standard input cannot be read as text: {error}"))
            })?;
            if text.len() as u64 > ARGUMENTS_MAX {
                return Err(Failure::Usage(format!(
                    "standard input has more than the {} MiB that arguments may have",
                    ARGUMENTS_MAX >> 20
                )));
            }
            if text.trim().is_empty() {
                let text = "standard input is empty: it must hold the tool's arguments as JSON";
                return Err(Failure::Usage(text.into()));
            }
            text
        }
        Some(text) => text.to_owned(),
        None => stdin::read(false)?.filter(|text| !text.trim().is_empty()).unwrap_or("{}".into()),
    };
    if let Err(error) = serde_json::from_str::<Value>(&text) {
        let start: String = text.chars().take(80).collect();
        // The parser says only that an escape ends early.
        let half = if error.to_string().contains("hex escape") {
            " (\\ud800 to \\udfff are half a character each, a surrogate, and stand in pairs)"
        } else {
            ""
        };
        return Err(Failure::Usage(format!("--input is not JSON: {error}{half}: {start:?}")));
    }
    Ok(text)
}

fn tell(arguments: &Tool, outcome: &Outcome, session: &str, call: &str) -> Ending {
    if arguments.json {
        let mut value = serde_json::to_value(outcome)?;
        value["call"] = json!(call);
        value["session"] = json!(session);
        println_json(&value.to_string())?;
    } else {
        for part in &outcome.content {
            let text = match part {
                Part::Text { text } => text.clone(),
                Part::Image { blob } => format!("[{} of {} bytes]", blob.mime, blob.len),
                _ => continue,
            };
            print_data(&text)?;
            if !text.ends_with('\n') {
                print_data("\n")?;
            }
        }
    }
    match outcome.status {
        Status::Done => Ok(()),
        _ => Err(Failure::Said(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_second_signal_gives_up_what_does_not_end() {
        let stop = CancellationToken::new();
        let stuck = std::future::pending::<()>();
        let ended = until_dropped(stuck, &stop, async || ()).await;
        assert!(ended.is_none() && stop.is_cancelled());

        // What ends at the first one has its result.
        let stop = CancellationToken::new();
        let mut signals = 0;
        let signal = async || {
            signals += 1;
            if signals > 1 {
                std::future::pending::<()>().await;
            }
        };
        let ended = until_dropped(async { stop.cancelled().await }, &stop, signal).await;
        assert!(ended.is_some());
    }
}
