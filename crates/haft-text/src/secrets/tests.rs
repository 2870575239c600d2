//! What is hidden in texts, whole and in pieces, and what is not.

use proptest::prelude::*;

use super::*;

const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fn hidden(text: &str) -> String {
    Secrets::default().hide(text).into_owned()
}

#[test]
fn values_are_hidden_by_the_name_in_front_of_them() {
    for (text, name) in [
        ("API_KEY=%", "API_KEY"),
        ("export GH_TOKEN='%' # mine", "GH_TOKEN"),
        ("docker run -e GH_TOKEN=% image", "GH_TOKEN"),
        ("docker run -e \"GH_TOKEN=%\" image", "GH_TOKEN"),
        ("    12\tAPI_KEY=%", "API_KEY"),
        (".env:12:API_KEY=%", "API_KEY"),
        (".env-12-API_KEY=%", "API_KEY"),
        ("+API_KEY=%", "API_KEY"),
        ("  api_key: %  # comment", "api_key"),
        ("  - token: \"%\"", "token"),
        ("{\"apiKey\": \"%\", \"a\": 1}", "apiKey"),
        ("{\\\"apiKey\\\": \\\"%\\\"}", "apiKey"),
        ("db.password = %", "password"),
        ("client_secret = \"%\"", "client_secret"),
        ("const API_KEY: &str = \"%\";", "API_KEY"),
        ("apiKey: string = \"%\"", "apiKey"),
        ("os.environ[\"API_KEY\"] = \"%\"", "API_KEY"),
        ("define('API_KEY', '%');", "API_KEY"),
        ("'secret' => '%',", "secret"),
        ("<password>%</password>", "password"),
        ("curl --token % x", "token"),
        ("curl --token=% x", "token"),
        ("https://x.example/?api_key=%&a=b", "api_key"),
        ("Authorization: Bearer %", "AUTHORIZATION"),
        ("curl -H 'Authorization: token %' x", "AUTHORIZATION"),
        ("{\"authorization\": \"Bearer %\"}", "AUTHORIZATION"),
        ("> authorization: Basic %", "AUTHORIZATION"),
        ("curl -H \"X-Api-Key: %\" x", "X_Api_Key"),
        ("postgres://app:%@db.example.com/app", "URL_PASSWORD"),
        ("https://%@github.com/a/b", "URL_TOKEN"),
    ] {
        let secret = text.replace('%', TOKEN);
        let expected = text.replace('%', &placeholder(name));
        assert_eq!(hidden(&secret), expected);
    }
}

#[test]
fn passwords_of_words_are_hidden_where_variables_or_settings_stand() {
    for text in [
        "DB_PASSWORD=%",
        "DB_PASSWORD=\"%\"",
        "password: %",
        "password = \"%\"",
        "{\"password\": \"%\"}",
        "mysql://root:%@db/x",
    ] {
        let text = text.replace('%', "correct-horse-battery-9");
        assert!(hidden(&text).contains("{{secret:"), "{text}");
    }
}

