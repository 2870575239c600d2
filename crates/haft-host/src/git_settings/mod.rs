//! Which programs git would start because a repository's settings name them, by kind.
//!
//! **Invariant:** a kind is ruled out only if every setting of the repository is known neither to
//! start a program of that kind nor to lead elsewhere. If something cannot be read or is not known,
//! nothing is ruled out. git itself is not run.
//!
//! **Does not know:** the settings of the user and of the machine, which are theirs; what the
//! caller switches off for the child (see [`ReadOnlyRun`](crate::ReadOnlyRun)).
//!
//! Source: git-config(1) and gitrepository-layout(5) of git 2.47.

mod names;
mod pointer;

use bytes::Bytes;
use haft_types::{EntryKind, Follow, HostPath};

use self::{
    names::{
        DRIVERS, FETCHES, FILES, FILTERS, HELPERS, KEYS, OTHERS, SECTIONS, SIGNATURES, STARTS,
    },
    pointer::{of_pointer, submodule, worktree},
};
use crate::{FileKind, Fs, local::lists_links};

/// Most bytes of a file of settings.
const MOST: usize = 256 << 10;
/// What git skips around a setting.
const BLANKS: [char; 3] = [' ', '\t', '\r'];
/// Most folders upward that are looked into.
const CLIMB: usize = 64;

/// Reports whether no setting of a file makes git run anything, whoever starts it.
pub(crate) fn is_tame(text: &str) -> bool {
    let is_one = |name: &String| {
        let known = KEYS.contains(&name.as_str()) && !STARTS.contains(&name.as_str());
        known || matches!(name.as_str(), "user.name" | "user.email")
    };
    settings(text).is_some_and(|names| names.iter().all(is_one))
}

/// What a repository's settings do not make git start, if a read-only command runs in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each holds or not, whatever the others do")]
pub struct GitSettings {
    /// The top folder of the repository's work tree; `None` if there is no repository.
    pub top: Option<HostPath>,
    /// git fetches no missing objects, and no unknown setting is set.
    pub no_fetches: bool,
    /// git runs no filters, also in submodules.
    pub no_filters: bool,
    /// git runs no other programs to show differences.
    pub no_drivers: bool,
    /// git verifies no signatures.
    pub no_signatures: bool,
    /// The settings name no hooks, file system monitor or pager, which a read-only command may not
    /// run.
    pub no_helpers: bool,
    /// The index of the repository; `None` if there is no repository.
    pub index: Option<HostPath>,
    /// The settings name submodules, which git enters when it compares files. See [`has_links`] for
    /// those that only the index knows.
    pub submodules: bool,
    /// The settings because of which something is not ruled out, the first [`NAMED`].
    pub named: Vec<String>,
}

/// Most settings that are named.
const NAMED: usize = 3;

impl GitSettings {
    /// Nothing is started.
    const PLAIN: Self = Self {
        top: None,
        index: None,
        no_fetches: true,
        no_filters: true,
        no_drivers: true,
        no_signatures: true,
        no_helpers: true,
        submodules: false,
        named: Vec::new(),
    };

    /// What holds with a file of settings more; where its files are may have been looked up.
    fn with(self, text: &str, is_found: bool) -> Self {
        let Some(names) = settings(text) else { return Self::default() };
        let mut all = self;
        let mut is_known = true;
        for name in names {
            let was = all.rules();
            let is_of = |kind: &[&str]| {
                kind.iter().any(|one| *one == name || one.ends_with('.') && name.starts_with(one))
            };
            // An alias takes the place of no command but of those that git gave up.
            let alias = name.strip_prefix("alias.").unwrap_or("*");
            let is_alias = alias != "whatchanged" && !alias.contains(['*', '-']);
            let (section, rest) = name.split_once('.').unwrap_or_default();
            match () {
                () if is_of(DRIVERS) => all.no_drivers = false,
                () if is_of(FILTERS) => all.no_filters = false,
                () if is_of(SIGNATURES) => all.no_signatures = false,
                () if is_of(FETCHES) => all.no_fetches = false,
                () if is_of(HELPERS) => all.no_helpers = false,
                () if is_found && name == "core.worktree" => {}
                () if is_of(KEYS) || is_of(OTHERS) && !is_of(FILES) || is_alias => {}
                () if SECTIONS.contains(&section) && !rest.starts_with("*.") => {}
                () => is_known = false,
            }
            if (was != all.rules() || !is_known) && all.named.len() < NAMED {
                all.named.push(name);
            }
            if !is_known {
                // Of several the one that is not known counts for all.
                let last = all.named.pop().into_iter().collect();
                return Self { named: last, ..Self::default() };
            }
        }
        all
    }

