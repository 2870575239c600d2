//! The sandbox as policy sees it: what confined programs can reach, what is asked at its border,
//! and which places it hides and protects.
//!
//! **Invariant:** confinement never replaces a rule: denials, explicit questions, credentials,
//! protected places and restricted commands are checked before.
//!
//! **Does not know:** how a program is confined, or whether it is: the caller says what is in
//! force.

use haft_types::{Access, Effect, HostPath, Mode, Origin, Plan, Target};

use crate::{
    Ask, CREDENTIALS, PROTECTED, Policy, ProtectedPath,
    command::script::{Part, Script},
    decide::{Judged, Placed, Remember, Ruling, doing, is_host, planning},
    places::protected::find,
    rules::{
        glob::PathGlob,
        rule::{PathClass, Rule, Subject, Verdict},
    },
};

/// What a person wants of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is wanted or not, whatever the others are")]
pub struct Confinement {
    /// Whether commands that only look are held to that.
    pub looks: bool,
    /// Whether all commands are confined, in every mode, or do not run; without it those of mode auto
    /// are.
    pub always: bool,
    /// Whether only the strongest way to confine them counts.
    pub strong: bool,
    /// Further folders in which confined programs may write.
    pub write: Vec<HostPath>,
    /// Hosts that they may connect to: names, and `*.name` for those below.
    pub hosts: Vec<String>,
    /// Whether a person may be asked to let a command run outside.
    pub may_leave: bool,
}

impl Default for Confinement {
    fn default() -> Self {
        let (write, hosts) = (Vec::new(), Vec::new());
        Self { looks: true, always: false, strong: false, write, hosts, may_leave: true }
    }
}

/// What programs in the sandbox can reach, where one holds that stops writes elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxScope {
    /// Folders in which they can write, with links resolved.
    pub write: Vec<HostPath>,
    /// The one of these that is for what everybody leaves about: what is protected is not looked for
    /// below it.
    pub temp: Option<HostPath>,
    /// Those of these in which git keeps a repository around the workspace.
    pub git: Vec<HostPath>,
    /// Those of these that are single files.
    pub files: Vec<HostPath>,
    /// Whether a rule that leaves only some places free is all that wants them: beside writing, nothing
    /// is held back.
    pub only_writes: bool,
    /// Hosts that they can connect to.
    pub hosts: Vec<String>,
}

const LEAVES: &str = "wants to run outside the sandbox, where nothing but this question holds it";

/// What the plan of a call has that wants to run outside the sandbox.
pub fn unconfined() -> Effect {
    Effect {
        access: Access::Destroy,
        target: Target::State { name: "place outside the sandbox".into() },
    }
}

/// What of git's own files makes programs run; the rest changes with every commit.
const GIT: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/commondir",
    ".git/info/attributes",
];

/// The ends of names that the tables leave open.
const OPEN: &[&str] = &["rsa_key", "ecdsa_key", "ed25519_key", "dsa_key"];

impl SandboxScope {
    /// Reports whether a program can change what is at a path.
    pub fn holds(&self, path: &HostPath) -> bool {
        self.write.iter().any(|folder| path.is_within(folder))
    }

    /// Reports whether nothing more than this can come of an effect.
    fn covers(&self, judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
        let runs = |effect: &Effect| matches!(effect.target, Target::Command { .. });
        let by_command = ask.plan.effects.iter().any(runs);
        match (&judged.effect.target, judged.effect.access) {
            (Target::Command { .. }, _) => {
                // What a script does is looked at part by part.
                judged.script.is_none()
                    && matches!(ask.tool.origin, Origin::Builtin | Origin::Executable { .. })
            }
            (Target::Path { .. } | Target::Tree { .. }, Access::Observe) => judged.real.is_some(),
            (Target::Path { .. } | Target::Tree { .. }, access) => {
                let inside = |real: &HostPath| {
                    let whole = self.write.iter().any(|folder| folder.is_within(real));
                    is_harmless(real)
                        || self.holds(real)
                            && !(whole && access == Access::Destroy && clears(judged, ask))
                };
                (access == Access::Modify || by_command) && judged.real.is_some_and(inside)
            }
            (Target::Net { host }, _) => self.hosts.iter().any(|known| is_below(known, host)),
            (Target::State { .. } | Target::Secret { .. } | Target::Anything, _) => false,
        }
    }
}

