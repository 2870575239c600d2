//! Places that are asked about whatever else allows them: credentials, and files that make programs
//! run.
//!
//! **Invariant:** names are compared after folding letter case and what file systems ignore. Both
//! the written and the resolved path count. The tables are data; the documentation prints them.

use std::{borrow::Cow, collections::HashSet, sync::LazyLock};

use haft_types::HostPath;

/// Names that follow each other in a path; `*` stands for any one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectedPath {
    /// The names, in lower case, joined by `/`; what is below them counts too.
    pub names: &'static str,
    /// True when the first of them must lie directly in the home folder.
    pub home: bool,
    /// What it is, for people.
    pub what: &'static str,
    /// The first bytes of the names, see [`firsts`]: most words begin like few of the many spots.
    pub(crate) firsts: u128,
}

const fn spot(names: &'static str, what: &'static str) -> ProtectedPath {
    ProtectedPath { names, home: false, what, firsts: firsts(names.as_bytes()) }
}

const fn home(names: &'static str, what: &'static str) -> ProtectedPath {
    ProtectedPath { home: true, ..spot(names, what) }
}

/// The bytes with which names begin that slashes part, a bit for each; some share one.
pub(crate) const fn firsts(mut names: &[u8]) -> u128 {
    let (mut all, mut starts) = (0, true);
    while let [c, rest @ ..] = names {
        if starts && *c != b'/' {
            all |= 1 << (*c & 127);
        }
        starts = *c == b'/';
        names = rest;
    }
    all
}

