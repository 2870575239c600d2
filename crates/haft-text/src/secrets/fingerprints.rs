//! Secret values that an earlier run of a session knew. Only fingerprints of them are stored: the
//! length of each, and two keyed hashes. If a text contains such a value again, it becomes known
//! again under its earlier name.
//!
//! **Invariant:** no fingerprint reveals its value. A scan costs a few steps for each byte of a
//! text and each length of a value, and nothing once all are known.

use std::collections::HashMap;

/// A prime for hashes that roll over a text: 2^61 - 1.
const PRIME: u64 = (1 << 61) - 1;
/// Most prints that are read.
const MOST: usize = super::MOST;

/// What is kept of one value.
#[derive(Clone, Debug)]
struct Print {
    name: String,
    hash: [u8; 32],
}

/// The prints of values that are not known yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Prints {
    key: [u8; 32],
    /// By the length of the value in bytes and its rolling hash.
    all: HashMap<usize, HashMap<u64, Vec<Print>>>,
    names: std::collections::HashSet<String>,
}

impl Prints {
    /// Reads what was kept: a line with the key, then one for each value. Lines that cannot be read
    /// are left out. None where there is no key.
    pub fn read(kept: &str) -> Option<Self> {
        let mut lines = kept.lines();
        let mut prints = Self::of(bytes(lines.next()?)?);
        for line in lines.take(MOST) {
            let mut parts = line.split(' ');
            let mut part = || parts.next();
            let (Some(name), Some(len), Some(roll), Some(hash)) = (part(), part(), part(), part())
            else {
                continue;
            };
            let (Ok(len), Ok(roll), Some(hash)) = (len.parse(), roll.parse(), bytes(hash)) else {
                continue;
            };
            if (1..=super::heuristics::LONGEST * 4).contains(&len)
                && prints.names.insert(name.to_owned())
            {
                let print = Print { name: name.to_owned(), hash };
                prints.all.entry(len).or_default().entry(roll).or_default().push(print);
            }
        }
        Some(prints)
    }

    /// None yet, with this key for those to come.
    pub fn of(key: [u8; 32]) -> Self {
        Self { key, ..Self::default() }
    }

    /// The line of the key.
    pub fn head(&self) -> String {
        format!("{}\n", hex(&self.key))
    }

    /// The line of a value.
    pub fn line(&self, name: &str, value: &str) -> String {
        let (roll, hash) = (self.roll(value.as_bytes()), self.hash(value.as_bytes()));
        format!("{name} {} {roll} {}\n", value.len(), hex(&hash))
    }

    /// Whether a name is that of a value that is not known yet.
    pub fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The name that a value had, which is known from now on.
    pub fn take(&mut self, value: &str) -> Option<String> {
        if self.all.is_empty() {
            return None;
        }
        let (len, roll) = (value.len(), self.roll(value.as_bytes()));
        let hash = self.hash(value.as_bytes());
        let of_len = self.all.get_mut(&len)?;
        let same = of_len.get_mut(&roll)?;
        let at = same.iter().position(|print| print.hash == hash)?;
        let name = same.swap_remove(at).name;
        if same.is_empty() {
            of_len.remove(&roll);
        }
        if of_len.is_empty() {
            self.all.remove(&len);
        }
        self.names.remove(&name);
        Some(name)
    }

    /// The values that stand in a text, with the names that they had.
    pub fn in_text(&self, text: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for (len, of_len) in &self.all {
            self.of_len(text.as_bytes(), *len, |at, roll| {
                let Some(same) = of_len.get(&roll) else { return };
                let Some(value) = text.get(at..at + len) else { return };
                let hash = self.hash(value.as_bytes());
                let known = same.iter().find(|print| print.hash == hash);
                found.extend(known.map(|print| (print.name.clone(), value.to_owned())));
            });
        }
        found
    }

    /// Bytes of the longest value that is not known yet; 0 where all are.
    pub fn longest(&self) -> usize {
        self.all.keys().copied().max().unwrap_or(0)
    }

    /// Gives the hash of each stretch of this length.
    fn of_len(&self, text: &[u8], len: usize, mut each: impl FnMut(usize, u64)) {
        if text.len() < len {
            return;
        }
        let base = self.base();
        let top = (1..len).fold(1, |top, _| times(top, base));
        let mut roll = self.roll(&text[..len]);
        each(0, roll);
        for at in len..text.len() {
            let gone = times(u64::from(text[at - len]) + 1, top);
            roll = plus(roll, PRIME - gone);
            roll = plus(times(roll, base), u64::from(text[at]) + 1);
            each(at - len + 1, roll);
        }
    }

    fn roll(&self, value: &[u8]) -> u64 {
        let base = self.base();
        value.iter().fold(0, |roll, b| plus(times(roll, base), u64::from(*b) + 1))
    }

    fn base(&self) -> u64 {
        let start: [u8; 8] = std::array::from_fn(|at| self.key[at]);
        u64::from_le_bytes(start) % (PRIME - 2) + 2
    }

    fn hash(&self, value: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.key, value).as_bytes()
    }
}

fn times(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b) % u128::from(PRIME);
    // Below the prime.
    u64::try_from(product).unwrap_or_default()
}

const fn plus(a: u64, b: u64) -> u64 {
    (a + b) % PRIME
}

fn hex(bytes: &[u8; 32]) -> String {
    blake3::Hash::from_bytes(*bytes).to_hex().to_string()
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    Some(*blake3::Hash::from_hex(hex).ok()?.as_bytes())
}