/// Whether a command removes all that is at a path, and not what another program picks there.
fn clears(judged: &Judged<'_>, ask: &Ask<'_>) -> bool {
    let script = ask.plan.effects.iter();
    let script = { script }.find_map(|one| Script::of_effect(one, ask.plan, &ask.place.home));
    script.is_none_or(|script| {
        let parts = script.parts.iter().filter(|part| part.effects.contains(judged.effect));
        let picks = |part: &Part| {
            let first = part.words.as_ref().and_then(|words| words.first());
            part.is_wrapped || first.is_some_and(|first| first == "find")
        };
        { parts }.any(|part| !picks(part))
    })
}

/// What makes the files that it is given, and no folder.
const FILES: &[&str] = &["cp", "curl", "dd", "install", "sort", "tee", "touch", "truncate", "wget"];

/// Reports whether an effect of a plan, where nothing is yet, is that a command makes a file.
pub fn makes_file(effect: &Effect, plan: &Plan, home: &HostPath) -> bool {
    let makes = |part: &Part| {
        let at = part.effects.iter().position(|one| one == effect);
        let words = part.words.as_deref().unwrap_or_default();
        let copies = |name: &str| matches!(name, "cp" | "install");
        let is_file = words.first().is_some_and(|first| {
            FILES.contains(&first.as_str())
                && !(copies(first) && words.iter().any(|word| word.starts_with('-')))
        });
        at.is_some_and(|at| at < part.redirected || is_file)
    };
    let mut scripts = plan.effects.iter().filter_map(|one| Script::of_effect(one, plan, home));
    scripts.any(|script| script.parts.iter().any(makes))
}

/// Reports whether nothing of what is written to a path stays.
pub fn is_harmless(path: &HostPath) -> bool {
    let devices = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];
    devices.iter().any(|device| path.as_bytes() == device.as_bytes())
}

/// Whether a host is the one, or one of those, that an entry names.
fn is_below(entry: &str, host: &str) -> bool {
    let entry = entry.trim_end_matches('.').to_lowercase();
    match entry.strip_prefix("*.") {
        Some(name) => is_host(name, true, host),
        None => is_host(&entry, false, host),
    }
}

impl Ask<'_> {
    /// The walls that let calls go on without a question.
    pub(crate) fn inside(&self) -> Option<&SandboxScope> {
        self.walls.filter(|_| matches!(self.mode, Mode::Auto | Mode::Plan) && !self.leaves())
    }

    /// Whether it wants to run outside.
    fn leaves(&self) -> bool {
        self.plan.effects.contains(&unconfined())
    }

    /// The question, where it wants to run outside.
    pub(crate) fn leaving(&self, wanted: &Confinement) -> Option<Ruling> {
        (self.leaves() && (wanted.always || self.mode != Mode::Bypass))
            .then(|| Ruling::ask(Remember::Never, None, "", |_| format!("it {LEAVES}")))
    }

    /// A question that something else asks, where the call wants to run outside as well: that is said
    /// with it, and no yes to it is remembered.
    pub(crate) fn also_leaving(&self, question: Ruling) -> Ruling {
        if !self.leaves() {
            return question;
        }
        let question = question.because(|reason| format!("{reason}; it also {LEAVES}"));
        Ruling { remember: Remember::Never, ..question }
    }

    /// Whether an effect is allowed because the sandbox holds it.
    pub(crate) fn is_held(&self, judged: &Judged<'_>) -> bool {
        self.inside().is_some_and(|walls| {
            walls.covers(judged, self) || planning::is_of_a_build(judged, self)
        })
    }
}

impl Policy {
    /// The same with what a person wants of the sandbox.
    #[must_use]
    pub fn confining(mut self, sandbox: Confinement) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// What a person wants of the sandbox.
    pub const fn sandbox(&self) -> &Confinement {
        &self.sandbox
    }