#[test]
fn code_and_harmless_settings_stay_as_they_are() {
    for text in [
        "DEBUG=true",
        "GIT_CONFIG_KEY_1=core.hooksPath\nGIT_CONFIG_KEY_10=safe.bareRepository\n",
        "{\"GIT_CONFIG_KEY_1\": \"core.hooksPath\"}",
        "PASSWORD=test",
        "KEYBOARD_LAYOUT=us-international-1",
        "API_KEY=your-api-key-here",
        "API_KEY=<your-key-1a2b3c4d>",
        "API_KEY=${OTHER_KEY_1a2b3c}",
        "API_KEY=$(pass show api/key1a2b3c)",
        "API_KEY=xxxxxxxxxxxxxxxx",
        "API_KEY={{secret:API_KEY}}",
        "api_key: ${{ secrets.API_KEY }}",
        "let token = self.next_token2(sha256Context2);",
        "token = nextToken2;",
        "let key = Sha256Context2::new();",
        "key = sha256Context2;",
        "const key = await deriveKey2b3c4d(password, salt);",
        "password: user.hashed2Password3x,",
        "tokens: Vec<Token1a2b3c4d>,",
        "cache_key = \"build-1a2b3c4d5e6f7a8b9c0d1e2f\"",
        "  key: cargo-${{ hashFiles('**/Cargo.lock') }}",
        "{\"key\": \"ctrl+shift+alt+p\", \"command\": \"x\"}",
        "{\"key\": \"settings.general.title2\"}",
        "public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO1a2b3c\"",
        "secretName: my-app-tls-2a3b4c5d6e7f",
        "checksum = \"1f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c5b6a79881f2e3d4c5b6a7988\"",
        "\"integrity\": \"sha512-1a2b3c4d5e6f7a8b9c0d==\"",
        "cacheKey: sha256-1a2b3c4d5e6f7a8b9c0d",
        "commit 3e20e31c351f5318b0e6308652d02c7b486c3f59100a",
        "if token == \"identifier-or-keyword\" {",
        "max_tokens: 128000000000",
        "token_url: https://login.example.com/oauth2/token",
        "keyFile: /etc/ssl/private/server1a2b3c.key",
        "https://user@example.com/x",
        "git@github.com:owner/repo1a2b3c4d.git",
        "Authorization: Bearer <token>",
        "Authorization: Bearer ${TOKEN}",
        "f\"Bearer {token}\"",
        "const BEGIN: &str = \"-----BEGIN PRIVATE KEY-----\";\nlet privateKeyMaterial = readPrivateKeyFromDisk\n",
        "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n",
    ] {
        assert_eq!(hidden(text), text);
    }
}

#[test]
fn a_text_without_secrets_is_not_copied() {
    let secrets = Secrets::default();
    secrets.add("A", TOKEN);
    assert!(matches!(secrets.hide("fn key() -> Token { token }"), Cow::Borrowed(_)));
}

#[test]
fn a_known_value_is_hidden_whole_beside_what_begins_like_a_token() {
    let secrets = Secrets::default();
    secrets.add_variables([("API_TOKEN", TOKEN), ("LOGIN_PASSWORD", "correct horse battery")]);
    for (text, shown) in [
        (
            format!("[{TOKEN}mecorrect horse battery]"),
            "[{{secret:API_TOKEN}}me{{secret:LOGIN_PASSWORD}}]",
        ),
        (
            format!("{}correct horse battery", TOKEN.replace("ghp_1", "ghp_2")),
            "{{secret:GITHUB_TOKEN}}{{secret:LOGIN_PASSWORD}}",
        ),
    ] {
        assert_eq!(secrets.hide(&text), shown);
    }
}

#[test]
fn tokens_that_say_what_they_are_are_hidden_without_a_name() {
    let long = "16C7e42F292c6912E7710c838347Ae178B4a9d8f7e6c5b4a3928";
    for (text, name) in [
        (TOKEN.to_owned(), "GITHUB_TOKEN"),
        (format!("{}\n", &TOKEN.replace("ghp", "gho")), "GITHUB_TOKEN"),
        (format!("('github_pat_{long}')"), "GITHUB_TOKEN"),
        (format!("a: [glpat-{}]", &long[..20]), "GITLAB_TOKEN"),
        (format!("got xoxb-123456789012-{}.", &long[..24]), "SLACK_TOKEN"),
        (format!("x sk-ant-api03-{long}_x-{long}"), "ANTHROPIC_KEY"),
        (format!("\"sk_live_{}\"", &long[..24]), "STRIPE_KEY"),
        (format!("npm_{}", &long[..36]), "NPM_TOKEN"),
        (format!("?q=AIza{}&x", &long[..35]), "GOOGLE_KEY"),
    ] {
        let shown = hidden(&text);
        assert!(shown.contains(&placeholder(name)) && !shown.contains(&long[4..12]), "{shown}");
        // Two bytes are too few to be held for it.
        for step in [1, 3, 5] {
            let cuts: Vec<usize> = (0..text.len()).step_by(step).collect();
            let streams = streamed(&Secrets::default(), &text, &cuts);
            let more = streams.len() - shown.len();
            assert!(more <= 2 && streams.contains(&placeholder(name)), "{step} {streams}");
        }
    }
    for text in [
        "npm_config_registry npm_package_version_0a1b2c3d4e5f60718293a4b5c6d7",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ghp_short1a2b3c",
        "sk-ant-your-key-goes-here sk_live_publishable",
        "a_ghp_16C7e42F292c6912E7710c838347Ae178B4a1",
        "hf_hub_download_from_the_repository_of_models",
        "GHP_16C7E42F292C6912E7710C838347AE178B4A",
    ] {
        assert_eq!(hidden(text), text);
    }
}

