//! Everyday commands that go on without a question once a lookup showed that they do no more than
//! they say: staging, formatting, removing what tools rebuild or undo restores, and listing open
//! sockets.
//!
//! **Invariant:** a chore counts only if the plan holds the fact that it was looked up. Denials,
//! explicit questions and protected places were checked before. No rule about paths may name what
//! it could touch. No command before it makes anything that was not looked up.
//!
//! **Does not know:** disks: [`Chore`] says what has to be looked up there.

use haft_types::{Access, Effect, HostPath, Mode, Place, Plan, Style, Target, is_rebuilt};

use crate::{
    Ask, Policy, Verdict,
    command::script::{Part, Script, told},
    rules::{
        command_pattern::GAP,
        rule::{PathClass, Subject},
    },
};

/// What has to be true before a command goes on as a chore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chore {
    /// Nothing: it lists sockets, and asks for no name that it was given.
    Sockets,
    /// git works in this folder by settings that name no filter and no hook.
    Stage(HostPath),
    /// These files and folders are some of the workspace, and no link in them leads elsewhere.
    Format(Vec<HostPath>),
    /// The same, and no setting of cargo there names a program.
    FormatPackage(HostPath),
    /// These are folders that tools rebuild, and that git ignores.
    Clear(Vec<HostPath>),
    /// Each file of this name below these folders is one that undo brings back.
    Sweep(Vec<HostPath>, String),
}

/// What the name of the state begins with that tells of a chore that was looked up.
const PROVEN: &str = "chore";
/// The same of a file in the temporary folder.
const OWN: &str = "own file in the temporary folder";

/// What the plan of a script has once the chore of this key was looked up.
pub fn proven(key: &str) -> Effect {
    let name = format!("{PROVEN}\0{key}").into();
    Effect { access: Access::Observe, target: Target::State { name } }
}

/// What a plan has of a path in the temporary folder that belongs to whoever runs haft: so it may be
/// read, or a redirect may write it.
pub fn own_file(path: &HostPath, access: Access) -> Effect {
    let name = format!("{OWN}\0{access:?}\0{}", path.text()).into();
    Effect { access: Access::Observe, target: Target::State { name } }
}

/// Whether a state is one of these facts.
pub(crate) fn is_fact(name: &str) -> bool {
    name.starts_with(OWN) || name.strip_prefix(PROVEN).is_some_and(|rest| rest.starts_with('\0'))
}

/// Reports whether a plan says that an effect is on a file of one's own in the temporary folder.
pub(crate) fn is_own_file(effect: &Effect, plan: &Plan) -> bool {
    let Some(path) = effect.path().filter(|_| effect.access != Access::Destroy) else {
        return false;
    };
    told(plan, OWN).next().is_some() && plan.effects.contains(&own_file(path, effect.access))
}

/// Why a call goes on that no rule allows, and that does more than look.
pub(crate) fn why(plan: &Plan, mode: Mode) -> &'static str {
    if plan.effects.iter().any(|effect| is_own_file(effect, plan)) {
        "beside the workspace it only touches temporary files of one's own"
    } else if told(plan, PROVEN).next().is_some() {
        "it was looked up that it does no more than it says"
    } else if mode == Mode::AcceptEdits {
        "mode accept-edits allows changes inside the workspace"
    } else {
        "it only touches haft's own state"
    }
}

impl Script {
    /// The chores of a script that have to be looked up for this mode, each with its key.
    pub fn chores(&self, mode: Mode) -> Vec<(String, Chore)> {
        let chore = |part: &Part| Some((part.chore_key()?, part.chore(mode)?));
        self.parts.iter().filter_map(chore).collect()
    }

    /// The files that its redirects write, each once.
    pub fn redirected(&self) -> Vec<&HostPath> {
        let effects = self.parts.iter().flat_map(|part| &part.effects[..part.redirected]);
        let written = effects.filter(|effect| effect.access == Access::Modify);
        let mut paths: Vec<&HostPath> = written.filter_map(Effect::path).collect();
        paths.sort();
        paths.dedup();
        paths
    }
}

impl Part {
    /// The one folder that it runs in.
    fn folder(&self) -> Option<HostPath> {
        let [folder] = self.folders.as_deref()? else { return None };
        HostPath::new(folder.as_bytes(), Style::Posix).ok()
    }

    /// What a fact about it is found by.
    fn chore_key(&self) -> Option<String> {
        Some(format!("{}{GAP}{}", self.folder()?.text(), self.joined()?))
    }

