//! Properties of the parser, for streams of keys, answers and pastes and for any bytes.

use super::tests::{Driver, answers, plain};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Bytes that arrive together, and what they mean.
type Token = (Vec<u8>, Vec<Input>);

fn token(bytes: impl AsRef<[u8]>, key: Key) -> Token {
    (bytes.as_ref().to_vec(), vec![Input::Key(key)])
}

/// A key that no further byte can change.
fn whole_key() -> impl Strategy<Value = Token> {
    let text = proptest::char::any().prop_filter("typed as itself", |c| !c.is_control());
    let fixed = vec![
        token("\r", Key::new(KeyCode::Enter)),
        token("\t", Key::new(KeyCode::Tab)),
        token("\x7f", Key::new(KeyCode::Backspace)),
        token("\x03", Key::new(KeyCode::Char('c')).with(Modifiers::CTRL)),
        token("\x07", Key::new(KeyCode::Char('g')).with(Modifiers::CTRL)),
        token("\x1bf", Key::new(KeyCode::Char('f')).with(Modifiers::ALT)),
        token("\x1b\x7f", Key::new(KeyCode::Backspace).with(Modifiers::ALT)),
        token("\x1b[A", Key::new(KeyCode::Up)),
        token("\x1bOB", Key::new(KeyCode::Down)),
        token("\x1b\x1b[C", Key::new(KeyCode::Right).with(Modifiers::ALT)),
        token("\x1b[1;5D", Key::new(KeyCode::Left).with(Modifiers::CTRL)),
        token("\x1b[13;2~", Key::new(KeyCode::F(3)).with(Modifiers::SHIFT)),
        token("\x1b[3$", Key::new(KeyCode::Delete).with(Modifiers::SHIFT)),
        token("\x1b[[B", Key::new(KeyCode::F(2))),
        token("\x1b[97;5u", Key::new(KeyCode::Char('a')).with(Modifiers::CTRL)),
        token("\x1b[97;;229u", Key::new(KeyCode::Char('å'))),
        token("\x1b[27;5;13~", Key::new(KeyCode::Enter).with(Modifiers::CTRL)),
        token("\x1b[27u", Key::new(KeyCode::Escape)),
    ];
    // The characters of answers are typed more often than others: they could be taken for them.
    prop_oneof![
        text.prop_map(|c| (c.to_string().into_bytes(), vec![plain(c)])),
        select("[]P_O?>;:/\\0123456789rgbacRntuy~$ x".chars().collect::<Vec<_>>())
            .prop_map(|c| (c.to_string().into_bytes(), vec![plain(c)])),
        select(fixed),
    ]
}

/// A key that a pause must follow, because it is the head of sequences as well.
fn head_key() -> impl Strategy<Value = Token> {
    let alt = |c| Key::new(KeyCode::Char(c)).with(Modifiers::ALT);
    select(vec![
        token("\x1b", Key::new(KeyCode::Escape)),
        token("\x1b[", alt('[')),
        token("\x1b]", alt(']')),
        token("\x1bO", alt('o').with(Modifiers::SHIFT)),
        token("\x1bP", alt('p').with(Modifiers::SHIFT)),
        token("\x1b_", alt('_')),
        token("\x1bX", alt('x').with(Modifiers::SHIFT)),
    ])
}

fn answer() -> impl Strategy<Value = Token> {
    select(answers()).prop_map(|(bytes, a)| (bytes.as_bytes().to_vec(), vec![Input::Answer(a)]))
}

fn paste() -> impl Strategy<Value = Token> {
    vec(select("ab\u{e4}\r\n\u{1b}[201~\u{3}".chars().collect::<Vec<_>>()), 0..40).prop_map(|c| {
        let text: String = c.into_iter().collect::<String>().replace("\x1b[201~", "");
        let text = if text.contains("\x1b[201~") { String::new() } else { text };
        let bytes = format!("\x1b[200~{text}\x1b[201~").into_bytes();
        (bytes, vec![Input::Paste(Paste { text, dropped: 0 })])
    })
}

fn focus() -> impl Strategy<Value = Token> {
    any::<bool>().prop_map(|gained| {
        (if gained { b"\x1b[I" } else { b"\x1b[O" }.to_vec(), vec![Input::Focus(gained)])
    })
}

fn cut<'a>(bytes: &'a [u8], cuts: &[Index], first: usize) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len() + 1)).collect();
    at.retain(|at| *at >= first);
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.dedup();
    at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

/// What pieces give without a pause, and after a long one at the end.
fn read(pieces: &[&[u8]]) -> Vec<Input> {
    let mut driver = Driver::default();
    for piece in pieces {
        driver.feed(piece);
    }
    driver.wait(10_000);
    driver.parser.flush_paste(&mut driver.out);
    driver.out
}

/// Something that happens at a terminal.
#[derive(Clone, Debug)]
enum Event {
    /// A person presses a key, and the next thing happens some milliseconds later.
    Key(Token, u64),
    /// The terminal answers, in pieces with pauses between them.
    Answer(Token, Vec<(Index, u64)>, u64),
}

fn event(pauses: std::ops::Range<u64>) -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (whole_key(), 0..3000_u64).prop_map(|(key, ms)| Event::Key(key, ms)),
        1 => (head_key(), 50..3000_u64).prop_map(|(key, ms)| Event::Key(key, ms)),
        2 => (answer(), vec((any::<Index>(), pauses), 0..6), 0..3000_u64)
            .prop_map(|(answer, cuts, ms)| Event::Answer(answer, cuts, ms)),
    ]
}

