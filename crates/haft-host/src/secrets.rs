//! Which environment variables are withheld from programs.
//!
//! **Invariant:** pure. [`haft_text::secrets`] decides which names and values belong to a secret.

use haft_text::secrets::{Names, is_own};

/// What decides whether a variable is left out of what programs are given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withheld {
    /// Names that indicate a secret.
    pub names: Names,
    /// Names of variables that programs get all the same.
    pub let_through: Vec<String>,
}

impl Withheld {
    /// Reports whether a variable is withheld.
    pub fn holds(&self, name: &str, value: &str) -> bool {
        let is_let_through = || self.let_through.iter().any(|through| through == name);
        is_own(name) || self.names.is_secret(name, value) && !is_let_through()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_are_always_withheld_and_others_by_their_looks() {
        let names = Names { more: vec!["LICENCE".to_owned()], not: vec!["MY_TOKEN".to_owned()] };
        let withheld = Withheld {
            names,
            let_through: ["LETTOKEN", "OPENAI_API_KEY"].map(str::to_owned).into(),
        };
        let value = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
        assert!(withheld.holds("OPENAI_API_KEY", "short"));
        assert!(withheld.holds("GITHUB_TOKEN", value) && withheld.holds("LICENCE", value));
        assert!(!withheld.holds("LETTOKEN", value) && !withheld.holds("MY_TOKEN", value));
        assert!(!withheld.holds("GITHUB_TOKEN", "short") && !withheld.holds("PATH", value));
    }
}