    /// The refusal of a call that wants to run outside, where the settings forbid that.
    pub(crate) fn kept_inside(&self, ask: &Ask<'_>) -> Option<Ruling> {
        (ask.leaves() && !self.sandbox.may_leave).then(|| {
            let reason = "the setting sandbox.unsandboxed forbids commands outside the sandbox";
            let ruling = Ruling::ask(Remember::Never, None, "", |_| reason.to_owned());
            let instead = "Leave unsandboxed out, and name in needs what it has to reach.";
            Ruling { verdict: Verdict::Deny, instead: Some(instead.to_owned()), ..ruling }
        })
    }

    /// Places that confined programs cannot even read: keys and passwords of the person and of the
    /// system, haft's own state, and what a denial of reading names without a pattern.
    pub fn hidden(&self) -> Vec<HostPath> {
        let Self { anchors, .. } = self;
        let root = HostPath::root(anchors.home.style());
        let mut places: Vec<HostPath> = Vec::new();
        for spot in CREDENTIALS.iter().filter(|spot| !spot.names.starts_with("proc/")) {
            let names: Vec<String> = match spot.names.strip_suffix('*') {
                Some(head) => OPEN.iter().map(|end| format!("{head}{end}")).collect(),
                None => vec![spot.names.to_owned()],
            };
            for name in names {
                places.extend(self.of_spot(spot, &name, &root));
            }
        }
        places.extend(anchors.state.iter().cloned());
        places.extend(self.of_rules(&PathClass::Reads).flat_map(PathGlob::literals).cloned());
        places.sort();
        places.dedup();
        places
    }

    /// The same of the home folder of somebody else, who keeps them where this person does.
    pub fn hidden_in(home: &HostPath) -> Vec<HostPath> {
        let own = |spot: &&ProtectedPath| {
            let first = spot.names.split('/').next().unwrap_or_default();
            !matches!(first, "etc" | "security" | "backups" | "proc") && !spot.names.ends_with('*')
        };
        CREDENTIALS.iter().filter(own).filter_map(|spot| home.join(spot.names).ok()).collect()
    }

    /// Names of keys and passwords at any depth of a workspace.
    pub fn keys(&self) -> Vec<String> {
        let all = CREDENTIALS.iter().filter(|spot| !spot.home && !spot.names.ends_with('*'));
        all.map(|spot| spot.names.to_owned()).collect()
    }

