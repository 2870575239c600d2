//! A command of the shell as what it does, for its plan and for the judgement about it.
//!
//! **Invariant:** a plan and the judgement about it read the same script in the same way. Paths
//! that only the running shell will know are said to be unknown, never guessed; so is a path with
//! `..` behind a name, which may lead through a link.
//!
//! **Does not know:** links, files, rules.

mod builtins;
mod files;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use haft_shell::{ANY, FOUND, Fault, GitFacts, GitUse, ONE, Operand, Reading, SOME, Setting, Text};
use haft_text::names::composed;
use haft_types::{Access, Effect, HostPath, Mode, Place, Plan, Style, Target};

pub use self::files::on;
use self::{
    builtins::BUILTINS,
    files::{access, climbs, effect, is_magic, is_pattern, is_soft, path, text_of, with_text},
};
use super::work::Work;
use crate::{
    decide::chores::is_fact,
    places::{
        planned_links::{self, Link},
        proc_links::Magic,
    },
    rules::command_pattern::{CommandPattern, GAP},
};

/// The state in which a shell's folder is kept from one call to the next.
const FOLDER: &str = "folder of the shell";

/// What the plan of a script has where not all could be looked at that its paths may lead to.
pub fn unsure_paths() -> Effect {
    Effect { access: Access::Observe, target: Target::State { name: "unknown links".into() } }
}

/// What the plan of a script has that could not be read: a later try may come further, and would find
/// effects that the plan lacks.
pub fn unread_script() -> Effect {
    Effect { access: Access::Observe, target: Target::State { name: "unread script".into() } }
}

/// What the name of the state begins with that names programs of the workspace.
const REPLACED: &str = "programs of the workspace";

/// What the plan of a script has where the names of these programs find some of the workspace, which may
/// be others than those that are known by these names.
pub fn replaced(programs: &[String]) -> Effect {
    let name = format!("{REPLACED}: {}", programs.join(" "));
    Effect { access: Access::Observe, target: Target::State { name: name.into() } }
}

/// What the name of the state begins with that tells where a word leads.
const LEADS: &str = "word behind a link";

/// What the plan of a script has where a word of a program leads elsewhere than it says, by links.
pub fn led(written: &HostPath, real: &HostPath) -> Effect {
    // No path has the character.
    let name = format!("{LEADS}\0{}\0{}", written.text(), real.text());
    Effect { access: Access::Observe, target: Target::State { name: name.into() } }
}

/// What the name of the state begins with that tells which settings of a repository count.
const SETTINGS: &str = "settings of git";

/// What the plan of a script has where these settings of a repository may make git start something.
pub fn counting(settings: &[String]) -> Effect {
    let name = format!("{SETTINGS}: {}", settings.join(", "));
    Effect { access: Access::Observe, target: Target::State { name: name.into() } }
}

/// The texts of the states of a plan whose names begin so.
pub(crate) fn told<'p>(plan: &'p Plan, start: &'static str) -> impl Iterator<Item = &'p str> {
    plan.effects.iter().filter_map(move |effect| match &effect.target {
        Target::State { name } => name.strip_prefix(start),
        _ => None,
    })
}

/// The facts of a plan about programs and words, which hold for each part of its script.
pub(crate) fn facts(plan: &Plan) -> impl Iterator<Item = &Effect> {
    plan.effects.iter().filter(|effect| match &effect.target {
        Target::State { name } => {
            [REPLACED, LEADS, SETTINGS].iter().any(|start| name.starts_with(start)) || is_fact(name)
        }
        _ => false,
    })
}

/// Where the words of a plan lead that links take elsewhere, as they are written and as they are.
pub(crate) fn leads(plan: &Plan) -> Vec<(HostPath, HostPath)> {
    let path = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).ok();
    let pair = |text: &str| {
        let (written, real) = text.strip_prefix('\0')?.split_once('\0')?;
        Some((path(written)?, path(real)?))
    };
    told(plan, LEADS).filter_map(pair).collect()
}

/// What settings that lie around do not make programs start: those of repositories, and toolchain
/// files. To be made sure of, for each of [`Script::git_folders`] and [`Script::toolchain_folders`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// What git starts by the settings of no repository.
    pub git: GitFacts,
    /// No repository has hooks that git runs where it looks, a watcher of files, a pager or
    /// repositories within: what a command that only looks is kept from by what it is given.
    pub no_helpers: bool,
    /// No file says which toolchain runs.
    pub toolchains: bool,
}

