//! `haft doctor`: what works here; each line is a probe made now. And `haft debug`.

mod levels;

use std::{
    fs::{self, DirBuilder},
    io::{IsTerminal as _, Write as _},
    net::ToSocketAddrs as _,
    os::unix::fs::DirBuilderExt as _,
    time::Duration,
};

use futures::StreamExt as _;
use haft_agent::{late_tools, system};
use haft_config::Presence;
use haft_host::{Host as _, Output, Program, Spawn};
use haft_llm::Wire as _;
use haft_tool::{Settings, standard};
use haft_types::{Env, ToolSpec};
use serde_json::json;

use super::view;
use crate::{
    app::{
        agent,
        base::{Base, CACHES, REPOSITORIES},
        executables,
        instructions::ProjectInstructions,
        model,
        session::Extensions,
    },
    cli::{
        Debug, DebugWhat, Doctor,
        exit::{Ending, Failure, print_data, println},
    },
};

/// How a probe came out.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// Something is missing that not everybody needs.
    Missing,
    Broken,
}

struct Line {
    what: String,
    state: State,
    text: String,
}

fn line(what: &str, state: State, text: impl Into<String>) -> Line {
    Line { what: what.to_owned(), state, text: text.into() }
}

impl Line {
    const fn sign(&self) -> &'static str {
        match self.state {
            State::Fine => "ok",
            State::Missing => "--",
            State::Broken => "!!",
        }
    }

    /// It as people read it.
    fn shown(&self) -> String {
        format!("{}  {:<10} {}", self.sign(), self.what, view::safe(&self.text))
    }
}

/// Runs the probes.
async fn probe(base: &Base) -> Vec<Line> {
    let mut lines = vec![line("version", State::Fine, env!("CARGO_PKG_VERSION"))];
    lines.push(state_folder(base));
    lines.extend(kept(base));
    lines.push(workspace(base));
    lines.push(settings(base));
    lines.extend(base.loaded.aside.iter().map(|text| line("settings", State::Missing, text)));
    lines.extend(hooks(base));
    lines.push(shell(base).await);
    lines.push(files(base));
    let probes = match base.host.shell() {
        Some(shell) => shell.levels().await,
        None => Vec::new(),
    };
    lines.extend(levels::lines(&probes, &base.loaded.settings.sandbox));
    lines.push(terminal(base));
    lines.extend(tools(base).await);
    for (name, url, key) in providers(base) {
        lines.push(provider(&name, &url, key).await);
    }
    lines
}

/// The level at which all commands are held, in a few words.
pub async fn held(base: &Base) -> String {
    let probes = match base.host.shell() {
        Some(shell) => shell.levels().await,
        None => Vec::new(),
    };
    levels::held(&probes, &base.loaded.settings.sandbox)
}

/// Runs the probes for people, a line each.
pub async fn report(base: &Base) -> String {
    let lines: Vec<String> = probe(base).await.iter().map(Line::shown).collect();
    lines.join("\n") + "\n"
}

/// Runs the probes and prints their results.
pub async fn run(arguments: &Doctor) -> Ending {
    let base = super::base(&arguments.common, None)?;
    let lines = probe(&base).await;
    for line in &lines {
        println(&if arguments.json {
            haft_render::json(
                &json!({"what": line.what, "state": line.sign(), "text": line.text}).to_string(),
            )
            .into_owned()
        } else {
            line.shown()
        })?;
    }
    let broken = lines.iter().filter(|line| line.state == State::Broken).count();
    match broken {
        0 => Ok(()),
        n => Err(Failure::Failed(format!("{n} of these must be mended before haft can work"))),
    }
}

/// Most bytes that the begin of a session takes.
const SESSION_START: usize = 64 << 10;

/// Makes what a session begins with where sessions lie, and removes it.
fn session_folder(base: &Base) -> anyhow::Result<()> {
    let store = haft_session::Store::open(base.environment.state_folder()?);
    let folder = store.dir(&haft_session::SessionId::new());
    let failed = |error| haft_session::SessionError::home(&folder, error);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
    let write = || {
        let mut probe = tempfile::tempfile_in(&folder)?;
        probe.write_all(&vec![b'x'; SESSION_START])?;
        probe.sync_all()
    };
    let written = write().map_err(failed);
    fs::remove_dir(&folder).map_err(failed).and(written)?;
    Ok(())
}

