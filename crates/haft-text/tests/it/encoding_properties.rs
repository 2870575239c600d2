//! Edits of files in every encoding that detection can name, with all line ends mixed.
//!
//! Detection guesses, so that nothing here depends on which encoding it names: whatever it takes a
//! file for, the bytes go back as they came, and outside the replaced ranges they stay.

use encoding_rs::Encoding;
use haft_text::edit::{Edit, EditError, apply, find};
use haft_text::encode::Format;
use haft_text::{cut, decode, encode};
use proptest::{prelude::*, strategy::ValueTree as _, test_runner::TestRunner};

/// A sentence that says which language it is in, and the encodings of that language.
const SAMPLES: &[(&str, &[&Encoding])] = &[
    ("これは日本語の文章です。設定を変更する", &[encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP]),
    ("这是中文文本，设置已经更改，请重新启动。", &[encoding_rs::GBK, encoding_rs::GB18030]),
    ("這是中文文本，設定已經更改，請重新啟動。", &[encoding_rs::BIG5]),
    ("이것은 한국어 문장입니다. 설정을 변경합니다.", &[encoding_rs::EUC_KR]),
    (
        "Это русский текст, настройки были изменены.",
        &[
            encoding_rs::WINDOWS_1251,
            encoding_rs::KOI8_R,
            encoding_rs::ISO_8859_5,
            encoding_rs::IBM866,
        ],
    ),
    ("Це український текст, налаштування змінено її.", &[encoding_rs::KOI8_U]),
    ("Le café où l’été s’étire à loisir, ça et là", &[encoding_rs::WINDOWS_1252]),
    (
        "Příliš žluťoučký kůň úpěl ďábelské ódy",
        &[encoding_rs::WINDOWS_1250, encoding_rs::ISO_8859_2],
    ),
    ("Αυτό είναι ένα ελληνικό κείμενο", &[encoding_rs::WINDOWS_1253, encoding_rs::ISO_8859_7]),
    ("Bu Türkçe bir metindir, ışık ve gölge", &[encoding_rs::WINDOWS_1254]),
    ("זהו טקסט בעברית עם כמה מילים", &[encoding_rs::WINDOWS_1255]),
    ("هذا نص باللغة العربية مع بعض الكلمات", &[encoding_rs::WINDOWS_1256, encoding_rs::ISO_8859_6]),
    ("Šis ir teksts latviešu valodā ar burtiem", &[encoding_rs::WINDOWS_1257]),
    ("Đây là văn ba\u{309}n tiê\u{301}ng Viê\u{323}t", &[encoding_rs::WINDOWS_1258]),
    ("นี่คือข้อความภาษาไทย", &[encoding_rs::WINDOWS_874]),
];

const ENDS: [&str; 4] = ["\n", "\r\n", "\r", "\n\n"];

/// A file: its bytes, and what was written.
fn file() -> impl Strategy<Value = (Vec<u8>, String)> {
    let line = ("[ \t]{0,4}", any::<usize>(), 0..24_usize, "[a-c;=(){} ]{0,6}", 0..4_usize);
    let lines = prop::collection::vec(line, 1..12);
    (0..SAMPLES.len(), any::<usize>(), lines, 0..3_u8).prop_map(|(sample, which, lines, ends)| {
        let (sentence, encodings) = SAMPLES[sample];
        let characters: Vec<char> = sentence.chars().collect();
        let mut text = String::new();
        for (indent, from, len, code, end) in lines {
            let part = characters.iter().cycle().skip(from % characters.len()).take(len);
            text += &indent;
            text.extend(part);
            text += &code;
            text += if ends == 0 { ENDS[end] } else { ENDS[usize::from(ends) - 1] };
        }
        let bytes = encodings[which % encodings.len()].encode(&text).0.into_owned();
        (bytes, text)
    })
}

