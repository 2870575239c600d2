//! The same limits as a macOS sandbox profile (`sandbox-exec`), as text.
//!
//! Later rules win there. Protected paths in a writable folder are denied by name, so nothing has
//! to be restored.

use std::fmt::Write as _;

use haft_types::HostPath;

use crate::{Limits, Net};

/// Devices that keep nothing.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
/// Services without which ordinary programs do not start.
const SERVICES: &[&str] = &[
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.SecurityServer",
    "com.apple.trustd.agent",
];

/// A profile that holds a program to these limits. Paths must be as the kernel knows them, with links
/// resolved.
///
/// # Errors
/// Names a path that cannot be written down there: one that is not text.
pub fn profile(limits: &Limits) -> Result<String, HostPath> {
    let mut text = String::from(
        "(version 1)\n(deny default)\n\
         (allow process-exec process-fork)\n\
         (allow process-info* (target same-sandbox))\n\
         (allow signal (target same-sandbox))\n\
         (allow sysctl-read)\n(allow file-read*)\n(allow pseudo-tty)\n\
         (allow ipc-posix-sem)\n",
    );
    for service in SERVICES {
        let _ = writeln!(text, "(allow mach-lookup (global-name {}))", quoted(service));
    }
    for device in DEVICES {
        let _ = writeln!(text, "(allow file-write* file-ioctl (literal {}))", quoted(device));
    }
    text.push_str("(allow file-write* file-ioctl (regex #\"^/dev/ttys[0-9]+$\"))\n");
    let mut rule = |words: &str, path: &HostPath| {
        let name = quoted(path.as_str().ok_or_else(|| path.clone())?);
        let _ = writeln!(text, "({words} (subpath {name}))");
        Ok(())
    };
    limits.writable().try_for_each(|path| rule("allow file-write*", path))?;
    for path in &limits.protected {
        rule("deny file-write*", path)?;
    }
    for path in &limits.hidden {
        rule("deny file-read* file-write*", path)?;
    }
    let is_hidden = |path: &HostPath| limits.hidden.iter().any(|hidden| hidden.is_within(path));
    limits
        .shown
        .iter()
        .filter(|path| !is_hidden(path))
        .try_for_each(|path| rule("allow file-read*", path))?;
    match limits.net {
        Net::Off => {}
        Net::Port(port) => {
            let _ = writeln!(text, "(allow network-outbound (remote tcp \"localhost:{port}\"))");
        }
        Net::On => text.push_str(
            "(allow network-outbound (remote ip))\n(allow network-inbound (local ip))\n\
             (allow network-bind (local ip))\n(allow system-socket)\n",
        ),
    }
    if limits.sockets {
        text.push_str("(allow network* (local unix-socket) (remote unix-socket))\n");
    }
    Ok(text)
}

/// A text of a profile.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_types::Style;

    fn path(text: &[u8]) -> HostPath {
        HostPath::new(text, Style::Posix).unwrap()
    }

    #[test]
    fn a_profile_allows_what_the_limits_allow_and_the_stronger_comes_last() {
        let limits = Limits {
            write: vec![path(b"/w \"x\"")],
            hidden: vec![path(b"/Users/me/.ssh"), path(b"/Users/me/.haft")],
            shown: vec![path(b"/Users/me/.haft/out"), path(b"/Users/me")],
            protected: vec![path(b"/w \"x\"/.git/hooks")],
            net: Net::Port(4711),
            ..Limits::default()
        };
        let text = profile(&limits).unwrap();
        let at = |line: &str| {
            text.lines().position(|have| have == line).unwrap_or_else(|| panic!("{line}: {text}"))
        };
        let allowed = at("(allow file-write* (subpath \"/w \\\"x\\\"\"))");
        assert!(at("(deny default)") < allowed);
        assert!(allowed < at("(deny file-write* (subpath \"/w \\\"x\\\"/.git/hooks\"))"));
        assert!(allowed < at("(deny file-read* file-write* (subpath \"/Users/me/.ssh\"))"));
        assert!(
            at("(allow file-read*)")
                < at("(deny file-read* file-write* (subpath \"/Users/me/.ssh\"))")
        );
        let hidden = at("(deny file-read* file-write* (subpath \"/Users/me/.haft\"))");
        assert!(hidden < at("(allow file-read* (subpath \"/Users/me/.haft/out\"))"));
        assert!(!text.contains("(subpath \"/Users/me\")"));
        at("(allow network-outbound (remote tcp \"localhost:4711\"))");
        assert!(!text.contains("unix-socket") && !text.contains("(remote ip)"));
        assert_eq!(text.matches('(').count(), text.matches(')').count());
    }

    #[test]
    fn nothing_is_writable_or_reached_by_default_and_what_is_no_text_is_named() {
        let text = profile(&Limits::default()).unwrap();
        assert!(!text.contains("(allow network") && !text.contains("(allow file-write* (subpath"));
        let odd = path(b"/w\xff");
        let limits = Limits { write: vec![odd.clone()], ..Limits::default() };
        assert_eq!(profile(&limits), Err(odd));
        let on = Limits { net: Net::On, sockets: true, ..Limits::default() };
        assert!(profile(&on).unwrap().contains("(remote ip)"));
    }
}