/// Makes and removes a file where the state lives.
fn state_folder(base: &Base) -> Line {
    let probe = || -> anyhow::Result<String> {
        let folder = base.environment.state_folder()?;
        haft_config::make_folder(folder)?;
        let probe = tempfile::Builder::new().prefix(".doctor-").tempfile_in(folder);
        probe.map_err(|error| anyhow::anyhow!("{}: {error}", folder.display()))?;
        Ok(folder.display().to_string())
    };
    if let (Ok(_), Err(error)) = (probe(), session_folder(base)) {
        return line("state", State::Broken, format!("no session can start: {error:#}"));
    }
    match probe() {
        Ok(folder) => line("state", State::Fine, format!("{folder} can be written")),
        Err(error) => {
            let text = format!("{error:#}; set HAFT_HOME to a folder that can be written");
            line("state", State::Broken, text)
        }
    }
}

/// What the state takes on the disk.
fn kept(base: &Base) -> Option<Line> {
    let home = base.environment.state_folder().ok()?;
    let store = haft_session::Store::open(home);
    let ids = store.ids().ok()?;
    let mut all = haft_session::Usage::default();
    for usage in ids.iter().map(|id| store.usage(id)) {
        all.log = all.log.saturating_add(usage.log);
        all.undo = all.undo.saturating_add(usage.undo);
        all.outputs = all.outputs.saturating_add(usage.outputs);
    }
    let [caches, repositories] =
        [CACHES, REPOSITORIES].map(|name| haft_session::bytes_below(&home.join(name)));
    let (settings, bytes) = (&base.loaded.settings, haft_render::bytes);
    let text = format!(
        "{} session{}: logs {}, undo {} (at most {}), outputs {} (at most {}); copies of repositories \
         {}, caches {}",
        ids.len(),
        if ids.len() == 1 { "" } else { "s" },
        bytes(all.log),
        bytes(all.undo),
        bytes(settings.undo.total_bytes),
        bytes(all.outputs),
        bytes(settings.output.total_bytes),
        bytes(repositories),
        bytes(caches),
    );
    Some(line("kept", State::Fine, text))
}

fn workspace(base: &Base) -> Line {
    let trust = if base.trusted { "trusted" } else { "not trusted: its settings do not count" };
    let text = format!(
        "{} (project {}, {trust}), mode {}",
        base.place.cwd,
        base.project.display(),
        base.mode
    );
    line("workspace", State::Fine, text)
}

fn settings(base: &Base) -> Line {
    let shown = |presence| match presence {
        Presence::Missing => None,
        Presence::Read => Some("read"),
        Presence::Untrusted => Some("not read, folder not trusted"),
        Presence::Broken => Some("broken"),
    };
    let files: Vec<String> = base
        .loaded
        .files
        .iter()
        .filter_map(|file| Some(format!("{} ({})", file.path.display(), shown(file.presence)?)))
        .collect();
    let state = if base.loaded.problems.is_empty() { State::Fine } else { State::Missing };
    let files = if files.is_empty() { "defaults, no files".to_owned() } else { files.join(", ") };
    let problems = base.loaded.problems.len() + base.policy.problems().len();
    let problems =
        if problems == 0 { String::new() } else { format!("; {problems} problems, told above") };
    line("settings", state, format!("{files}{problems}"))
}

/// The hooks that count, where there are any.
fn hooks(base: &Base) -> Option<Line> {
    let mut events: Vec<(&str, usize)> = Vec::new();
    for hook in &base.hooks {
        let name = hook.entry.event.name();
        match events.iter_mut().find(|(event, _)| *event == name) {
            Some((_, count)) => *count += 1,
            None => events.push((name, 1)),
        }
    }
    let shown: Vec<String> = events.iter().map(|(name, n)| format!("{n} of {name}")).collect();
    (!shown.is_empty()).then(|| line("hooks", State::Fine, shown.join(", ")))
}

/// Runs a command.
async fn shell(base: &Base) -> Line {
    let Some(shell) = base.host.shell() else {
        return line("shell", State::Missing, "there is none: the bash tool is off");
    };
    let program = Program::Script { text: "printf ok".into(), args: Vec::new() };
    let probe = async {
        let mut running = shell.spawn(Spawn::new(program, base.place.cwd.clone())).await?;
        let mut said = Vec::new();
        while let Some(output) = running.output.next().await {
            if let Output::Bytes(_, bytes) = output? {
                said.extend_from_slice(&bytes);
            }
        }
        Ok::<_, std::io::Error>(said == b"ok")
    };
    let path = base.host.caps().shell.map(|path| path.to_string()).unwrap_or_default();
    match tokio::time::timeout(Duration::from_secs(5), probe).await {
        Ok(Ok(true)) => line("shell", State::Fine, format!("{path} runs commands")),
        Ok(Ok(false)) => {
            line("shell", State::Broken, format!("{path} does not say what it should"))
        }
        Ok(Err(error)) => line("shell", State::Broken, format!("{path}: {error}")),
        Err(_) => line("shell", State::Broken, format!("{path} did not answer within 5 s")),
    }
}

