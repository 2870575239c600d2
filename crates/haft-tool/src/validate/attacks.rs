//! Attacks: each ends within its budget, and gives a short answer that is not wrong.

use serde_json::{Map, Value, json};

use super::{Checker, STEPS, Validator};

/// Most bytes of an answer: twenty problems, and how many more there are.
const ANSWER: usize = 21 * 2_100;

/// The steps that a check takes, and its lines, which are few and short.
fn attack(schema: &Value, value: &Value) -> (u64, Vec<String>) {
    let validator = Validator::new(schema).unwrap();
    let mut checker = Checker::new(&validator.schema, STEPS);
    assert!(!checker.whole(value, true));
    let lines = validator.problems(value);
    let bytes: usize = lines.iter().map(String::len).sum();
    assert!(lines.len() <= 22 && bytes <= ANSWER, "{} lines of {bytes} bytes", lines.len());
    (STEPS - checker.left, lines)
}

/// The one line of a value that does not fit.
fn line(schema: &Value, value: &Value) -> String {
    let (_, lines) = attack(schema, value);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.concat()
}

fn map(entries: impl Iterator<Item = (String, Value)>) -> Value {
    Value::Object(entries.collect::<Map<_, _>>())
}

#[test]
fn a_match_that_is_given_up_is_never_taken_for_none() {
    let slow = "^(?=(a+)+$)(a|b)*c";
    let text = "a".repeat(40) + "b";
    for schema in [
        json!({ "pattern": slow }),
        json!({"not": {"pattern": slow}}),
        json!({"anyOf": [{"pattern": slow}, true]}),
        json!({"if": {"pattern": slow}, "else": true}),
        json!({"oneOf": [true, {"pattern": slow}]}),
    ] {
        let validator = Validator { steps: 100_000, ..Validator::new(&schema).unwrap() };
        let problems = validator.problems(&json!(text));
        assert_eq!(
            problems,
            [format!(
                "it cannot be checked: to match {slow} takes too many tries; send a shorter text"
            )],
            "{schema}"
        );
        assert!(!validator.is_valid(&json!(text)), "{schema}");
    }
    let guard = json!({"patternProperties": {slow: false}});
    let validator = Validator { steps: 100_000, ..Validator::new(&guard).unwrap() };
    assert!(!validator.is_valid(&map([(text, json!(1))].into_iter())));
    let schema = json!({"not": {"pattern": "(?<!a)b"}});
    assert!(!Validator::new(&schema).unwrap().is_valid(&json!("a".repeat(20_000) + "cb")));
}

#[test]
fn all_patterns_of_a_schema_share_a_budget() {
    let sets: Vec<Value> =
        (0..300).map(|at| json!({"pattern": format!(r"\p{{L}}\p{{N}}{{{at}}}")})).collect();
    let why = Validator::new(&json!({ "anyOf": sets })).unwrap_err();
    assert!(why.contains("too big, together with the other patterns"), "{why}");
    assert!(why.len() < 500);
}

#[test]
fn what_matches_cost_counts_for_all_of_a_check() {
    let schema = json!({"items": {"pattern": "(?=a)".repeat(10_000) + "x"}});
    let validator = Validator { steps: 1_000_000, ..Validator::new(&schema).unwrap() };
    // One of them takes a third of that.
    assert!(validator.problems(&json!(["a".repeat(16)])).concat().contains("a text that matches"));
    let lines = validator.problems(&json!(vec!["a".repeat(16); 5]));
    assert!(lines.last().unwrap().contains("too many tries"), "{lines:?}");
    let validator = Validator::new(&json!({"items": {"multipleOf": 0.7}})).unwrap();
    let mut checker = Checker::new(&validator.schema, STEPS);
    checker.whole(&json!(vec![0.5; 1_000]), false);
    assert!(STEPS - checker.left >= 50, "{}", checker.left);
}

#[test]
fn many_branches_of_many_branches_are_a_few_words() {
    let refs = vec![json!({"$ref": "#/$defs/a"}); 5_000];
    let inner = vec![json!({}); 5_000];
    let wide = json!({"anyOf": refs, "$defs": {"a": {"type": "string", "anyOf": inner}}});
    let (steps, lines) = attack(&wide, &json!(1));
    assert!(steps < 50_000, "{steps}");
    assert!(lines.concat().starts_with("the whole input is 1, wanted: string"), "{lines:?}");
    let choices: Vec<Value> = (0..200).map(Value::from).collect();
    let same = json!({"additionalProperties": {
        "anyOf": [{"anyOf": vec![json!({ "enum": choices }); 200]}, {"type": "null"}],
    }});
    let value = map((0..500).map(|at| (at.to_string(), json!("x"))));
    let (steps, lines) = attack(&same, &value);
    assert!(steps < 1_000_000, "{steps}");
    assert_eq!((lines.len(), lines[20].as_str()), (21, "... and 480 more"));
}