    /// What it is a chore of; none where it is more, or may be.
    pub(crate) fn chore(&self, mode: Mode) -> Option<Chore> {
        let words = self.words.as_deref().filter(|_| !self.is_wrapped && !self.is_assigned)?;
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if self.redirects_open || self.connects || self.splits {
            return None;
        }
        let edits = mode == Mode::AcceptEdits;
        match words.as_slice() {
            ["lsof", rest @ ..] => tells_sockets(rest).then_some(Chore::Sockets),
            _ if !edits => None,
            ["git", "add", rest @ ..] => self.staging(rest),
            ["gofmt", rest @ ..]
                if rest.iter().any(|word| word.starts_with('-') && word.contains('w')) =>
            {
                self.formatting(rest, |word| letters(word, "wlsde"), &[])
            }
            ["ruff", "format", rest @ ..] => self.formatting(rest, is_ruff, &["."]),
            ["black", rest @ ..] => self.formatting(rest, is_black, &[]),
            ["cargo", "fmt", rest @ ..] => {
                let is_known = |word: &&str| *word == "--" || is_cargo_fmt(word);
                rest.iter().all(is_known).then(|| self.folder().map(Chore::FormatPackage))?
            }
            ["rm", rest @ ..] => self.clearing(rest),
            ["find", rest @ ..] => self.sweeping(rest),
            _ => None,
        }
    }

    /// The paths that words name, from the folder that it runs in on.
    fn paths(&self, words: &[&str]) -> Option<Vec<HostPath>> {
        let folder = self.folder()?;
        // Where `..` leads is for links to say.
        let plain = |word: &&str| !word.is_empty() && word.split('/').all(|name| name != "..");
        words.iter().map(|word| folder.join(word).ok().filter(|_| plain(word))).collect()
    }

    fn staging(&self, rest: &[&str]) -> Option<Chore> {
        let (options, operands) = parted(rest);
        let longs = ["--all", "--update", "--verbose", "--dry-run", "--intent-to-add", "--no-all"];
        let is_known = |word: &&str| longs.contains(word) || letters(word, "AuvnN");
        // What begins with a colon is no path.
        let plain = !operands.iter().any(|word| word.starts_with(':'));
        self.paths(&operands)?;
        (plain && options.iter().all(is_known)).then(|| self.folder().map(Chore::Stage))?
    }

    fn formatting(
        &self,
        rest: &[&str],
        is_known: impl Fn(&str) -> bool,
        usual: &[&str],
    ) -> Option<Chore> {
        let (options, operands) = parted(rest);
        let operands = if operands.is_empty() { usual } else { &operands };
        if operands.is_empty() || operands.contains(&"-") || !options.iter().all(|o| is_known(o)) {
            return None;
        }
        self.paths(operands).map(Chore::Format)
    }

    fn clearing(&self, rest: &[&str]) -> Option<Chore> {
        let (options, operands) = parted(rest);
        let is_known = |word: &&str| {
            ["--recursive", "--force", "--verbose"].contains(word) || letters(word, "rRfv")
        };
        let paths = self.paths(&operands).filter(|paths| !paths.is_empty())?;
        let all = paths.iter().all(|path| path.file_name().is_some_and(is_rebuilt));
        (all && options.iter().all(is_known)).then_some(Chore::Clear(paths))
    }

    fn sweeping(&self, rest: &[&str]) -> Option<Chore> {
        let at = rest.iter().position(|word| word.starts_with('-')).unwrap_or(rest.len());
        let (folders, tests) = rest.split_at(at);
        let name = match tests {
            ["-type", "f", "-name", name, "-delete"]
            | ["-name", name, "-type", "f", "-delete"]
            | ["-name", name, "-delete"] => *name,
            _ => return None,
        };
        let is_plain = !name.contains(['*', '?', '[', '\\', '/']) && !name.is_empty();
        let folders = if folders.is_empty() { &["."] } else { folders };
        let paths = self.paths(folders).filter(|_| is_plain)?;
        Some(Chore::Sweep(paths, name.to_owned()))
    }
}

/// Whether `lsof` lists sockets and is given no name of a host or service that it would look up.
fn tells_sockets(rest: &[&str]) -> bool {
    let mut words = rest.iter().peekable();
    let mut lists = false;
    while let Some(word) = words.next() {
        if let Some((flags, what)) = word.split_once('i')
            && (flags == "-" || letters(flags, "nPt"))
        {
            lists = true;
            let next = words.next_if(|next| what.is_empty() && !next.starts_with(['-', '+']));
            if !are_ports(next.copied().unwrap_or(what)) {
                return false;
            }
        } else if !(["-sTCP:LISTEN", "-sTCP:ESTABLISHED"].contains(word) || letters(word, "nPt")) {
            return false;
        }
    }
    lists
}