/// Plays events; cuts before `first` bytes of an answer are left out. The expected inputs are those
/// of all events in order.
fn play(events: &[Event], expecting: bool, first: usize) -> (Vec<Input>, Vec<Input>) {
    let mut driver = Driver::default();
    driver.parser.expect_answers(expecting);
    let mut expected = Vec::new();
    for event in events {
        match event {
            Event::Key((bytes, inputs), ms) => {
                driver.feed(bytes);
                driver.wait(*ms);
                expected.extend(inputs.clone());
            }
            Event::Answer((bytes, inputs), cuts, ms) => {
                let at: Vec<Index> = cuts.iter().map(|(at, _)| *at).collect();
                let pieces = cut(bytes, &at, first);
                for (i, piece) in pieces.iter().enumerate() {
                    driver.feed(piece);
                    let last = i + 1 == pieces.len();
                    driver.wait(if last { *ms } else { cuts.get(i).map_or(0, |(_, ms)| *ms) });
                }
                expected.extend(inputs.clone());
            }
        }
    }
    driver.wait(10_000);
    (driver.out, expected)
}

/// Sequences and strings that are no keys and no answers, ended in all ways, and text.
fn garbage() -> impl Strategy<Value = (Vec<u8>, Option<String>)> {
    let ended = select(vec!["\x07", "\x1b\\"]);
    let aborted = select(vec!["\x18", "\x03", "\x1b[A"]);
    prop_oneof![
        "[ -~]{0,20}".prop_map(|text| (text.clone().into_bytes(), Some(text))),
        "\x1b\\[[<=?>][0-9;:<=>?]{0,300}[ -/]{0,3}[@-~]".prop_map(|s| (s.into_bytes(), None)),
        "\x1b\\[[0-9;:]{0,300}[!-#]{1,3}[@-~]".prop_map(|s| (s.into_bytes(), None)),
        ("\x1b[]P_^X][ -~é]{0,30}", ended).prop_map(|(s, e)| ((s + e).into_bytes(), None)),
        ("\x1b[]P_^X][ -~é]{2,30}", aborted.clone())
            .prop_map(|(s, e)| ((s + e).into_bytes(), None)),
        ("\x1b\\[[0-9;:<=>?]{2,30}", aborted).prop_map(|(s, e)| ((s + e).into_bytes(), None)),
    ]
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same(
        tokens in vec(
            prop_oneof![3 => whole_key(), 1 => answer(), 1 => paste(), 1 => focus()],
            0..30,
        ),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let bytes: Vec<u8> = tokens.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let expected: Vec<Input> = tokens.into_iter().flat_map(|(_, inputs)| inputs).collect();
        prop_assert_eq!(&read(&[&bytes]), &expected);
        prop_assert_eq!(&read(&cut(&bytes, &cuts, 0)), &expected);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&single), &expected);
    }

    #[test]
    fn answers_that_are_expected_neither_type_nor_swallow(events in vec(event(0..1000), 0..20)) {
        let (out, expected) = play(&events, true, 0);
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn late_answers_without_pauses_neither_type_nor_swallow(events in vec(event(0..50), 0..20)) {
        let (out, expected) = play(&events, false, 0);
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn late_answers_with_pauses_neither_type_nor_swallow(events in vec(event(0..1000), 0..20)) {
        let (out, expected) = play(&events, false, 3);
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn text_between_sequences_comes_out(
        parts in vec(garbage(), 0..20),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let bytes: Vec<u8> = parts.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let text: String = parts.into_iter().filter_map(|(_, text)| text).collect();
        let inputs = read(&cut(&bytes, &cuts, 0));
        let typed: String = inputs.into_iter().filter_map(|input| match input {
            Input::Key(Key { code: KeyCode::Char(c), modifiers: Modifiers::NONE, .. }) => Some(c),
            _ => None,
        }).collect();
        prop_assert_eq!(typed, text);
    }

    #[test]
    fn any_bytes_give_the_same_in_any_split(
        bytes in vec(prop_oneof![
            any::<u8>(),
            select(b"\x1b\x1b\x1b[[]]P_O??;;0112~$Rcu\x07\\\xc3\xa4".to_vec()),
        ], 0..300),
        cuts in vec(any::<Index>(), 0..40),
    ) {
        let whole = read(&[&bytes]);
        prop_assert_eq!(&read(&cut(&bytes, &cuts, 0)), &whole);
        prop_assert!(whole.len() <= bytes.len());
    }

    #[test]
    fn any_bytes_with_any_pauses_are_bounded(
        pieces in vec((vec(prop_oneof![
            any::<u8>(),
            select(b"\x1b\x1b\x1b[]P_?;;112~Rcu\x07\\".to_vec()),
        ], 0..20), 0..2000_u64), 0..40),
        expecting in any::<bool>(),
    ) {
        let mut driver = Driver::default();
        driver.parser.expect_answers(expecting);
        let mut bytes = 0;
        for (piece, ms) in &pieces {
            driver.feed(piece);
            driver.wait(*ms);
            bytes += piece.len();
        }
        driver.wait(10_000);
        prop_assert_eq!(driver.parser.pending(), None);
        prop_assert!(driver.out.len() <= bytes);
        for input in &driver.out {
            if let Input::Key(Key { code: KeyCode::Char(c), .. }) = input {
                prop_assert!(!c.is_control());
            }
        }
    }
}

#[test]
fn endless_sequences_are_held_in_part() {
    for head in ["\x1b[", "\x1b]", "\x1b]52;", "\x1bP>|", "\x1b_G", "\x1b]11;rgb:"] {
        for pause in [0, 100] {
            let mut driver = Driver::default();
            driver.feed(head.as_bytes());
            driver.wait(pause);
            for _ in 0..10_000 {
                driver.feed(b"1;2;3;");
            }
            // Each held byte takes at most five characters here.
            let size = format!("{:?}", driver.parser).len();
            assert!(size < 32 << 10, "{head:?} {size}");
        }
    }
}