/// Keys and tokens: reading them asks too, in every mode.
pub const CREDENTIALS: &[ProtectedPath] = &[
    spot(".ssh", "ssh keys"),
    spot("id_rsa", "an ssh key"),
    spot("id_dsa", "an ssh key"),
    spot("id_ecdsa", "an ssh key"),
    spot("id_ecdsa_sk", "an ssh key"),
    spot("id_ed25519", "an ssh key"),
    spot("id_ed25519_sk", "an ssh key"),
    spot("etc/ssh/ssh_host_*", "ssh host keys"),
    spot(".gnupg", "gpg keys"),
    spot(".password-store", "stored passwords"),
    spot(".local/share/keyrings", "stored passwords"),
    spot("library/keychains", "stored passwords"),
    spot(".aws", "cloud credentials"),
    spot(".azure", "cloud credentials"),
    spot(".oci", "cloud credentials"),
    spot(".boto", "cloud credentials"),
    spot(".s3cfg", "cloud credentials"),
    spot(".config/gcloud", "cloud credentials"),
    spot(".config/doctl", "cloud credentials"),
    spot(".config/rclone", "cloud credentials"),
    spot(".config/op", "stored passwords"),
    spot(".terraform.d/credentials.tfrc.json", "cloud credentials"),
    spot(".terraformrc", "cloud credentials"),
    spot(".vault-token", "a vault token"),
    spot(".fly/config.yml", "cloud credentials"),
    spot(".kube", "cluster credentials"),
    spot(".docker/config.json", "registry credentials"),
    spot(".dockercfg", "registry credentials"),
    spot("containers/auth.json", "registry credentials"),
    spot(".config/gh/hosts.yml", "a code host's token"),
    spot(".config/glab-cli", "a code host's token"),
    spot(".config/hub", "a code host's token"),
    spot(".git-credentials", "a code host's token"),
    spot(".config/git/credentials", "a code host's token"),
    spot(".netrc", "network passwords"),
    spot("_netrc", "network passwords"),
    spot(".pgpass", "database passwords"),
    spot(".my.cnf", "database passwords"),
    spot(".pypirc", "registry credentials"),
    spot(".cargo/credentials", "registry credentials"),
    spot(".cargo/credentials.toml", "registry credentials"),
    spot(".gem/credentials", "registry credentials"),
    spot(".m2/settings.xml", "registry credentials"),
    spot(".m2/settings-security.xml", "registry credentials"),
    spot(".composer/auth.json", "registry credentials"),
    spot(".config/composer/auth.json", "registry credentials"),
    home(".npmrc", "registry credentials"),
    home(".yarnrc.yml", "registry credentials"),
    home(".gradle/gradle.properties", "registry credentials"),
    spot(".claude/.credentials.json", "another agent's keys"),
    home(".claude.json", "another agent's keys"),
    spot(".codex/auth.json", "another agent's keys"),
    spot(".gemini/oauth_creds.json", "another agent's keys"),
    spot(".config/github-copilot", "another agent's keys"),
    spot(".cache/huggingface/token", "a model host's token"),
    spot(".cache/huggingface/stored_tokens", "a model host's token"),
    spot(".huggingface", "a model host's token"),
    spot(".kaggle/kaggle.json", "a model host's token"),
    spot(".pulumi/credentials.json", "cloud credentials"),
    spot(".databrickscfg", "cloud credentials"),
    spot(".config/hcloud", "cloud credentials"),
    spot(".config/scw", "cloud credentials"),
    spot(".config/linode-cli", "cloud credentials"),
    spot(".config/openstack", "cloud credentials"),
    spot(".config/railway", "cloud credentials"),
    spot(".config/netlify", "cloud credentials"),
    spot(".config/configstore", "cloud credentials"),
    spot(".config/.wrangler", "cloud credentials"),
    spot(".wrangler/config", "cloud credentials"),
    spot(".config/snowflake", "cloud credentials"),
    spot(".snowflake", "cloud credentials"),
    spot(".supabase/access-token", "cloud credentials"),
    spot(".local/share/com.vercel.cli", "cloud credentials"),
    spot(".config/argocd", "cloud credentials"),
    spot(".minikube", "cloud credentials"),
    spot(".aliyun/config.json", "cloud credentials"),
    spot(".bluemix", "cloud credentials"),
    spot(".cloudflared", "cloud credentials"),
    spot(".railway/config.json", "cloud credentials"),
    spot(".docker/contexts", "keys of docker's hosts"),
    spot(".snowsql/config", "database passwords"),
    spot(".dbt/profiles.yml", "database passwords"),
    spot(".authinfo", "network passwords"),
    spot(".authinfo.gpg", "network passwords"),
    spot(".sbt/.credentials", "registry credentials"),
    spot(".ivy2/.credentials", "registry credentials"),
    spot(".config/dart/pub-credentials.json", "registry credentials"),
    spot(".pub-cache/credentials.json", "registry credentials"),
    spot(".jfrog", "registry credentials"),
    spot(".config/sops/age", "stored keys"),
    spot(".config/age", "stored keys"),
    spot(".config/bitwarden cli", "stored keys"),
    spot(".config/keepassxc", "stored keys"),
    spot(".config/solana", "stored keys"),
    spot(".config/ngrok", "a service's token"),
    spot(".ngrok2", "a service's token"),
    spot(".config/stripe", "a service's token"),
    spot(".sentryclirc", "a service's token"),
    spot(".config/tea", "a service's token"),
    spot(".config/helm/repositories.yaml", "registry credentials"),
    spot(".config/helm/registry", "registry credentials"),
    spot(".config/pypoetry/auth.toml", "registry credentials"),
    spot(".local/share/uv/credentials", "registry credentials"),
    spot(".mozilla", "a browser's passwords and cookies"),
    spot(".librewolf", "a browser's passwords and cookies"),
    spot(".thunderbird", "a browser's passwords and cookies"),
    spot(".config/google-chrome", "a browser's passwords and cookies"),
    spot(".config/google-chrome-beta", "a browser's passwords and cookies"),
    spot(".config/google-chrome-unstable", "a browser's passwords and cookies"),
    spot(".config/chromium", "a browser's passwords and cookies"),
    spot(".config/microsoft-edge", "a browser's passwords and cookies"),
    spot(".config/bravesoftware", "a browser's passwords and cookies"),
    spot(".config/vivaldi", "a browser's passwords and cookies"),
    spot(".config/opera", "a browser's passwords and cookies"),
    spot("snap/firefox", "a browser's passwords and cookies"),
    spot("snap/chromium", "a browser's passwords and cookies"),
    spot(".var/app/org.mozilla.firefox", "a browser's passwords and cookies"),
    spot(".var/app/com.google.chrome", "a browser's passwords and cookies"),
    spot(".var/app/org.chromium.chromium", "a browser's passwords and cookies"),
    home("library/application support/firefox", "a browser's passwords and cookies"),
    home("library/application support/google/chrome", "a browser's passwords and cookies"),
    home("library/application support/chromium", "a browser's passwords and cookies"),
    home("library/application support/bravesoftware", "a browser's passwords and cookies"),
    home("library/application support/microsoft edge", "a browser's passwords and cookies"),
    home("library/safari", "a browser's passwords and cookies"),
    home("library/cookies", "a browser's passwords and cookies"),
    home("appdata/roaming/mozilla", "a browser's passwords and cookies"),
    home("appdata/local/google/chrome", "a browser's passwords and cookies"),
    home("appdata/local/microsoft/edge", "a browser's passwords and cookies"),
    home("appdata/local/bravesoftware", "a browser's passwords and cookies"),
    spot(".local/share/opencode/auth.json", "another agent's keys"),
    spot(".qwen/oauth_creds.json", "another agent's keys"),
    spot(".bash_history", "a shell's history"),
    spot(".zsh_history", "a shell's history"),
    spot(".zhistory", "a shell's history"),
    spot(".sh_history", "a shell's history"),
    spot(".ash_history", "a shell's history"),
    spot(".histfile", "a shell's history"),
    spot(".local/share/fish/fish_history", "a shell's history"),
    spot(".python_history", "a program's history"),
    spot(".psql_history", "a program's history"),
    spot(".mysql_history", "a program's history"),
    spot(".mariadb_history", "a program's history"),
    spot(".sqlite_history", "a program's history"),
    spot(".rediscli_history", "a program's history"),
    spot(".node_repl_history", "a program's history"),
    spot(".irb_history", "a program's history"),
    spot(".dbshell", "a program's history"),
    spot(".mongodb/mongosh", "a program's history"),
    spot(".config/pip/pip.conf", "registry credentials"),
    spot(".pip/pip.conf", "registry credentials"),
    spot("etc/shadow", "the system's passwords"),
    spot("etc/shadow-", "the system's passwords"),
    spot("etc/shadow~", "the system's passwords"),
    spot("etc/shadow.bak", "the system's passwords"),
    spot("etc/shadow.old", "the system's passwords"),
    spot("etc/shadow.org", "the system's passwords"),
    spot("etc/shadow.orig", "the system's passwords"),
    spot("etc/gshadow", "the system's passwords"),
    spot("etc/gshadow-", "the system's passwords"),
    spot("etc/gshadow~", "the system's passwords"),
    spot("etc/gshadow.bak", "the system's passwords"),
    spot("etc/gshadow.old", "the system's passwords"),
    spot("etc/gshadow.org", "the system's passwords"),
    spot("etc/gshadow.orig", "the system's passwords"),
    spot("backups/shadow.bak", "the system's passwords"),
    spot("backups/gshadow.bak", "the system's passwords"),
    spot("security/opasswd", "the system's passwords"),
    spot("etc/master.passwd", "the system's passwords"),
    spot("etc/sudoers", "the system's rights"),
    spot("etc/sudoers.d", "the system's rights"),
    spot("proc/*/environ", "another program's environment"),
    spot("proc/*/task/*/environ", "another program's environment"),
    spot("proc/*/mem", "another program's memory"),
];

