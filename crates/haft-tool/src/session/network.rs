//! The network of a session's confined programs: they share one that reaches nothing outside. It
//! also words the report where they tried more.
//!
//! **Invariant:** the report is what the kernel counted, never what a program printed. Only the
//! name of a host is taken from a program's output.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use haft_host::{Attempts, Level, Net, Tried};
use haft_net::{Pass, Proxy, Refused};
use serde_json::json;
use tokio::sync::OnceCell;

/// Most others that are named.
const NAMED: usize = 5;

/// What a session has of the network.
#[derive(Default)]
pub(crate) struct Network {
    /// Started with the first command that may connect to something.
    pub proxy: OnceCell<Proxy>,
    /// Passes of what goes on behind its call, by the names of jobs.
    jobs: Mutex<HashMap<String, Pass>>,
    /// What those share that connect to nothing outside.
    pub shared: haft_host::Network,
    /// Who has that now.
    neighbours: Mutex<BTreeMap<u64, Arc<Neighbour>>>,
    last: AtomicU64,
    /// What was told of commands that succeeded.
    told: Mutex<BTreeSet<Kind>>,
}

/// A program that has the network of its session.
#[derive(Default)]
struct Neighbour {
    process: u32,
    /// Once it is a job.
    name: OnceLock<String>,
    /// Those that had it meanwhile.
    beside: Mutex<Vec<Arc<Self>>>,
}

/// A program's use of the session's network; it ends when this is dropped.
pub struct Stay {
    network: Arc<Network>,
    id: u64,
    own: Arc<Neighbour>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Network {
    /// A program that is this process has the network from now on.
    pub fn enter(self: &Arc<Self>, process: u32) -> Stay {
        let own = Arc::new(Neighbour { process, ..Neighbour::default() });
        let mut all = locked(&self.neighbours);
        for other in all.values() {
            other.meets(&own);
            own.meets(other);
        }
        let id = self.last.fetch_add(1, Ordering::Relaxed);
        all.insert(id, Arc::clone(&own));
        drop(all);
        Stay { network: Arc::clone(self), id, own }
    }

    /// A program that is this process is a job of this name.
    pub fn is_job(&self, process: Option<u32>, name: &str) {
        let all = locked(&self.neighbours);
        for own in all.values().filter(|one| Some(one.process) == process) {
            let _ = own.name.set(format!("job {name}"));
        }
    }

    /// Holds the pass of a job until its end.
    pub fn holds(&self, job: &str, pass: Pass) {
        locked(&self.jobs).insert(job.to_owned(), pass);
    }

    /// What a job was refused that has ended.
    pub fn job_ends(&self, job: &str) -> Vec<Refused> {
        let pass = locked(&self.jobs).remove(job);
        pass.map(|pass| pass.refused().list).unwrap_or_default()
    }
}

impl Neighbour {
    fn meets(&self, other: &Arc<Self>) {
        let mut beside = locked(&self.beside);
        if beside.len() <= NAMED {
            beside.push(Arc::clone(other));
        }
    }
}

impl Stay {
    /// The names of the other programs that used the network in the meantime.
    pub fn beside(&self) -> Vec<String> {
        let other = |one: &Arc<Neighbour>| {
            one.name.get().cloned().unwrap_or_else(|| "another command".to_owned())
        };
        let mut names: Vec<String> = locked(&self.own.beside).iter().map(other).collect();
        names.sort();
        names.dedup();
        if names.len() > NAMED {
            names.truncate(NAMED);
            names.push("others".to_owned());
        }
        names
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        locked(&self.network.neighbours).remove(&self.id);
    }
}

/// Keeps what a program of a call tried, with what others of it did.
pub(crate) fn keep(all: &Mutex<Option<Tried>>, tried: Tried) {
    let mut all = locked(all);
    // Of several the first that tried anything stands for them: what is said of each is alike.
    let before = all.take().filter(|before| before.attempts.is_some_and(|of| !of.is_none()));
    *all = before.or(Some(tried));
}

/// What did not come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It went to other machines.
    Machines,
    /// Nothing listened on this one, as a program in there sees it.
    Loopback,
    /// The same, where that is also how names are looked up.
    Names,
    /// It could not even be begun.
    Sockets,
}