/// What the name of the state begins with that tells what was found out.
const AROUND: &str = "settings of programs";

impl Around {
    /// They make programs start no others.
    pub const PLAIN: Self = Self {
        git: GitFacts { no_fetches: true, no_filters: true, no_drivers: true, no_signatures: true },
        no_helpers: true,
        toolchains: true,
    };

    /// What the plan of a script has once this was made sure of.
    pub fn effect(self) -> Effect {
        let held = self.named().into_iter().filter(|(_, holds)| *holds);
        let name = held.fold(AROUND.to_owned(), |all, (name, _)| format!("{all}, no {name}"));
        Effect { access: Access::Observe, target: Target::State { name: name.into() } }
    }

    /// What a plan has of it; without, anything may be started.
    pub(crate) fn of(plan: &Plan) -> Self {
        let found = plan.effects.iter().find_map(|effect| match &effect.target {
            Target::State { name } => name.strip_prefix(AROUND),
            _ => None,
        });
        let held: Vec<&str> = found.unwrap_or_default().split(", no ").collect();
        let [fetches, filters, drivers, signatures, helpers, toolchains] =
            Self::default().named().map(|(name, _)| held.contains(&name));
        Self {
            git: GitFacts {
                no_fetches: fetches,
                no_filters: filters,
                no_drivers: drivers,
                no_signatures: signatures,
            },
            no_helpers: helpers,
            toolchains,
        }
    }

    const fn named(self) -> [(&'static str, bool); 6] {
        [
            ("fetches", self.git.no_fetches),
            ("filters", self.git.no_filters),
            ("drivers", self.git.no_drivers),
            ("signatures", self.git.no_signatures),
            ("helpers", self.no_helpers),
            ("toolchains", self.toolchains),
        ]
    }
}

/// A script that a new shell of bash would run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// Its simple commands, also those that wrappers run.
    pub parts: Vec<Part>,
    /// Whether all that it does is to look.
    pub read_only: bool,
    /// Where git runs whose settings have to be plain, if it is to be read-only.
    pub git_folders: Vec<HostPath>,
    /// Paths behind revisions, each with the folder where git runs: they start at the top of its
    /// repository, and what it prints of them is read.
    pub revisions: Vec<(HostPath, String)>,
    /// What is asked of git.
    pub git: GitUse,
    /// Where a toolchain runs that a file there may name.
    pub toolchain_folders: Vec<HostPath>,
    /// Folders in which links are followed by what its patterns or programs find there, and how many
    /// folders deep.
    pub linked: Vec<(HostPath, usize)>,
    /// Folders, or files, of which it may print what is in the files there, and how many folders deep.
    pub shown: Vec<(HostPath, usize)>,
    /// Links that it makes: their paths, and what they lead to.
    pub made: Vec<Link>,
    /// Texts that may become words of its commands, or names that these read.
    pub texts: Vec<Text>,
    /// Why it cannot be read; then nothing else is known.
    pub fault: Option<String>,
    /// Whether that is because it takes too much work.
    pub is_endless: bool,
}