#[test]
fn big_values_of_tags_are_neither_copied_nor_compared() {
    let big = vec![1; 20_000];
    let constant = json!({"type": "object", "properties": {"k": {"const": big}}});
    let refs = vec![json!({"$ref": "#/$defs/a"}); 200];
    let schema = json!({ "anyOf": refs, "$defs": {"a": constant} });
    let (steps, lines) = attack(&schema, &json!({"k": 5}));
    assert!(steps < 20_000 && lines.len() == 1, "{steps}: {lines:?}");
    let close: Vec<Value> = (0..100).map(|last| json!([vec![1; 100], last])).collect();
    let branch =
        json!({"type": "object", "minProperties": 10, "properties": {"k": {"enum": close}}});
    let schema =
        json!({ "anyOf": vec![json!({"$ref": "#/$defs/a"}); 1_000], "$defs": {"a": branch} });
    let (steps, _) = attack(&schema, &json!({"k": [vec![1; 100], -1]}));
    assert!(steps < 100_000, "{steps}");
}

#[test]
fn equal_and_unknown_names_fill_the_list() {
    let known = map((0..1_000).map(|at| (format!("{}{at:04}", "ab".repeat(48)), json!({}))));
    let schema = json!({"allOf": [{"properties": known, "additionalProperties": false}]});
    let value = map((0..1_000).map(|at| (format!("{}{at:08}", "ba".repeat(46)), json!(1))));
    let (_, lines) = attack(&schema, &value);
    // Names are cut, so that all of these are told in the same words.
    assert_eq!((lines.len(), lines[1].as_str()), (2, "... and 900 more"));
}

#[test]
fn a_deep_path_keeps_its_end() {
    let leaves = map((0..30).map(|at| (at.to_string(), json!(at))));
    let name = "\u{1}".repeat(60);
    let value = (0..100).fold(leaves, |inner, _| json!({ name.clone(): inner }));
    let schema = json!({"type": ["object", "string"], "additionalProperties": {"$ref": "#"}});
    let (_, lines) = attack(&schema, &value);
    assert_eq!(lines.len(), 21);
    assert!(lines.iter().all(|line| line.len() < 500), "{lines:?}");
    assert!(lines[0].contains(".0 is 0, wanted: string or object"), "{}", lines[0]);
    assert!(lines[0].starts_with("....\"\\u0001"), "{}", lines[0]);
}

#[test]
fn unknown_names_are_told_with_what_is_known_elsewhere() {
    let patterns = json!({"patternProperties": {"^x-": {}}, "additionalProperties": false});
    assert_eq!(
        line(&patterns, &json!({"a": 1})),
        "a is not known, wanted: a name that matches ^x-"
    );
    let both = json!({
        "properties": {"headers": {}},
        "patternProperties": {"^x-": {}},
        "additionalProperties": false,
    });
    assert_eq!(
        line(&both, &json!({"zz": 1})),
        "zz is not known, wanted: headers or a name that matches ^x-"
    );
    let elsewhere = json!({
        "allOf": [{"properties": {"alpha": {}}}, {"$ref": "#/$defs/more"}],
        "$defs": {"more": {"anyOf": [{"properties": {"beta": {}}}]}},
        "unevaluatedProperties": false,
    });
    assert_eq!(line(&elsewhere, &json!({"alpah": 1})), "alpah is not known, wanted: alpha");
    assert_eq!(line(&elsewhere, &json!({"zz": 1})), "zz is not known, wanted: alpha or beta");
}

#[test]
fn a_constant_tells_branches_apart_before_a_choice() {
    let schema = json!({"anyOf": [
        {"properties": {"kind": {"const": "a"}, "mode": {"enum": ["x", "y"]}}, "required": ["kind"]},
        {"properties": {"kind": {"const": "b"}, "n": {}}, "required": ["kind", "n"]},
    ]});
    assert_eq!(
        line(&schema, &json!({"kind": "a", "mode": "z"})),
        "mode is \"z\", wanted: one of \"x\", \"y\""
    );
    assert_eq!(line(&schema, &json!({"kind": "b", "mode": "z"})), "n is missing");
    assert_eq!(
        line(&schema, &json!({"kind": "c", "mode": "z"})),
        "kind is \"c\", wanted: one of \"a\", \"b\""
    );
    // Choices alone.
    let schema = json!({"anyOf": [
        {"properties": {"kind": {"enum": ["a", "b"]}}, "required": ["one"]},
        {"properties": {"kind": {"enum": ["c"]}}, "required": ["two"]},
    ]});
    assert_eq!(line(&schema, &json!({"kind": "c"})), "two is missing");
}

#[test]
fn where_nothing_fits_the_words_say_so() {
    let whole = "the whole input is 1, wanted: nothing there";
    assert_eq!(line(&json!({"enum": []}), &json!(1)), whole);
    let names = json!({"propertyNames": false});
    assert_eq!(line(&names, &json!({"a": 1})), "the name of a field is \"a\", wanted: no field");
    let slow = json!({"items": {"uniqueItems": true}});
    let validator = Validator { steps: 10, ..Validator::new(&slow).unwrap() };
    let problems = validator.problems(&json!([[1, 2, 3], [1, 2, 3], [1, 2, 3]]));
    assert_eq!(problems, ["it cannot be checked: that takes too many steps; send less"]);
}

#[test]
fn a_metaschema_takes_schemas() {
    let schema = json!({"properties": {"s": {"$ref": "http://json-schema.org/draft-07/schema#"}}});
    let validator = Validator::new(&schema).unwrap();
    assert!(
        validator.is_valid(&json!({"s": {"type": "x"}})) && validator.is_valid(&json!({"s": true}))
    );
    assert_eq!(line(&schema, &json!({"s": 1})), "s is 1, wanted: boolean or object");
}