fn files(base: &Base) -> Line {
    let caps = base.host.caps();
    let how = if caps.atomic_open {
        "paths are opened in one step (openat2)"
    } else {
        "paths are opened name by name: the kernel has no openat2"
    };
    line("files", State::Fine, format!("{}: {how}", caps.platform))
}

fn terminal(base: &Base) -> Line {
    if !std::io::stdout().is_terminal() {
        return line("terminal", State::Missing, "standard output is none");
    }
    let style = view::Style::plain(&base.environment);
    let color = if style.color { "colours" } else { "no colours" };
    line("terminal", State::Fine, format!("{} columns, {color}", style.width))
}

/// The files of the folders of tools, a line each.
async fn tools(base: &Base) -> Vec<Line> {
    let env = Env { shell: base.host.shell().is_some(), ..Env::default() };
    let state = |works| if works { State::Fine } else { State::Missing };
    let told = executables::list_for_people(base, &env).await.into_iter();
    told.map(|(works, text)| line("tool", state(works), base.secrets.hide(&text))).collect()
}

/// The servers of which somebody set something up, and those of the wires' makers: name, address, and
/// whether a key is there.
fn providers(base: &Base) -> Vec<(String, String, bool)> {
    let servers = model::servers(&base.loaded.settings).into_iter();
    let told = servers.filter_map(|server| {
        let endpoint = model::endpoint(&server, &base.environment);
        let set_up = endpoint.key.is_some()
            || base.environment.server(&server.url_variable).is_some()
            || base.loaded.settings.providers.contains_key(&server.name);
        (server.is_makers() || set_up)
            .then(|| (server.name, endpoint.base_url, endpoint.key.is_some()))
    });
    told.collect()
}

/// Looks a server up and connects; nothing is sent.
async fn provider(name: &str, url: &str, key: bool) -> Line {
    let shown = haft_net::shown_url(url);
    let keyed = if key { "key set" } else { "no key" };
    let secure = url.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("https:"));
    let address = match haft_net::host_and_port(url) {
        Ok(address) => address,
        Err(error) => return line(name, State::Missing, error.to_string()),
    };
    let connect = tokio::task::spawn_blocking(move || {
        let mut found = address.to_socket_addrs()?;
        let first = found.next().ok_or(std::io::ErrorKind::NotFound)?;
        std::net::TcpStream::connect_timeout(&first, Duration::from_secs(2)).map(drop)
    });
    match tokio::time::timeout(Duration::from_secs(3), connect).await {
        Ok(Ok(Ok(()))) => {
            let state = if key || !secure { State::Fine } else { State::Missing };
            line(name, state, format!("{shown} answers, {keyed}"))
        }
        Ok(Ok(Err(error))) => line(name, State::Missing, format!("{shown}: {error}, {keyed}")),
        _ => line(name, State::Missing, format!("{shown} does not answer, {keyed}")),
    }
}

/// `haft debug`: prints what is sent and run, as it is.
pub async fn debug(arguments: &Debug, extensions: &Extensions) -> Ending {
    if arguments.what == DebugWhat::Pipeline {
        let names: Vec<&str> = standard(&Settings::default()).names().collect();
        return println(&names.join(" > "));
    }
    let base = super::base(&arguments.common, None)?;
    let env = base.env(base.loaded.settings.model.name.as_deref(), true)?;
    let registry = base.registry(&arguments.common, &env, &extensions.tools).await;
    let tools = super::built(&base.problems, registry)?.assemble(&env);
    if arguments.what == DebugWhat::Tools {
        let specs: Vec<ToolSpec> = tools.listed().map(|spec| (**spec).clone()).collect();
        let json = haft_llm::anthropic::AnthropicMessages::default().tools(&specs);
        return println(&format!("{}\n{} bytes", haft_render::json(&json), json.len()));
    }
    let context = ProjectInstructions::of(&base)?.at_start().await.context();
    let most = base.loaded.settings.tool_search.listing_tokens;
    let more = agent::skills_section(&base, &tools).into_iter().chain(late_tools(&tools, most));
    let around = agent::surroundings(&base);
    let prompt = system(&tools, &context, &around, more.collect());
    let parts = prompt.parts;
    let bytes: usize = parts.iter().map(String::len).sum();
    print_data(&format!("{}\n\n{bytes} bytes\n", parts.join("\n\n")))
}