#[test]
fn what_a_cut_leaves_of_a_value_is_found() {
    let secrets = Secrets::default();
    secrets.add("KNOWN", "known-value-9a8b7c");
    assert_eq!(secrets.begun("a: known-val"), Some(3));
    assert_eq!(secrets.begun("a: known-value-9a8b7c"), None);
    assert_eq!(secrets.begun("a: kno"), None);
    assert_eq!(secrets.rest("lue-9a8b7c\", b"), 10);
    assert!(secrets.is_inside("value-9a") && !secrets.is_inside("value 9a"));
    assert_eq!((secrets.rest("b7c"), secrets.rest("x lue-9a8b7c"), secrets.rest("")), (0, 0, 0));
}

fn key_block() -> (String, Vec<String>) {
    let line = |seed: usize| -> String {
        let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..64).map(|at| char::from(letters[(at * 37 + seed * 11) % 64])).collect()
    };
    let lines = vec![line(1), line(2), line(3)[..20].to_owned()];
    let text = format!(
        "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n",
        lines.join("\n")
    );
    (text, lines)
}

#[test]
fn lines_of_a_private_key_are_hidden_however_they_are_shown() {
    let (block, lines) = key_block();
    let numbered = |sign: &str| -> String {
        let lines = (1..).zip(block.lines()).map(|(at, line)| format!("{at}{sign}{line}"));
        lines.collect::<Vec<_>>().join("\n")
    };
    for text in [
        block.clone(),
        numbered("\t"),
        numbered(":"),
        block.replace('\n', "\r\n"),
        block.replace('\n', "\n+"),
        format!("{{\"private_key\": \"{}\"}}", block.replace('\n', "\\n")),
        format!("PRIVATE_KEY=\"{}\"", block.replace('\n', "\\n")),
        block.replace('\n', " "),
    ] {
        let hidden = hidden(&text);
        assert!(lines.iter().all(|line| !hidden.contains(line.as_str())), "{hidden}");
    }
    let secrets = Secrets::default();
    secrets.hide(&block);
    let part = format!("x {} y", lines[1]);
    assert_eq!(secrets.hide_known(&part), "x {{secret:PRIVATE_KEY_2}} y");
}

