//! Scripts of sed.
//!
//! **Invariant:** a script is taken only when each command of it is known to change its own buffers
//! and output alone; where it could be read in two ways it is not.

use super::Call;
use crate::{
    effects::{
        Effect,
        judge::{Judge, Outcome},
        options,
        state::Value,
        words::Arg,
    },
    table,
};

/// `sed [OPTIONS] [SCRIPT] [FILES]`
pub(super) fn sed(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("sed ...") else { return };
    let args: Vec<Arg> = call.args.iter().map(lines).collect();
    let parsed = options::parse(entry, &args);
    let mut scripts = Vec::new();
    for (name, _, value) in &parsed.options {
        if let ("e" | "expression", Some(value)) = (name.as_str(), value) {
            scripts.push(value.clone());
        }
    }
    let skipped = usize::from(scripts.is_empty());
    let files = parsed.operands.get(skipped..).unwrap_or_default();
    scripts.extend(parsed.operands.first().filter(|_| skipped == 1).cloned());
    let in_place = parsed.options.iter().any(|(_, what, _)| *what == table::Use::InPlace);
    for file in files {
        let reads = judge.reads(file);
        if in_place {
            let writes = reads.iter().filter_map(|effect| match effect {
                Effect::Reads(operand) => Some(Effect::Writes(operand.clone())),
                _ => None,
            });
            out.effects.extend(writes.collect::<Vec<_>>());
        }
        out.effects.extend(reads);
    }
    // Of the name that a copy gets, `*` is the name of the file, and `/` begins another folder.
    let is_suffix = |arg: &Arg| arg.known().is_some_and(|text| !text.contains(['/', '*']));
    let mut copies = parsed.options.iter().filter(|(_, what, _)| *what == table::Use::InPlace);
    if !copies.all(|(_, _, value)| value.as_ref().is_none_or(is_suffix)) {
        out.effects.push(Effect::Writes(crate::Operand::Unknown));
    }
    out.faults.extend(parsed.faults.iter().cloned());
    if !parsed.faults.is_empty() {
        out.effects.push(Effect::Anything);
    }
    if parsed.options.iter().any(|(_, what, _)| *what == table::Use::Bad) {
        out.anything("a file holds what sed does");
    }
    match whole(&scripts) {
        None => out.anything("what sed does is known when it runs"),
        Some(text) if text.trim().is_empty() && scripts.is_empty() => {}
        Some(text) => match commands(&text) {
            Ok((reads, writes)) => {
                let span = scripts.first().map_or(0..0, |arg| arg.span.clone());
                let arg = |path: &str| Arg::of(Value::text(path), path, span.clone());
                for path in reads.iter().filter(|path| *path != "/dev/stdin") {
                    out.effects.extend(judge.reads(&arg(path.trim())));
                }
                for path in writes.iter().filter(|path| !judge.is_passing(Some(path))) {
                    let operands = judge.written(&arg(path));
                    out.effects.extend(operands.into_iter().map(Effect::Writes));
                }
            }
            Err(why) => out.anything(why),
        },
    }
}

/// A word that shows lines by numbers which are not known: were one negative, or missing, sed would
/// not take it for more.
fn lines(arg: &Arg) -> Arg {
    match &arg.numbered {
        Some(text) if is_lines(arg, text) => {
            Arg { value: Value::From("1".to_owned()), ..arg.clone() }
        }
        _ => arg.clone(),
    }
}

/// Whether a word is nothing but addresses and commands that show lines, whatever its numbers are.
fn is_lines(arg: &Arg, text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_digit() || ",;$p=dq+~ \n".contains(c);
    let is_open = arg.known().is_none() && !arg.is_split && !arg.is_pattern && !arg.is_odd;
    is_open && text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_plain)
}

/// The text of all scripts. Parts of a script that are only known when it runs are taken for
/// line numbers where they surely are numbers.
fn whole(scripts: &[Arg]) -> Option<String> {
    let known = |arg: &Arg| {
        let lines = || arg.numbered.as_deref().filter(|text| is_lines(arg, text));
        arg.known().or_else(lines).map(str::to_owned)
    };
    let known: Option<Vec<String>> = scripts.iter().map(known).collect();
    known.map(|all| all.join("\n"))
}

/// Goes through the commands of a script; gives the files that it reads, and those that it writes.
fn commands(text: &str) -> Result<(Vec<String>, Vec<String>), String> {
    let mut reader = Reader { rest: text, reads: Vec::new(), writes: Vec::new() };
    loop {
        reader.skip(|c| c.is_whitespace() || c == ';');
        if reader.rest.is_empty() {
            return Ok((reader.reads, reader.writes));
        }
        reader.address()?;
        reader.command()?;
    }
}

