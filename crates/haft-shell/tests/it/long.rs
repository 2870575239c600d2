//! Scripts of many lines.

use haft_shell::{Fault, parse};

use crate::{
    bash::{PLAIN, essence},
    effects::{EVERYDAY, commands},
};

fn read(text: &str) -> Result<haft_shell::Script, Fault> {
    parse(text, &mut || true)
}

#[test]
fn commands_are_read_in_a_long_script_as_each_of_them_alone() {
    let mut all = commands(EVERYDAY);
    all.extend(PLAIN.split("\n---\n").map(str::to_owned));
    // Each stands beside others.
    for step in [1, 7, 101] {
        let order: Vec<&String> = (0..all.len()).map(|at| &all[at * step % all.len()]).collect();
        for some in order.chunks(150) {
            let mut apart: Vec<String> =
                some.iter().flat_map(|text| essence(&read(text).unwrap())).collect();
            apart.sort();
            let text = some.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join("\n");
            let together = read(&text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
            let together = essence(&together);
            let odd: Vec<_> = together.iter().filter(|one| !apart.contains(one)).collect();
            assert!(odd.is_empty() && together.len() == apart.len(), "{odd:#?}");
        }
    }
}

#[test]
fn what_a_line_leaves_open_goes_on_in_the_next() {
    for (first, second) in [
        ("a \\", "b"),
        ("a &&", "b"),
        ("a ||", "b"),
        ("a |", "b"),
        ("a |&", "b"),
        ("f()", "{ a; }"),
        ("function f", "{ a; }"),
        ("if a", "then b; fi"),
        ("if a; then", "b; fi"),
        ("if a; then b; else", "c; fi"),
        ("while a", "do b; done"),
        ("while a; do", "b; done"),
        ("for x", "do a; done"),
        ("for x in a", "do a; done"),
        ("for x in a; do", "a; done"),
        ("for ((;;))", "do a; done"),
        ("select x in a", "do a; done"),
        ("case a", "in a) b;; esac"),
        ("case a in", "a) b;; esac"),
        ("case a in a)", "b;; esac"),
        ("(", "a )"),
        ("( a", "b )"),
        ("{ a", "}"),
        ("((1 +", "2))"),
        ("[[ a", "== b ]]"),
        ("[[ a &&", "b ]]"),
        ("x=(a", "b)"),
        ("a $(b", "c)"),
        ("a <(b", "c)"),
        ("a $((1 +", "2))"),
        ("a ${b:-c", "d}"),
        ("a 'b", "c'"),
        ("a \"b", "c\""),
        ("a $'b", "c'"),
        ("a `b", "c`"),
        ("a <<E", "b\nE"),
        ("a <<-E", "\tb\n\tE"),
        ("a <<'E'", "b\nE"),
        ("a <<E | b", "c\nE"),
        ("a <<E && b <<F", "c\nE\nd\nF"),
        ("coproc a {", "b; }"),
    ] {
        let begun = read(first);
        assert!(matches!(begun, Err(Fault::Unclear { .. })), "{first}: {begun:?}");
        // More than is looked at together stands around it.
        let many = "ls -la | wc -l\n".repeat(40);
        let text = format!("{many}{first}\n{second}\n{many}");
        let Ok(alone) = read(&format!("{first}\n{second}")) else { continue };
        let whole = read(&text).unwrap_or_else(|fault| panic!("{first}: {fault}"));
        assert_eq!(whole.commands.len(), alone.commands.len() + 160, "{first}");
    }
}