impl Kind {
    /// What these attempts are.
    fn of(attempts: Attempts, tried: &Tried) -> BTreeSet<Self> {
        let Attempts { unrouted, refused, undelivered, sockets } = attempts;
        let lost = if tried.names_at_loopback { Self::Names } else { Self::Loopback };
        let all = [
            (unrouted, Self::Machines),
            (refused, Self::Loopback),
            (undelivered, lost),
            (sockets, Self::Sockets),
        ];
        all.into_iter().filter(|(times, _)| *times > 0).map(|(_, kind)| kind).collect()
    }
}

/// What was tried, and what of it is told.
pub(crate) struct Telling<'a> {
    pub tried: &'a Tried,
    /// What it was tried by: `command`, `job`.
    pub by: &'a str,
    /// Whether it failed: then it is told each time.
    pub failed: bool,
    /// Whether it is told already which other machines it was refused.
    pub is_told: bool,
    /// The host that its words name, where they name one.
    pub host: Option<&'a str>,
    /// Whether it was a command of a named session, which takes no `needs`.
    pub lives_on: bool,
}

/// What is said of what a confined program tried of the network; none where nothing is to be said.
pub(crate) fn note(network: &Network, of: &Telling<'_>) -> Option<String> {
    let mut kinds = Kind::of(of.tried.attempts?, of.tried);
    if of.is_told {
        kinds.remove(&Kind::Machines);
    }
    {
        let mut told = locked(&network.told);
        kinds.retain(|kind| told.insert(*kind) || of.failed);
    }
    if kinds.is_empty() {
        return None;
    }
    let mut said: Vec<String> = kinds.iter().map(|kind| says(*kind, of)).collect();
    let others = of.tried.beside.join(" or ");
    let who =
        if others.is_empty() { "it".to_owned() } else { format!("this {} or {others}", of.by) };
    said[0].insert_str(0, &format!("in the sandbox {who} "));
    let ways: BTreeSet<String> = kinds.iter().map(|kind| way(*kind, of)).collect();
    let ways: Vec<String> = ways.into_iter().collect();
    Some(format!("{}. {}", said.join("; it "), ways.join(". ")))
}

/// What was tried.
fn says(kind: Kind, of: &Telling<'_>) -> String {
    let text = match (kind, of.tried.net) {
        (Kind::Machines, Net::Off) => "tried to reach other machines, and connects to none here",
        (Kind::Machines, _) => {
            "tried to reach other machines past the proxy that HTTPS_PROXY names, and connects only through \
             that, to the hosts that it was allowed"
        }
        (Kind::Loopback, _) => "tried to reach 127.0.0.1, and nothing listened there",
        (Kind::Names, Net::Off) => {
            "tried to look up a name or to reach 127.0.0.1; there is no network here"
        }
        (Kind::Names, _) => {
            "tried to look up a name or to reach 127.0.0.1, and only the proxy that HTTPS_PROXY names looks \
             up names"
        }
        (Kind::Sockets, Net::Off) => "tried to use the network, and may open no socket",
        (Kind::Sockets, _) => {
            "tried to use the network past the proxy that HTTPS_PROXY names, and may open no socket for that"
        }
    };
    text.to_owned()
}

/// What to do about it.
fn way(kind: Kind, of: &Telling<'_>) -> String {
    if matches!(kind, Kind::Loopback) {
        return apart(of.tried).unwrap_or_else(|| SHARED.to_owned());
    }
    let needs = json!({ "hosts": [of.host.unwrap_or("NAME")] });
    let how = match (of.by, of.lives_on) {
        ("command", false) => "call it again",
        ("command", true) => "call it again without session and",
        _ => "start it again",
    };
    let hosts = format!("If it needs other machines, {how} with needs {needs}, which asks");
    match (kind, apart(of.tried)) {
        (Kind::Sockets | Kind::Names, Some(apart)) => format!("{hosts}. {apart}"),
        _ => hosts,
    }
}

/// What is so where commands share a network.
const SHARED: &str = "The commands and jobs of this session share a 127.0.0.1 of their own: start the server as a \
     job here, or set unsandboxed, which asks, for one that runs outside";

