//! Commands that are asked about in every mode, whatever allows them: what they do cannot be taken
//! back by anybody.
//!
//! **Invariant:** the list is data: the person's own settings may replace it, a project's cannot.

use haft_types::{Access, Target};

use crate::{
    Ask, Policy, Remember, Rules, Ruling, Scope, Verdict,
    decide::{Judged, doing, touches},
    parts::Parts,
    rule::Subject,
    script::Script,
};

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

    /// What is on the list of restricted commands.
    pub(crate) fn restricted(&self, ask: &Ask<'_>, judged: &[Judged<'_>]) -> Option<Ruling> {
        for one in judged {
            let reading = match &one.effect.target {
                Target::Command { text, .. } => Some(Reading::of(text, one.script.as_ref())),
                _ if one.effect.access == Access::Observe => continue,
                _ => None,
            };
            let is_meant = |subject: &Subject| match (subject, &reading) {
                (Subject::Command { pattern, .. }, Some(Reading::Script(script))) => {
                    script.touches(pattern)
                }
                (Subject::Command { pattern, .. }, Some(Reading::Parts(parts))) => {
                    pattern.touches(parts)
                }
                _ => false,
            };
            let placed = self.restricted.iter().find(|placed| {
                is_meant(&placed.rule.subject) || (reading.is_none() && touches(placed, one, ask))
            });
            if let Some(placed) = placed {
                let what = doing(one.effect, one.real, ask);
                let text = &placed.rule.text;
                return Some(Ruling::ask(Remember::Never, Some(&placed.rule), &what, |what| {
                    format!("{what} is on the list of restricted commands ({text})")
                }));
            }
        }
        None
    }
}

/// The commands of a text, as exactly as they can be known.
enum Reading<'a> {
    Script(&'a Script),
    Parts(Box<Parts>),
}

impl<'a> Reading<'a> {
    fn of(text: &str, script: Option<&'a Script>) -> Self {
        match script {
            Some(script) if script.fault.is_none() => Self::Script(script),
            _ => Self::Parts(Box::new(Parts::of(text))),
        }
    }
}
