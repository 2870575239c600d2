//! Questions: what is shown of much, what is counted, and which answers there are then.

use haft_render::{Extent, QuestionView, Terminal};
use haft_types::{
    AgentPath, Choice, Cut, CutBy, Detail, DiffLine, Hash, Hunk, LineCounts, LineMark, Question,
    QuestionId, QuestionKind, Reply, Shape,
};
use proptest::prelude::*;
use serde_json::json;

use crate::shapes::at;

/// A question with this text, command and preview.
pub(crate) fn question(text: &str, command: Option<&str>, preview: Option<Detail>) -> Question {
    let choice = |id: &str, key, label: &str| Choice { id: id.into(), key, label: label.into() };
    Question {
        id: QuestionId::nth(7),
        call: None,
        agent: AgentPath::default(),
        kind: QuestionKind::Permission,
        text: text.to_owned(),
        command: command.map(str::to_owned),
        preview,
        options: vec![
            choice("allow", 'y', "yes, this once"),
            choice("always", 'a', "yes, and always"),
            choice("deny", 'n', "no"),
        ],
        form: None,
        if_nobody: Reply::pick("deny"),
    }
}

fn put(question: &Question, extent: Extent, width: u16) -> QuestionView {
    Terminal { root: Some(at("/w")), ..Terminal::default() }.question(question, extent, width, "s1")
}

fn labels(view: &QuestionView) -> Vec<&str> {
    view.options.iter().map(|choice| choice.label.as_str()).collect()
}

/// A new file with these lines, of so many.
fn new(path: &str, lines: &[String], cut: Option<u64>) -> Detail {
    let lines: Vec<DiffLine> =
        lines.iter().map(|text| DiffLine { mark: LineMark::Added, text: text.clone() }).collect();
    let there = lines.len() as u64;
    let hunk = Hunk { old_start: 0, old_lines: 0, new_start: 1, new_lines: there, lines };
    let counts = cut.map(|added| LineCounts { added, removed: 0 });
    let (path, after, hunks) = (at(path), Some(Hash::of(b"")), vec![hunk]);
    let shape = Shape::Diff { path, from: None, hunks, counts, before: None, after };
    let cut = cut.map(|total| Cut {
        from: 1,
        to: there,
        total: Some(total),
        by: CutBy::Lines,
        rest: None,
        end: None,
    });
    Detail { shape, cut }
}

fn numbered(many: usize) -> Vec<String> {
    (1..=many).map(|number| format!("line {number}.")).collect()
}

#[test]
fn what_is_left_out_is_counted_in_each_yes_and_no_lasting_one_is_offered() {
    let detail = new("/w/a", &numbered(106), None);
    let view = put(&question("Writing a", None, Some(detail.clone())), Extent::SCREEN, 80);
    assert_eq!(view.left_out, 46);
    assert_eq!(labels(&view), ["yes, this once (46 lines not shown)", "no"]);
    assert!(view.text.ends_with(
        "\n\u{2026} 46 lines not shown\n46 lines not shown; all of it:\n  haft session show \
         s1 --question 7"
    ));
    for (many, extent) in [(60, Extent::SCREEN), (400, Extent::MESSAGE), (5000, Extent::ALL)] {
        let detail = new("/w/a", &numbered(many), None);
        let view = put(&question("Writing a", None, Some(detail)), extent, 80);
        assert_eq!(view.left_out, 0);
        assert_eq!(labels(&view), ["yes, this once", "yes, and always", "no"]);
        assert!(!view.text.contains("not shown"));
    }
}

