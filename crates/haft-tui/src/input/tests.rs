//! Encodings and the inputs they give, whole and with pauses.

use super::*;
use std::time::Duration;

const SHIFT: Modifiers = Modifiers::SHIFT;
const ALT: Modifiers = Modifiers::ALT;
const CTRL: Modifiers = Modifiers::CTRL;

/// A parser with a clock: what a driver does.
#[derive(Default)]
pub struct Driver {
    pub parser: Parser,
    pub out: Vec<Input>,
}

impl Driver {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.parser.feed(bytes, &mut self.out);
    }

    /// No byte comes for some milliseconds.
    pub fn wait(&mut self, ms: u64) {
        let mut left = Duration::from_millis(ms);
        while let Some(pending) = self.parser.pending() {
            let Some(rest) = left.checked_sub(pending.wait) else { return };
            left = rest;
            self.parser.timeout(&mut self.out);
        }
    }
}

pub fn plain(c: char) -> Input {
    Input::Key(Key::new(KeyCode::Char(c)))
}

pub fn typed(text: &str) -> Vec<Input> {
    text.chars().map(plain).collect()
}

fn key(code: KeyCode, modifiers: Modifiers) -> Vec<Input> {
    vec![Input::Key(Key::new(code).with(modifiers))]
}

fn char(c: char, modifiers: Modifiers) -> Vec<Input> {
    key(KeyCode::Char(c), modifiers)
}

/// What bytes give, fed at once and followed by a long silence.
fn read(bytes: &[u8]) -> Vec<Input> {
    let mut driver = Driver::default();
    driver.feed(bytes);
    driver.wait(10_000);
    driver.out
}

fn table(rows: Vec<(&str, Vec<Input>)>) {
    for (bytes, inputs) in rows {
        assert_eq!(read(bytes.as_bytes()), inputs, "{bytes:?}");
    }
}

#[test]
fn legacy_keys() {
    use KeyCode::*;
    table(vec![
        ("a", typed("a")),
        ("Ä\u{1f600}", typed("Ä\u{1f600}")),
        ("e\u{301}", typed("e\u{301}")),
        ("\u{85}", typed("\u{fffd}")),
        ("\0", char(' ', CTRL)),
        ("\u{1}", char('a', CTRL)),
        ("\u{1a}", char('z', CTRL)),
        ("\n", char('j', CTRL)),
        ("\r", key(Enter, Modifiers::NONE)),
        ("\t", key(Tab, Modifiers::NONE)),
        ("\u{8}", key(Backspace, Modifiers::NONE)),
        ("\u{7f}", key(Backspace, Modifiers::NONE)),
        ("\u{1c}", char('\\', CTRL)),
        ("\u{1d}", char(']', CTRL)),
        ("\u{1e}", char('^', CTRL)),
        ("\u{1f}", char('_', CTRL)),
        ("\u{1b}", key(Escape, Modifiers::NONE)),
        ("\u{1b}a", char('a', ALT)),
        ("\u{1b}A", char('a', ALT | SHIFT)),
        ("\u{1b}ä", char('ä', ALT)),
        ("\u{1b}Ä", char('ä', ALT | SHIFT)),
        ("\u{1b}?", char('?', ALT)),
        ("\u{1b}\\", char('\\', ALT)),
        ("\u{1b}[", char('[', ALT)),
        ("\u{1b}]", char(']', ALT)),
        ("\u{1b}O", char('o', ALT | SHIFT)),
        ("\u{1b}P", char('p', ALT | SHIFT)),
        ("\u{1b}X", char('x', ALT | SHIFT)),
        ("\u{1b}^", char('^', ALT)),
        ("\u{1b}_", char('_', ALT)),
        ("\u{1b}\r", key(Enter, ALT)),
        ("\u{1b}\t", key(Tab, ALT)),
        ("\u{1b}\u{7f}", key(Backspace, ALT)),
        ("\u{1b}\u{3}", char('c', ALT | CTRL)),
        ("\u{1b}\0", char(' ', ALT | CTRL)),
        ("\u{1b}[Z", key(Tab, SHIFT)),
        ("\u{1b}\u{1b}[Z", key(Tab, ALT | SHIFT)),
        ("\u{1b}\u{1b}[A", key(Up, ALT)),
        ("\u{1b}\u{1b}OA", key(Up, ALT)),
    ]);
    let escape = || key(Escape, Modifiers::NONE);
    assert_eq!(read(b"\x1b\x1b"), [escape(), escape()].concat());
    assert_eq!(read(b"\x1b\x1b\x1b"), [escape(), escape(), escape()].concat());
    assert_eq!(read(b"\x1b\x1bx"), [escape(), char('x', ALT)].concat());
    assert_eq!(read(b"\x1b\x1b["), [escape(), char('[', ALT)].concat());
    assert_eq!(read(b"\x1b\x1b[I"), [escape(), vec![Input::Focus(true)]].concat());
    assert_eq!(read(b"\x1b[\x1b[\x1b["), vec![char('[', ALT); 3].concat());
    assert_eq!(read(b"\x1b]\x1b]\x1b]"), vec![char(']', ALT); 3].concat());
    assert_eq!(read(b"\x1bOz"), [char('o', ALT | SHIFT), typed("z")].concat());
}

