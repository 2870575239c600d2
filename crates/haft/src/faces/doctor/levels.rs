//! What `haft doctor` reports about the sandbox levels that can confine commands.
//!
//! **Invariant:** every attack that was tried is named, each with its current result.

use haft_config::{Sandbox, SandboxLevel};
use haft_host::{Attack, Cell, Level, Probe};

use super::{Line, State, line};

/// One line for each way, behind one that says what they are used for.
pub(super) fn lines(probes: &[Probe], settings: &Sandbox) -> Vec<Line> {
    let mut lines = vec![used(probes, settings)];
    lines.extend(probes.iter().map(|probe| of(probe, settings)));
    lines
}

/// The best level that works and that the settings take.
fn best(probes: &[Probe], settings: &Sandbox) -> Option<Level> {
    let works = |level: &Level| probes.iter().any(|probe| probe.level == *level && probe.works());
    let counts = |level: &Level| {
        works(level)
            && (settings.require != Some(SandboxLevel::Namespaces) || *level == Level::Namespaces)
    };
    Level::ALL.into_iter().find(counts)
}

const fn name(level: Level) -> &'static str {
    match level {
        Level::Namespaces => "N",
        Level::Landlock => "L",
    }
}

/// How all commands are held, in a few words.
pub(super) fn held(probes: &[Probe], settings: &Sandbox) -> String {
    match best(probes, settings) {
        Some(level) => format!("sandbox {}", name(level)),
        None => "no sandbox".to_owned(),
    }
}

/// What holds commands here.
fn used(probes: &[Probe], settings: &Sandbox) -> Line {
    let works = |level: Level| probes.iter().any(|probe| probe.level == level && probe.works());
    let all = settings.always || settings.require.is_some();
    let Some(best) = best(probes, settings) else {
        let (state, text) = if all {
            (
                State::Broken,
                "no command runs: the settings want them confined, and nothing holds them",
            )
        } else {
            (
                State::Missing,
                "nothing holds commands: they run with all of your rights, and mode auto asks",
            )
        };
        return line("sandbox", state, text);
    };
    let hidden = match best {
        Level::Namespaces => "keys and passwords cannot be read",
        Level::Landlock => "keys and passwords cannot be read, but for those deep in the workspace",
    };
    let best = name(best);
    if all {
        return line("sandbox", State::Fine, format!("all commands run at level {best}; {hidden}"));
    }
    let looks = if works(Level::Landlock) { "L" } else { best };
    let looks = settings.looks.then(|| format!(", those that only look at level {looks}"));
    let looks = looks.unwrap_or_default();
    let text = format!(
        "commands of mode auto run at level {best}{looks}; {hidden}; what a person or a rule allows \
         otherwise runs with all of your rights"
    );
    line("sandbox", State::Fine, text)
}

/// What everyday programs may want and do not get.
const fn without(level: Level) -> &'static str {
    match level {
        Level::Namespaces => "unix sockets but pairs, and see a network of their own",
        Level::Landlock => {
            "sockets but pairs, also to this machine itself, and without /dev/shm, which locks and \
             pools of processes use"
        }
    }
}

/// How it is known that the network was why a command failed.
const fn counted(probe: &Probe) -> &'static str {
    match (probe.level, probe.counts) {
        (Level::Namespaces, true) => "what they try of the network is counted (/proc/net/snmp)",
        (Level::Landlock, true) => {
            "sockets that they are refused are counted (seccomp notification)"
        }
        (_, false) => {
            "what they try of the network cannot be counted here, so that it is told only where their own \
             words say so"
        }
    }
}

