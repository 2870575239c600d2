//! Checkpoints: the state of the files is recorded before each command. So the changes of a command
//! can be found where haft is killed meanwhile.
//!
//! **Invariant:** a line is complete, or it is the last one. A checkpoint holds all that the scan
//! before the command found. A command counts as open until its end is in the checkpoint file *and*
//! in the log.

use std::{collections::HashMap, sync::Arc};

use haft_host::{Copies, Node, TreeScan};
use haft_types::{CallId, HostPath};
use serde::{Deserialize, Serialize};

/// Bytes behind which it is put down anew, times the size of the whole.
const TIMES: usize = 4;

/// What was put down so far.
#[derive(Default)]
pub(super) struct Down {
    /// The look that was put down last; none where all has to be.
    last: Option<Arc<TreeScan>>,
    /// Bytes of the last one that was whole.
    whole: usize,
    bytes: usize,
}

#[derive(Serialize)]
enum LineOf<'a> {
    Before {
        call: &'a CallId,
        tool: &'a str,
        began: i128,
        roots: &'a [HostPath],
        rules: Vec<(&'a HostPath, &'a [u8])>,
        gone: Vec<&'a HostPath>,
        nodes: Vec<(&'a HostPath, &'a Node)>,
    },
    End(&'a CallId),
}

#[derive(Deserialize)]
enum Line {
    Before {
        call: CallId,
        tool: String,
        began: i128,
        roots: Vec<HostPath>,
        rules: Vec<(HostPath, Vec<u8>)>,
        gone: Vec<HostPath>,
        nodes: Vec<(HostPath, Node)>,
    },
    End(CallId),
}

/// Commands that ran when their process was killed.
pub(super) struct Open {
    /// The first one of them with its tool.
    pub(super) call: CallId,
    pub(super) tool: String,
    /// The others.
    pub(super) others: Vec<CallId>,
    /// What was there before the first one.
    pub(super) before: TreeScan,
}

impl Down {
    /// Puts down what is there before a command. Where that fails nothing is said: it is only needed
    /// where haft is killed, too.
    pub(super) fn before(
        &mut self,
        copies: &dyn Copies,
        (call, tool): (&CallId, &str),
        survey: &Arc<TreeScan>,
        alone: bool,
    ) {
        if alone && self.bytes > TIMES * self.whole {
            self.last = None;
        }
        let anew = self.last.is_none();
        let last = self.last.take().unwrap_or_default();
        let (mut gone, mut nodes) = (Vec::new(), Vec::new());
        if !Arc::ptr_eq(&last, survey) {
            let same = |path: &HostPath, node: &Arc<Node>| {
                last.nodes.get(path).is_some_and(|old| Arc::ptr_eq(old, node))
            };
            let new = survey.nodes.iter().filter(|(path, node)| !same(path, node));
            nodes.extend(new.map(|(path, node)| (path, &**node)));
            gone.extend(last.nodes.keys().filter(|path| !survey.nodes.contains_key(*path)));
        }
        let line = LineOf::Before {
            call,
            tool,
            began: survey.began,
            roots: &survey.roots,
            rules: survey.rules.iter().map(|(path, text)| (path, &**text)).collect(),
            gone,
            nodes,
        };
        let written = written(&line).and_then(|text| {
            copies.put_down(&text, anew)?;
            Ok(text.len())
        });
        self.last = written.as_ref().is_ok().then(|| Arc::clone(survey));
        if let Ok(bytes) = written {
            self.bytes = if anew { bytes } else { self.bytes + bytes };
            self.whole = if anew { bytes } else { self.whole };
        }
    }
}

/// Puts down that all that a command changed is told.
pub(super) fn end(copies: &dyn Copies, call: &CallId) {
    if let Ok(text) = written(&LineOf::End(call)) {
        // Where it is missing, nothing is found to be told again.
        drop(copies.put_down(&text, false));
    }
}

