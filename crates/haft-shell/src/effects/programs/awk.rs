//! Programs of awk.
//!
//! **Invariant:** a program is taken only when it holds nothing that runs, writes or loads anything.
//! Where a slash may begin a pattern or divide, it is not taken.

use super::Call;
use crate::{
    effects::{
        Effect,
        judge::{Judge, Outcome},
        options,
    },
    table,
};

/// `awk [-F X] [-v A=B] PROGRAM [FILES]`
pub(super) fn awk(judge: &mut Judge<'_, '_>, call: &Call<'_>, out: &mut Outcome) {
    let Some(entry) = table::find("awk ...") else { return };
    let parsed = options::parse(entry, call.args);
    out.faults.extend(parsed.faults.iter().cloned());
    if !parsed.faults.is_empty() {
        out.effects.push(Effect::Anything);
    }
    if parsed.options.iter().any(|(_, what, _)| *what == table::Use::Bad) {
        out.anything("a file holds what awk does");
    }
    let is_ended = call.args[..parsed.count].last().and_then(|arg| arg.known()) == Some("--");
    let mut rest = &call.args[parsed.count..];
    let Some((program, files)) = rest.split_first() else {
        if !parsed.has("version") {
            out.fault("awk has no program");
        }
        return;
    };
    rest = files;
    // A number in it is one like any other.
    let is_one = !(program.is_split || program.is_pattern || program.is_odd);
    let numbered = program.numbered.as_deref().filter(|_| is_one);
    match program.known().or(numbered) {
        Some(text) if !text.starts_with('-') || is_ended => {
            if let Err(why) = check(text) {
                out.anything(why);
            }
        }
        _ => out.anything("what awk does is known when it runs"),
    }
    for file in rest {
        // A name that begins so is a connection, and one with a sign sets a variable.
        if file.may_begin('/') && file.known().is_none_or(|text| text.contains("inet")) {
            out.fault(format!("{} may name a connection", file.text));
        }
        if file.is_split {
            out.fault(format!("{} may become several words", file.text));
        }
        // Where it sets a variable, what it is set to is another word; one that is known whole is
        // judged as a file nonetheless.
        if file.known().is_some() || !sets_variable(file.value.start()) {
            out.effects.extend(judge.reads(file));
        }
    }
}

/// Whether an operand begins with a name and a sign of equality: any other is a file.
fn sets_variable(start: &str) -> bool {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    start.split_once('=').is_some_and(|(name, _)| {
        name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit())
    })
}

/// What a token of a program is, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// A slash behind it divides.
    Value,
    /// A slash behind it begins a pattern.
    Operator,
    /// It closes a parenthesis: what a slash behind it is depends on what was opened.
    Closed,
}

/// Goes through a program.
struct Reader<'a> {
    rest: &'a str,
    last: Last,
    depth: usize,
    /// The depth at which a `print` stands whose list has not ended.
    print: Option<usize>,
}

/// Whether a program only computes and prints.
fn check(text: &str) -> Result<(), String> {
    let mut reader = Reader { rest: text, last: Last::Operator, depth: 0, print: None };
    while let Some(c) = reader.rest.chars().next() {
        let after = &reader.rest[c.len_utf8()..];
        reader.rest = match c {
            '"' => {
                reader.last = Last::Value;
                quoted(after, '"').ok_or("a string of the awk program does not end")?
            }
            '/' if reader.last == Last::Operator => {
                reader.last = Last::Value;
                pattern(after).ok_or("a pattern of the awk program is not understood")?
            }
            '#' => after.find('\n').map_or("", |at| &after[at..]),
            '\\' => after.strip_prefix('\n').ok_or("the awk program is not understood")?,
            '|' => {
                reader.last = Last::Operator;
                after.strip_prefix('|').or_else(|| sorted(after)).ok_or("awk may run a command")?
            }
            '+' | '-' if after.starts_with(c) && reader.last != Last::Operator => &after[1..],
            c if c == '_' || c.is_alphabetic() => reader.word()?,
            c if c.is_ascii_digit() || c == '.' => {
                reader.last = Last::Value;
                number(reader.rest).ok_or("a number of the awk program runs into a word")?
            }
            c => {
                reader.sign(c, after)?;
                after
            }
        };
    }
    Ok(())
}