fn of(probe: &Probe, settings: &Sandbox) -> Line {
    let what = match probe.level {
        Level::Namespaces => "level N",
        Level::Landlock => "level L",
    };
    if let Some(why) = &probe.failed {
        return line(what, State::Missing, format!("does not work here: {why}"));
    }
    let group = |name: &str, cell: Cell| {
        let came = |attack: &&Attack| probe.of(**attack) == Some(cell);
        let words: Vec<&str> = Attack::ALL.iter().filter(came).map(|a| a.words()).collect();
        (!words.is_empty()).then(|| format!("{name} {}", words.join(", ")))
    };
    let groups =
        [("stops", Cell::Stopped), ("puts back", Cell::PutBack), ("does not stop", Cell::Open)];
    let mut text: Vec<String> =
        groups.iter().filter_map(|(name, cell)| group(name, *cell)).collect();
    if probe.level == Level::Landlock && !settings.hosts.is_empty() {
        let open = "where hosts are allowed, does not stop connecting to one port number, that of haft's \
                    proxy, on any machine";
        text.push(open.to_owned());
    }
    if probe.works() {
        text.push(format!("so commands go without {}", without(probe.level)));
    }
    if probe.works() {
        text.push(counted(probe).to_owned());
    }
    let (state, begin) = if probe.works() {
        (State::Fine, "")
    } else {
        (State::Missing, "not used, since it holds too little: ")
    };
    line(what, state, format!("{begin}{}", text.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_attack_is_told_with_what_came_of_it() {
        let cell = |attack: Attack| match attack {
            Attack::Protected => Cell::PutBack,
            Attack::List => Cell::Open,
            _ => Cell::Stopped,
        };
        let found = Attack::ALL.iter().map(|attack| (*attack, cell(*attack))).collect();
        let probe = Probe { level: Level::Landlock, failed: None, found, counts: true };
        let plain = Sandbox::default();
        let told = of(&probe, &plain);
        assert!(told.state == State::Fine && told.what == "level L");
        let parts: Vec<&str> = told.text.split("; ").collect();
        assert!(parts[0].starts_with("stops writing outside, ") && parts[0].contains("TCP"));
        let rest = [
            "puts back changing what is protected in folders that may be written",
            "does not stop listing the names of what is hidden",
            "so commands go without sockets but pairs, also to this machine itself, and without /dev/shm, which \
             locks and pools of processes use",
            "sockets that they are refused are counted (seccomp notification)",
        ];
        assert_eq!(parts[1..], rest);
        let open = probe.found.iter().map(|(attack, _)| (*attack, Cell::Open)).collect();
        let allows = Sandbox { hosts: vec!["a.org".into()], ..plain.clone() };
        assert!(of(&probe, &allows).text.contains("; where hosts are allowed, does not stop"));
        let blind = of(&Probe { counts: false, ..probe.clone() }, &plain).text;
        assert!(blind.ends_with("told only where their own words say so"), "{blind}");
        let told = of(&Probe { found: open, ..probe }, &plain);
        assert!(told.state == State::Missing && told.text.contains("too little"), "{}", told.text);
        let told = of(&Probe::failed(Level::Namespaces, "no".into()), &plain);
        assert!(told.state == State::Missing && told.text == "does not work here: no");
    }

    #[test]
    fn what_holds_commands_is_told_as_it_is() {
        let found = || Attack::ALL.iter().map(|attack| (*attack, Cell::Stopped)).collect();
        let works = |level| Probe { level, failed: None, found: found(), counts: true };
        let failed = |level| Probe::failed(level, "no".into());
        let (l, n) = (Level::Landlock, Level::Namespaces);
        let plain = Sandbox::default();
        let strong = Sandbox { require: Some(SandboxLevel::Namespaces), ..plain.clone() };
        let told = |probes: &[Probe], settings| used(probes, settings).text;
        let both = [works(n), works(l)];
        assert!(
            told(&both, &plain).starts_with(
                "commands of mode auto run at level N, those that only look at level L;"
            )
        );
        assert!(told(&both, &strong).starts_with("all commands run at level N;"));
        let weak = [failed(n), works(l)];
        assert!(
            told(&weak, &plain).contains("auto run at level L, those that only look at level L")
        );
        assert!(told(&weak, &strong).starts_with("no command runs"));
        assert!(used(&weak, &strong).state == State::Broken);
        let none = [failed(n), failed(l)];
        assert!(told(&none, &plain).contains("mode auto asks"));
        assert!(told(&[], &plain).contains("mode auto asks"));
    }
}