#[test]
fn function_keys() {
    use KeyCode::*;
    let finals = [
        ('A', Up),
        ('B', Down),
        ('C', Right),
        ('D', Left),
        ('H', Home),
        ('F', End),
        ('E', Other),
        ('P', F(1)),
        ('Q', F(2)),
        ('S', F(4)),
    ];
    for (last, code) in finals {
        for (bytes, modifiers) in [
            (format!("\x1b[{last}"), Modifiers::NONE),
            (format!("\x1bO{last}"), Modifiers::NONE),
            (format!("\x1b[1;2{last}"), SHIFT),
            (format!("\x1b[1;3{last}"), ALT),
            (format!("\x1b[1;5{last}"), CTRL),
            (format!("\x1b[5{last}"), CTRL),
            (format!("\x1b[1;9{last}"), Modifiers::SUPER),
            (format!("\x1b[1;16{last}"), SHIFT | ALT | CTRL | Modifiers::SUPER),
            (format!("\x1b[1;193{last}"), Modifiers::NONE),
            (format!("\x1b[1;5:1{last}"), CTRL),
            (format!("\x1b\x1b[1;5{last}"), ALT | CTRL),
        ] {
            assert_eq!(read(bytes.as_bytes()), key(code, modifiers), "{bytes:?}");
        }
    }
}

#[test]
fn keys_with_numbers() {
    use KeyCode::*;
    let numbers = [
        (1, Home),
        (2, Insert),
        (3, Delete),
        (4, End),
        (5, PageUp),
        (6, PageDown),
        (7, Home),
        (8, End),
        (11, F(1)),
        (15, F(5)),
        (17, F(6)),
        (21, F(10)),
        (23, F(11)),
        (24, F(12)),
        (26, F(14)),
        (28, F(15)),
        (29, F(16)),
        (31, F(17)),
        (34, F(20)),
        (57427, Other),
    ];
    for (n, code) in numbers {
        for (bytes, modifiers) in [
            (format!("\x1b[{n}~"), Modifiers::NONE),
            (format!("\x1b[{n};6~"), SHIFT | CTRL),
            (format!("\x1b[{n}^"), CTRL),
            (format!("\x1b[{n}$"), SHIFT),
            (format!("\x1b[{n}@"), SHIFT | CTRL),
        ] {
            assert_eq!(read(bytes.as_bytes()), key(code, modifiers), "{bytes:?}");
        }
    }
}

#[test]
fn keys_of_rxvt_linux_and_the_keypad() {
    use KeyCode::*;
    table(vec![
        ("\u{1b}[a", key(Up, SHIFT)),
        ("\u{1b}[d", key(Left, SHIFT)),
        ("\u{1b}Oc", key(Right, CTRL)),
        ("\u{1b}[[A", key(F(1), Modifiers::NONE)),
        ("\u{1b}[[E", key(F(5), Modifiers::NONE)),
        ("\u{1b}[[x", [char('[', ALT), typed("[x")].concat()),
        ("\u{1b}OR", key(F(3), Modifiers::NONE)),
        ("\u{1b}[R", key(F(3), Modifiers::NONE)),
        ("\u{1b}[13;2~", key(F(3), SHIFT)),
        ("\u{1b}[1;2:1R", key(F(3), SHIFT)),
        ("\u{1b}Oj", typed("*")),
        ("\u{1b}Op\u{1b}Oy", typed("09")),
        ("\u{1b}OX", typed("=")),
        ("\u{1b}OM", key(Enter, Modifiers::NONE)),
    ]);
}

