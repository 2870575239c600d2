//! Links in `/proc` that lead to places of a process: its root, its working folder and its open
//! files.
//!
//! **Invariant:** a path through one of them is also judged as the path that it leads to. Links of
//! another process may lead anywhere. Only its root counts as `/`, as it is for every process that
//! nobody locked into another root.
//!
//! **Does not know:** links of files.

use haft_shell::{ANY, FOUND, ONE, SOME};

/// Most such links behind one another.
const DEEPEST: usize = 4;
/// Most paths that one may be.
const MOST: usize = 16;

/// What stands for this, whichever its number is.
const SELF: &str = "self";

/// Where a path leads through such links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Magic {
    /// Absolute paths, with their `..` as they are.
    pub texts: Vec<String>,
    /// It may lead anywhere.
    pub is_any: bool,
}

impl Magic {
    /// Where an absolute path leads for a process that is in one of these folders; none stand for any.
    pub(crate) fn of(text: &str, folders: Option<&[String]>) -> Self {
        let mut magic = Self::default();
        // A path that names neither is none of them, which is quickly seen.
        if text.contains("proc") || text.contains("dev") || text.contains([ANY, FOUND, ONE, SOME]) {
            magic.add(text, folders, DEEPEST);
        }
        magic
    }

    fn add(&mut self, text: &str, folders: Option<&[String]>, left: usize) {
        let mut stack: Vec<&str> = Vec::new();
        let mut names = text.split('/').filter(|name| !["", "."].contains(name));
        while let Some(name) = names.next() {
            match name {
                ".." => drop(stack.pop()),
                name => stack.push(name),
            }
            match stack[..] {
                ["dev", "fd"] => stack = vec!["proc", SELF, "fd"],
                ["proc", "thread-self"] => stack = vec!["proc", SELF, "task", SELF],
                _ => {}
            }
            let (["proc", who, "task", _, link] | ["proc", who, link]) = stack[..] else {
                if let ["proc", _, "fd", number] | ["proc", _, "task", _, "fd", number] = stack[..]
                {
                    // What is open was opened by what is judged; what lies in a folder that is was not.
                    let is_own = stack[1] == SELF;
                    let is_last = names.clone().next().is_none();
                    let is_standard = ["0", "1", "2"].contains(&number);
                    let is_device = text.starts_with("/dev/");
                    self.is_any |= !(is_own && is_last && (is_standard || is_device));
                    return;
                }
                continue;
            };
            let rest: String = names.clone().flat_map(|name| ["/", name]).collect();
            let starts = match link {
                "root" => vec![String::new()],
                "cwd" if who == SELF => self.stands(folders),
                "cwd" => Vec::new(),
                link if link.contains([ANY, FOUND, ONE, SOME]) => Vec::new(),
                _ => continue,
            };
            self.is_any |= starts.is_empty();
            for start in starts {
                let found = format!("{start}{rest}");
                let found = if found.is_empty() { "/".to_owned() } else { found };
                if left == 0 || self.texts.len() >= MOST {
                    self.is_any = true;
                } else if !self.texts.contains(&found) {
                    self.texts.push(found.clone());
                    self.add(&found, folders, left - 1);
                }
            }
            return;
        }
    }

    /// The folders that a process may stand in.
    fn stands(&mut self, folders: Option<&[String]>) -> Vec<String> {
        let folders = folders.unwrap_or_default();
        // Which folder that was before it was entered so is not kept.
        let is_known =
            |folder: &&String| !folder.starts_with("/proc") && !folder.starts_with("/dev");
        let known: Vec<String> = folders.iter().filter(is_known).cloned().collect();
        self.is_any |= known.len() < folders.len();
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_through_what_a_process_has_are_those_that_it_stands_for() {
        let any = ANY.to_string();
        for (text, texts, is_any) in [
            ("/proc/self/root/etc/x", &["/etc/x"][..], false),
            ("/proc/self/root", &["/"], false),
            ("//proc/./self//cwd/a", &["/w/s/a"], false),
            ("/proc/self/cwd/../a", &["/w/s/../a"], false),
            ("/proc/thread-self/cwd/a", &["/w/s/a"], false),
            ("/proc/thread-self/../../cwd/a", &["/w/s/a"], false),
            ("/proc/self/task/12/cwd/a", &["/w/s/a"], false),
            ("/proc/self/task/../cwd/a", &["/w/s/a"], false),
            ("/dev/fd/../cwd/a", &["/w/s/a"], false),
            ("/proc/self/root/proc/self/cwd/a", &["/proc/self/cwd/a", "/w/s/a"], false),
            ("/proc/12/root/etc/x", &["/etc/x"], false),
            ("/proc/12/cwd/a", &[], true),
            (&format!("/proc/{any}/cwd/a"), &[], true),
            (&format!("/proc/self/{any}/a"), &[], true),
            (&format!("/proc/{any}/status"), &[], false),
            ("/dev/fd/3", &[], false),
            ("/dev/fd/3/a", &[], true),
            ("/proc/self/fd/0", &[], false),
            ("/proc/self/fd/3", &[], true),
            ("/proc/12/fd/0", &[], true),
            ("/proc/self/status", &[], false),
            ("/proc/cpuinfo", &[], false),
            ("/w/proc/self/root/a", &[], false),
            ("/dev/null", &[], false),
        ] {
            let magic = Magic::of(text, Some(&["/w/s".to_owned()]));
            let texts = texts.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(magic, Magic { texts, is_any }, "{text}");
        }
        assert!(Magic::of("/proc/self/cwd/a", None).is_any);
        assert!(Magic::of("/proc/self/cwd/a", Some(&["/proc/self/cwd".to_owned()])).is_any);
        let deep = "/proc/self/root".repeat(40) + "/etc/x";
        assert!(Magic::of(&deep, None).is_any);
    }
}