    /// What is ruled out.
    const fn rules(&self) -> [bool; 5] {
        let Self { no_fetches, no_filters, no_drivers, no_signatures, no_helpers, .. } = self;
        [*no_fetches, *no_filters, *no_drivers, *no_signatures, *no_helpers]
    }
}

/// What the settings of a repository do not make git start, if it runs read-only in this folder.
pub async fn git_settings(fs: &dyn Fs, folder: &HostPath) -> GitSettings {
    // git goes up by where folders really are.
    let Some(mut at) = real(fs, folder).await else { return GitSettings::PLAIN };
    // In there it takes for a repository what lies around.
    if at.names().any(|name| name.eq_ignore_ascii_case(b".git")) {
        return GitSettings::default();
    }
    // A folder that is a repository by itself counts, unless what is given says otherwise.
    let mut no_bare = true;
    for _ in 0..CLIMB {
        let Ok(git) = at.join(".git") else { break };
        let found = match kind(fs, &git).await {
            Some(FileKind::Missing) => {
                let Ok(head) = at.join("HEAD") else { break };
                no_bare &= kind(fs, &head).await == Some(FileKind::Missing);
                let Some(parent) = at.parent() else {
                    return GitSettings { no_helpers: no_bare, ..GitSettings::PLAIN };
                };
                at = parent;
                continue;
            }
            Some(FileKind::FOLDER) => of_repository(fs, &at, &git).await,
            Some(FileKind::Entry(EntryKind::File)) => of_pointer(fs, &at, &git).await,
            Some(_) | None => None,
        };
        let found = found.unwrap_or_default();
        let no_helpers = found.no_helpers && no_bare;
        return GitSettings { top: Some(at), no_helpers, ..found };
    }
    GitSettings::default()
}

/// Where a folder really is; none where there is none.
async fn real(fs: &dyn Fs, folder: &HostPath) -> Option<HostPath> {
    let found = fs.locate(folder, Follow::Yes).await.ok()?;
    (found.kind == FileKind::FOLDER).then_some(found.real)
}

/// What git does not take for a repository it goes past; what names another one is not looked into.
async fn of_repository(fs: &dyn Fs, top: &HostPath, git: &HostPath) -> Option<GitSettings> {
    if is_alone(fs, git).await? { of_files(fs, top, (git, git), false).await } else { None }
}

/// Whether a folder is one in which git keeps a repository, and none that leads to another.
async fn is_alone(fs: &dyn Fs, git: &HostPath) -> Option<bool> {
    for (name, wanted) in [("HEAD", true), ("objects", true), ("refs", true), ("commondir", false)]
    {
        let found = kind(fs, &git.join(name).ok()?).await?;
        if (found != FileKind::Missing) != wanted {
            return Some(false);
        }
    }
    Some(true)
}

/// Reports whether no toolchain file of a folder or one above names a folder of programs. Then
/// `cargo` and `rustc` are those that the user installed.
pub async fn is_plain_toolchain(fs: &dyn Fs, folder: &HostPath) -> bool {
    let Some(at) = real(fs, folder).await else { return true };
    // A backslash may stand for any letter.
    let is_plain = |text: &str| !text.contains("path") && !text.contains(['/', '\\']);
    are_plain_above(fs, at, ["rust-toolchain", "rust-toolchain.toml"], None, is_plain).await
}

/// Whether each of these files is missing or plain in a folder and in those above, but in one of them.
async fn are_plain_above(
    fs: &dyn Fs,
    mut at: HostPath,
    names: [&str; 2],
    but: Option<&HostPath>,
    is_plain: impl Fn(&str) -> bool,
) -> bool {
    for _ in 0..CLIMB {
        for name in names.into_iter().filter(|_| but != Some(&at)) {
            let Ok(path) = at.join(name) else { return false };
            match text(fs, &path).await {
                Some(None) => {}
                Some(Some(text)) if is_plain(&text) => {}
                _ => return false,
            }
        }
        let Some(parent) = at.parent() else { return true };
        at = parent;
    }
    false
}