fn written(line: &LineOf<'_>) -> std::io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// The commands that ran; none where none did. `ended` says whether the log has the end of a call.
pub(super) fn open(text: &[u8], ended: &dyn Fn(&CallId) -> bool) -> Option<Open> {
    // What cannot be read is the end.
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines: Vec<Line> = lines.map_while(|line| serde_json::from_slice(line).ok()).collect();
    let mut over: HashMap<&CallId, usize> = HashMap::new();
    for (number, line) in lines.iter().enumerate() {
        if let Line::End(call) = line {
            over.insert(call, number);
        }
    }
    let is_open = |call: &CallId| !over.contains_key(call) || !ended(call);
    let calls = lines.iter().filter_map(|line| match line {
        Line::Before { call, tool, .. } if is_open(call) => Some((call.clone(), tool.clone())),
        _ => None,
    });
    let mut calls: Vec<(CallId, String)> = calls.collect();
    if calls.is_empty() {
        return None;
    }
    let (first, tool) = calls.remove(0);
    let others = calls.into_iter().map(|(call, _)| call).collect();
    let mut survey = TreeScan::default();
    for line in lines {
        let Line::Before { call, began, roots, rules, gone, nodes, .. } = line else { continue };
        (survey.began, survey.roots) = (began, roots);
        survey.rules = rules.into_iter().map(|(path, text)| (path, text.into())).collect();
        for path in &gone {
            survey.nodes.remove(path);
        }
        survey.nodes.extend(nodes.into_iter().map(|(path, node)| (path, Arc::new(node))));
        if call == first {
            break;
        }
    }
    Some(Open { call: first, tool, others, before: survey })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use haft_host::{Content, GitId, Stamp};
    use haft_types::{EntryKind, Hash, Rights, Style};

    use super::*;

    #[derive(Default)]
    struct Text(Mutex<Vec<u8>>);

    impl Copies for Text {
        fn add(&self, _: &[u8]) -> Option<u64> {
            None
        }
        fn get(&self, _: u64, _: u64) -> std::io::Result<bytes::Bytes> {
            Err(std::io::ErrorKind::NotFound.into())
        }
        fn used(&self) -> u64 {
            0
        }
        fn put_down(&self, text: &[u8], anew: bool) -> std::io::Result<()> {
            let mut all = self.0.lock().unwrap();
            if anew {
                all.clear();
            }
            all.extend_from_slice(text);
            Ok(())
        }
    }

    fn path(name: &[u8]) -> HostPath {
        HostPath::new(name, Style::Posix).unwrap()
    }

    fn survey(began: i128, names: &[(&[u8], u64)]) -> TreeScan {
        let mut rights = Rights::of_mode(0o644);
        rights.owner = Some((1, 2));
        let node = |size: u64| Node {
            kind: EntryKind::File,
            stamp: Stamp { id: (1, u64::MAX), size, modified: -1, changed: began },
            rights: rights.clone(),
            content: Content::Kept { hash: Hash::of(b"x"), at: 1 << 40, len: size },
            is_fresh: false,
        };
        let nodes = names.iter().map(|(name, size)| (path(name), Arc::new(node(*size)))).collect();
        let rules = HashMap::from([(path(b"/w/.gitignore"), b"*.o\xff\n"[..].into())]);
        TreeScan { began, nodes, roots: vec![path(b"/w")], rules, ..TreeScan::default() }
    }

    fn call(number: u64) -> CallId {
        CallId::nth(number)
    }

    #[test]
    fn the_look_before_the_first_open_command_comes_back() {
        let (text, mut down) = (Text::default(), Down::default());
        let one = Arc::new(survey(1_700_000_000_000_000_000, &[(b"/w/a", 1), (b"/w/\xff", 2)]));
        let mut two = survey(2, &[(b"/w/b", 3)]);
        two.nodes.insert(path(b"/w/a"), one.nodes[&path(b"/w/a")].clone());
        let id = GitId(std::array::from_fn(|at| u8::try_from(at * 13).unwrap()));
        let git =
            Node { content: Content::Git { id, len: 7 }, ..(*two.nodes[&path(b"/w/b")]).clone() };
        two.nodes.insert(path(b"/w/git"), git.into());
        let two = Arc::new(two);
        let found = |ended: &dyn Fn(&CallId) -> bool| open(&text.0.lock().unwrap(), ended);
        down.before(&text, (&call(1), "bash"), &one, true);
        end(&text, &call(1));
        assert!(found(&|_| true).is_none(), "it ended");
        let first = found(&|_| false).unwrap();
        assert_eq!((&first.call, &*first.tool), (&call(1), "bash"), "the log has no end of it");
        assert_eq!(first.before, *one);
        let whole = text.0.lock().unwrap().len();
        down.before(&text, (&call(2), "bash"), &two, true);
        down.before(&text, (&call(3), "powershell"), &one, false);
        let second = found(&|call| *call == self::call(1)).unwrap();
        assert_eq!((second.call, second.others), (call(2), vec![call(3)]));
        assert_eq!(second.before, *two);
        let torn = text.0.lock().unwrap().len() - 2;
        text.0.lock().unwrap().truncate(torn);
        assert!(found(&|call| *call == self::call(1)).unwrap().others.is_empty(), "half a line");
        // It does not grow for ever.
        for number in 10..200 {
            down.before(
                &text,
                (&call(number), "bash"),
                if number % 2 == 0 { &one } else { &two },
                true,
            );
            end(&text, &call(number));
            assert!(text.0.lock().unwrap().len() < 8 * whole);
        }
        assert!(found(&|_| true).is_none());
    }
}