/// A part of a text as somebody may have written it down.
fn noisy(text: &str, from: usize, len: usize, noise: u8) -> String {
    let start = cut::floor(text, from % (text.len() + 1));
    let part = &text[start..cut::floor(text, start + len)];
    let each = |change: &dyn Fn(&str) -> String| {
        part.split('\n').map(change).collect::<Vec<_>>().join("\n")
    };
    match noise {
        0 => part.to_owned(),
        1 => part.replace("\r\n", "\n").replace('\r', "\n"),
        2 => each(&|line| line.trim_end().to_owned()),
        3 => each(&|line| format!("{line}  ")),
        4 => part.replace(['’', '‘'], "'"),
        5 => each(&|line| format!("  {line}")),
        6 => each(&|line| line.trim_start_matches([' ', '\t']).to_owned()),
        7 => part.replace('\t', "    "),
        8 => part.replace("  ", "\t"),
        9 => format!("\n{part}\n\n"),
        10 => {
            let first = 1 + text[..start].matches('\n').count();
            let lines = part.split('\n').enumerate();
            let lines = lines.map(|(at, line)| format!("{:>6}\t{line}", first + at));
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => part.replace('\r', "").replace('\n', "\\n").replace('\t', "\\t"),
    }
}

/// What the properties below are given, the same in every run.
fn drawn<T: std::fmt::Debug>(strategy: impl Strategy<Value = T>) -> Vec<T> {
    let mut runner = TestRunner::deterministic();
    (0..500).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

#[test]
fn properties_are_about_edits_that_are_made_and_such_that_are_not() {
    let edit = (any::<usize>(), 1..60_usize, 0..12_u8);
    let (mut made, mut tolerated, mut refused, mut legacy) = (0, 0, 0, 0);
    for ((bytes, _), (from, len, noise)) in drawn((file(), edit)) {
        let Ok(decoded) = decode(&bytes) else { continue };
        legacy += usize::from(std::str::from_utf8(&bytes).is_err());
        match apply(&decoded, &[Edit::new(noisy(decoded.text(), from, len, noise), "new")]) {
            Ok(applied) if applied.tolerance.is_some() => tolerated += 1,
            Ok(_) => made += 1,
            Err(_) => refused += 1,
        }
    }
    let all = [made, tolerated, refused, legacy];
    assert!(all.iter().all(|count| *count > 20), "made, tolerated, refused, legacy: {all:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_is_not_replaced_keeps_its_bytes(
        (bytes, _) in file(),
        edits in prop::collection::vec((any::<usize>(), 1..60_usize, 0..12_u8, any::<bool>()), 1..4),
        new in "[a-z \n\t]{0,20}",
    ) {
        let Ok(decoded) = decode(&bytes) else { return Ok(()) };
        let back = encode(decoded.text(), decoded.format());
        if decoded.holes().is_empty() {
            prop_assert_eq!(back.unwrap(), &bytes[..]);
        }
        let edits: Vec<Edit> = edits
            .iter()
            .map(|(from, len, noise, all)| {
                let old = noisy(decoded.text(), *from, *len, *noise);
                Edit { replace_all: *all, ..Edit::new(old, new.clone()) }
            })
            .collect();
        let Ok(applied) = apply(&decoded, &edits) else { return Ok(()) };
        let after = applied.to_bytes(&bytes);
        let unmarked = Format { bom: false, ..decoded.format() };
        let (mut done, mut at, mut before) = (0, 0, Vec::new());
        for (range, change) in applied.ranges.iter().zip(&applied.changes) {
            let kept = range.start - done;
            prop_assert_eq!(&after[at..at + kept], &bytes[done..range.start]);
            before.extend_from_slice(&after[at..at + kept]);
            before.extend_from_slice(&bytes[range.clone()]);
            let new = encode(&change.text, unmarked).unwrap();
            at += kept;
            prop_assert_eq!(&after[at..at + new.len()], &*new);
            at += new.len();
            done = range.end;
        }
        prop_assert_eq!(&after[at..], &bytes[done..]);
        before.extend_from_slice(&after[at..]);
        prop_assert_eq!(before, bytes);
    }

    #[test]
    fn what_is_found_is_what_is_replaced(
        (bytes, _) in file(),
        from in any::<usize>(),
        len in 1..60_usize,
        noise in 0..12_u8,
        all in any::<bool>(),
    ) {
        let Ok(decoded) = decode(&bytes) else { return Ok(()) };
        let old = noisy(decoded.text(), from, len, noise);
        let edit = Edit { replace_all: all, ..Edit::new(old, "new text") };
        match (find(&decoded, &edit), apply(&decoded, std::slice::from_ref(&edit))) {
            (Ok(places), Ok(applied)) => {
                let ranges: Vec<_> = places.iter().map(|place| place.range.clone()).collect();
                prop_assert_eq!(ranges, applied.ranges);
                let texts: Vec<_> = places.iter().map(|place| place.text.clone()).collect();
                let changed: Vec<_> = applied.changes.iter().map(|one| one.range.clone()).collect();
                prop_assert_eq!(texts, changed);
                prop_assert_eq!(places[0].tolerance, applied.tolerance);
                prop_assert!(*places[0].lines.start() <= applied.first_changed_line);
            }
            (Err(found), Err(applied)) => prop_assert_eq!(found, applied),
            // Only what the new text leaves tells whether the file can be read again.
            (Ok(_), Err(EditError::Unannounced { .. })) => {
                prop_assert!(std::str::from_utf8(&bytes).is_err());
            }
            (found, applied) => prop_assert!(false, "{found:?} but {applied:?}"),
        }
    }
}

#[test]
fn each_encoding_is_recognised_from_enough_text() {
    let mut missed = Vec::new();
    for (sentence, encodings) in SAMPLES {
        for encoding in *encodings {
            let text = format!("{sentence}\r\n").repeat(8);
            let (bytes, _, lossy) = encoding.encode(&text);
            assert!(!lossy, "{}", encoding.name());
            match decode(&bytes) {
                Ok(decoded) if decoded.text() == text => {
                    assert_eq!(encode(decoded.text(), decoded.format()).unwrap(), bytes);
                }
                other => {
                    let taken = other.map(|decoded| decoded.format().encoding.name());
                    missed.push((encoding.name(), taken));
                }
            }
        }
    }
    assert_eq!(missed, []);
}