#[test]
fn what_was_seen_once_is_hidden_from_then_on_in_other_forms_too() {
    let secrets = Secrets::default();
    let value = "a\"b+c/d-1234567890e";
    assert_eq!(secrets.add("my.key", value), "my_key");
    assert_eq!(secrets.add("other", value), "my_key");
    assert_eq!(secrets.hide_known(&format!("<{value}>")), "<{{secret:my_key}}>");
    assert_eq!(secrets.hide_known(r#"a\"b+c/d-1234567890e"#), "{{secret:my_key_JSON}}");
    assert_eq!(secrets.hide_known("a%22b%2Bc%2Fd-1234567890e"), "{{secret:my_key_URL}}");
    // What `base64` makes of `user:` and the value, and of the value alone.
    for encoded in ["dXNlcjphImIrYy9kLTEyMzQ1Njc4OTBl", "YSJiK2MvZC0xMjM0NTY3ODkwZQ=="] {
        let hidden = secrets.hide_known(encoded).into_owned();
        assert!(hidden.contains("{{secret:my_key_BASE64"), "{hidden}");
    }
    assert_eq!(secrets.add("my_key", "another-value-17"), "my_key_2");
    assert_eq!(secrets.value("my_key_2").as_deref(), Some("another-value-17"));
    assert_eq!(secrets.value("my_key_3"), None);
}

#[test]
fn a_value_is_hidden_as_shells_and_messages_write_it() {
    for sign in ['\'', '"', '$', '`', '\\', '\u{202e}', '\u{200b}', '\u{301}', '\t', '\u{e9}'] {
        for value in [format!("Zq8-{sign}-vK2m91-tail"), format!("{sign}Zq8vK2m91-tail{sign}")] {
            let secrets = Secrets::default();
            secrets.add("KEY", &value);
            let shell = format!("echo '{}'", value.replace('\'', "'\\''"));
            let double: String = value
                .chars()
                .flat_map(|c| "$`\"\\".contains(c).then_some('\\').into_iter().chain([c]))
                .collect();
            let escaped =
                |text: &str| text.chars().flat_map(char::escape_debug).collect::<String>();
            let written = [
                escaped(&shell),
                escaped(&double),
                escaped(&value),
                format!("{value:?}"),
                format!("{shell:?}"),
                format!("{double:?}"),
                crate::names::shown(&shell, 99),
                crate::names::shown(&value, 99),
                shell,
                double,
            ];
            for text in written {
                let hidden = secrets.hide_known(&text).into_owned();
                assert!(hidden.contains("{{secret:KEY"), "{sign:?}: {text} -> {hidden}");
                assert!(!hidden.contains("Zq8") && !hidden.contains("tail"), "{text} -> {hidden}");
            }
        }
    }
}

#[test]
fn variables_are_known_from_the_start() {
    let names = Names { more: vec!["LICENCE".to_owned()], not: vec!["MY_TOKEN".to_owned()] };
    let secrets = Secrets::new(names);
    let url = "postgres://app:pass-word-123456@db/x";
    let several = "-- one line\r\nsecond9a8b7c6dline\n";
    secrets.add_variables([
        ("GH_TOKEN", TOKEN),
        ("DATABASE_URL", url),
        ("MY_TOKEN", "plain-value-1a2b3c"),
        ("LICENCE", "listed-value-1a2b3c"),
        ("SEVERAL_KEYS", several),
    ]);
    let text = format!("{TOKEN} {url} plain-value-1a2b3c listed-value-1a2b3c second9a8b7c6dline");
    assert_eq!(
        secrets.hide_known(&text),
        "{{secret:GH_TOKEN}} postgres://app:{{secret:DATABASE_URL_PASSWORD}}@db/x \
         plain-value-1a2b3c {{secret:LICENCE}} {{secret:SEVERAL_KEYS}}"
    );
    assert_eq!(secrets.hide("LICENCE=plain-value-1a2b3c"), "LICENCE={{secret:LICENCE_2}}");
}

/// Values as generators make them: so many characters of these, from a seed.
fn generated(of: &str, len: usize, seed: u64) -> String {
    let (all, mut state): (Vec<char>, u64) = (of.chars().collect(), seed.wrapping_mul(2) + 1);
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 0xffff).unwrap()
    };
    for _ in 0..16 {
        next();
    }
    (0..len).map(|_| all[next() % all.len()]).collect()
}

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