#[test]
fn what_was_not_kept_is_counted_wherever_it_is_shown() {
    let detail = new("/w/a", &numbered(10), Some(1000));
    for extent in [Extent::SCREEN, Extent::ALL] {
        let view = put(&question("Writing a", None, Some(detail.clone())), extent, 80);
        assert_eq!((view.left_out, view.options.len()), (990, 2));
    }
    let both = Shape::Many { details: vec![detail, new("/w/b", &numbered(1), None)] };
    let view = put(&question("Writing a", None, Some(both.into())), Extent::ALL, 80);
    assert!(view.text.contains("a (new) +1000 -0\n"), "{}", view.text);
    assert_eq!(view.left_out, 990);
    let cut = Some(Cut { from: 1, to: 1, total: Some(5), ..Cut::default() });
    let given = Detail { shape: Shape::Json { value: json!({"content": "a\nb"}) }, cut };
    let view = put(&question("Writing a", None, Some(given)), Extent::ALL, 80);
    assert_eq!(view.left_out, 4);
}

#[test]
fn words_are_never_cut() {
    let reasons = (0..500).map(|n| format!("  also: reason {n}\n")).collect::<Vec<_>>().concat();
    let text = format!("Running x\nNo rule.\n{reasons}");
    let view = put(&question(&text, Some(&"x\n".repeat(500)), None), Extent::SCREEN, 0);
    assert!(view.text.starts_with(&text), "{}", view.text);
    assert_eq!(view.left_out, 440);
}

#[test]
fn of_a_long_line_both_ends_are_shown_and_it_is_counted() {
    let line = format!("begin{}end", "x".repeat(20_000));
    let diff = new("/w/a", std::slice::from_ref(&line), None);
    for (question, gone) in
        [(question("t", Some(&line), None), 12_008), (question("t", None, Some(diff)), 16_008)]
    {
        for width in [0, 80] {
            let view = put(&question, Extent::SCREEN, width);
            let text = view.text.replace(['\n', ' ', '\u{a6}'], "");
            assert!(text.contains("beginxxx") && text.contains("xxxend"), "{text}");
            assert!(text.contains(&format!("{gone}charactersnotshown")), "{text}");
            assert_eq!(view.left_out, 1);
        }
    }
    let two = format!("{line}\n{line}");
    let view = put(&question("t", Some(&two), None), Extent::SCREEN, 0);
    assert_eq!(view.left_out, 2);
    assert!(view.text.contains("| begin") && view.text.contains("xend"), "{}", view.text);
}

#[test]
fn things_of_one_kind_among_arguments_share_the_room() {
    let items: Vec<_> =
        (0..6).map(|n| json!({"content": "x\n".repeat(50) + &n.to_string()})).collect();
    let value = json!({"files": items, "note": "n"});
    let view = put(&question("t", None, Some(Shape::Json { value }.into())), Extent::SCREEN, 0);
    for number in 1..=6 {
        assert!(view.text.contains(&format!("| {number} of \"files\":")), "{}", view.text);
    }
    assert!(view.text.matches("x\\n").count() > 40, "{}", view.text);
}

proptest! {
    #[test]
    fn each_line_is_shown_or_counted_and_none_is_wider(
        files in prop::collection::vec((0_usize..80, 0_usize..120), 1..8),
        width in 20_u16..120,
        lines in 0_usize..100,
        chars in 0_usize..3000,
    ) {
        let details: Vec<Detail> = files.iter().enumerate().map(|(index, (many, long))| {
            let texts: Vec<String> = (0..*many)
                .map(|n| format!("<{index}.{n}>{}<.{index}.{n}>", "x".repeat(*long))).collect();
            new(&format!("/w/f{index}"), &texts, None)
        }).collect();
        let all: usize = files.iter().map(|(many, _)| many).sum();
        let preview = Some(Shape::Many { details }.into());
        let view = put(&question("Editing", None, preview), Extent { lines, chars }, width);
        for line in view.text.lines() {
            prop_assert!(line.chars().count() <= usize::from(width), "{line}");
        }
        let text = view.text.replace(['\n', ' ', '\u{a6}'], "");
        let whole = files.iter().enumerate().map(|(index, (many, long))| {
            (0..*many).filter(|n| {
                text.contains(&format!("<{index}.{n}>{}<.{index}.{n}>", "x".repeat(*long)))
            }).count()
        }).sum::<usize>();
        prop_assert_eq!(whole as u64 + view.left_out, all as u64);
        prop_assert!(whole <= lines);
    }
}