struct Reader<'a> {
    rest: &'a str,
    reads: Vec<String>,
    writes: Vec<String>,
}

impl Reader<'_> {
    fn skip(&mut self, what: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(what);
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn unclear<T>(&self) -> Result<T, String> {
        let near: String = self.rest.chars().take(20).collect();
        Err(format!("the sed script is not understood near {near:?}"))
    }

    /// `1`, `$`, `/x/I`, `1~2`, `1,/x/`, `/x/,+3`, `!`
    fn address(&mut self) -> Result<(), String> {
        for at in 0..2 {
            match self.rest.chars().next() {
                Some(c) if c.is_ascii_digit() => self.skip(|c| c.is_ascii_digit() || c == '~'),
                Some('$') => drop(self.take()),
                Some('+' | '~') if at == 1 => {
                    self.take();
                    self.skip(|c| c.is_ascii_digit());
                }
                Some('/') => {
                    self.take();
                    self.until('/')?;
                    self.skip(|c| c == 'I' || c == 'M');
                }
                Some('\\') => {
                    self.take();
                    match self.take() {
                        Some(c) if is_delimiter(c) => self.until(c)?,
                        _ => return self.unclear(),
                    }
                    self.skip(|c| c == 'I' || c == 'M');
                }
                _ if at == 0 => break,
                _ => return self.unclear(),
            }
            self.skip(|c| c == ' ' || c == '\t');
            if at == 0 {
                match self.rest.strip_prefix(',') {
                    Some(rest) => self.rest = rest,
                    None => break,
                }
                self.skip(|c| c == ' ' || c == '\t');
            }
        }
        self.skip(|c| c == '!' || c == ' ' || c == '\t');
        Ok(())
    }

    /// Text up to a delimiter. Brackets may hold one, and versions of sed differ about it.
    fn until(&mut self, delimiter: char) -> Result<(), String> {
        let (mut in_brackets, mut at_start) = (false, false);
        while let Some(c) = self.take() {
            match c {
                '\\' => match self.take() {
                    // Within brackets a backslash may stand for itself.
                    Some(next) if !in_brackets || next != delimiter && next != ']' => {}
                    _ => return self.unclear(),
                },
                c if c == delimiter && in_brackets => return self.unclear(),
                c if c == delimiter => return Ok(()),
                '\n' => return self.unclear(),
                '[' if !in_brackets => {
                    in_brackets = true;
                    at_start = true;
                    if let Some(rest) = self.rest.strip_prefix('^') {
                        self.rest = rest;
                    }
                    continue;
                }
                // A class within: `[:alpha:]`.
                '[' if self.rest.starts_with([':', '.', '=']) => match super::class(self.rest) {
                    Some(end) => self.rest = &self.rest[end..],
                    None => return self.unclear(),
                },
                ']' if in_brackets && !at_start => in_brackets = false,
                _ => {}
            }
            at_start = false;
        }
        self.unclear()
    }

    /// The new text of `s` and both of `y`, where brackets mean nothing.
    fn text(&mut self, delimiter: char) -> Result<(), String> {
        while let Some(c) = self.take() {
            match c {
                '\\' => drop(self.take()),
                c if c == delimiter => return Ok(()),
                _ => {}
            }
        }
        self.unclear()
    }

    fn command(&mut self) -> Result<(), String> {
        match self.take() {
            Some('{' | '}') => Ok(()),
            Some(
                'p' | 'P' | 'n' | 'N' | 'd' | 'D' | '=' | 'h' | 'H' | 'g' | 'G' | 'x' | 'F' | 'z',
            ) => self.end(),
            Some('q' | 'Q' | 'l') => {
                self.skip(|c| c == ' ' || c.is_ascii_digit());
                self.end()
            }
            Some('s') => self.substitution(),
            Some('y') => {
                let delimiter = self.delimiter()?;
                self.text(delimiter)?;
                self.text(delimiter)?;
                self.end()
            }
            Some('a' | 'i' | 'c') => {
                self.lines();
                Ok(())
            }
            Some('b' | 't' | 'T' | ':') => self.label(),
            Some('r') => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.reads.push(self.rest[..end].to_owned());
                self.rest = &self.rest[end..];
                Ok(())
            }
            Some('#') => {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.rest = &self.rest[end..];
                Ok(())
            }
            Some('w' | 'W') => self.writes(),
            Some('e') => Err("sed runs a command".to_owned()),
            _ => self.unclear(),
        }
    }

    /// A label. To some it ends at a blank and a command may follow, to others it goes on to the end
    /// of the line or holds any sign: only what all read alike is taken.
    fn label(&mut self) -> Result<(), String> {
        let is_blank = |c: char| c == ' ' || c == '\t';
        self.skip(is_blank);
        self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
        self.skip(is_blank);
        self.skip(|c| c == '}' || is_blank(c));
        match self.rest.chars().next() {
            None | Some(';' | '\n') => Ok(()),
            _ => self.unclear(),
        }
    }

    /// The file of `w`, to the end of its line.
    fn writes(&mut self) -> Result<(), String> {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        let path = self.rest[..end].trim_start();
        if path.is_empty() {
            return self.unclear();
        }
        self.writes.push(path.to_owned());
        self.rest = &self.rest[end..];
        Ok(())
    }

    fn delimiter(&mut self) -> Result<char, String> {
        match self.take() {
            Some(c) if is_delimiter(c) => Ok(c),
            _ => self.unclear(),
        }
    }

    /// `s/x/y/FLAGS`
    fn substitution(&mut self) -> Result<(), String> {
        let delimiter = self.delimiter()?;
        self.until(delimiter)?;
        self.text(delimiter)?;
        self.skip(|c| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit());
        match self.rest.chars().next() {
            Some('w') => {
                self.take();
                self.writes()
            }
            Some('e') => Err("sed runs a command".to_owned()),
            _ => self.end(),
        }
    }

    /// What follows a command must end it.
    fn end(&mut self) -> Result<(), String> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.rest.chars().next() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            _ => self.unclear(),
        }
    }

    /// Text of `a`, `i` and `c`: to the end of its line, or more where that is escaped.
    fn lines(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '\\' => drop(self.take()),
                '\n' => break,
                _ => {}
            }
        }
    }
}

