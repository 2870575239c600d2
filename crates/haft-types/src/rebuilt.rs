//! Folders that tools make anew: what was built, installed or cached from other files.
//!
//! **Invariant:** names alone. Whether such a folder holds something else is for who looks.

/// The names of folders that tools rebuild.
pub const REBUILT: &[&str] = &[
    "node_modules",
    "target",
    "dist",
    "build",
    ".venv",
    "venv",
    "__pycache__",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".gradle",
    ".next",
    ".nuxt",
    ".turbo",
    ".cache",
    ".parcel-cache",
    "coverage",
    ".nyc_output",
    "bower_components",
];

/// Reports whether a folder of this name is one that tools rebuild.
pub fn is_rebuilt(name: &[u8]) -> bool {
    REBUILT.iter().any(|one| one.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_exactly() {
        assert!(is_rebuilt(b"target") && is_rebuilt(b"node_modules"));
        assert!(!is_rebuilt(b"Target") && !is_rebuilt(b"targets") && !is_rebuilt(b""));
    }
}
