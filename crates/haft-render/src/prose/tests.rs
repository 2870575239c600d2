//! Blocks, inline marks and tables of Markdown as they are drawn, in pieces of every size.

use super::*;

fn terminal(color: bool) -> Terminal {
    Terminal { color, ..Terminal::default() }
}

fn room(width: u16) -> Room {
    Room { width, ..Room::default() }
}

/// A text as it is shown when it comes in pieces of so many bytes.
fn shown(text: &str, width: u16, color: bool, piece: usize) -> String {
    let (terminal, mut prose, mut out) = (terminal(color), Prose::whole(), String::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (now, more) = rest.split_at(rest.ceil_char_boundary(piece.min(rest.len())));
        out += &terminal.prose(&mut prose, now, room(width));
        rest = more;
    }
    out + &terminal.prose_end(&mut prose, room(width))
}

#[test]
fn blocks_are_drawn() {
    for (text, wanted) in [
        ("# One #\n## Two", "One\nTwo\n"),
        ("#tag and #1", "#tag and #1\n"),
        (
            "- a\n  * b\n+ c\n- [ ] d\n- [x] e",
            "\u{2022} a\n  \u{2022} b\n\u{2022} c\n\u{2610} d\n\u{2611} e\n",
        ),
        ("1. a\n12) b", "1. a\n12) b\n"),
        ("-a\n1.5 b\n2024 c", "-a\n1.5 b\n2024 c\n"),
        ("> quoted\n>", "\u{2502} quoted\n\u{2502}\n"),
        ("a\n\nb\n", "a\n\nb\n"),
        ("```rust\nlet a = 1; // **no**\n\n```\nend", "  rust\n  let a = 1; // **no**\n\nend\n"),
        ("- a\n  ```sh\n  ls\n  ```", "\u{2022} a\n    sh\n    ls\n"),
        ("~~~\n```\n~~~", "  ```\n"),
        ("~~~ a `b` c\nx", "  a `b` c\n  x\n"),
        ("```\nnot closed", "  not closed\n"),
        ("``` a`b", "``` a`b\n"),
        ("| not a table", "| not a table\n"),
    ] {
        assert_eq!(shown(text, 60, false, 3), wanted, "{text:?}");
    }
    assert_eq!(shown("---", 50, false, 9), "\u{2500}".repeat(40) + "\n");
}

#[test]
fn what_stands_in_a_line_is_drawn_where_it_is_surely_meant() {
    for (text, wanted) in [
        ("a **b c** d", "a \u{1b}[1mb c\u{1b}[0m d\n"),
        ("use `a*b*c` *now*", "use \u{1b}[36ma*b*c\u{1b}[0m \u{1b}[3mnow\u{1b}[0m\n"),
        ("``a`b``", "\u{1b}[36ma`b\u{1b}[0m\n"),
        ("[text](http://x/y)", "text \u{1b}[2m(http://x/y)\u{1b}[0m\n"),
        ("[http://x](http://x)", "http://x\n"),
        ("**[a](b)**", "\u{1b}[1ma\u{1b}[0m \u{1b}[2m(b)\u{1b}[0m\n"),
    ] {
        let shown = shown(text, 0, true, 99);
        assert_eq!(shown, wanted, "{text:?}");
    }
    for same in [
        "src/*.rs and tests/*.rs",
        "*.py *.rs",
        "2 * 3 * 4",
        "snake_case_name and __init__",
        "a[0](b) [x] (y)",
        "`open",
        "**open",
        "C:\\dir\\file",
        "x ** y ** z",
        "**",
        "a ` b",
    ] {
        let wanted = if same.starts_with("a[0]") {
            "a0 (b) [x] (y)\n".to_owned()
        } else {
            format!("{same}\n")
        };
        assert_eq!(shown(same, 0, false, 99), wanted);
    }
    assert_eq!(shown("\\*a\\* \\_b\\_", 0, false, 99), "*a* _b_\n");
}

#[test]
fn tables_are_drawn_once_they_are_complete() {
    let table = "| a | **bb** | n |\n|---|:--|--:|\n| x \\| y | `1|2` | 3 |\n| z |\n";
    let (terminal, mut prose) = (terminal(false), Prose::whole());
    assert_eq!(terminal.prose(&mut prose, table, room(40)), "");
    let drawn = "a      bb   n\n\u{2500}\u{2500}\u{2500}\u{2500}\u{2500}  \u{2500}\u{2500}\u{2500}  \u{2500}\nx | y  1|2  3\nz\n";
    assert_eq!(terminal.prose(&mut prose, "end\n", room(40)), format!("{drawn}end\n"));
    // Where it is too wide nothing of it is lost.
    assert_eq!(shown(table, 12, false, 5), "a: x | y\nbb: 1|2\nn: 3\n\na: z\n");
    let long = format!("|a|\n|-|\n{}", "|row|\n".repeat(ROWS * 2));
    assert_eq!(shown(&long, 40, false, 1000).matches("row").count(), ROWS * 2);
}

#[test]
fn long_lines_are_broken_at_blanks_and_no_word_is_lost() {
    assert_eq!(shown("- one two three", 9, false, 2), "\u{2022} one two\n  three\n");
    assert_eq!(
        shown("see http://a/long/address now", 10, false, 99),
        "see\nhttp://a/long/address\nnow\n"
    );
    assert_eq!(shown("~~~ one two three\nx", 9, false, 99), "  one two\n  three\n  x\n");
    let words: Vec<String> = (0..300).map(|n| format!("w{n}")).collect();
    let drawn = shown(&words.join(" "), 33, false, 7);
    assert_eq!(drawn.split_whitespace().collect::<Vec<_>>(), words);
    assert!(drawn.lines().all(|line| line.len() <= 33));
}

#[test]
fn pieces_make_no_difference() {
    let text =
        "# H\n\ntext **bold** `x`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```py\nx\n```\n- l\n";
    let whole = shown(text, 30, true, text.len());
    for piece in 1..20 {
        assert_eq!(shown(text, 30, true, piece), whole, "{piece}");
    }
}