/// What is behind a command in quotes that only sorts or counts what is printed, at the end of a
/// statement: `print | "sort -n"`.
fn sorted(text: &str) -> Option<&str> {
    let (command, after) =
        text.trim_start_matches([' ', '\t']).strip_prefix('"')?.split_once('"')?;
    let mut words = command.split(' ');
    let letters = match words.next()? {
        "sort" => "bdfghnruVk0123456789,",
        "uniq" => "cdiu",
        "wc" => "clw",
        "head" | "tail" => "n0123456789",
        "cat" => "",
        _ => return None,
    };
    let is_option = |word: &str| {
        word.strip_prefix('-').is_some_and(|rest| {
            !rest.is_empty() && rest.chars().all(|letter| letters.contains(letter))
        })
    };
    let ends = after.trim_start_matches([' ', '\t']);
    let is_end = ends.is_empty() || ends.starts_with(['}', ';', '\n', '#']);
    (is_end && words.all(is_option)).then_some(after)
}

impl<'a> Reader<'a> {
    /// A word; gives what follows it.
    fn word(&mut self) -> Result<&'a str, String> {
        let is_part = |c: char| c == '_' || c.is_alphanumeric();
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word == "getline" && takes_next(rest) {
            self.last = Last::Value;
            return Ok(rest);
        }
        self.last = self::word(word, self.depth, &mut self.print)?;
        Ok(rest)
    }

    /// A character that stands for itself.
    fn sign(&mut self, c: char, after: &str) -> Result<(), String> {
        let is_printed = self.print.is_some_and(|at| at >= self.depth);
        self.last = match c {
            '/' if self.last == Last::Closed && after.contains('/') => {
                return Err("a slash in the awk program may mean two things".to_owned());
            }
            '@' => return Err("awk may load or call something".to_owned()),
            '>' if is_printed && !is_told(after) => return Err("awk may write a file".to_owned()),
            '(' | '[' | '{' => {
                self.depth += 1;
                Last::Operator
            }
            ')' | ']' | '}' => {
                self.depth =
                    self.depth.checked_sub(1).ok_or("the awk program is not understood")?;
                self.print = self.print.filter(|at| *at <= self.depth);
                match c {
                    ')' => Last::Closed,
                    ']' => Last::Value,
                    _ => Last::Operator,
                }
            }
            ';' => {
                self.print = self.print.filter(|_| !is_printed);
                Last::Operator
            }
            // A line end may stand within a list.
            '\n' => Last::Operator,
            c if c.is_whitespace() => self.last,
            _ => Last::Operator,
        };
        Ok(())
    }
}

/// Whether output goes to one of the descriptors that it has anyway.
fn is_told(after: &str) -> bool {
    let target = after.trim_start();
    ["\"/dev/stderr\"", "\"/dev/stdout\""]
        .iter()
        .any(|known| target.strip_prefix(known).is_some_and(ends))
}

/// What follows a number, where every awk ends it there: to some the exponent is one without digits,
/// to some `0x1f` is a number, and what they leave is a word of its own.
fn number(text: &str) -> Option<&str> {
    let digits =
        |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mut rest = &text[digits(text)..];
    rest = rest.strip_prefix('.').map_or(rest, |after| &after[digits(after)..]);
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        rest = (count > 0).then(|| &exponent[count..])?;
    }
    let runs_on = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
    (!runs_on).then_some(rest)
}

/// Whether a `getline` takes the next line of the input it has anyway, into nothing or one variable:
/// what it would open stands right behind it, and what it would run before it, behind a `|`.
fn takes_next(after: &str) -> bool {
    let blank = [' ', '\t'];
    let rest = after.trim_start_matches(blank);
    let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let (variable, rest) = rest.split_at(end);
    let rest = rest.trim_start_matches(blank);
    let is_end = rest.is_empty() || rest.starts_with([';', '}', ')', '\n']);
    is_end
        && !rest.trim_start().starts_with('<')
        && matches!(word(variable, 0, &mut None), Ok(Last::Value))
}

/// What a word of a program means.
fn word(word: &str, depth: usize, print: &mut Option<usize>) -> Result<Last, String> {
    match word {
        "system" | "getline" | "ARGV" | "ARGC" | "SYMTAB" | "extension" | "load" | "include"
        | "namespace" | "eval" => Err(format!("awk may run or open something by {word}")),
        "print" | "printf" => {
            *print = Some(depth);
            Ok(Last::Operator)
        }
        "return" | "in" | "if" | "while" | "for" | "do" | "else" | "delete" | "exit" | "case" => {
            Ok(Last::Operator)
        }
        // Without parentheses it takes the input, or what follows.
        "length" => Ok(Last::Closed),
        _ => Ok(Last::Value),
    }
}

/// What follows a string that has begun; none where it does not end.
fn quoted(text: &str, quote: char) -> Option<&str> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()?),
            '\n' => return None,
            c if c == quote => return Some(&text[at + 1..]),
            _ => {}
        }
    }
    None
}