/// What is so where a program does not share its network; none where it does.
pub(crate) fn apart(tried: &Tried) -> Option<String> {
    let why = match (tried.shared, tried.net, tried.level) {
        (true, ..) | (_, Net::On, _) => return None,
        (.., Level::Landlock) => "none opens sockets at level L",
        (_, Net::Port(_), _) => "what was given hosts has a network of its own",
        (_, Net::Off, _) => "it has a network of its own",
    };
    let way = if tried.level == Level::Landlock {
        "what serves or uses one there wants unsandboxed, which asks"
    } else {
        "run server and client in one command, or set unsandboxed, which asks, for both"
    };
    Some(format!("Nothing on 127.0.0.1 is reachable from other commands here, since {why}: {way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(level: Level, shared: bool, attempts: Attempts) -> Tried {
        let (net, beside) = (Net::Off, Vec::new());
        Tried { level, net, shared, attempts: Some(attempts), names_at_loopback: false, beside }
    }

    fn of(tried: &Tried) -> Telling<'_> {
        Telling { tried, by: "command", failed: true, is_told: false, host: None, lives_on: false }
    }

    #[test]
    fn each_kind_is_told_by_what_was_counted() {
        let unrouted = Attempts { unrouted: 2, ..Attempts::default() };
        let refused = Attempts { refused: 1, ..Attempts::default() };
        let undelivered = Attempts { undelivered: 1, ..Attempts::default() };
        let sockets = Attempts { sockets: 9, ..Attempts::default() };
        let network = Network::default();
        let says = |tried: &Tried| note(&network, &of(tried)).unwrap_or_default();
        let n = |attempts| tried(Level::Namespaces, true, attempts);
        assert_eq!(
            says(&n(unrouted)),
            "in the sandbox it tried to reach other machines, and connects to none here. If it needs other \
             machines, call it again with needs {\"hosts\":[\"NAME\"]}, which asks"
        );
        assert!(says(&n(refused)).starts_with(
            "in the sandbox it tried to reach 127.0.0.1, and nothing listened there. The commands and jobs of \
             this session share a 127.0.0.1"
        ));
        assert_eq!(says(&n(undelivered)), says(&n(refused)));
        let names = Tried { names_at_loopback: true, ..n(undelivered) };
        assert!(says(&names).contains("look up a name or to reach 127.0.0.1; there is no network"));
        let apart = Tried { shared: false, ..n(refused) };
        assert!(says(&apart).contains("run server and client in one command"), "{}", says(&apart));
        let l = tried(Level::Landlock, false, sockets);
        assert!(says(&l).contains("may open no socket") && says(&l).contains("level L"));
        let others = Tried { beside: vec!["job j2".into()], ..n(unrouted) };
        assert!(says(&others).starts_with("in the sandbox this command or job j2 tried"));
        assert_eq!(says(&n(Attempts::default())), "");
        assert_eq!(says(&Tried { attempts: None, ..n(unrouted) }), "");
    }

    #[test]
    fn what_succeeded_is_told_of_once_for_each_kind() {
        let both = Attempts { unrouted: 1, refused: 1, ..Attempts::default() };
        let refused = Attempts { refused: 1, ..Attempts::default() };
        let network = Network::default();
        let says = |attempts, failed| {
            let tried = tried(Level::Namespaces, true, attempts);
            note(&network, &Telling { failed, ..of(&tried) }).unwrap_or_default()
        };
        assert!(says(refused, false).contains("127.0.0.1"));
        assert_eq!(says(refused, false), "");
        let other = says(both, false);
        assert!(other.contains("other machines") && !other.contains("127.0.0.1"), "{other}");
        assert!(says(both, true).contains("none here; it tried to reach 127.0.0.1"));
        let tried = tried(Level::Namespaces, true, both);
        let told = note(&network, &Telling { is_told: true, ..of(&tried) }).unwrap();
        assert!(!told.contains("other machines"), "{told}");
    }

    #[test]
    fn who_was_there_meanwhile_is_named() {
        let network = Arc::new(Network::default());
        let first = network.enter(1);
        assert!(first.beside().is_empty());
        let second = network.enter(2);
        network.is_job(Some(2), "j1");
        drop(network.enter(3));
        assert_eq!(first.beside(), ["another command", "job j1"]);
        assert_eq!(second.beside(), ["another command"]);
        drop((first, second));
        assert!(network.enter(4).beside().is_empty());
        let many: Vec<Stay> = (0..20).map(|process| network.enter(process)).collect();
        (0..20).for_each(|process| network.is_job(Some(process), &format!("j{process}")));
        let beside = many[0].beside();
        assert!(beside.len() == NAMED + 1 && beside[NAMED] == "others", "{beside:?}");
    }
}