/// Whether what stands behind `-i` is a protocol, numbers of ports, or both.
fn are_ports(text: &str) -> bool {
    let text = text.strip_prefix(['4', '6']).unwrap_or(text);
    let bare = ["TCP", "UDP", "tcp", "udp"].iter().find_map(|name| text.strip_prefix(name));
    let ports = bare.unwrap_or(text);
    ports.is_empty()
        || ports.strip_prefix(':').is_some_and(|ports| {
            !ports.is_empty() && ports.chars().all(|c| c.is_ascii_digit() || ",-".contains(c))
        })
}

/// Whether a word is letters behind a dash, all of them known.
fn letters(word: &str, known: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|letter| known.contains(letter)))
}

fn is_ruff(word: &str) -> bool {
    ["--check", "--diff", "--quiet", "--verbose", "--no-cache", "--preview", "--isolated"]
        .contains(&word)
        || letters(word, "qvn")
}

fn is_black(word: &str) -> bool {
    ["--check", "--diff", "--quiet", "--verbose", "--fast", "--safe", "--preview"].contains(&word)
        || letters(word, "qvS")
        || word.strip_prefix("--line-length=").is_some_and(|n| n.parse::<u16>().is_ok())
}

fn is_cargo_fmt(word: &str) -> bool {
    ["--all", "--check", "--quiet", "--verbose"].contains(&word) || letters(word, "qv")
}

/// The options of a program, and its operands.
fn parted<'w>(words: &[&'w str]) -> (Vec<&'w str>, Vec<&'w str>) {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let (head, tail) = words.split_at(end);
    let is_option = |word: &&str| word.starts_with('-') && word.len() > 1;
    let (options, mut operands): (Vec<&str>, Vec<&str>) = head.iter().partition(|w| is_option(w));
    operands.extend(tail.iter().skip(1));
    (options, operands)
}

impl Policy {
    /// Whether a part of a script is a chore that was looked up, and no rule may be about what it
    /// touches; `before` are the parts ahead of it.
    pub(crate) fn does_chore(&self, ask: &Ask<'_>, part: &Part, before: &[Part]) -> bool {
        let Some(chore) = part.chore(ask.mode) else { return false };
        let Some(key) = part.chore_key() else { return false };
        if !ask.plan.effects.contains(&proven(&key)) {
            return false;
        }
        // What was looked up has to be so still: no command before it makes anything but a chore that
        // only stages or formats.
        let is_proven = |part: &Part| {
            let chore = part.chore(ask.mode).filter(|chore| !chore.removes());
            let key = chore.and_then(|_| part.chore_key());
            key.is_some_and(|key| ask.plan.effects.contains(&proven(&key)))
        };
        let removes = chore.removes();
        let is_still = |part: &Part| {
            part.read_only || part.passes || is_move(part) || (!removes && is_proven(part))
        };
        if chore != Chore::Sockets && !before.iter().all(is_still) {
            return false;
        }
        let touched = chore.touched();
        let is_about = |path: &HostPath| {
            self.rules.iter().any(|placed| {
                let meant = matches!(
                    &placed.rule.subject,
                    Subject::Path { class: PathClass::Reads | PathClass::Writes, .. }
                );
                meant
                    && placed.rule.verdict != Verdict::Allow
                    && placed
                        .globs
                        .iter()
                        .any(|glob| glob.touches(path) || glob.may_lie_below(path))
            })
        };
        !touched.into_iter().any(is_about)
    }
}

/// Whether it changes the folder of the shell and nothing else.
fn is_move(part: &Part) -> bool {
    part.words.as_ref().and_then(|words| words.first()).is_some_and(|first| first == "cd")
}

impl Chore {
    const fn removes(&self) -> bool {
        matches!(self, Self::Clear(_) | Self::Sweep(..))
    }

    /// The files and folders in which it may touch something.
    pub fn touched(&self) -> Vec<&HostPath> {
        match self {
            Self::Sockets => Vec::new(),
            Self::Stage(folder) | Self::FormatPackage(folder) => vec![folder],
            Self::Format(paths) | Self::Clear(paths) | Self::Sweep(paths, _) => {
                paths.iter().collect()
            }
        }
    }

    /// Whether everything that it names lies in the workspace as it is written.
    pub fn is_near(&self, place: &Place) -> bool {
        self.touched().into_iter().all(|path| place.holds(path))
    }
}
