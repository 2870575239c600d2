//! Commands that are asked about in every mode, whatever allows them: nobody can undo what they do.
//!
//! **Invariant:** the list is data: the person's own settings may replace it, a project's cannot.

use haft_shell::{ANY, ONE};
use haft_types::{Access, Place, Target};

use super::{Judged, Placed, doing, home_removal, touches};
use crate::{
    Ask, Policy, Remember, Rules, Ruling, Scope, Verdict,
    command::parts::Parts,
    places::partial_path::Shape,
    rules::{
        open_pattern::{Atom, atoms},
        rule::Subject,
    },
};

/// The letters of a program's name that have to be known, so that it counts as one that may be meant.
const LETTERS: usize = 3;

/// The list as it is shipped, in the grammar of rules.
pub const RESTRICTED: &[&str] = &[
    "Bash(mkfs*)",
    "Bash(mke2fs:*)",
    "Bash(mkswap:*)",
    "Bash(wipefs:*)",
    "Bash(blkdiscard:*)",
    "Bash(badblocks -w*)",
    "Bash(fdisk:*)",
    "Bash(cfdisk:*)",
    "Bash(sfdisk:*)",
    "Bash(gdisk:*)",
    "Bash(sgdisk:*)",
    "Bash(parted:*)",
    "Bash(dd * of=/dev/sd*)",
    "Bash(dd of=/dev/sd*)",
    "Bash(dd * of=/dev/hd*)",
    "Bash(dd of=/dev/hd*)",
    "Bash(dd * of=/dev/vd*)",
    "Bash(dd of=/dev/vd*)",
    "Bash(dd * of=/dev/xvd*)",
    "Bash(dd of=/dev/xvd*)",
    "Bash(dd * of=/dev/nvme*)",
    "Bash(dd of=/dev/nvme*)",
    "Bash(dd * of=/dev/mmcblk*)",
    "Bash(dd of=/dev/mmcblk*)",
    "Bash(dd * of=/dev/disk*)",
    "Bash(dd of=/dev/disk*)",
    "Bash(dd * of=/dev/rdisk*)",
    "Bash(dd of=/dev/rdisk*)",
    "Bash(dd * of=/dev/mapper/*)",
    "Bash(dd of=/dev/mapper/*)",
    "Bash(shred * /dev/*)",
    "Bash(shred /dev/*)",
    "Bash(cryptsetup *Format*)",
    "Bash(cryptsetup *erase*)",
    "Bash(nvme format:*)",
    "Bash(hdparm --security*)",
    "Bash(zpool destroy:*)",
    "Bash(lvremove:*)",
    "Bash(vgremove:*)",
    "Bash(pvremove:*)",
    "Bash(mdadm --zero-superblock*)",
    "Bash(diskutil erase*)",
    "Bash(diskutil partition*)",
    "Bash(diskutil reformat:*)",
    "Bash(shutdown:*)",
    "Bash(reboot:*)",
    "Bash(poweroff:*)",
    "Bash(halt:*)",
    "Bash(init 0:*)",
    "Bash(init 6:*)",
    "Bash(telinit:*)",
    "Bash(systemctl poweroff:*)",
    "Bash(systemctl reboot:*)",
    "Bash(systemctl halt:*)",
    "Bash(systemctl kexec:*)",
    "Bash(systemctl suspend:*)",
    "Bash(systemctl hibernate:*)",
    "Bash(systemctl hybrid-sleep:*)",
    "Bash(systemctl suspend-then-hibernate:*)",
    "Bash(systemctl soft-reboot:*)",
    "Bash(systemctl isolate:*)",
    "Bash(systemctl start halt.target:*)",
    "Bash(systemctl start poweroff.target:*)",
    "Bash(systemctl start reboot.target:*)",
    "Bash(loginctl poweroff:*)",
    "Bash(loginctl reboot:*)",
    "Bash(loginctl halt:*)",
    "Bash(loginctl suspend:*)",
    "Bash(loginctl hibernate:*)",
    "Bash(kexec:*)",
    "Bash(sysctl -w kernel.*)",
    "Edit(//dev/sd*)",
    "Edit(//dev/hd*)",
    "Edit(//dev/vd*)",
    "Edit(//dev/xvd*)",
    "Edit(//dev/nvme*)",
    "Edit(//dev/mmcblk*)",
    "Edit(//dev/disk*)",
    "Edit(//dev/dm-*)",
    "Edit(//dev/mapper/**)",
    "Edit(//dev/md*)",
    "Edit(//dev/loop*)",
    "Edit(//dev/mem)",
    "Edit(//dev/kmem)",
    "Edit(//dev/port)",
    "Edit(//proc/sysrq-trigger)",
];