/// What makes programs run, or changes what others do: changing it asks where edits are allowed.
pub const PROTECTED: &[ProtectedPath] = &[
    spot(".git", "git's own files"),
    spot(".hg", "Mercurial's own files"),
    spot(".svn", "Subversion's own files"),
    spot(".jj", "Jujutsu's own files"),
    spot(".gitconfig", "git's settings"),
    spot(".config/git", "git's settings"),
    spot(".gitmodules", "git's settings"),
    spot(".husky", "git's hooks"),
    spot(".haft", "haft's own settings"),
    spot(".mcp.json", "servers that agents start"),
    spot(".claude", "another agent's settings"),
    spot(".agents", "skills, which may bring rules along"),
    spot(".claude.json", "another agent's settings"),
    spot(".codex", "another agent's settings"),
    spot(".gemini", "another agent's settings"),
    spot(".cursor", "another agent's settings"),
    spot(".windsurf", "another agent's settings"),
    spot(".continue", "another agent's settings"),
    spot(".opencode", "another agent's settings"),
    spot(".kode", "another agent's settings"),
    spot(".pi", "another agent's settings"),
    spot(".aider.conf.yml", "another agent's settings"),
    spot("opencode.json", "another agent's settings"),
    spot("opencode.jsonc", "another agent's settings"),
    spot(".config/opencode", "another agent's settings"),
    spot("crush.json", "another agent's settings"),
    spot(".crush.json", "another agent's settings"),
    spot(".config/crush", "another agent's settings"),
    spot(".roo", "another agent's settings"),
    spot(".roomodes", "another agent's settings"),
    spot(".kiro", "another agent's settings"),
    spot(".qwen", "another agent's settings"),
    spot(".amazonq", "another agent's settings"),
    spot(".factory", "another agent's settings"),
    spot(".junie", "another agent's settings"),
    spot(".trae", "another agent's settings"),
    spot(".amp", "another agent's settings"),
    spot(".config/amp", "another agent's settings"),
    spot(".copilot", "another agent's settings"),
    spot(".devcontainer", "an editor's settings"),
    spot(".devcontainer.json", "an editor's settings"),
    spot(".vscode", "an editor's settings"),
    spot(".idea", "an editor's settings"),
    spot(".zed", "an editor's settings"),
    spot(".bashrc", "a shell start-up file"),
    spot(".bash_profile", "a shell start-up file"),
    spot(".bash_login", "a shell start-up file"),
    spot(".bash_logout", "a shell start-up file"),
    spot(".bash_aliases", "a shell start-up file"),
    spot(".profile", "a shell start-up file"),
    spot(".zshrc", "a shell start-up file"),
    spot(".zshenv", "a shell start-up file"),
    spot(".zprofile", "a shell start-up file"),
    spot(".zlogin", "a shell start-up file"),
    spot(".zlogout", "a shell start-up file"),
    spot(".kshrc", "a shell start-up file"),
    spot(".cshrc", "a shell start-up file"),
    spot(".tcshrc", "a shell start-up file"),
    spot(".login", "a shell start-up file"),
    spot(".inputrc", "a shell start-up file"),
    spot(".config/fish", "a shell start-up file"),
    spot(".xprofile", "a session start-up file"),
    spot(".xinitrc", "a session start-up file"),
    spot(".config/autostart", "a session start-up file"),
    spot(".config/systemd", "a session start-up file"),
    spot("library/launchagents", "a session start-up file"),
    spot("etc/profile", "a shell start-up file"),
    spot("etc/profile.d", "a shell start-up file"),
    spot("etc/bash.bashrc", "a shell start-up file"),
    spot("microsoft.powershell_profile.ps1", "a shell start-up file"),
    spot(".vimrc", "a program's start-up file"),
    spot(".gdbinit", "a program's start-up file"),
    spot(".lldbinit", "a program's start-up file"),
    spot(".tmux.conf", "a program's start-up file"),
    spot(".ripgreprc", "a program's start-up file"),
    spot(".curlrc", "a program's start-up file"),
    spot(".wgetrc", "a program's start-up file"),
    spot(".cargo/config", "a build tool's settings"),
    spot(".cargo/config.toml", "a build tool's settings"),
    spot("rust-toolchain", "a build tool's settings"),
    spot("rust-toolchain.toml", "a build tool's settings"),
    spot(".gradle/gradle.properties", "a build tool's settings"),
    spot(".mvn", "a build tool's settings"),
    spot(".rprofile", "a program's start-up file"),
    spot(".envrc", "a folder's start-up file"),
    spot(".npmrc", "a package manager's settings"),
    spot(".yarnrc", "a package manager's settings"),
    spot(".yarnrc.yml", "a package manager's settings"),
    spot(".pnpmfile.cjs", "a package manager's settings"),
    spot(".bunfig.toml", "a package manager's settings"),
    spot("bunfig.toml", "a package manager's settings"),
    spot("uv.toml", "a package manager's settings"),
    spot("nuget.config", "a package manager's settings"),
    spot("pip.conf", "a package manager's settings"),
    spot(".condarc", "a package manager's settings"),
    spot(".gemrc", "a package manager's settings"),
    spot(".bundle/config", "a package manager's settings"),
];