#[test]
fn the_corpus_is_hidden_and_left_alone_as_it_says() {
    let value = "Zq7Kw2Xr9Tb4Ym6Pd1";
    let mut wrong = Vec::new();
    for line in include_str!("corpus.txt").lines().filter(|line| !line.starts_with('#')) {
        let text = line[2..].replace("\\n", "\n").replace("\\t", "\t");
        let hides = line.starts_with('+');
        let text = if hides { text.replace('%', value) } else { text };
        let whole = hidden(&text);
        // As it streams in, line for line and cut anywhere.
        let cuts: Vec<usize> = (0..text.len()).step_by(3).collect();
        let streams = streamed(&Secrets::default(), &text, &cuts);
        let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        let by_line = streamed(&Secrets::default(), &text, &lines);
        for (how, shown) in [("whole", &whole), ("cut", &streams), ("by line", &by_line)] {
            let is_right = if hides { !shown.contains(value) } else { *shown == text };
            if !is_right {
                wrong.push(format!("{line}  gives  {shown:?} {how}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_generators_make_is_hidden_in_every_file() {
    let signs = format!("{LETTERS}0123456789!#$%&*+-.:;=?@^_~");
    let mut shown = Vec::new();
    for (of, len) in [(LETTERS, 24), (&*signs, 16), (&*signs, 18), (&*signs, 20)] {
        for syntax in ["\"password\": \"%\"", "password: %\n", "password = \"%\"", "PASSWORD=%\n"] {
            let seeds = 1..=60;
            let missed = seeds.filter(|seed| {
                let value = generated(of, len, *seed);
                // YAML takes neither of these for the begin of a text.
                let value = value.trim_start_matches(['!', '&', '*', '%', '@', '?', '-', '#', ':']);
                let text = syntax.replace('%', value);
                let told = hidden(&text).contains(value);
                if told {
                    shown.push(text);
                }
                told
            });
            let missed = missed.count();
            println!("{syntax:?} of {len}: {missed} of 60 are shown");
        }
    }
    // One in two hundred looks like words.
    assert!(shown.len() <= 5, "{shown:#?}");
}

/// The secrets of a later run, with what an earlier one kept.
fn later(kept: &str) -> Secrets {
    let secrets = Secrets::default();
    secrets.recall(kept, [9; 32]);
    secrets
}

#[test]
fn what_an_earlier_run_knew_is_known_again_by_what_it_kept() {
    let first = later("");
    let two = "second-value-1a2b3c";
    assert_eq!(first.add("KEY", TOKEN), "KEY");
    assert_eq!(first.add("KEY", two), "KEY_2");
    let kept = std::cell::RefCell::new(String::new());
    let keep = |secrets: &Secrets| {
        let write = |lines: &str| -> Result<(), ()> {
            kept.borrow_mut().push_str(lines);
            Ok(())
        };
        secrets.keep(write).unwrap();
    };
    assert_eq!(first.keep(|_| Err(())), Err(()));
    keep(&first);
    first.add("third", "third-value-1a2b3c4d");
    keep(&first);
    keep(&first);
    let kept_now = kept.borrow().clone();
    assert!(!kept_now.contains(TOKEN) && !kept_now.contains(two), "{kept_now}");

    let second = later(&kept_now);
    // In any order, alone, and beside one that has a name of its own.
    assert_eq!(second.add("KEY", "new-value-9z8y7x6w"), "KEY_3");
    assert_eq!(second.value("KEY_2"), None);
    assert_eq!(second.hide_known(&format!("({two})é")), "({{secret:KEY_2}})é");
    assert_eq!(second.hide(&format!("x={TOKEN}")), "x={{secret:KEY}}");
    assert_eq!(second.value("KEY").as_deref(), Some(TOKEN));
    assert_eq!(second.hide("API_TOKEN=third-value-1a2b3c4d"), "API_TOKEN={{secret:third}}");
    // In another form first.
    let third = later(&kept_now);
    let encoded = "c2Vjb25kLXZhbHVlLTFhMmIzYw==";
    assert!(third.hide_known(encoded).contains("{{secret:KEY_2_BASE64"));
    keep(&second);
    let fourth = later(&kept.borrow());
    assert_eq!(fourth.hide_known("new-value-9z8y7x6w"), "{{secret:KEY_3}}");
    // In pieces, wherever they are cut.
    let text = format!("one {two} two [y/N] ");
    for cut in 0..text.len() {
        let again = later(&kept_now);
        let shown = streamed(&again, &text, &[cut]);
        assert_eq!(shown, "one {{secret:KEY_2}} two [y/N] ", "{cut}");
    }
    let mut stream = Stream::default();
    assert_eq!(stream.push(&later(&kept_now), "Continue? [y/N] "), "Continue? [y/N] ");
    // Lines that are damaged harm no others, and none is no key.
    let damaged = kept_now.replace("KEY ", "KEY x ");
    assert_eq!(later(&damaged).hide_known(two), "{{secret:KEY_2}}");
    assert_eq!(later("nonsense").hide_known(two), two);
}

#[test]
fn keys_of_haft_itself_are_told_from_others_in_every_form() {
    let secrets = Secrets::default();
    secrets.add_variables([("OPENAI_API_KEY", "sk+own-key-1a2b3c4d"), ("GH_TOKEN", TOKEN)]);
    assert!(secrets.is_own("OPENAI_API_KEY") && secrets.is_own("OPENAI_API_KEY_BASE64"));
    assert!(secrets.is_own("OPENAI_API_KEY_URL"));
    assert!(!secrets.is_own("GH_TOKEN") && !secrets.is_own("OTHER"));
    // Under another name it is the same key.
    assert_eq!(secrets.add("other", "sk+own-key-1a2b3c4d"), "OPENAI_API_KEY");
}

#[test]
fn placeholders_are_read_back() {
    let text = "a {{secret:ONE}} {{secret:}} {{secret:TWO_2}}{{secret:x y}}{{secret:T";
    let found: Vec<_> = placeholders(text).map(|(range, name)| (&text[range], name)).collect();
    assert_eq!(found, [("{{secret:ONE}}", "ONE"), ("{{secret:TWO_2}}", "TWO_2")]);
}

fn streamed(secrets: &Secrets, text: &str, cuts: &[usize]) -> String {
    let (mut stream, mut out, mut from) = (Stream::default(), String::new(), 0);
    for cut in cuts {
        let cut = text.floor_char_boundary((*cut).clamp(from, text.len()));
        out.push_str(&stream.push(secrets, &text[from..cut]));
        from = cut;
    }
    out.push_str(&stream.push(secrets, &text[from..]));
    out + &stream.end(secrets)
}

#[test]
fn a_secret_in_pieces_is_hidden_as_one_in_one_piece() {
    let (block, _) = key_block();
    let text = format!(
        "begin\nAPI_KEY={TOKEN}\nüber {{\"token\": \"{TOKEN}-2\"}} known-value-9a8b7c end\r\n{block}\
         Authorization: Bearer {TOKEN}-3\nlast known-value-9a8b7c"
    );
    let whole = Secrets::default();
    whole.add("KNOWN", "known-value-9a8b7c");
    let expected = whole.hide(&text).into_owned();
    assert!(!expected.contains(TOKEN) && !expected.contains("known-value"), "{expected}");
    for first in (0..text.len()).step_by(3) {
        for cuts in [vec![first], (first..text.len()).step_by(7).collect()] {
            let secrets = Secrets::default();
            secrets.add("KNOWN", "known-value-9a8b7c");
            assert_eq!(streamed(&secrets, &text, &cuts), expected, "{cuts:?}");
        }
    }
}

#[test]
fn what_cannot_be_part_of_a_secret_is_not_held_back() {
    let secrets = Secrets::default();
    secrets.add("KNOWN", "known-value-9a8b7c");
    let mut stream = Stream::default();
    for piece in ["....", "Continue? [y/N] ", "token", "s left: ", "\n", "Password: "] {
        assert_eq!(stream.push(&secrets, piece), piece);
    }
    assert_eq!(stream.push(&secrets, "\na know"), "\na ");
    assert_eq!(stream.push(&secrets, "ing"), "knowing");
}

#[test]
fn there_is_an_end_to_what_is_remembered_but_not_to_what_is_hidden() {
    let secrets = Secrets::default();
    let line = |at: usize| format!("API_KEY=value{at}a{}b7c8d\n", at * 7);
    let text: String = (0..MOST).map(line).collect();
    let hidden = secrets.hide(&text).into_owned();
    assert!(!hidden.contains("b7c8d"));
    assert!(secrets.known().all.len() <= MOST);
    let last = line(MOST + 1);
    assert_eq!(secrets.hide(&last), "API_KEY={{secret:API_KEY}}\n");
}

proptest! {
    /// However a text is put together, nothing breaks, pieces give what the whole gives, and what is
    /// hidden once stays as it is.
    #[test]
    fn any_text_in_any_pieces(
        words in prop::collection::vec(
            prop_oneof![
                Just("API_KEY=".to_owned()), Just("token: ".to_owned()), Just("\"key\": \"".to_owned()),
                Just("Bearer ".to_owned()), Just("://a:".to_owned()), Just("@".to_owned()),
                Just("\n".to_owned()), Just("\\\"".to_owned()), Just("\"".to_owned()),
                Just("-----BEGIN PRIVATE KEY-----".to_owned()), Just("-----END".to_owned()),
                Just(TOKEN.to_owned()), Just("known-value-9a8b7c".to_owned()), Just(" ".to_owned()),
                Just("AbCd0123".repeat(6)), "[a-zA-Z0-9 _.:=\"'ä-]{0,20}",
            ],
            0..24,
        ),
        cuts in prop::collection::vec(0usize..400, 0..6),
    ) {
        let text = words.concat();
        let secrets = Secrets::default();
        secrets.add("KNOWN", "known-value-9a8b7c");
        let hidden = secrets.hide(&text).into_owned();
        prop_assert!(!hidden.contains("known-value-9a8b7c"));
        let again = secrets.hide_known(&hidden).into_owned();
        prop_assert_eq!(&again, &hidden);
        let mut cuts = cuts;
        cuts.sort_unstable();
        // Everything is known by now: only where pieces end could differ.
        let streamed = streamed(&secrets, &text, &cuts);
        prop_assert!(!streamed.contains("known-value-9a8b7c"));
    }
}
