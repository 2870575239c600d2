//! Searching files that are no UTF-8: what is searched and shown is the text that read gives.

use std::fmt::Write as _;

use super::*;

const CHINESE: &str = "配置文件的说明\n这是一个中文文件，用来测试搜索。\nTODO: 修改这里的设置\n\
                       第二行没有标记\nserver = 本地\n";
const JAPANESE: &str = "設定ファイルの説明です。\nこれは日本語の文章です。\nTODO: ここを変更する\n\
                        二行目\nserver = ローカル\n";
const KOREAN: &str = "설정 파일의 설명입니다.\n이것은 한국어 문장입니다.\nTODO: 여기를 바꾸세요\n둘째 줄\n\
                      server = 로컬\n";
const RUSSIAN: &str = "Описание файла настроек\nЭто русский текст, чтобы искать в нём.\n\
                       TODO: исправить здесь\nвторая строка\nserver = местный\n";
const FRENCH: &str = "Le café où l’été s’étire à loisir\nune préférence déjà réglée\n\
                      TODO: à vérifier\ndeuxième ligne\nserver = éloigné\n";

/// Texts in encodings that read tells, by name.
fn samples() -> Vec<(String, String, Vec<u8>)> {
    let mut all = Vec::new();
    for (label, text) in [
        ("gbk", CHINESE),
        (
            "big5",
            "設定檔案的說明\n這是一個中文檔案，用來測試搜尋。\nTODO: 修改這裡的設定\n第二行沒有\n",
        ),
        ("shift_jis", JAPANESE),
        ("euc-jp", JAPANESE),
        ("euc-kr", KOREAN),
        ("windows-1251", RUSSIAN),
        ("koi8-r", RUSSIAN),
        ("windows-1252", FRENCH),
    ] {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        for end in ["\n", "\r\n"] {
            let text = text.replace('\n', end);
            let bytes = encoding.encode(&text).0.into_owned();
            all.push((format!("{label}-{}.txt", end.len()), text, bytes));
        }
    }
    for (name, text) in [("zh", CHINESE), ("ru", RUSSIAN), ("fr", FRENCH)] {
        let units = || text.encode_utf16();
        let little = units().flat_map(u16::to_le_bytes).collect();
        let big = units().flat_map(u16::to_be_bytes).collect();
        all.push((format!("utf16le-{name}.txt"), text.to_owned(), little));
        all.push((format!("utf16be-{name}.txt"), text.to_owned(), big));
    }
    all
}

async fn both(local: &Local, place: &Located, query: &GrepQuery) -> (Vec<FileMatches>, Skipped) {
    let here = grep(local, place, query, walk()).await.unwrap();
    let there = grep(&FsSearch(local.fs()), place, query, walk()).await.unwrap();
    assert_eq!(here, there, "{query:?}");
    here
}