impl Policy {
    /// The same, where what these rules name is asked about in every mode.
    #[must_use]
    pub fn restricting(mut self, list: &[impl AsRef<str>]) -> Self {
        let mut rules = Rules::default();
        for text in list {
            rules.add(Verdict::Ask, Scope::Restricted, text.as_ref());
        }
        let Self { rules, problems, .. } = Self::new(&rules, self.anchors.clone());
        self.restricted = rules;
        self.problems.extend(problems);
        self
    }

    /// What is on the list of restricted commands, or may be: where words of a command are not known,
    /// and where commands come from elsewhere and the words of one that is stand in the text.
    pub(crate) fn restricted(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        for one in judged {
            let Target::Command { text, .. } = &one.effect.target else {
                let is_meant = |placed: &&Placed| {
                    one.effect.access != Access::Observe && touches(placed, one, ask)
                };
                match self.restricted.iter().find(is_meant) {
                    Some(placed) => return Some(listed(placed, one, ask)),
                    None => continue,
                }
            };
            if self.restricted.is_empty() {
                continue;
            }
            let parts = one.rough(text);
            let script = one.script.as_ref().filter(|script| script.fault.is_none());
            let targets = targets(parts, ask.place);
            let is_meant = |placed: &&Placed| match &placed.rule.subject {
                Subject::Command { pattern, .. } => {
                    pattern.touches(parts)
                        || script.is_some_and(|script| script.touches(pattern))
                        || pattern.may_be(parts, LETTERS)
                        || parts.unclear.is_some() && pattern.is_said(parts)
                }
                Subject::Path { .. } => targets.iter().any(|target| meets(placed, target)),
                _ => false,
            };
            if let Some(placed) = self.restricted.iter().find(is_meant) {
                return Some(listed(placed, one, ask));
            }
            if home_removal::is_one(parts, script, &self.anchors.home) {
                let what = doing(one.effect, None, ask);
                return Some(Ruling::ask(Remember::Never, None, &what, |what| {
                    format!("{what} may remove the whole home folder, or all that there is")
                }));
            }
        }
        None
    }
}

fn listed(placed: &Placed, one: &Judged<'_>, ask: &Ask<'_>) -> Ruling {
    let what = doing(one.effect, one.real, ask);
    let text = &placed.rule.text;
    Ruling::ask(Remember::Never, Some(&placed.rule), &what, |what| {
        format!("{what} is on the list of restricted commands ({text}), or may be")
    })
}

/// The files that redirects of a text write, as far as they are known from the root on.
fn targets(parts: &Parts, place: &Place) -> Vec<Shape> {
    let shape = |word: &String| {
        let shape = |atom: &Atom| match atom {
            Atom::Char(c) => *c,
            Atom::One => ONE,
            Atom::Text | Atom::Words | Atom::More => ANY,
        };
        atoms(word).iter().map(shape).collect::<String>()
    };
    let words = parts.targets.iter().map(shape);
    let far =
        words.filter(|word| word.starts_with('/') && word[1..].starts_with(char::is_alphabetic));
    far.flat_map(|word| Shape::of(&word, None, place)).collect()
}

fn meets(placed: &Placed, target: &Shape) -> bool {
    placed.globs.iter().any(|glob| match target.exact() {
        Some(path) => glob.touches(&path),
        None => glob.may_meet(target),
    })
}