/// The last names of all spots: a path without one of them is at none, which is quickly seen.
static LAST_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let spots = CREDENTIALS.iter().chain(PROTECTED);
    spots.filter_map(|spot| spot.names.rsplit('/').next()).collect()
});

/// For every first byte, which lengths the last names with it have, a bit each: most names of a
/// searched tree are told from all of them by that alone.
static LENGTHS: [u64; 256] = lengths(PROTECTED, lengths(CREDENTIALS, [0; 256]));

const fn lengths(table: &[ProtectedPath], mut lengths: [u64; 256]) -> [u64; 256] {
    let mut at = 0;
    while at < table.len() {
        let names = table[at].names.as_bytes();
        let mut first = names.len();
        while first > 0 && names[first - 1] != b'/' {
            first -= 1;
        }
        let length = names.len() - first;
        lengths[names[first] as usize] |= 1 << if length < 63 { length } else { 63 };
        at += 1;
    }
    lengths
}

/// The beginning of the one last name that is not fixed.
const OPEN_NAME: &str = "ssh_host_";

/// Reports whether a path with this name in it could be at a spot.
pub(crate) fn is_suspect(name: &[u8]) -> bool {
    if is_plain(name)
        && name.first().is_none_or(|&b| LENGTHS[usize::from(b)] >> name.len().min(63) & 1 == 0)
        && !name.starts_with(OPEN_NAME.as_bytes())
    {
        return false;
    }
    let name = fold(name);
    LAST_NAMES.contains(&*name) || name.starts_with(OPEN_NAME)
}