#[test]
fn characters_of_xterm_and_kitty() {
    use KeyCode::*;
    table(vec![
        ("\u{1b}[27;5;13~", key(Enter, CTRL)),
        ("\u{1b}[27;2;13~", key(Enter, SHIFT)),
        ("\u{1b}[27;5;9~", key(Tab, CTRL)),
        ("\u{1b}[27;6;65~", char('a', CTRL | SHIFT)),
        ("\u{1b}[27;6;33~", char('!', CTRL)),
        ("\u{1b}[27;5;106~", char('j', CTRL)),
        ("\u{1b}[97u", typed("a")),
        ("\u{1b}[97;2u", typed("A")),
        ("\u{1b}[97:65;2u", typed("A")),
        ("\u{1b}[97;2;65u", typed("A")),
        ("\u{1b}[97;65u", typed("a")),
        ("\u{1b}[49;2u", char('1', SHIFT)),
        ("\u{1b}[49:33;2u", typed("!")),
        ("\u{1b}[47:63;4u", char('?', ALT)),
        ("\u{1b}[99;5u", char('c', CTRL)),
        ("\u{1b}[99;6u", char('c', CTRL | SHIFT)),
        ("\u{1b}[99:67;6u", char('c', CTRL | SHIFT)),
        ("\u{1b}[99;133u", char('c', CTRL)),
        ("\u{1b}[1089::99;5u", char('c', CTRL)),
        ("\u{1b}[1089:1057:99;6u", char('c', CTRL | SHIFT)),
        ("\u{1b}[1089::99u", typed("с")),
        ("\u{1b}[97;;229u", typed("å")),
        ("\u{1b}[0;;101:769u", typed("e\u{301}")),
        ("\u{1b}[97;3;97u", char('a', ALT)),
        ("\u{1b}[97;17u", char('a', Modifiers::SUPER)),
        ("\u{1b}[97;33u", char('a', ALT)),
    ]);
}

#[test]
fn functional_keys_of_kitty() {
    use KeyCode::*;
    table(vec![
        ("\u{1b}[27u", key(Escape, Modifiers::NONE)),
        ("\u{1b}[13;2u", key(Enter, SHIFT)),
        ("\u{1b}[106;5u", char('j', CTRL)),
        ("\u{1b}[105;5u", char('i', CTRL)),
        ("\u{1b}[109;5u", char('m', CTRL)),
        ("\u{1b}[127;5u", key(Backspace, CTRL)),
        ("\u{1b}[9;2u", key(Tab, SHIFT)),
        ("\u{1b}[32;2;32u", typed(" ")),
        ("\u{1b}[57376u", key(F(13), Modifiers::NONE)),
        ("\u{1b}[57398u", key(F(35), Modifiers::NONE)),
        ("\u{1b}[57399u", typed("0")),
        ("\u{1b}[57408;;57u", typed("9")),
        ("\u{1b}[57413u", typed("+")),
        ("\u{1b}[57414u", key(Enter, Modifiers::NONE)),
        ("\u{1b}[57416u", typed(",")),
        ("\u{1b}[57417u", key(Left, Modifiers::NONE)),
        ("\u{1b}[57426u", key(Delete, Modifiers::NONE)),
        ("\u{1b}[0u", key(Other, Modifiers::NONE)),
        ("\u{1b}[133u", key(Other, Modifiers::NONE)),
        ("\u{1b}[55296u", key(Other, Modifiers::NONE)),
        ("\u{1b}[99999999999999u", key(Other, Modifiers::NONE)),
    ]);
    for other in (57358..=57363).chain(57427..=57454) {
        let bytes = format!("\x1b[{other};1u");
        assert_eq!(read(bytes.as_bytes()), key(Other, Modifiers::NONE), "{other}");
    }
    for (event, kind) in [(1, KeyKind::Press), (2, KeyKind::Repeat), (3, KeyKind::Release)] {
        for (bytes, code) in [
            (format!("\x1b[97;1:{event}u"), Char('a')),
            (format!("\x1b[1;1:{event}A"), Up),
            (format!("\x1b[3;1:{event}~"), Delete),
        ] {
            assert_eq!(read(bytes.as_bytes()), [Input::Key(Key { kind, ..Key::new(code) })]);
        }
    }
}

