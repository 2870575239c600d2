//! A line of text with SGR sequences (ECMA-48, 8.3.117) as cells.

use unicode_width::UnicodeWidthChar as _;

/// A colour of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    /// One of the 256 of xterm.
    Indexed(u8),
    /// Red, green, blue.
    Rgb(u8, u8, u8),
}

/// How a cell looks.
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of a terminal")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    pub text: Option<Colour>,
    pub ground: Option<Colour>,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underlined: bool,
    pub reversed: bool,
}

/// A cell: its character and the columns that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub sign: char,
    pub columns: usize,
    pub look: Look,
}

/// The cells of a line. How they look goes on from the line before, and to the next one. Other
/// control sequences are left out.
pub(super) fn cells(line: &str, look: &mut Look) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut chars = line.chars();
    while let Some(sign) = chars.next() {
        if sign != '\u{1b}' {
            let columns = sign.width().unwrap_or(0);
            if columns > 0 {
                cells.push(Cell { sign, columns, look: *look });
            }
            continue;
        }
        if chars.next() != Some('[') {
            continue;
        }
        let mut parameters = String::new();
        for c in chars.by_ref() {
            if c.is_ascii_alphabetic() {
                if c == 'm' {
                    set(look, &parameters);
                }
                break;
            }
            parameters.push(c);
        }
    }
    cells
}

/// Applies the parameters of an SGR sequence.
fn set(look: &mut Look, parameters: &str) {
    let mut numbers = parameters.split([';', ':']).map(|number| number.parse().unwrap_or(0_u8));
    while let Some(number) = numbers.next() {
        match number {
            0 => *look = Look::default(),
            1 => look.bold = true,
            2 => look.dim = true,
            3 => look.italic = true,
            4 => look.underlined = true,
            7 => look.reversed = true,
            22 => (look.bold, look.dim) = (false, false),
            23 => look.italic = false,
            24 => look.underlined = false,
            27 => look.reversed = false,
            30..=37 => look.text = Some(Colour::Indexed(number - 30)),
            40..=47 => look.ground = Some(Colour::Indexed(number - 40)),
            90..=97 => look.text = Some(Colour::Indexed(number - 82)),
            100..=107 => look.ground = Some(Colour::Indexed(number - 92)),
            38 => look.text = extended(&mut numbers),
            48 => look.ground = extended(&mut numbers),
            39 => look.text = None,
            49 => look.ground = None,
            _ => {}
        }
    }
}

/// The colour behind 38 or 48.
fn extended(numbers: &mut impl Iterator<Item = u8>) -> Option<Colour> {
    match numbers.next()? {
        5 => numbers.next().map(Colour::Indexed),
        2 => Some(Colour::Rgb(numbers.next()?, numbers.next()?, numbers.next()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_hold_until_they_are_changed() {
        let mut look = Look::default();
        let line = "a\u{1b}[1;36mb\u{1b}[0mc\u{1b}[38;5;200md\u{1b}[48;2;1;2;3me\u{65e5}";
        let all = cells(line, &mut look);
        assert_eq!(cells("x", &mut look)[0].look.text, Some(Colour::Indexed(200)));
        let cells = all;
        let text: String = cells.iter().map(|cell| cell.sign).collect();
        assert_eq!(text, "abcde\u{65e5}");
        assert_eq!(cells[0].look, Look::default());
        assert!(cells[1].look.bold && cells[1].look.text == Some(Colour::Indexed(6)));
        assert_eq!(cells[2].look, Look::default());
        assert_eq!(cells[3].look.text, Some(Colour::Indexed(200)));
        assert_eq!(cells[4].look.ground, Some(Colour::Rgb(1, 2, 3)));
        assert_eq!(cells[5].columns, 2);
    }
}