/// The first spot of `table` that the path is at or below.
pub(crate) fn find<'t>(
    table: &'t [ProtectedPath],
    path: &HostPath,
    home: &HostPath,
) -> Option<&'t ProtectedPath> {
    if !path.names().any(is_suspect) {
        return None;
    }
    let names: Vec<Cow<'_, str>> = path.names().map(fold).collect();
    let depth = path.is_within(home).then(|| home.names().count());
    table.iter().find(|spot| {
        let wanted = spot.names.split('/').count();
        let at = |start: usize| {
            let spotted = spot.names.split('/').zip(&names[start..]);
            names.len() >= start + wanted && { spotted }.all(|(want, name)| is_name(want, name))
        };
        match (spot.home, depth) {
            (true, None) => false,
            (true, Some(depth)) => at(depth),
            (false, _) => (0..names.len()).any(at),
        }
    })
}

/// What a path is that is protected, also where it makes its folder one that git may take for a repository,
/// whose settings then start programs.
pub(crate) fn protected(path: &HostPath, home: &HostPath) -> Option<&'static str> {
    let heads = || matches!(path.names().last(), Some(b"HEAD" | b"commondir"));
    let found = find(PROTECTED, path, home).map(|spot| spot.what);
    found.or_else(|| heads().then_some("git's own files"))
}

/// `*` at the end of a wanted name stands for any rest.
pub(crate) fn is_name(want: &str, name: &str) -> bool {
    want.strip_suffix('*').map_or(want == name, |head| name.starts_with(head))
}

/// Reports whether a name is what [`fold`] would make of it.
fn is_plain(name: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii() && !b.is_ascii_uppercase() && *b != b':';
    name.iter().all(plain) && !name.ends_with(b".") && !name.ends_with(b" ")
}