fn color(index: ColorIndex, rgb: [u16; 3]) -> Answer {
    Answer::Color { index, rgb }
}

/// Answers and what they mean.
pub fn answers() -> Vec<(&'static str, Answer)> {
    use Answer::*;
    let mode = |state| Mode { mode: 2026, state };
    let grey = [0x1a1a, 0x1b1b, 0x1c1c];
    vec![
        ("\u{1b}[12;34R", CursorPosition { row: 12, column: 34 }),
        ("\u{1b}[1;2R", CursorPosition { row: 1, column: 2 }),
        ("\u{1b}[?5;6R", CursorPosition { row: 5, column: 6 }),
        ("\u{1b}[?5;6;1R", CursorPosition { row: 5, column: 6 }),
        ("\u{1b}[99999;1R", CursorPosition { row: u16::MAX, column: 1 }),
        ("\u{1b}[?6c", DeviceAttributes(vec![6])),
        ("\u{1b}[?62;22c", DeviceAttributes(vec![62, 22])),
        ("\u{1b}[>41;390;0c", SecondaryAttributes(vec![41, 390, 0])),
        ("\u{1b}[?2026;0$y", mode(ModeState::Unknown)),
        ("\u{1b}[?2026;1$y", mode(ModeState::Set)),
        ("\u{1b}[?2026;2$y", mode(ModeState::Reset)),
        ("\u{1b}[?2026;3$y", mode(ModeState::AlwaysSet)),
        ("\u{1b}[?2026;4$y", mode(ModeState::AlwaysReset)),
        ("\u{1b}[?0u", KeyboardFlags(0)),
        ("\u{1b}[?31u", KeyboardFlags(31)),
        ("\u{1b}]11;rgb:1a1a/1b1b/1c1c\u{7}", color(ColorIndex::Background, grey)),
        ("\u{1b}]10;rgb:1a1a/1b1b/1c1c\u{1b}\\", color(ColorIndex::Foreground, grey)),
        ("\u{1b}]11;rgb:1a/1b/1c\u{1b}\\", color(ColorIndex::Background, grey)),
        ("\u{1b}]11;rgba:ffff/0/888/8000\u{7}", color(ColorIndex::Background, [0xffff, 0, 0x8888])),
        ("\u{1b}]4;255;rgb:f/8/0\u{7}", color(ColorIndex::Palette(255), [0xffff, 0x8888, 0])),
        ("\u{1b}[?997;1n", ColorScheme(super::ColorScheme::Dark)),
        ("\u{1b}[?997;2n", ColorScheme(super::ColorScheme::Light)),
        ("\u{1b}[8;24;80t", WindowSize { of: SizeOf::TextCells, height: 24, width: 80 }),
        ("\u{1b}[4;600;800t", WindowSize { of: SizeOf::TextPixels, height: 600, width: 800 }),
        ("\u{1b}[6;20;10t", WindowSize { of: SizeOf::CellPixels, height: 20, width: 10 }),
        ("\u{1b}P>|XTerm(390)\u{1b}\\", Name("XTerm(390)".to_owned())),
        ("\u{1b}P>|Kitté 1\u{1b}\\", Name("Kitté 1".to_owned())),
        ("\u{1b}]52;c;aGFmdA==\u{7}", Unknown),
        ("\u{1b}]12;rgb:0/0/0\u{7}", Unknown),
        ("\u{1b}P1$r0m\u{1b}\\", Unknown),
        ("\u{1b}P1+r544e=787465726d\u{1b}\\", Unknown),
        ("\u{1b}P!|00000000\u{1b}\\", Unknown),
        ("\u{1b}_Gi=31;OK\u{1b}\\", Unknown),
        ("\u{1b}[2;1$y", Unknown),
        ("\u{1b}[?2004;1;5S", Unknown),
        ("\u{1b}[48;24;80;600;800t", Unknown),
    ]
}

