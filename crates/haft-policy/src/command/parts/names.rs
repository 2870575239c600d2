//! Commands under other names: what `alias` gives, and subcommands by settings of their programs.

use super::{Parts, shown};
use crate::command::{
    lexer::{EXPANDS, expands},
    programs::{Program, known, may_be_renamed, options},
    segments,
};

impl Parts {
    /// What a command does under another name.
    pub(super) fn names(&mut self, name: &str, words: &[String], depth: usize) {
        if name == "alias" {
            for (name, value) in words[1..].iter().filter_map(|word| word.split_once('=')) {
                self.aliases.push((name.to_owned(), value.to_owned()));
                self.read(value, depth + 1);
            }
        }
        if let Some(at) = self.aliases.iter().position(|(own, _)| own == name) {
            // Within what it stands for it is no alias.
            let alias = self.aliases.swap_remove(at);
            self.renamed(&alias.1, &words[1..], depth);
            self.aliases.push(alias);
        }
        if let Some(Program::Quiet { only, values, .. }) = known(name)
            && !only.is_empty()
        {
            self.subcommand(name, words, 1 + options(&words[1..], values), depth);
        }
    }

    /// A text and the words behind it.
    fn renamed(&mut self, text: &str, rest: &[String], depth: usize) {
        for segment in segments::of(text).segments.into_iter().rev().take(1) {
            self.command(&[&segment.words[..], rest].concat(), depth + 1);
        }
    }

    /// The subcommand of a program, which settings may give a name.
    fn subcommand(&mut self, name: &str, words: &[String], at: usize, depth: usize) {
        let Some(sub) = words.get(at) else { return };
        if sub.contains(EXPANDS) {
            self.blame(|| {
                let (name, sub) = (shown(name), shown(sub));
                format!("what {sub} makes {name} do shows only when the shell runs; write it there")
            });
        } else if expands(sub) {
            self.renamed.push(name.to_owned());
        } else if may_be_renamed(name, sub) {
            self.renamed.push(name.to_owned());
            let given = words[1..at].iter().filter_map(|word| word.split_once('='));
            let is_own = |(key, _): &(&str, &str)| {
                key.to_ascii_lowercase().strip_prefix("alias.").is_some_and(|key| key == sub)
            };
            for (_, value) in given.filter(is_own) {
                let rest = &words[at + 1..];
                match value.strip_prefix('!') {
                    Some(script) => {
                        self.read(script, depth + 1);
                        self.renamed(script, rest, depth);
                    }
                    None => self.renamed(&format!("{name} {value}"), rest, depth),
                }
            }
        }
    }
}
