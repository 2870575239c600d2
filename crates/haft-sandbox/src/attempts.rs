//! What programs tried of a network without success, as the kernel counts it.
//!
//! **Invariant:** the counters are those of a whole network: whoever else uses it is counted too.
//! Nothing is read from what programs print.

use std::{fs, io, path::Path};

use serde::{Deserialize, Serialize};

/// What did not come through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// What was sent to a place that no route leads to: to other machines, where there is only this one.
    pub unrouted: u64,
    /// Connections over TCP that nothing took.
    pub refused: u64,
    /// Datagrams over UDP that nothing took.
    pub undelivered: u64,
    /// Sockets that were refused to be made.
    pub sockets: u64,
}

/// How many bytes they are as they are handed on.
pub(crate) const SIZE: usize = 4 * size_of::<u64>();

impl Attempts {
    /// Reads the counters of a network: `/proc/PID/net` of a process that has it.
    ///
    /// # Errors
    /// When they cannot be read, as where `/proc` is not mounted.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let four = fs::read_to_string(folder.join("snmp"))?;
        // There is none where the kernel has no IPv6.
        let six = fs::read_to_string(folder.join("snmp6")).unwrap_or_default();
        Self::of(&four, &six).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Of the text of both tables.
    fn of(four: &str, six: &str) -> Option<Self> {
        let unrouted = in_pairs(four, "Ip:", "OutNoRoutes")?;
        let refused = in_pairs(four, "Tcp:", "AttemptFails")?;
        let undelivered = in_pairs(four, "Udp:", "NoPorts")?;
        let of_six = |name| in_lines(six, name).unwrap_or_default();
        Some(Self {
            unrouted: unrouted.saturating_add(of_six("Ip6OutNoRoutes")),
            refused,
            undelivered: undelivered.saturating_add(of_six("Udp6NoPorts")),
            sockets: 0,
        })
    }

    /// What was added to an earlier look.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            unrouted: self.unrouted.saturating_sub(earlier.unrouted),
            refused: self.refused.saturating_sub(earlier.refused),
            undelivered: self.undelivered.saturating_sub(earlier.undelivered),
            sockets: self.sockets.saturating_sub(earlier.sockets),
        }
    }

    /// Reports whether all came through.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// As they are handed on between processes.
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        let all = [self.unrouted, self.refused, self.undelivered, self.sockets];
        for (to, number) in bytes.as_chunks_mut().0.iter_mut().zip(all) {
            *to = number.to_le_bytes();
        }
        bytes
    }

    /// The same back; none of fewer bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, rest) = bytes.as_chunks();
        let [unrouted, refused, undelivered, sockets] = *numbers else { return None };
        let [unrouted, refused, undelivered, sockets] =
            [unrouted, refused, undelivered, sockets].map(u64::from_le_bytes);
        rest.is_empty().then_some(Self { unrouted, refused, undelivered, sockets })
    }
}

/// A counter of the older table: a line of names, and below it one of numbers, both with the same begin.
fn in_pairs(table: &str, begin: &str, name: &str) -> Option<u64> {
    let mut lines =
        table.lines().filter(|line| line.split_ascii_whitespace().next() == Some(begin));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let at = names.split_ascii_whitespace().position(|known| known == name)?;
    numbers.split_ascii_whitespace().nth(at)?.parse().ok()
}

/// A counter of the newer one: a name and a number on each line.
fn in_lines(table: &str, name: &str) -> Option<u64> {
    let mut words = table.lines().map(str::split_ascii_whitespace);
    words.find_map(|mut words| (words.next() == Some(name)).then(|| words.next()?.parse().ok())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUR: &str = "\
Ip: Forwarding DefaultTTL OutNoRoutes ReasmTimeout
Ip: 2 64 3 0
Icmp: InMsgs
Icmp: 9
Tcp: RtoMax MaxConn ActiveOpens AttemptFails
Tcp: 120000 -1 7 5
Udp: InDatagrams NoPorts
Udp: 0 2
UdpLite: InDatagrams NoPorts
UdpLite: 0 77
";
    const SIX: &str = "Ip6OutNoRoutes                  \t4\nUdp6NoPorts\t1\nUdpLite6NoPorts\t9\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let all = Attempts { unrouted: 7, refused: 5, undelivered: 3, sockets: 0 };
        assert_eq!(Attempts::of(FOUR, SIX), Some(all));
        let four = Attempts { unrouted: 3, refused: 5, undelivered: 2, sockets: 0 };
        assert_eq!(Attempts::of(FOUR, ""), Some(four));
        for damaged in ["", "Ip: OutNoRoutes\n", "Ip: OutNoRoutes\nIp: x\n", &FOUR[..60]] {
            assert_eq!(Attempts::of(damaged, SIX), None, "{damaged:?}");
        }
        assert_eq!(
            all.since(four),
            Attempts { unrouted: 4, undelivered: 1, ..Attempts::default() }
        );
        // A counter that began anew is no attempt.
        assert!(four.since(all).is_none());
        assert_eq!(Attempts::from_bytes(&all.to_bytes()), Some(all));
        assert_eq!(Attempts::from_bytes(&all.to_bytes()[1..]), None);
    }

    #[test]
    fn where_there_is_no_table_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = Attempts::read(folder.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        fs::write(folder.path().join("snmp"), FOUR).unwrap();
        assert_eq!(Attempts::read(folder.path()).unwrap().unrouted, 3);
    }
}