#[test]
fn answers_focus_and_garbage() {
    for (bytes, answer) in answers() {
        assert_eq!(read(bytes.as_bytes()), [Input::Answer(answer)], "{bytes:?}");
    }
    let unknown = || vec![Input::Answer(Answer::Unknown)];
    let long = format!("\x1b[{}c", "1;".repeat(400));
    let longer = format!("\x1b]52;c;{}\x07", "QUJD".repeat(5000));
    for bytes in [
        "\u{1b}[0n",
        "\u{1b}[<0;10;10M",
        "\u{1b}[1?2c",
        "\u{1b}[ q",
        "\u{1b}[999z",
        "\u{1b}[u",
        "\u{1b}[201~",
        "\u{1b}[5y",
        "\u{1b}[1 ?x",
        "\u{1b}]lTitel Ü\u{1b}\\",
        "\u{1b}]11;rgb:zz/0/0\u{7}",
        "\u{1b}]11;rgb:0/0\u{7}",
        "\u{1b}]11;rgb:0/0/0/0\u{7}",
        "\u{1b}]11;rgb:00000/0/0\u{7}",
        "\u{1b}]\u{7}",
        "\u{1b}^x\u{1b}\\",
        "\u{1b}X\u{1b}\\",
        &long,
        &longer,
    ] {
        assert_eq!(read(bytes.as_bytes()), unknown(), "{bytes:?}");
    }
    assert_eq!(read(b"\x1b[I\x1b[O"), [Input::Focus(true), Input::Focus(false)]);
}

#[test]
fn pastes() {
    let paste = |text: &str, dropped| Input::Paste(Paste { text: text.to_owned(), dropped });
    assert_eq!(
        read(b"\x1b[200~a\rb\x1b[Ac\x03\x1b[201~d"),
        [paste("a\rb\x1b[Ac\x03", 0), plain('d')]
    );
    assert_eq!(read(b"\x1b[200~\x1b[201~"), [paste("", 0)]);
    assert_eq!(read(b"\x1b[200~\x1b\x1b[201~"), [paste("\x1b", 0)]);
    assert_eq!(read(b"\x1b[200~\x1b[20\x1b[201~"), [paste("\x1b[20", 0)]);
    assert_eq!(read(b"\x1b[200~\xff\xc3\x1b[201~"), [paste("\u{fffd}\u{fffd}", 0)]);
    let mut driver = Driver::default();
    driver.feed(b"\x1b[200~x\x1b[20");
    driver.wait(100_000);
    assert_eq!((driver.parser.pending(), driver.out.len()), (None, 0));
    driver.parser.flush_paste(&mut driver.out);
    driver.parser.flush_paste(&mut driver.out);
    driver.feed(b"y");
    assert_eq!(driver.out, [paste("x\x1b[20", 0), plain('y')]);
    // A pause inside the mark that begins a paste must not turn the text into keys.
    for cut in 1..6 {
        let mut driver = Driver::default();
        let (head, rest) = b"\x1b[200~a\rb\x1b[201~".split_at(cut);
        driver.feed(head);
        driver.wait(10_000);
        driver.feed(rest);
        assert_eq!(driver.out.last(), Some(&paste("a\rb", 0)), "{cut}");
        assert!(driver.out.len() <= 2, "{cut}");
    }
}

#[test]
fn a_long_paste_comes_in_one_piece_and_has_a_bound() {
    let mut bytes = b"\x1b[200~".to_vec();
    bytes.extend("äb\n".repeat(2_500_000).bytes());
    bytes.extend(b"\x1b[201~");
    let mut driver = Driver::default();
    bytes.chunks(65_537).for_each(|chunk| driver.feed(chunk));
    let [Input::Paste(paste)] = driver.out.as_slice() else { panic!("{}", driver.out.len()) };
    assert_eq!((paste.text.len(), paste.dropped), (10_000_000, 0));
    assert!(paste.text.ends_with("b\näb\n"));
    // A character that the bound cuts is dropped, not replaced.
    let mut bytes = b"\x1b[200~".to_vec();
    bytes.extend("a".repeat(paste::LONGEST - 1).bytes());
    bytes.extend("äbc\x1b[201~".bytes());
    let mut driver = Driver::default();
    driver.feed(&bytes);
    let [Input::Paste(paste)] = driver.out.as_slice() else { panic!("{}", driver.out.len()) };
    assert_eq!((paste.text.len(), paste.dropped), (paste::LONGEST - 1, 4));
    // Steps for one byte each, and marks that begin again and again.
    let mut driver = Driver::default();
    driver.feed(b"\x1b[200~");
    (0..100_000).for_each(|_| driver.feed(b"\x1b[20"));
    driver.feed(b"\x1b[201~");
    assert_eq!(driver.out.len(), 1);
}