/// A pattern of the first characters outside ASCII of a line, in its line.
fn foreign(line: &str) -> Option<String> {
    let part: String = line.chars().filter(|c| !c.is_ascii()).take(1).collect();
    (!part.is_empty()).then_some(part)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pattern_beyond_ascii_finds_what_the_same_text_in_utf_8_has() {
    let local = Local::new();
    let (folder, plain) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, text, bytes) in samples() {
        assert_eq!(haft_text::decode(&bytes).unwrap().text(), text, "{name}");
        fs::write(folder.path().join(&name), bytes).unwrap();
        fs::write(plain.path().join(&name), text).unwrap();
    }
    let (place, utf8) = (at(&local, folder.path()).await, at(&local, plain.path()).await);
    let mut patterns: Vec<String> =
        [CHINESE, JAPANESE, KOREAN, RUSSIAN, FRENCH].concat().lines().filter_map(foreign).collect();
    patterns.extend(
        ["\\p{Han}+", "[à-ÿ]\\w*", "[^é\\s]+$", "\\x{e9}", "(?i)ЭТО", "中文|TODO", "\\P{ASCII}$"]
            .map(str::to_owned),
    );
    for pattern in patterns {
        for mode in [GrepMode::Content, GrepMode::Count, GrepMode::Files] {
            for multiline in [false, true] {
                let query = GrepQuery { mode, multiline, after: 1, ..query(&pattern) };
                let (found, skipped) = both(&local, &place, &query).await;
                assert_eq!(found, both(&local, &utf8, &query).await.0, "{query:?}");
                assert_eq!((skipped.binary, skipped.unread), (0, 0), "{query:?}");
                if mode != GrepMode::Files {
                    assert!(!found.is_empty(), "{query:?}");
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shown_line_is_what_read_shows_of_it_and_marked_there() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    for (name, text, bytes) in samples() {
        fs::write(folder.path().join(&name), bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for place in [folder.path().to_owned(), folder.path().join(&name)] {
            let place = at(&local, &place).await;
            for pattern in ["TODO", "server", "(?i)todo:", "=", "TODO: ?$|server"] {
                let query = GrepQuery { before: 9, after: 9, ..query(pattern) };
                let (found, skipped) = both(&local, &place, &query).await;
                assert_eq!(skipped.binary, 0, "{name} {pattern}");
                let Some(file) = found.iter().find(|file| file.path == name) else {
                    assert!(!text.contains(pattern), "{name} {pattern}");
                    continue;
                };
                for line in &file.lines {
                    let at = usize::try_from(line.number).unwrap() - 1;
                    assert_eq!(line.text, lines[at], "{name} {pattern}");
                    let marked = line.spans.iter().map(|s| &line.text[s.0 as usize..s.1 as usize]);
                    assert!(marked.into_iter().all(|m| "TODO: server=".contains(m)), "{line:?}");
                }
            }
        }
        fs::remove_file(folder.path().join(&name)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_match_inside_of_a_character_of_two_bytes_marks_it_whole() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    // The second byte of each is a letter or sign of ASCII.
    let text = format!("{JAPANESE}表示ソース\n");
    let bytes = encoding_rs::SHIFT_JIS.encode(&text).0.into_owned();
    fs::write(folder.path().join("a.txt"), bytes).unwrap();
    let place = at(&local, folder.path()).await;
    let (found, _) = both(&local, &place, &query("(?-u:[\\\\\\]^])")).await;
    let line = found[0].lines.last().unwrap();
    let marked: Vec<_> =
        line.spans.iter().map(|s| &line.text[s.0 as usize..s.1 as usize]).collect();
    assert_eq!((&*line.text, &*marked.concat()), ("表示ソース", "表ソ"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_decoded_is_counted_and_what_is_utf_8_is_not() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    let gbk = encoding_rs::GBK.encode(CHINESE).0.into_owned();
    put("big-gbk.txt", &gbk.repeat((9 << 20) / gbk.len()));
    put("small-gbk.txt", &gbk);
    put("big-utf8.txt", &CHINESE.as_bytes().repeat((9 << 20) / CHINESE.len()));
    let mut damaged = CHINESE.repeat(20).into_bytes();
    damaged.splice(21..21, *b"\xff");
    put("damaged.txt", &damaged);
    put("big-damaged.txt", &damaged.repeat((9 << 20) / damaged.len()));
    put("binary.bin", &[b"\0\x01\xff\x02", "中文\n".as_bytes()].concat());
    put("late.bin", &[CHINESE.as_bytes(), &b"\0".repeat(99), CHINESE.as_bytes()].concat());
    put("utf32.txt", &CHINESE.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect::<Vec<_>>());
    let place = at(&local, folder.path()).await;
    let query = GrepQuery { per_file: 3, ..query("中文") };
    let (found, skipped) = both(&local, &place, &query).await;
    let names: Vec<_> = found.iter().map(|file| &*file.path).collect();
    let wanted = ["big-damaged.txt", "big-utf8.txt", "damaged.txt", "small-gbk.txt"];
    assert_eq!(names, wanted);
    assert_eq!((skipped.unread, skipped.binary, skipped.searched), (1, 3, 4));
    // Who looks for ASCII is not told of it.
    let query = GrepQuery { per_file: 3, ..super::query("server") };
    let (found, skipped) = both(&local, &place, &query).await;
    assert_eq!((found.len(), skipped.unread, skipped.searched), (5, 0, 5));
    let shown = found.iter().flat_map(|file| &file.lines);
    assert!(shown.into_iter().all(|line| line.text == "server = 本地"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_of_a_command_is_taken_as_it_is() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), encoding_rs::GBK.encode(CHINESE).0).unwrap();
    let place = at(&local, &folder.path().join("a")).await;
    let query = GrepQuery { unmarked: true, ..query("中文|TODO") };
    let (found, skipped) = both(&local, &place, &query).await;
    assert!(found[0].count == 1 && found[0].lines[0].text.starts_with("TODO: \u{fffd}"));
    assert_eq!(skipped.unread, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn utf_16_of_many_megabytes_and_other_binary_content_are_told_apart() {
    let local = Local::new();
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for number in 0..200_000 {
        let _ = writeln!(text, "Zeile {number}: Größe und Maß");
    }
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(bytes.len() > 9 << 20);
    fs::write(folder.path().join("log.txt"), &bytes).unwrap();
    let noise: Vec<u8> = (0..200_000_u32).flat_map(|n| (n * 7919).to_le_bytes()).collect();
    fs::write(folder.path().join("noise.bin"), [&noise[..], &bytes].concat()).unwrap();
    for place in [folder.path().to_owned(), folder.path().join("log.txt")] {
        let place = at(&local, &place).await;
        for pattern in ["Zeile 199999:", "Zeile 199999: Größe"] {
            let (found, skipped) = both(&local, &place, &query(pattern)).await;
            assert_eq!((found.len(), skipped.searched), (1, 1), "{pattern}");
            assert_eq!(found[0].lines[0].text, "Zeile 199999: Größe und Maß");
            assert_eq!(found[0].lines[0].number, 200_000);
        }
    }
}