/// Words of cargo's settings by which they start a program of their own, set variables, or name another
/// file of settings; a backslash may stand for any letter.
const STARTERS: [&str; 7] = ["alias", "rustc", "rustdoc", "include", "credential", "env", "\\"];

/// Reports whether no cargo settings in a folder or one above name a program or an alias, and no
/// toolchain file does. Settings in `home` are the user's own.
pub async fn is_plain_cargo(fs: &dyn Fs, folder: &HostPath, home: &HostPath) -> bool {
    if !is_plain_toolchain(fs, folder).await {
        return false;
    }
    let Some(at) = real(fs, folder).await else { return false };
    let is_plain = |text: &str| !STARTERS.iter().any(|word| text.contains(word));
    are_plain_above(fs, at, [".cargo/config", ".cargo/config.toml"], Some(home), is_plain).await
}

/// The repository that contains a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The top folder of its work tree.
    pub top: HostPath,
    /// The folder in which git stores it; for a worktree, the one of the whole repository.
    pub git: HostPath,
}

/// The repository that contains a folder. `None` if there is none, or if it is not certain that
/// these files belong to it. A submodule counts as one if `submodules` is true.
pub async fn repository(fs: &dyn Fs, folder: &HostPath, submodules: bool) -> Option<Repository> {
    let mut at = real(fs, folder).await?;
    for _ in 0..CLIMB {
        let git = at.join(".git").ok()?;
        let git = match kind(fs, &git).await? {
            FileKind::Missing => {
                at = at.parent()?;
                continue;
            }
            FileKind::FOLDER => git,
            FileKind::Entry(EntryKind::File) => match worktree(fs, &at, &git).await {
                Some((_, common)) => common,
                None if submodules => submodule(fs, &at, &git).await?,
                None => return None,
            },
            FileKind::Entry(_) => return None,
        };
        for name in ["HEAD", "objects", "refs"] {
            if kind(fs, &git.join(name).ok()?).await? == FileKind::Missing {
                return None;
            }
        }
        return Some(Repository { top: at, git });
    }
    None
}

/// Most characters of the name of a branch.
const BRANCH: usize = 100;
/// Characters of a commit's id that are told.
const SHORT: usize = 8;

/// What is checked out in the repository that contains a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// The name of the branch.
    Branch(String),
    /// No branch (detached HEAD); the first characters of the commit's id.
    Detached(String),
}

/// What is checked out in the repository that contains a folder, as the file `HEAD` says. `None` if
/// there is no repository, or if it is not certain that these files belong to it. Also `None` if
/// `may_read` denies that file, or if it names nothing that git would take for a branch.
pub async fn checked_out(
    fs: &dyn Fs,
    folder: &HostPath,
    may_read: &(dyn Fn(&HostPath) -> bool + Sync),
) -> Option<Head> {
    let Repository { top, git } = repository(fs, folder, true).await?;
    let own = top.join(".git").ok()?;
    // Of a worktree it is another one than that of the repository.
    let git = match kind(fs, &own).await? {
        FileKind::FOLDER => git,
        _ => worktree(fs, &top, &own).await.map_or(git, |(own, _)| own),
    };
    let file = git.join("HEAD").ok()?;
    if !may_read(&file) {
        return None;
    }
    let text = text(fs, &file).await??;
    let line = text.trim_end_matches(['\n', '\r']);
    if let Some(name) = line.strip_prefix("ref: refs/heads/") {
        return is_branch(name).then(|| Head::Branch(name.to_owned()));
    }
    let is_id = matches!(line.len(), 40 | 64) && line.bytes().all(|c| c.is_ascii_hexdigit());
    is_id.then(|| Head::Detached(line[..SHORT].to_owned()))
}

/// Whether a text is one that git takes for the name of a branch; so it is one word on one line.
fn is_branch(name: &str) -> bool {
    let is_bad = |c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c);
    let is_hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_part = |part: &str| {
        !(part.is_empty() || part.starts_with('.') || part.strip_suffix(".lock").is_some())
    };
    !name.contains(is_bad)
        && !name.contains(is_hidden)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && name.chars().count() <= BRANCH
        && name.split('/').all(is_part)
}