/// A simple command of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct Part {
    /// As it is written.
    pub text: String,
    /// Its words; none where only the shell will know one.
    pub words: Option<Vec<String>>,
    /// What the words behind its program may be: see [`haft_shell::Part::shapes`].
    pub shapes: Vec<String>,
    /// The same of the files of its redirects.
    pub targets: Vec<String>,
    /// The texts that it is given as input.
    pub inputs: Vec<String>,
    /// Paths that variables of git are set to for it, by which that works elsewhere; not those within a
    /// `.git` that it would find by itself.
    pub places: Vec<String>,
    /// The folders that it may run in, absolute paths; none: any.
    pub folders: Option<Vec<String>>,
    /// Its program by its name alone, where that is known.
    pub program: Option<String>,
    /// Its words, as far as each is known; empty where working them out may run what they hold.
    pub written: Vec<Option<String>>,
    /// Whether one of them may become several.
    pub splits: bool,
    /// Whether a program of another part runs it.
    pub is_wrapped: bool,
    /// Whether it does nothing but to run the next part.
    pub passes: bool,
    /// What is set for it alone: names, and values where these are known.
    pub set: Vec<(String, Option<String>)>,
    /// Whether something of that may change what it does.
    pub is_assigned: bool,
    /// The files that it works on; first those of its redirects.
    pub effects: Vec<Effect>,
    /// How many of them are of redirects.
    pub redirected: usize,
    /// Those of which links decide where they are: `..` stands behind a name. As they are by name, and their
    /// paths as they are written, with that.
    pub climbs: Vec<(Effect, String)>,
    /// The most that it does to files that only the shell will know; none where it knows all.
    pub open: Option<Access>,
    /// Whether all that is open is what patterns find in folders that are known.
    pub is_found: bool,
    /// Whether that is so of one of its redirects, too.
    pub redirects_open: bool,
    /// Whether one of its redirects opens a connection: `> /dev/tcp/host/80`.
    pub connects: bool,
    /// Whether it does no more than to read and write files.
    pub is_tame: bool,
    /// Whether it only looks.
    pub read_only: bool,
    /// What it does, or why it is not known to only look, in a sentence without its full stop.
    pub why: String,
}

impl Script {
    /// Reads the script that a new shell would run in a folder.
    pub fn read(text: &str, cwd: &HostPath, home: &HostPath, around: Around) -> Self {
        Self::read_as(text, cwd, home, around, true)
    }

    /// The same; `may_look` says whether it is run as one that only looks where it is one.
    fn read_as(
        text: &str,
        cwd: &HostPath,
        home: &HostPath,
        around: Around,
        may_look: bool,
    ) -> Self {
        let (Some(cwd), Some(home)) = (cwd.as_str(), home.as_str()) else {
            return Self::faulty("the folder that it starts in has no name that is text".into());
        };
        let mut work = Work::new();
        let mut go_on = || work.go_on();
        let parsed = match haft_shell::parse(text, &mut go_on) {
            Ok(parsed) => parsed,
            Err(Fault::TooMuch) => return Self::given_up(),
            Err(fault) => return Self::faulty(fault.to_string()),
        };
        let mut setting =
            Setting { cwd: cwd.to_owned(), home: home.to_owned(), ..Setting::default() };
        let mut read = |setting: &Setting| haft_shell::effects(text, &parsed, setting, &mut go_on);
        // What only looks is given what keeps it to that; all else runs with what is there.
        setting.variables =
            haft_shell::LOOKING.map(|(name, value)| (name.into(), value.into())).into();
        setting.git_is_held = true;
        let mut reading = read(&setting);
        let asks = !(reading.git_folders.is_empty() && reading.toolchain_folders.is_empty());
        if around != Around::default() && asks {
            if around.toolchains {
                setting.plain_toolchains.clone_from(&reading.toolchain_folders);
            }
            let folders = reading.git_folders.iter().map(|folder| (folder.clone(), around.git));
            setting.git = folders.collect::<BTreeMap<_, _>>();
            reading = read(&setting);
        }
        if !(may_look && reading.read_only) {
            setting.variables.clear();
            setting.git_is_held = around.no_helpers;
            reading = read(&setting);
            reading.read_only = false;
        }
        // What was given up is not all of it.
        if !go_on() {
            return Self::given_up();
        }
        Self::of(reading, text, &setting.cwd)
    }

    /// The script of an effect, where a new shell runs one; whether it only looks was settled with
    /// the plan.
    pub(crate) fn of_effect(effect: &Effect, plan: &Plan, home: &HostPath) -> Option<Self> {
        let Target::Command { text, fresh_in: Some(cwd) } = &effect.target else { return None };
        let looks = effect.access == Access::Observe;
        let mut script = Self::read_as(text, cwd, home, Around::of(plan), looks);
        if script.fault.is_none() && plan.effects.contains(&unread_script()) {
            return Some(Self::faulty("it could not be read when the call was planned".to_owned()));
        }
        let settings = told(plan, SETTINGS).next().and_then(|text| text.strip_prefix(": "));
        for part in script.parts.iter_mut().filter(|part| part.asks_settings()) {
            part.why.extend(settings.map(|names| format!("; {names} in its configuration")));
        }
        Some(script)
    }