#[test]
fn bytes_that_are_not_text() {
    assert_eq!(read(b"a\xffb"), typed("a\u{fffd}b"));
    assert_eq!(read(b"\x9b31m"), typed("\u{fffd}31m"));
    assert_eq!(read(b"\xe2\x82x"), typed("\u{fffd}x"));
    assert_eq!(read(b"\xe2\x82\xc3\xa4"), typed("\u{fffd}ä"));
    assert_eq!(read(b"\xc3\x1b[A").len(), 2);
    let mut driver = Driver::default();
    driver.feed(b"\xc3");
    driver.wait(100_000);
    driver.feed(b"\xa4");
    assert_eq!(driver.out, typed("ä"));
}

/// Pieces with pauses between them, in milliseconds.
fn paused(expecting: bool, pieces: &[(&str, u64)]) -> Vec<Input> {
    let mut driver = Driver::default();
    driver.parser.expect_answers(expecting);
    for (bytes, ms) in pieces {
        driver.feed(bytes.as_bytes());
        driver.wait(*ms);
    }
    driver.wait(10_000);
    driver.out
}

#[test]
fn keys_with_pauses_are_themselves() {
    let escape = || key(KeyCode::Escape, Modifiers::NONE);
    for expecting in [false, true] {
        let read = |pieces: &[(&str, u64)]| paused(expecting, pieces);
        assert_eq!(read(&[("\x1b", 100), ("a", 0)]), [escape(), typed("a")].concat());
        assert_eq!(read(&[("\x1b", 10), ("a", 0)]), char('a', ALT));
        assert_eq!(read(&[("\x1b", 60), ("[", 60), ("A", 60)]), [escape(), typed("[A")].concat());
        assert_eq!(read(&[("\x1b", 60), ("[I", 60)]), [escape(), typed("[I")].concat());
        assert_eq!(read(&[("\x1b", 60), ("O", 60), ("A", 60)]), [escape(), typed("OA")].concat());
        assert_eq!(
            read(&[("\x1b]", 60), ("1", 60), ("1", 60), ("x", 60)]),
            [char(']', ALT), typed("11x")].concat()
        );
        assert_eq!(
            read(&[("\x1b", 60), ("\x1b", 60), ("\r", 60)]),
            [escape(), escape(), key(KeyCode::Enter, Modifiers::NONE)].concat()
        );
        assert_eq!(read(&[("\x1b[1", 2000), (";5A", 0)]), key(KeyCode::Up, CTRL));
        assert_eq!(read(&[("\x1b[1;5", 2000), ("x", 0)]), typed("x"));
        assert_eq!(read(&[("\x1b[1;5", 2000), ("\x1b", 0)]), escape());
        assert_eq!(
            read(&[("\x1b", 60), ("[?1", 2000), ("2", 2000), ("c", 0)]),
            [escape(), typed("[?12c")].concat()
        );
    }
    // Escape comes at once when no answer is expected, and after a second otherwise.
    for (expecting, ms) in [(false, 50), (true, 1000)] {
        let mut driver = Driver::default();
        driver.parser.expect_answers(expecting);
        driver.feed(b"\x1b");
        driver.wait(ms - 1);
        driver.feed(b"");
        assert_eq!(driver.out, []);
        let mut driver = Driver::default();
        driver.parser.expect_answers(expecting);
        driver.feed(b"\x1b");
        driver.wait(ms);
        assert_eq!((driver.out, driver.parser.pending()), (escape(), None));
    }
}

