//! Variables that a project does not set for children: they choose what is run or loaded, what is
//! reached, and whom it is believed.
//!
//! **Invariant:** names are compared without case; a new one is a word of the table.

/// By how a name has to be like them, words; lines with `#` are for readers.
const TABLE: &str = include_str!("reserved.txt");

/// The words of a kind.
fn words(kind: &str) -> impl Iterator<Item = &'static str> {
    let of_kind = move |line: &'static str| {
        line.split_once(": ").filter(|(name, _)| *name == kind).map(|(_, words)| words)
    };
    TABLE.lines().filter_map(of_kind).flat_map(str::split_whitespace)
}

/// Whether a project leaves a variable of this name to the person.
pub(crate) fn is_reserved(name: &str) -> bool {
    let upper = name.to_uppercase();
    words("part").any(|part| upper.contains(part))
        || words("start").any(|start| upper.starts_with(start))
        || words("end").any(|end| upper.ends_with(end))
        || words("name").any(|name| upper == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chooses_what_runs_is_reserved_and_the_rest_is_free() {
        assert!(words("taken").count() > 20 && words("free").count() > 10);
        for name in words("taken") {
            assert!(is_reserved(name), "{name}");
        }
        for name in words("free") {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