    fn of(reading: Reading, text: &str, cwd: &str) -> Self {
        let paths = |folders: &BTreeSet<String>| -> Option<Vec<HostPath>> {
            folders.iter().map(|folder| path(folder, cwd)).collect()
        };
        let (Some(git_folders), Some(toolchain_folders)) =
            (paths(&reading.git_folders), paths(&reading.toolchain_folders))
        else {
            let why = "in which folder git or a toolchain runs is known only when it runs";
            return Self::faulty(why.to_owned());
        };
        let linked = linked(&reading, text);
        let shown = shown(&reading, text);
        // Where git runs was looked at above.
        let revision = |(folder, file): &(String, String)| Some((path(folder, cwd)?, file.clone()));
        let revisions = reading.revisions.iter().filter_map(revision).collect();
        let mut made = Vec::new();
        let mut has_links = false;
        let part = |part: haft_shell::Part| {
            let mut part = Part::of(part, cwd);
            // Behind a link that the script makes any path may be another.
            if has_links {
                let most = part.effects.iter().map(|effect| effect.access).max();
                part.open = part.open.max(most.map(|most| most.min(Access::Modify)));
                part.is_found = false;
            }
            if planned_links::makes(&part) {
                has_links = true;
                made.extend(planned_links::made(&part));
            }
            part
        };
        let mut parts: Vec<Part> = reading.parts.into_iter().map(part).collect();
        if !made.is_empty() {
            parts
                .iter_mut()
                .filter(|part| !planned_links::makes(part))
                .for_each(|part| part.follow(&made));
        }
        Self {
            parts,
            read_only: reading.read_only,
            git_folders,
            revisions,
            git: reading.git,
            toolchain_folders,
            linked,
            shown,
            made,
            texts: reading.texts,
            fault: None,
            is_endless: false,
        }
    }

    /// The names by which programs are looked for that are known.
    pub fn sought(&self) -> Vec<String> {
        let names = self.parts.iter().filter_map(Part::sought);
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().map(str::to_owned).collect()
    }

    /// The paths that words of programs are of which more is not known; with those as they are written of
    /// which links decide where they are.
    pub fn spoken(&self, place: &Place) -> Vec<(HostPath, Option<String>)> {
        let parts = self.parts.iter().filter(|part| !part.is_tame);
        let named = parts.flat_map(|part| super::named::words::of_part(part, place));
        let mut seen = HashSet::new();
        let paths = named.filter_map(|one| Some((one.shape.exact()?, one.shape.climbs())));
        paths.filter(|one| seen.insert(one.clone())).collect()
    }

    /// What it does to files of which links decide where they are, with their paths as they are written.
    pub fn climbs(&self) -> Vec<(&Effect, &str)> {
        let climbs = self.parts.iter().flat_map(|part| &part.climbs);
        climbs.map(|(effect, text)| (effect, text.as_str())).collect()
    }

    fn faulty(fault: String) -> Self {
        Self { fault: Some(fault), ..Self::default() }
    }

    fn given_up() -> Self {
        Self { is_endless: true, ..Self::faulty(Fault::TooMuch.to_string()) }
    }

    /// Whether some command of it is one that a pattern means, whatever runs it.
    pub(crate) fn touches(&self, pattern: &CommandPattern) -> bool {
        let takes =
            |words: Option<String>| words.is_some_and(|words| pattern.takes(&composed(&words)));
        self.parts.iter().any(|part| takes(part.loosely()) || takes(part.joined()))
    }

    /// Whether its words, and the files that it works on as far as it is written, are all known.
    pub(crate) fn is_known(&self) -> bool {
        let is_known =
            |part: &Part| part.open.is_none() && (part.words.is_some() || part.read_only);
        self.fault.is_none() && self.parts.iter().all(is_known)
    }

    /// What it does beside being run: the files that it works on, each once, and the folder of the
    /// shell, which it finds and may leave behind.
    pub fn effects(&self) -> Vec<Effect> {
        let mut seen = HashSet::new();
        let effects = self.parts.iter().flat_map(|part| &part.effects);
        let mut all: Vec<Effect> = effects.filter(|effect| seen.insert(*effect)).cloned().collect();
        let moves = self.fault.is_some() || self.parts.iter().any(Part::moves);
        let access = if moves { Access::Modify } else { Access::Observe };
        all.push(Effect { access, target: Target::State { name: FOLDER.into() } });
        all.extend(self.fault.is_some().then(unread_script));
        all
    }
}