/// A name in lower case, without what some file systems leave out when they compare.
fn fold(name: &[u8]) -> Cow<'_, str> {
    if is_plain(name) {
        return String::from_utf8_lossy(name);
    }
    let text = String::from_utf8_lossy(name);
    let ignored = |c: &char| {
        matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}')
            || *c == '\u{feff}'
    };
    let folded: String = text
        .chars()
        .filter(|c| !ignored(c))
        .map(|c| if c == '\u{17f}' { 's' } else { c })
        .flat_map(char::to_lowercase)
        .collect();
    let cut = folded.split(':').next().filter(|head| !head.is_empty()).unwrap_or(&folded);
    Cow::Owned(cut.trim_end_matches(['.', ' ']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_types::Style;

    fn is(table: &'static [ProtectedPath], path: &str) -> bool {
        let home = HostPath::new(b"/home/me", Style::Posix).unwrap();
        find(table, &HostPath::new(path.as_bytes(), Style::Posix).unwrap(), &home).is_some()
    }

    #[test]
    fn credentials_are_found_however_they_are_written() {
        for path in [
            "/home/me/.ssh/id_x",
            "/home/me/.SSH/x",
            "/x/.aws/credentials",
            "/w/id_ed25519",
            "/home/me/.npmrc",
            "/proc/self/environ",
            "/home/me/.s\u{200d}sh/x",
            "/w/.ssh. /x",
            "/home/me/.netrc",
            "/w/.ssh::$DATA/x",
            "/etc/ssh/ssh_host_rsa_key",
            "/etc/shadow-",
            "/etc/gshadow-",
            "/etc/shadow.bak",
            "/var/backups/shadow.bak",
            "/etc/security/opasswd",
            "/etc/sudoers",
            "/etc/sudoers.d/admin",
            "/home/me/.cache/huggingface/token",
            "/home/me/.kaggle/kaggle.json",
            "/home/me/.pulumi/credentials.json",
            "/home/me/.config/sops/age/keys.txt",
            "/home/me/.databrickscfg",
            "/home/me/.config/helm/repositories.yaml",
            "/home/me/.mozilla/firefox/x/logins.json",
            "/home/me/.config/BraveSoftware/Brave-Browser/Default/Cookies",
            "/home/me/Library/Application Support/Google/Chrome/Default/Cookies",
            "/home/me/.minikube/client.key",
        ] {
            assert!(is(CREDENTIALS, path), "{path:?}");
        }
        for path in ["/w/token", "/w/huggingface/token", "/w/Library/Safari/x"] {
            assert!(!is(CREDENTIALS, path), "{path:?}");
        }
        for path in ["/w/.npmrc", "/w/ssh/x", "/w/.sshx", "/w/src/id_rsa.rs", "/w/.env", "/"] {
            assert!(!is(CREDENTIALS, path), "{path:?}");
        }
    }

    #[test]
    fn protected_names_count_at_any_depth() {
        for path in ["/w/.git/hooks/x", "/w/a/.GIT", "/w/.mcp.json", "/w/.cargo/config.toml"] {
            assert!(is(PROTECTED, path), "{path:?}");
        }
        for path in [
            "/w/opencode.json",
            "/w/crush.json",
            "/w/.roo/mcp.json",
            "/w/.kiro/x",
            "/w/.copilot/x",
            "/w/.devcontainer/devcontainer.json",
            "/w/NuGet.Config",
            "/w/bunfig.toml",
            "/w/a/uv.toml",
            "/w/.gradle/gradle.properties",
            "/w/.mvn/jvm.config",
            "/w/.Rprofile",
        ] {
            assert!(is(PROTECTED, path), "{path:?}");
        }
        for path in ["/w/gradle.properties", "/w/.gradle/x", "/w/amp/x", "/w/package.json"] {
            assert!(!is(PROTECTED, path), "{path:?}");
        }
        for path in ["/w/.github/x", "/w/.gitignore", "/w/config.toml", "/w/.cargo"] {
            assert!(!is(PROTECTED, path), "{path:?}");
        }
    }

    #[test]
    fn the_quick_look_at_a_name_misses_none() {
        let last = |spot: &'static ProtectedPath| spot.names.rsplit('/').next();
        let names: Vec<&str> = CREDENTIALS.iter().chain(PROTECTED).filter_map(last).collect();
        let slow = |name: &[u8]| {
            let name = fold(name);
            names.contains(&&*name) || name.starts_with(OPEN_NAME)
        };
        let mut suspects = 0;
        for last in names.iter().copied().chain([OPEN_NAME, "ssh_host_key", "main.rs", ""]) {
            for name in [
                last.to_owned(),
                last.to_uppercase(),
                format!("{last}."),
                format!("{last} "),
                format!("{last}x"),
                format!("x{last}"),
                format!("{last}:stream"),
                last.replace('s', "\u{17f}"),
                format!("\u{200b}{last}"),
                "x".repeat(last.len()),
            ] {
                assert_eq!(is_suspect(name.as_bytes()), slow(name.as_bytes()), "{name:?}");
                suspects += usize::from(is_suspect(name.as_bytes()));
            }
        }
        assert!(suspects > 5 * names.len());
        assert!(!is_suspect(b"\xff.ssh"));
    }

    #[test]
    fn tables_are_folded_already() {
        for spot in CREDENTIALS.iter().chain(PROTECTED) {
            for name in spot.names.split('/') {
                assert_eq!(fold(name.as_bytes()), name);
            }
            let last = spot.names.rsplit('/').next().unwrap();
            assert!(!last.contains('*') || last == format!("{OPEN_NAME}*"), "{last}");
        }
    }
}