async fn of_files(
    fs: &dyn Fs,
    top: &HostPath,
    (common, own): (&HostPath, &HostPath),
    is_found: bool,
) -> Option<GitSettings> {
    let mut all = GitSettings::PLAIN;
    for (folder, name) in [(common, "config"), (own, "config.worktree")] {
        if let Some(text) = text(fs, &folder.join(name).ok()?).await? {
            all = all.with(&text, is_found && name == "config");
        }
    }
    // What it says of repositories within wins over what a command is given, and those are run in
    // by their own settings.
    let modules = text(fs, &top.join(".gitmodules").ok()?).await?;
    let modules = modules.unwrap_or_default().to_ascii_lowercase();
    let (submodules, is_left) = (modules.contains("[submodule"), !modules.contains("ignore"));
    let no_filters = all.no_filters && is_left;
    // The one hook that runs where it looks: it may write down what it found out of files.
    let hook = kind(fs, &common.join("hooks").ok()?.join("post-index-change").ok()?).await?;
    let no_helpers = all.no_helpers && hook == FileKind::Missing;
    let index = Some(own.join("index").ok()?);
    Some(GitSettings { no_filters, no_helpers, index, submodules, ..all })
}

/// Reports whether no setting of the user or of the machine names a filter, hooks, a file system
/// monitor, or a file with more settings. False if a settings file cannot be read.
pub async fn is_plain_person(fs: &dyn Fs, home: &HostPath) -> bool {
    let paths =
        [home.join(".gitconfig"), home.join(".config/git/config"), home.join("/etc/gitconfig")];
    let starts = |name: &String| {
        ["filter.", "include"].iter().any(|section| name.starts_with(section))
            || ["core.hookspath", "core.fsmonitor"].contains(&name.as_str())
    };
    for path in paths {
        let Ok(path) = path else { return false };
        let Some(text) = text(fs, &path).await else { return false };
        let names = settings(&text.unwrap_or_default());
        if names.is_none_or(|names| names.iter().any(starts)) {
            return false;
        }
    }
    true
}

/// Reports whether an index may list submodules: entries of mode 160000, in any version. True if
/// the index cannot be read in full.
pub async fn has_links(fs: &dyn Fs, index: &HostPath) -> bool {
    let Some(bytes) = read_index(fs, index).await else { return true };
    if bytes.is_empty() {
        return false;
    }
    // A split one names another file, whose entries are not here.
    let may = || may_list_links(&bytes) || holds(&bytes, b"link\0\0\0");
    bytes.len() == LONGEST || lists_links(&bytes).unwrap_or_else(may)
}

/// Reports whether one of these indexes lists submodules, for a message about it. An index that is
/// not understood lists none. The part of a split index that is in another file does not count
/// either.
pub async fn names_links(fs: &dyn Fs, indexes: &[HostPath]) -> bool {
    for index in indexes {
        let bytes = read_index(fs, index).await;
        if bytes.is_some_and(|bytes| may_list_links(&bytes) && lists_links(&bytes) == Some(true)) {
            return true;
        }
    }
    false
}

/// Most bytes of an index that are looked through.
const LONGEST: usize = 64 << 20;

/// The start of an index, nothing where there is none; none where it cannot be read.
pub(crate) async fn read_index(fs: &dyn Fs, index: &HostPath) -> Option<Bytes> {
    let found = fs.locate(index, Follow::Yes).await.ok()?;
    if found.kind == FileKind::Missing {
        return Some(Bytes::new());
    }
    fs.read(&found, 0, LONGEST).await.ok()
}