impl Part {
    /// Whether it is not known to only look because of what git may start.
    fn asks_settings(&self) -> bool {
        self.program.as_deref() == Some("git") && self.why.starts_with("git may ")
    }

    fn of(part: haft_shell::Part, cwd: &str) -> Self {
        let lists = part.lists;
        let is_plain = |(name, value): &(String, Option<String>)| {
            haft_shell::is_harmless(name, value.as_deref())
        };
        let place = |(name, value): &(String, Option<String>)| {
            let is_place = |value: &String| name == "GIT_WORK_TREE" || !value.contains(".git");
            value.clone().filter(|value| name.starts_with("GIT_") && is_place(value))
        };
        // A second name for a file is a way to change it.
        let is_hard = part.program.as_deref() == Some("ln")
            && !part.words.iter().flatten().any(|word| is_soft(word));
        let mut made = Self {
            written: if part.is_odd { Vec::new() } else { part.words.clone() },
            splits: part.splits,
            passes: part.passes,
            text: part.text,
            words: part.words.into_iter().collect(),
            shapes: part.shapes,
            targets: part.targets,
            inputs: part.inputs,
            places: part.assignments.iter().filter_map(place).collect(),
            folders: part.folders,
            program: part.program,
            is_wrapped: !part.wrappers.is_empty(),
            is_assigned: !part.assignments.iter().all(is_plain),
            set: part.assignments,
            is_tame: part.is_known,
            read_only: part.read_only,
            why: part.why,
            ..Self::default()
        };
        for (index, one) in part.effects.iter().enumerate() {
            let is_redirect = index < part.redirected;
            made.add(one, lists, is_redirect, is_hard, cwd);
            let magic = Magic::of(text_of(one).unwrap_or_default(), made.folders.as_deref());
            for text in magic.texts {
                made.add(&with_text(one, text), lists, is_redirect, is_hard, cwd);
            }
            if magic.is_any || text_of(one).is_some_and(|text| is_pattern(one) && is_magic(text)) {
                made.opens(access(one), false, is_redirect);
            }
        }
        made
    }

    /// Adds a file that it works on.
    fn add(
        &mut self,
        one: &haft_shell::Effect,
        lists: bool,
        is_redirect: bool,
        is_hard: bool,
        cwd: &str,
    ) {
        let Some((effect, is_sure)) = effect(one, lists || is_redirect, cwd) else {
            self.is_tame = false;
            self.connects |= is_redirect;
            return;
        };
        // What a pattern finds may be anything there.
        if !is_sure || (access(one) != Access::Observe && is_pattern(one)) {
            self.opens(access(one), is_sure, is_redirect);
        }
        let Some(mut effect) = effect else { return };
        if is_hard {
            effect.access = effect.access.max(Access::Modify);
        }
        let text = text_of(one).filter(|text| climbs(text, cwd));
        self.climbs.extend(text.map(|text| (effect.clone(), text.to_owned())));
        // Those of redirects come first.
        let at = if is_redirect { self.redirected } else { self.effects.len() };
        self.redirected += usize::from(is_redirect);
        self.effects.insert(at, effect);
    }

    /// It works on files that only the shell will know; `is_found` says that patterns find them in a folder
    /// that is known.
    fn opens(&mut self, access: Access, is_found: bool, is_redirect: bool) {
        self.is_found = is_found && (self.open.is_none() || self.is_found);
        self.open = self.open.max(Some(access));
        self.redirects_open |= is_redirect;
    }

    /// Whether some of its words, or of the files of its redirects, are not known.
    pub(crate) fn names_unknown(&self) -> bool {
        let words = self.shapes.iter().chain(&self.targets);
        self.words.is_none()
            || words
                .into_iter()
                .any(|word| word.contains([ANY, FOUND, ONE, SOME]) || word.starts_with("/dev/fd/"))
    }