    /// What denials and questions of a kind are about.
    fn of_rules(&self, wanted: &PathClass) -> impl Iterator<Item = &PathGlob> {
        let holds = move |placed: &&Placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(&placed.rule.subject, Subject::Path { class, .. } if class == wanted)
        };
        self.rules.iter().filter(holds).flat_map(|placed| &placed.globs)
    }

    /// Reports whether the sandbox holds programs to a rule about paths: it names one place.
    pub(crate) fn is_walled(placed: &Placed) -> bool {
        placed.globs.iter().all(PathGlob::is_exact)
    }

    /// A rule about paths to which nothing holds a program that may do anything.
    pub(crate) fn unwalled(&self) -> Option<&Rule> {
        let open = |placed: &&Placed| {
            placed.rule.verdict != Verdict::Allow
                && matches!(
                    &placed.rule.subject,
                    Subject::Path { class: PathClass::Reads | PathClass::Writes, .. }
                )
                && !Self::is_walled(placed)
        };
        self.rules.iter().find(open).map(|placed| &placed.rule)
    }

    /// The question about a command that may do anything, where a rule is about paths that only a
    /// pattern names.
    pub(crate) fn unwatched(
        &self,
        ask: &Ask<'_>,
        effect: &Effect,
        script: Option<&Script>,
    ) -> Option<Ruling> {
        ask.inside()?;
        let Target::Command { .. } = &effect.target else { return None };
        let is_free = |part: &Part| {
            let ruled = || {
                part.joined().is_some_and(|words| self.rule_of(ask, |p| p.takes(&words)).is_some())
            };
            !part.is_tame && !part.read_only && !ruled()
        };
        if script.is_some_and(|script| script.fault.is_none() && !script.parts.iter().any(is_free))
        {
            return None;
        }
        let rule = self.unwalled()?;
        let what = doing(effect, None, ask);
        Some(Ruling::ask(Remember::Session, Some(rule), &what, |what| {
            let (verdict, text) = (rule.verdict, &rule.text);
            format!("the sandbox cannot keep {what} from what the {verdict} rule {text} names")
        }))
    }

    /// Where the names of a spot may lie: in the home folder, in the workspace, in the system's folders.
    fn of_spot(&self, spot: &ProtectedPath, name: &str, root: &HostPath) -> Vec<HostPath> {
        let below = |folder: &HostPath| folder.join(name).ok();
        let system = match name.split('/').next() {
            Some("etc") => below(root),
            Some("security") => root.join("etc").ok().as_ref().and_then(below),
            Some("backups") => root.join("var").ok().as_ref().and_then(below),
            _ => None,
        };
        if let Some(path) = system {
            return vec![path];
        }
        let config = self.anchors.home.join(".config").ok();
        let config = config.filter(|_| name == "containers/auth.json");
        let roots = self.anchors.roots.iter().filter(|_| !spot.home);
        roots.chain([&self.anchors.home]).chain(&config).filter_map(below).collect()
    }

    /// Reports whether a path is one of the protected places, which are asked about.
    pub fn protects(&self, path: &HostPath) -> bool {
        self.is_own(path) || find(PROTECTED, path, &self.anchors.home).is_some()
    }

    /// Why no file of instructions may import a path; none where one may. Notes in the folders of
    /// agents are what they are for.
    pub fn bars_import(&self, path: &HostPath) -> Option<&'static str> {
        let home = &self.anchors.home;
        let is_note = path.file_name().is_some_and(|name| name.ends_with(b".md"));
        let spot = find(CREDENTIALS, path, home);
        let spot = spot.or_else(|| find(PROTECTED, path, home).filter(|_| !is_note));
        let why = "keys, secrets and settings of programs are never imported";
        (spot.is_some() || (self.is_own(path) && !is_note)).then_some(why)
    }

    /// Names that stay as they are at any depth where confined programs may write; of `.git` only what
    /// makes programs run, which whoever holds them knows.
    pub fn guarded(&self) -> Vec<String> {
        let names = PROTECTED.iter().map(|spot| spot.names).filter(|name| *name != ".git");
        names.map(ToOwned::to_owned).collect()
    }

    /// What stays as it is in folders in which confined programs may write, and in those of git's.
    pub fn kept(&self, folders: &[HostPath], git: &[HostPath]) -> Vec<HostPath> {
        let names = PROTECTED.iter().map(|spot| spot.names).filter(|name| *name != ".git");
        let names: Vec<&str> = names.chain(GIT.iter().copied()).collect();
        let within = folders
            .iter()
            .flat_map(|folder| names.iter().filter_map(|name| folder.join(name).ok()));
        let inner = GIT.iter().filter_map(|name| name.strip_prefix(".git/"));
        let of_git =
            git.iter().flat_map(|git| inner.clone().filter_map(|name| git.join(name).ok()));
        let own =
            self.anchors.state.iter().filter(|state| folders.iter().any(|of| state.is_within(of)));
        let ruled = self.of_rules(&PathClass::Writes).flat_map(PathGlob::literals);
        let ruled = ruled.filter(|path| folders.iter().any(|of| path.is_within(of)));
        within.chain(of_git).chain(own.chain(ruled).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_another_home_its_keys_are_hidden_and_nothing_of_the_system() {
        let home = HostPath::new(b"/home/me", haft_types::Style::Posix).unwrap();
        let all: Vec<String> =
            Policy::hidden_in(&home).iter().map(|path| path.text().into_owned()).collect();
        for name in [".ssh", ".netrc", ".npmrc", ".aws", ".config/gcloud"] {
            assert!(all.contains(&format!("/home/me/{name}")), "{name}");
        }
        assert!(all.iter().all(|path| !path.contains("/etc/") && !path.contains('*')), "{all:?}");
    }

    #[test]
    fn hosts_are_named_or_lie_below_a_name() {
        for (entry, host, is) in [
            ("a.org", "A.org.", true),
            ("a.org", "b.a.org", false),
            ("*.a.org", "b.a.org", true),
            ("*.a.org", "a.org", false),
            ("*.a.org", "xa.org", false),
        ] {
            assert_eq!(is_below(entry, host), is, "{entry} {host}");
        }
    }
}