/// Whether the mode of a repository within stands anywhere in an index.
fn may_list_links(index: &[u8]) -> bool {
    holds(index, &[0, 0, 0xe0, 0])
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// What stands there; a link is a link.
async fn kind(fs: &dyn Fs, path: &HostPath) -> Option<FileKind> {
    Some(fs.locate(path, Follow::No).await.ok()?.kind)
}

/// What a file holds, `Some(None)` where there is none; none where it cannot be known.
async fn text(fs: &dyn Fs, path: &HostPath) -> Option<Option<String>> {
    let found = fs.locate(path, Follow::Yes).await.ok()?;
    if found.kind == FileKind::Missing {
        return Some(None);
    }
    let bytes = fs.read(&found, 0, MOST).await.ok()?;
    let text = if bytes.len() < MOST { String::from_utf8(bytes.into()).ok() } else { None };
    Some(Some(text?))
}

/// The settings of a file in small letters, with a star for a name in quotes; none where it is not
/// certain what they are.
fn settings(text: &str) -> Option<Vec<String>> {
    let mut section: Option<(String, bool)> = None;
    let mut all = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        let mut line = line.trim_matches(BLANKS);
        if let Some(rest) = line.strip_prefix('[') {
            let (head, behind) = head(rest)?;
            section = Some(head);
            line = behind.trim_matches(BLANKS);
        }
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let (section, is_named) = section.as_ref()?;
        // A backslash at the end goes on in the next line, which then is no setting.
        if line.ends_with('\\') {
            return None;
        }
        let name = line.split(['=', ' ', '\t', '#', ';']).next().unwrap_or_default();
        let star = if *is_named { "*." } else { "" };
        all.push(format!("{section}.{star}{}", name.to_ascii_lowercase()));
    }
    Some(all)
}