    /// Adds what it does behind links that the script makes.
    fn follow(&mut self, links: &[Link]) {
        let mut effects = Vec::with_capacity(self.effects.len());
        let mut redirected = 0;
        for (at, effect) in std::mem::take(&mut self.effects).into_iter().enumerate() {
            let before = effects.len();
            // A link alone is taken away, and not what it leads to.
            let path = effect.path().filter(|path| {
                effect.access != Access::Destroy || links.iter().all(|(link, _)| link != *path)
            });
            let behind = path.map(|path| planned_links::behind(path, links)).unwrap_or_default();
            for path in behind {
                effects.push(on(&effect, path));
            }
            effects.push(effect);
            if at < self.redirected {
                redirected += effects.len() - before;
            }
        }
        for (effect, text) in self.climbs.clone() {
            for text in planned_links::behind_text(&text, links) {
                let Ok(path) = HostPath::new(text.as_bytes(), Style::Posix) else { continue };
                let effect = on(&effect, path);
                effects.push(effect.clone());
                self.climbs.push((effect, text));
            }
        }
        (self.effects, self.redirected) = (effects, redirected);
    }

    /// Its words in the form that patterns of rules match; none where they are not all it is.
    pub(crate) fn joined(&self) -> Option<String> {
        let words = self.words.as_ref().filter(|words| !words.is_empty() && !self.is_assigned)?;
        Some(words.join(&GAP.to_string()))
    }

    /// Its words up to the first that is not known, with the program by its name alone: what denials
    /// and questions look at.
    pub(crate) fn loosely(&self) -> Option<String> {
        let words = self.words.as_ref().filter(|words| !words.is_empty())?;
        let first = words[0].rsplit('/').next().unwrap_or_default();
        let words = std::iter::once(first).chain(words[1..].iter().map(String::as_str));
        Some(words.collect::<Vec<_>>().join(&GAP.to_string()))
    }

    /// Whether the name of its program finds one of the workspace.
    pub(crate) fn is_replaced(&self, plan: &Plan) -> bool {
        let Some(program) = self.sought() else { return false };
        told(plan, REPLACED).any(|names| names.split([' ', ':']).any(|name| name == program))
    }

    /// The name by which its program is looked for, where it is one that is known.
    fn sought(&self) -> Option<&str> {
        let name = self
            .words
            .as_ref()
            .map_or(self.program.as_deref(), |words| words.first().map(String::as_str))?;
        let is_known = self.is_tame || self.read_only || self.chore(Mode::AcceptEdits).is_some();
        let is_sought = is_known && !BUILTINS.contains(&name);
        Some(name).filter(|name| is_sought && !name.contains('/'))
    }

    fn moves(&self) -> bool {
        let first = self.words.as_ref().and_then(|words| words.first());
        first.is_none_or(|word| ["cd", "pushd", "popd"].contains(&&**word))
    }
}

/// Whether a pattern may stand before a slash: what it finds may lie some folders deep.
fn goes_deep(text: &str) -> bool {
    ["*/", "?/", "]/"].iter().any(|end| text.contains(end))
}

/// Programs that tell of names and states of files, and nothing of what is in them.
const NAMERS: &[&str] =
    &["[", "basename", "cd", "dirname", "du", "ls", "readlink", "realpath", "stat", "test", "tree"];
/// Programs that go into no folder by themselves: what they read of one is what patterns find.
const FLAT: &[&str] = &[
    "awk",
    "base64",
    "cat",
    "cut",
    "head",
    "hexdump",
    "jq",
    "less",
    "md5sum",
    "nl",
    "od",
    "paste",
    "sed",
    "sha256sum",
    "sort",
    "strings",
    "tac",
    "tail",
    "uniq",
    "wc",
    "xxd",
];