#[test]
fn strings_that_never_end_give_the_keys_typed_behind_them() {
    let ctrl_c = || char('c', CTRL);
    let escape = || key(KeyCode::Escape, Modifiers::NONE);
    assert_eq!(read(b"\x1b]11;rgb:1a\x03x"), [ctrl_c(), typed("x")].concat());
    assert_eq!(read(b"\x1b]11;rgb:1a\x18x"), [char('x', CTRL), typed("x")].concat());
    assert_eq!(read(b"\x1bPfoo\x1b[A"), key(KeyCode::Up, Modifiers::NONE));
    assert_eq!(read(b"\x1b]foo\x7f"), key(KeyCode::Backspace, Modifiers::NONE));
    assert_eq!(read(b"\x1b[1;\x03"), ctrl_c());
    assert_eq!(read("\x1b[1;ä".as_bytes()), typed("ä"));
    assert_eq!(read(b"\x1b[\x03"), [char('[', ALT), ctrl_c()].concat());
    for expecting in [false, true] {
        let read = |pieces: &[(&str, u64)]| paused(expecting, pieces);
        for head in ["\x1b]11;rgb:1a", "\x1b]99;foo", "\x1bP>|xte", "\x1b_Gi", "\x1b^foo"] {
            assert_eq!(read(&[(head, 2000), ("\x03", 0)]), ctrl_c(), "{head:?}");
            assert_eq!(read(&[(head, 2000), ("hello", 0)]), typed("hello"), "{head:?}");
            assert_eq!(read(&[(head, 100), ("h", 100), ("i", 0)]), typed("hi"), "{head:?}");
            assert_eq!(read(&[(head, 2000), ("a", 2000), ("x", 0)]), typed("ax"), "{head:?}");
            assert_eq!(
                read(&[(head, 2000), ("\x1b", 100), ("x", 0)]),
                [escape(), typed("x")].concat()
            );
        }
        let dead = [("\x1bP>|xte", 100), ("\x1b", 100), ("x", 0)];
        assert_eq!(read(&dead), [escape(), typed("x")].concat());
        let joined = [("\x1b]\x1b", 100), ("x", 0)];
        assert_eq!(read(&joined), [char(']', ALT), escape(), typed("x")].concat());
        let endless = "\x1b]0;".to_owned() + &"x".repeat(100_000);
        assert_eq!(read(&[(&endless, 2000), ("y", 0)]), typed("y"));
    }
}

#[test]
fn answers_in_pieces_type_nothing() {
    let escape = || Input::Key(Key::new(KeyCode::Escape));
    for (bytes, answer) in answers() {
        let head = char::from(bytes.as_bytes()[1]);
        for cut in (1..bytes.len()).filter(|cut| bytes.is_char_boundary(*cut)) {
            let (first, rest) = bytes.split_at(cut);
            for (expecting, ms) in
                [(false, 45), (false, 900), (false, 5000), (true, 900), (true, 5000)]
            {
                let given = match cut {
                    1 => vec![escape()],
                    2 => vec![Input::Key(keys::typed(head, true))],
                    // An end that comes a second late, or later: its ESC was Escape.
                    _ if cut + 1 == bytes.len() && bytes.ends_with('\\') => vec![escape()],
                    _ => vec![],
                };
                let waits = match (expecting, cut) {
                    (false, 1 | 2) => 50,
                    _ => 1000,
                };
                let mut expected = if ms < waits { vec![] } else { given };
                expected.push(Input::Answer(answer.clone()));
                let inputs = paused(expecting, &[(first, ms), (rest, 0)]);
                assert_eq!(inputs, expected, "{first:?} {rest:?} {expecting} {ms}");
            }
        }
    }
    // In several pieces behind an Escape that was given.
    let pieces =
        [("\x1b", 60), ("]11;rgb:1a1a", 900), ("/1b1b/1c1c", 900), ("\x1b", 900), ("\\", 0)];
    assert_eq!(paused(false, &pieces).len(), 2);
    let pieces = [("\x1b]11;rgb:1a", 5000), ("1a/1b", 5000), ("1b/1c1c\x07", 0)];
    assert_eq!(paused(false, &pieces).len(), 1);
    let pieces = [("\x1b]\x1b", 900), ("[?6c", 0)];
    let answer = vec![Input::Answer(Answer::DeviceAttributes(vec![6]))];
    assert_eq!(paused(true, &pieces), [char(']', ALT), answer].concat());
    // What ends an answer is a key if all before it was given as keys.
    for (end, keys) in [("\x07", char('g', CTRL)), ("\x1b\\", char('\\', ALT))] {
        let pieces = [("\x1b", 60), ("]11;rgb:1/2/3", 2000), (end, 0)];
        let given = [vec![escape()], typed("]11;rgb:1/2/3"), keys].concat();
        assert_eq!(paused(false, &pieces), given);
    }
    // An answer that has no known form, with the long pause inside.
    assert_eq!(paused(false, &[("\x1b]lTi", 900), ("tle", 900), ("\x1b\\", 0)]).len(), 1);
    assert_eq!(paused(false, &[("\x1b]lTi", 5000), ("tle\x1b\\", 0)]).len(), 1);
}