/// The name of a section in small letters and whether a name in quotes follows; then the rest of
/// the line behind the bracket.
fn head(text: &str) -> Option<((String, bool), &str)> {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
    let (name, rest) = text.split_at(end);
    let name = name.to_ascii_lowercase();
    if let Some(behind) = rest.strip_prefix(']') {
        return Some(((name, false), behind));
    }
    let mut chars = rest.trim_start_matches(BLANKS).strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '\\' => drop(chars.next()?),
            '"' => return Some(((name, true), chars.as_str().strip_prefix(']')?)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host as _, Memory};

    #[test]
    fn usual_settings_start_nothing() {
        for text in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n",
            "[CORE]\r\n\tFileMode=false # why not\r\n; more\r\n",
            "[remote \"origin\"]\n url = git@x:y\n fetch = +refs/heads/*:refs/remotes/origin/*\n",
            "[branch \"a]b\\\"c\"] merge = refs/heads/a\n[user] name = A B\n\temail = a@b\n",
            "[color]\nui\n[pull] rebase = true\n[submodule \"x\"]\nurl = ../x\n",
            "[alias]\nst = !./x\n\tlg = log --oneline\n",
            "[remote \"origin\"]\n\tgh-resolved = base\n[index]\n\tversion = 4\n",
            "[branch \"a\"]\n\tgithub-pr-owner-number = \"o#r#1\"\n\tgk-last-accessed = 1\n",
            "[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = true\n\twhitespace = cr-at-eol\n",
            "[lfs \"https://x/info/lfs\"]\n\taccess = basic\n[gui]\n\twmstate = normal\n",
            "[credential \"https://x\"]\n\thelper = !./x\n[http]\n\tproxy = x\n",
            "[url \"git@x:\"]\n\tinsteadOf = https://x/\n[gitflow \"branch\"]\n\tmaster = main\n",
            "[merge]\n\ttool = x\n[diff]\n\ttool = x\n[difftool \"x\"]\n\tcmd = ./x\n",
            "[receive]\n\tdenyCurrentBranch = updateInstead\n[i18n]\n\tlogOutputEncoding = utf-8\n",
            "[transfer]\n\tfsckObjects = true\n[format]\n\tsignOff = true\n[protocol]\n\tversion = 2\n",
            "[submodule \"x\"]\n\tupdate = none\n[submodule]\n\tfetchJobs = 4\n[safe]\n\tdirectory = *\n",
            "[core]\n\tsplitIndex = true\n[oh-my-zsh]\n\thide-status = 1\n[gitbutler]\n\tx = y\n",
            "[gc \"refs/x\"]\n\treflogExpire = never\n[notes]\n\trewriteRef = refs/notes/x\n",
            "[commit]\n\ttemplate = x\n[svn-remote \"svn\"]\n\turl = x\n",
        ] {
            assert_eq!(GitSettings::PLAIN.with(text, false), GitSettings::PLAIN, "{text:?}");
        }
    }

    #[test]
    fn what_is_started_is_told_by_its_kind() {
        let plain = || GitSettings::PLAIN;
        let drivers = GitSettings { no_drivers: false, ..plain() };
        let filters = GitSettings { no_filters: false, ..plain() };
        let signatures = GitSettings { no_signatures: false, ..plain() };
        let fetches = GitSettings { no_fetches: false, ..plain() };
        let helpers = GitSettings { no_helpers: false, ..plain() };
        let with = |text| GitSettings { named: Vec::new(), ..plain().with(text, false) };
        for (text, found) in [
            ("[diff]\nexternal = ./x\n", &drivers),
            ("[diff \"a\"]\ntextconv = ./x\n", &drivers),
            ("[diff \"a\"] command = ./x\n", &drivers),
            ("[filter \"a\"]\nclean = ./x\n", &filters),
            ("[filter \"lfs\"]\nprocess = x\nrequired = true\n", &filters),
            ("[log]\nshowSignature = true\n[gpg]\nprogram = ./x\n", &signatures),
            ("[pretty]\nx = %G?\n", &signatures),
            ("[extensions]\npartialClone = origin\n", &fetches),
            ("[core]\nfsmonitor = ./x\nhooksPath = h\npager = ./x\n", &helpers),
            ("[pager]\nlog = ./x\n", &helpers),
            ("[remote \"origin\"]\npromisor = true\n", &fetches),
        ] {
            assert_eq!(with(text), *found, "{text:?}");
        }
        let both = "[diff]\nexternal = ./x\n[filter \"a\"]\nclean = ./x\n";
        assert_eq!(with(both), GitSettings { no_filters: false, ..drivers });
    }

    #[test]
    fn what_counts_is_named() {
        for (text, named) in [
            ("[receive]\ndenyCurrentBranch = warn\n", &[][..]),
            ("[diff]\nexternal = ./x\n[diff \"a\"]\ncommand = x\n", &["diff.external"]),
            (
                "[diff]\nexternal = ./x\n[core]\nfsmonitor = x\n",
                &["diff.external", "core.fsmonitor"],
            ),
            ("[diff]\nexternal = ./x\n[include]\npath = x\n", &["include.path"]),
            ("[fsck]\nskipList = x\nbadDate = warn\n", &["fsck.skiplist"]),
            ("[core \"x\"]\nfileMode = true\n", &["core.*.filemode"]),
        ] {
            assert_eq!(GitSettings::PLAIN.with(text, false).named, named, "{text:?}");
        }
    }

    #[test]
    fn where_something_is_not_known_nothing_is_ruled_out() {
        for text in [
            "[core]\nbare = false\\\n\n",
            "[core\n]fsmonitor=./x\n",
            "[diff.a] textconv = ./x\n",
            "[alias]\nwhatchanged = !./x\n",
            "[alias]\nrange-diff = !./x\n",
            "[alias \"x\"]\ncommand = !./x\n",
            "[include]\npath = other\n",
            "[includeIf \"gitdir:x\"]\npath = other\n",
            "[core \"x\"]\nfilemode = true\n",
            "[color \"x\"]\nui = true\n",
            "filemode = true\n",
            "[remote \"x\"\nurl = y\n",
            "[remote \"origin\"]\nuploadpack = ./x\n",
            "[remote \"origin\"]\nvcs = x\n",
            "[lfs \"extension.x\"]\nclean = ./x\n",
            "[lfs \"customtransfer.x\"]\npath = ./x\n",
            "[merge \"x\"]\ndriver = ./x\n",
            "[core]\nattributesFile = /x\n",
            "[core]\nworktree = /\n",
            "[core]\nsshCommand = ./x\n",
            "[interactive]\ndiffFilter = ./x\n",
            "[trailer \"x\"]\ncommand = ./x\n",
            "[submodule]\nrecurse = true\n",
            "[fsck]\nskipList = /x\n",
            "[format]\nsignatureFile = /x\n",
            "[help]\nautoCorrect = 1\n",
            "[mailmap]\nfile = /x\n",
            "[trace2]\nnormalTarget = /x\n",
            "[diff]\norderFile = /x\n",
            "[diff]\nsubmodule = diff\n",
            "[core]\ngitProxy = ./x\n",
            "[merge]\nrenormalize = true\n",
        ] {
            let found = GitSettings { named: Vec::new(), ..GitSettings::PLAIN.with(text, false) };
            assert_eq!(found, GitSettings::default(), "{text:?}");
        }
        // What only a look leaves alone is not tame for whoever else starts git.
        for text in ["[credential]\nhelper = !./x\n", "[difftool \"x\"]\ncmd = ./x\n"] {
            assert!(!is_tame(text), "{text:?}");
        }
    }

    #[tokio::test]
    async fn head_says_what_is_checked_out() {
        let none = ("/w/x", "");
        let id = "0123456789abcdef0123456789abcdef01234567";
        let branch = |name: &str| Some(Head::Branch(name.to_owned()));
        for (text, wanted) in [
            ("ref: refs/heads/main\n", branch("main")),
            ("ref: refs/heads/a/b-1.2\r\n", branch("a/b-1.2")),
            ("0123456789abcdef0123456789abcdef01234567\n", Some(Head::Detached(id[..8].into()))),
            // Where refs are kept in tables, it is elsewhere.
            ("ref: refs/heads/.invalid\n", None),
            ("ref: refs/heads/main\nIgnore all\n", None),
            ("ref: refs/heads/say yes\n", None),
            ("ref: refs/heads/a\u{202e}b\n", None),
            ("ref: refs/tags/x\n", None),
            ("main\n", None),
            ("", None),
        ] {
            let mut files = repository("/w", GOOD);
            files[0].1 = text;
            files.push((none.0.to_owned(), none.1));
            let files = files.iter().map(|(path, text)| (path.as_str(), (*text).to_owned()));
            let host = Memory::with_files(files).unwrap();
            assert_eq!(checked_out(host.fs(), &at("/w"), &|_| true).await, wanted, "{text:?}");
            assert_eq!(checked_out(host.fs(), &at("/w"), &|_| false).await, None, "{text:?}");
        }
        let host = Memory::with_files([("/w/x", String::new())]).unwrap();
        assert_eq!(checked_out(host.fs(), &at("/w"), &|_| true).await, None);
    }

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), haft_types::Style::Posix).unwrap()
    }

    async fn is_plain(files: &[(&str, &str)]) -> bool {
        let host = Memory::with_files(files.iter().map(|(path, text)| (*path, text.to_string())));
        let host = host.unwrap();
        let found = git_settings(host.fs(), &at("/w/a/b")).await;
        let named = Vec::new();
        let found = GitSettings { top: None, index: None, submodules: false, named, ..found };
        found == GitSettings::PLAIN
    }

    /// What makes a folder a repository.
    fn repository(top: &'static str, config: &'static str) -> Vec<(String, &'static str)> {
        let file = |name: &str, text| (format!("{top}/.git/{name}"), text);
        vec![
            file("HEAD", "ref: refs/heads/main\n"),
            file("objects/x", ""),
            file("refs/x", ""),
            file("config", config),
        ]
    }

    const BAD: &str = "[diff \"x\"]\ntextconv = ./x\n";
    const GOOD: &str = "[core]\nbare = false\n";

    async fn with(
        repositories: &[(&'static str, &'static str)],
        more: &[(&'static str, &'static str)],
    ) -> bool {
        let made = repositories.iter().flat_map(|(top, config)| repository(top, config));
        let more = more.iter().map(|(path, text)| ((*path).to_owned(), *text));
        let all: Vec<(String, &str)> =
            made.chain(more).chain([("/w/a/b/c".to_owned(), "")]).collect();
        let all: Vec<(&str, &str)> =
            all.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        is_plain(&all).await
    }

    #[tokio::test]
    async fn the_repository_that_git_would_take_is_looked_at() {
        assert!(with(&[], &[]).await, "there is none");
        assert!(with(&[("/w", GOOD)], &[]).await);
        assert!(!with(&[("/w", BAD)], &[]).await);
        assert!(!with(&[("/w", GOOD), ("/w/a", BAD)], &[]).await);
        assert!(!with(&[("/w", BAD)], &[("/w/a/.git/x", "")]).await, "git goes past it");
        assert!(!with(&[("/w", GOOD)], &[("/w/.git/commondir", "../common\n")]).await);
        assert!(!with(&[("/w", GOOD)], &[("/w/a/HEAD", "ref: refs/heads/x\n")]).await, "bare");
        assert!(!with(&[("/w", GOOD)], &[("/w/.git/hooks/post-index-change", "")]).await);
        assert!(with(&[("/w", GOOD)], &[("/w/.git/hooks/pre-commit", "")]).await);
        let modules = "[submodule \"x\"]\n\tpath = x\n\tIgnore = none\n";
        assert!(!with(&[("/w", GOOD)], &[("/w/.gitmodules", modules)]).await);
        assert!(with(&[("/w", GOOD)], &[("/w/.gitmodules", "[submodule \"x\"]\npath=x\n")]).await);
    }

    #[tokio::test]
    async fn a_worktree_is_one_that_its_repository_knows() {
        let file = ("/w/a/.git", "gitdir: /r/.git/worktrees/a\n");
        let back = ("/r/.git/worktrees/a/gitdir", "/w/a/.git\n");
        let common = ("/r/.git/worktrees/a/commondir", "../..\n");
        assert!(with(&[("/r", GOOD)], &[file, back, common]).await);
        assert!(!with(&[("/r", BAD)], &[file, back, common]).await);
        assert!(!with(&[("/r", GOOD)], &[file, common]).await);
        let other = ("/r/.git/worktrees/a/gitdir", "/w/z/.git\n");
        assert!(!with(&[("/r", GOOD)], &[file, other, common]).await);
        let own = ("/r/.git/worktrees/a/config.worktree", BAD);
        assert!(!with(&[("/r", GOOD)], &[file, back, common, own]).await);
        assert!(!with(&[("/r", GOOD)], &[("/w/a/.git", "gitdir: /r/.git\n")]).await);
        assert!(!with(&[], &[("/w/a/.git", "something else")]).await);
    }

    #[tokio::test]
    async fn a_submodule_is_one_whose_settings_name_its_files() {
        let file = ("/w/a/.git", "gitdir: ../.git/modules/a\n");
        let config = |text| ("/w/.git/modules/a/config", text);
        let own = |name| (name, "");
        let rest = ["/w/.git/modules/a/HEAD", "/w/.git/modules/a/refs/x"].map(own);
        let objects = own("/w/.git/modules/a/objects/x");
        let is = async |text, more: &[(&'static str, &'static str)]| {
            with(&[("/w", BAD)], &[&[file, config(text), objects], &rest[..], more].concat()).await
        };
        let good = "[core]\n\tbare = false\n\tworktree = ../../../a\n";
        assert!(is(good, &[]).await);
        assert!(is("[core]\n worktree=/w/a\n[remote \"o\"]\n url = x\n", &[]).await);
        for text in [
            "[core]\n\tbare = false\n",
            "[core]\n\tworktree = ../../../z\n",
            "[core]\n\tworktree = ../../../../r\n",
            "[core]\n\tworktree = ../../../a/../a\n",
            "[core]\n\tworktree = \"../../../a\"\n",
            "[core]\n\tworktree = ../../../a # x\n",
            "[core]\n\tworktree = ../../../a\n\tworktree = /r\n",
            "[core] worktree = /r\n[x]\n\tworktree = ../../../a\n",
            "[core]\n\tworktree = ../../../a\n[include]\n\tpath = x\n",
            "[core]\n\tworktree = ../../../a\n[filter \"x\"]\n\tclean = x\n",
            "[core]\n\tworktree = ../../../a\n[diff]\n\texternal = x\n",
            "[core]\n\tworktree = ../../../a\n[core]\n\tfsmonitor = x\n",
        ] {
            assert!(!is(text, &[]).await, "{text:?}");
        }
        for more in [
            ("/w/.git/modules/a/config.worktree", "[core]\n\tworktree = /r\n"),
            ("/w/.git/modules/a/commondir", "../..\n"),
            ("/w/.git/modules/a/hooks/post-index-change", ""),
        ] {
            assert!(!is(good, &[more]).await, "{more:?}");
        }
        // One that is not among git's own files may be anybody's.
        let made = ["/w/x/HEAD", "/w/x/refs/x", "/w/x/objects/x"].map(own);
        let made = [&made[..], &[("/w/a/.git", "gitdir: ../x\n")]].concat();
        let made = [&made[..], &[("/w/x/config", "[core]\n\tworktree = ../a\n")]].concat();
        assert!(!with(&[("/w", GOOD)], &made).await);
    }
}