/// Where files are read whose names no word says: see [`Script::shown`].
fn shown(reading: &Reading, text: &str) -> Vec<(HostPath, usize)> {
    use haft_shell::Effect::Reads;
    let by_patterns = if goes_deep(text) { 4 } else { 1 };
    let mut found: Vec<(HostPath, usize)> = Vec::new();
    for part in &reading.parts {
        let program = part.program.as_deref().unwrap_or_default();
        let runs = || part.words.iter().flatten().any(|word| word.starts_with("-exec"));
        // Git's own is looked at apart, and find only tells names.
        if NAMERS.contains(&program) || program == "git" || program == "find" && !runs() {
            continue;
        }
        for effect in &part.effects {
            let (folder, depth) = match effect {
                Reads(Operand::Below(folder)) if FLAT.contains(&program) => (folder, by_patterns),
                Reads(Operand::Below(folder)) => (folder, usize::MAX),
                Reads(Operand::Path(path)) if !FLAT.contains(&program) => (path, usize::MAX),
                _ => continue,
            };
            let Ok(folder) = HostPath::new(folder.as_bytes(), Style::Posix) else { continue };
            match found.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, known)) => *known = depth.max(*known),
                None => found.push((folder, depth)),
            }
        }
    }
    found
}

/// Where links are followed: see [`Script::linked`].
fn linked(reading: &Reading, text: &str) -> Vec<(HostPath, usize)> {
    use haft_shell::Effect::{Destroys, Reads, Writes};
    let deep = goes_deep(text);
    let mut found: Vec<(HostPath, usize)> = Vec::new();
    let mut add = |folder: &str, depth: usize| {
        if let Ok(folder) = HostPath::new(folder.as_bytes(), Style::Posix) {
            match found.iter_mut().find(|(known, _)| *known == folder) {
                Some((_, known)) => *known = depth.max(*known),
                None => found.push((folder, depth)),
            }
        }
    };
    for part in &reading.parts {
        for effect in &part.effects {
            match effect {
                Reads(Operand::Below(folder) | Operand::Path(folder)) if part.follows => {
                    add(folder, usize::MAX);
                }
                Reads(Operand::Below(folder))
                | Writes(Operand::Below(folder))
                | Destroys(Operand::Below(folder)) => {
                    // What is copied goes through links that are there already.
                    let copies = matches!(effect, Writes(_))
                        && matches!(part.program.as_deref(), Some("cp" | "install"));
                    add(
                        folder,
                        if copies {
                            usize::MAX
                        } else if deep {
                            4
                        } else {
                            1
                        },
                    );
                }
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_effects(effects: Vec<Effect>) -> Plan {
        let title = String::new();
        Plan { effects, host: "here".into(), title, waits: false, lives_on: false }
    }

    #[test]
    fn a_plan_without_effects_is_not_judged_by_a_later_reading() {
        let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let (cwd, home) = (at("/w"), at("/h"));
        let of = |script: &Script, text: &str| {
            let target = Target::Command { text: text.to_owned(), fresh_in: Some(cwd.clone()) };
            let command = Effect { access: Access::Destroy, target };
            let effects = std::iter::once(command).chain(script.effects()).collect();
            let plan = of_effects(effects);
            Script::of_effect(&plan.effects[0], &plan, &home).unwrap().fault
        };
        let read = Script::read("cat .env", &cwd, &home, Around::PLAIN);
        assert_eq!(of(&read, "cat .env"), None);
        // As if there had been no time to read it.
        let unread = Script::faulty("too slow".to_owned());
        assert!(of(&unread, "cat .env").unwrap().contains("when the call was planned"));
    }

    #[test]
    fn a_git_look_that_asks_names_the_settings_that_count() {
        let at = |text: &str| HostPath::new(text.as_bytes(), Style::Posix).unwrap();
        let (cwd, home) = (at("/w"), at("/h"));
        let why = |text: &str, settings: &[&str]| {
            let target = Target::Command { text: text.to_owned(), fresh_in: Some(cwd.clone()) };
            let settings: Vec<_> = settings.iter().map(|&name| name.to_owned()).collect();
            let around = Around { git: GitFacts::default(), ..Around::PLAIN }.effect();
            let command = Effect { access: Access::Destroy, target };
            let mut effects = vec![command, around];
            effects.extend((!settings.is_empty()).then(|| counting(&settings)));
            let plan = of_effects(effects);
            let script = Script::of_effect(&plan.effects[0], &plan, &home).unwrap();
            script.parts.into_iter().map(|part| part.why).collect::<Vec<_>>().join("|")
        };
        let named = why("git log; make", &["include.path", "diff.external"]);
        assert!(named.contains("; include.path, diff.external in its configuration|"), "{named}");
        assert!(!named.ends_with("configuration"), "{named}");
        assert!(!why("git log", &[]).contains("in its configuration"));
    }
}