/// What follows a pattern; in brackets a slash may end it or not, so there must be none.
fn pattern(text: &str) -> Option<&str> {
    let mut in_brackets = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()?),
            '\n' => return None,
            '/' if in_brackets => return None,
            // A class within: `[:alpha:]`.
            '[' if in_brackets => {
                let rest = &text[at + 1..];
                if rest.starts_with([':', '.', '=']) {
                    let end = super::class(rest)?;
                    while chars.peek().is_some_and(|(next, _)| *next < at + 1 + end) {
                        chars.next();
                    }
                }
            }
            '/' => return Some(&text[at + 1..]),
            '[' if !in_brackets => {
                in_brackets = true;
                if chars.peek().is_some_and(|(_, c)| *c == '^') {
                    chars.next();
                }
                // The first one stands for itself.
                if chars.peek().is_some_and(|(_, c)| *c == ']') {
                    chars.next();
                }
            }
            ']' => in_brackets = false,
            _ => {}
        }
    }
    None
}

/// Whether a statement ends here.
fn ends(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t']);
    rest.is_empty() || rest.starts_with([';', '}', '\n'])
}

#[cfg(test)]
mod tests {
    use super::check;

    /// Programs that stay where they are.
    const FINE: &[&str] = &[
        "{print $1}",
        "$3 > 5 {print}",
        "NR==1 || /x/",
        "{s+=$1} END{print s/NR}",
        "/a\\/b/ {print \"a > b | c\"}",
        "{printf \"%s\\n\", $1}",
        "{ if ($1 > 3) print ($2 > 4) }",
        "{a[$1]++} END{for (k in a) print k, a[k]}",
        "BEGIN{FS=\":\"} {print $1}",
        "{print $1 > \"/dev/stderr\"}",
        "{ x = $1 / $2; print x }",
        "{print (a+b)/2}",
        "!seen[$0]++",
        "{print length($0)}",
        "/[a-z]/",
        "{print $NF} # a | b",
        "{i++ / 2}",
        "$1 > 1e3 {print $1 / 1.5e-3, .5, 1., 2E+6}",
        "{x = 1.5/2 ; y = 3 / 4}",
        "/x/{getline; print}",
        "/x/ { getline next_one; print next_one }",
        "BEGIN{while ((getline line) > 0) n++; print n}",
        "/x/{getline\n print}",
    ];

    /// Such that do more, or that cannot be told from them.
    const ODD: &[&str] = &[
        "{system(\"id\")}",
        "{print > \"x\"}",
        "{print >> \"x\"}",
        "{print | \"sh\"}",
        "{\"id\" | getline}",
        "{printf \"x\" > $1}",
        "@include \"x\"",
        "BEGIN{f=\"sys\" \"tem\"; @f(\"id\")}",
        "{print(1) > \"x\"}",
        "{getline x < \"y\"}",
        "{getline<\"y\"}",
        "{getline x\n< \"y\"}",
        "{getline x \\\n< \"y\"}",
        "{getline a[1] < \"y\"}",
        "{getline $1 < \"y\"}",
        "{getline ARGV; print}",
        "{getline system(\"id\")}",
        "{\"id\" | getline x; print x}",
        "{\"id\" |\\\ngetline x}",
        "{\"cat\" |& getline}",
        "{print (getline x) > \"y\"}",
        "{print \"id\" | getline; print}",
        "{print |& \"x\"}",
        "{if (x) /a\"/ ; print > \"b\" ; /\"/}",
        "{a = b / c; d(1) / \"/ ; system(1) #\"}",
        "{print a[1] > \"x\"}",
        "{ print (1)(2) > \"x\" }",
        "{print $1 > \"/dev/stderr\" \"x\"}",
        "{x = a \\\n/ 2 ; print 1 > \"f\" # /\n}",
        "/[[:alpha:]/]/ {print}",
        "/[/]/{print > \"x\"}/",
        "{print \"a",
        "{ x = \"a\\",
        "function f(x) {print > x}",
        "{print\n> \"x\"}",
        "{print {} > \"x\"}",
        // A number ends where its digits do, and a word follows.
        "BEGIN{x=1e5system(\"id\")}",
        "BEGIN{x=0x1fsystem(\"id\")}",
        "BEGIN{y=.5e1system(\"id\")}",
        "BEGIN{x=1E+system(\"id\")}",
        "BEGIN{print 1e5getline}",
        "{x[1e1system(\"id\")]}",
        "BEGIN{x=1e0ARGV[1]}",
        "BEGIN{x=1.e3system(\"id\")}",
        "BEGIN{x=0x1.8p1system(\"id\")}",
        "BEGIN{x=1x}",
    ];

    #[test]
    fn only_what_computes_and_prints_is_taken() {
        for text in FINE {
            assert!(check(text).is_ok(), "{text}: {:?}", check(text));
        }
        for text in ODD {
            assert!(check(text).is_err(), "{text}");
        }
    }
}
