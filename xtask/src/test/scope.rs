//! Which crates a run is about, as words for cargo.
//!
//! It does not know how the crates were chosen.

/// The crates that are judged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    Workspace,
    /// Some of them, by name.
    Crates {
        all: Vec<String>,
        /// Those that have examples in the docs of a library; a subset.
        libraries: Vec<String>,
    },
}

impl Scope {
    /// The words that choose the crates.
    pub(crate) fn crates(&self) -> Vec<String> {
        match self {
            Self::Workspace => vec!["--workspace".to_owned()],
            Self::Crates { all, .. } => named(all),
        }
    }

    /// The words that choose the libraries among them; cargo refuses to test the docs of another
    /// crate. Empty where there is none.
    pub(super) fn libraries(&self) -> Vec<String> {
        match self {
            Self::Workspace => vec!["--workspace".to_owned()],
            Self::Crates { libraries, .. } => named(libraries),
        }
    }

    /// Whether arguments of the test runner choose crates themselves.
    pub(crate) fn is_in(arguments: &[String]) -> bool {
        arguments.iter().take_while(|word| *word != "--").any(|word| {
            ["-p", "--package", "--workspace"].contains(&word.as_str())
                || word.starts_with("--package=")
        })
    }
}

fn named(names: &[String]) -> Vec<String> {
    names.iter().flat_map(|name| ["-p".to_owned(), name.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_become_words() {
        let scope = Scope::Crates {
            all: vec!["haft-a".to_owned(), "xtask".to_owned()],
            libraries: vec!["haft-a".to_owned()],
        };
        assert_eq!(scope.crates(), ["-p", "haft-a", "-p", "xtask"]);
        assert_eq!(scope.libraries(), ["-p", "haft-a"]);
        assert_eq!(Scope::Workspace.crates(), ["--workspace"]);
    }

    #[test]
    fn the_runner_may_be_told_the_crates() {
        let is_in = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Scope::is_in(&words)
        };
        assert!(is_in("-p haft-a") && is_in("--package=haft-a -E x"));
        assert!(!is_in("-E package(haft-a)") && !is_in("-E x -- -p"));
    }
}