/// Whether a character may stand around a pattern: such as everybody uses.
fn is_delimiter(c: char) -> bool {
    "/|#,:;@!%_+~=^&".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that stay where they are.
    const FINE: &[&str] = &[
        "1,20p",
        "$p",
        "5q",
        "s/a/b/",
        "s|a/b|c|gp",
        "/x/,/y/p",
        "/a\\/b/d",
        "1!G;h;$!d",
        "s/[0-9]/x/2",
        "/^#/d; s/ *$//",
        "s/a/\\n/g",
        "y/abc/xyz/",
        ":a;N;$!ba;s/\\n/ /g",
        ": a;N;$! b a ;s/x//",
        ":a;$!{N;ba};p",
        ":a;$!{N;ba}\np",
        ":a;/x/{/y/{N;ba}};p",
        "1~2p",
        "/x/{p;q}",
        "/a/I,+3p",
        "2i\\hello",
        "$a w x",
        "s/[^]]*]//",
        "s,a\\,b,c,",
        "=",
        "\\|x|p",
        "1{/a/p}",
        "/x/!d",
        "r other",
    ];

    /// Such that do more, or that cannot be told from them.
    const ODD: &[&str] = &[
        "w x",
        "1w x",
        "s/a/b/w x",
        "s/a/b/e",
        "e",
        "1e id",
        "e id",
        "s/a/b/ge",
        "s/a/b/gw x",
        "/a/w x",
        "$!{w x",
        "1,2W x",
        "s/[/]/x/w y",
        "p w",
        "s/a/b",
        "s\nab\ncd\n",
        "i\\\nx\nw y",
        "a x\nw y",
        "y/a/b/w x",
        "/[/]w x/p",
        "}w x",
        "s/[[:a:]/]/p;s/w f/y/g",
        "s/[[:a/]/]/p;s/w f/y/g",
        "s/a/b/;w x",
        "1,w x",
        "s/a\\/b/c/w x",
        "b a;w x",
        "# x\nw y",
        "s/[[:alpha:]/]/x/",
        "L",
        "v 4.2",
        "R x",
        "s/x/y/mw z",
        "s/[\\]/]/x/w y/",
        "l 5w",
        "q5;e",
        // A label ends at a blank, and what follows is a command.
        ":a e id",
        ":a p",
        "b a p",
        ": a e id",
        "t a e id;:a",
        "T e id",
        "1!G;h;$!d;:x e touch y",
        // It may hold a sign that begins a comment elsewhere.
        ":a#;e id",
        "ta}#;e id",
        "b #;e id",
        ":a}}#;e id",
    ];

    #[test]
    fn only_what_stays_in_sed_is_taken() {
        let stays = |text| commands(text).is_ok_and(|(_, writes)| writes.is_empty());
        for text in FINE {
            assert!(stays(text), "{text}: {:?}", commands(text));
        }
        for text in ODD {
            assert!(!stays(text), "{text}");
        }
    }

    #[test]
    fn files_that_are_written_are_named() {
        for (text, file) in [("wsrc/a", "src/a"), ("$!w a b;p", "a b;p"), ("s/a/b/gpw x\np", "x")] {
            assert_eq!(commands(text).unwrap().1, [file], "{text}");
        }
        assert!(commands("w").is_err() && commands("s/a/b/w\nx").is_err());
    }
}
