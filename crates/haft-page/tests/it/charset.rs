//! Charsets: by mark, header, `meta` and by what the bytes look like.

use encoding_rs::Encoding;
use haft_page::{Limits, PageError, read, text_charset};

const RUSSIAN: &str =
    "Поплавок в колодце следует за морем, но не за волнами. Высоты считаются от нуля.";
const CHINESE: &str = "等窑冷却以后再打开。釉的厚度要均匀，火要慢慢地升。";
const JAPANESE: &str = "窯が冷えるまで待ってください。釉薬の厚みは均一に。";

fn encoded(label: &str, text: &str) -> Vec<u8> {
    if let Some(big) = label.strip_prefix("utf-16").map(|order| order == "be") {
        let units = text.encode_utf16();
        return units
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect();
    }
    Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
}

fn markdown(bytes: &[u8], content_type: Option<&str>) -> String {
    read(bytes, content_type, "https://page.example/", &Limits::default()).unwrap().markdown
}

#[test]
fn a_header_a_meta_a_mark_or_the_bytes_tell_the_charset() {
    for (label, text) in [
        ("windows-1251", RUSSIAN),
        ("koi8-r", RUSSIAN),
        ("gbk", CHINESE),
        ("gb18030", CHINESE),
        ("big5", "等窯冷卻以後再打開"),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("euc-kr", "가마가 식을 때까지 기다리세요"),
        ("utf-8", JAPANESE),
        ("windows-1252", "Café – 5 € für zwei"),
    ] {
        let wanted = format!("{text}\n");
        let plain = encoded(label, &format!("<p>{text}</p>"));
        assert_eq!(
            markdown(&plain, Some(&format!("text/html; charset=\"{label}\""))),
            wanted,
            "{label}"
        );
        let meta = encoded(label, &format!("<meta charset={label}><p>{text}</p>"));
        assert_eq!(markdown(&meta, Some("text/html")), wanted, "{label}");
        let old = format!("<META content='text/html; charset={label}' http-equiv=x><p>{text}</p>");
        assert_eq!(markdown(&encoded(label, &old), None), wanted, "{label}");
    }
    for label in ["utf-16le", "utf-16be"] {
        let wanted = format!("{RUSSIAN}\n");
        let text = format!("\u{feff}<meta charset=utf-8><p>{RUSSIAN}</p>");
        assert_eq!(markdown(&encoded(label, &text), Some("text/html; charset=iso-8859-1")), wanted);
        let content_type = format!("text/html; charset={label}");
        assert_eq!(markdown(&encoded(label, &text[3..]), Some(&content_type)), wanted);
    }
}

#[test]
fn a_charset_that_is_told_wrong_or_not_at_all_is_guessed() {
    let long = format!("<p>{}</p>", [RUSSIAN; 4].join(" "));
    let wanted = format!("{}\n", [RUSSIAN; 4].join(" "));
    let bytes = encoded("windows-1251", &long);
    assert_eq!(markdown(&bytes, None), wanted);
    assert_eq!(markdown(&bytes, Some("text/html; charset=utf-8")), wanted);
    assert_eq!(markdown(&bytes, Some("text/html; charset=no-such")), wanted);
    let mixed = [b"<meta charset=windows-1251>".as_slice(), &bytes].concat();
    assert_eq!(markdown(&mixed, Some("text/html; charset=utf-8")), wanted);
    let (text, charset) = text_charset(&bytes, None);
    assert_eq!((&*text, charset), (&*long, "windows-1251"));
    assert_eq!(text_charset("naïve".as_bytes(), None), ("naïve".into(), "UTF-8"));
    assert_eq!(text_charset(b"caf\xe9", Some("text/plain; charset=latin1")).0, "café");
}

#[test]
fn no_bytes_and_no_text_are_no_page() {
    let fault = |bytes: &[u8]| read(bytes, None, "", &Limits::default()).unwrap_err();
    assert_eq!(fault(b""), PageError::Empty);
    let picture =
        [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06".as_slice(), &[0; 200]]
            .concat();
    assert_eq!(fault(&picture), PageError::Binary { kind: "PNG image" });
    assert!(fault(&picture).to_string().contains("PNG image"));
}
