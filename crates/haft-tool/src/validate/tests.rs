//! The words of problems, and that hostile schemas and values cost no more than they may.

use serde_json::{Value, json};

use super::{Checker, STEPS, Validator, check::DEPTH};

/// The problems of a value.
fn told(schema: &Value, value: &Value) -> Vec<String> {
    let validator = Validator::new(schema).unwrap();
    let problems = validator.problems(value);
    assert_eq!(validator.is_valid(value), problems.is_empty(), "{schema} {value}: {problems:?}");
    problems
}

/// The one problem of a value.
fn one(schema: &Value, value: &Value) -> String {
    let problems = told(schema, value);
    assert_eq!(problems.len(), 1, "{schema} {value}: {problems:?}");
    problems.into_iter().next().unwrap()
}

/// How many steps a check takes, and its lines.
fn steps(schema: &Value, value: &Value) -> (u64, Vec<String>) {
    let validator = Validator::new(schema).unwrap();
    let mut checker = Checker::new(&validator.schema, STEPS);
    checker.whole(value, true);
    (STEPS - checker.left, validator.problems(value))
}

#[test]
fn every_problem_is_named_with_what_is_there() {
    let schema = json!({
        "type": "object",
        "properties": {"path": {"type": "string"}, "limit": {"type": "integer", "minimum": 0}},
        "required": ["path"],
    });
    let validator = Validator::of_arguments(&schema).unwrap();
    let error = validator.check("read", &json!({"limit": "many"})).unwrap_err();
    assert!(error.message.contains("limit is \"many\", wanted: integer"), "{}", error.message);
    assert!(error.message.contains("path is missing"), "{}", error.message);
    let error = validator.check("read", &json!({"path": "a", "limit": -1})).unwrap_err();
    assert!(error.message.contains("limit is -1, wanted: a number of at least 0"), "{error}");
    let error = validator.check("read", &json!(7)).unwrap_err();
    assert!(error.message.contains("the whole input is 7, wanted: object"), "{error}");
}

#[test]
fn every_choice_is_named() {
    let choices = ["list", "output", "wait", "input", "stop"];
    let problem =
        one(&json!({"properties": {"action": {"enum": choices}}}), &json!({"action": "kill"}));
    for choice in choices {
        assert!(problem.contains(&format!("\"{choice}\"")), "{problem}");
    }
    let many: Vec<String> = (0..100_000).map(|number| format!("choice {number}")).collect();
    let problem = one(&json!({"enum": many}), &json!("other"));
    assert!(problem.len() < 2_000 && problem.contains("more"), "{problem}");
    assert!(told(&json!({"enum": many}), &json!("choice 99999")).is_empty());
}

#[test]
fn a_whole_number_of_arguments_has_at_most_64_bits() {
    let schema = json!({"properties": {
        "limit": {"type": "integer", "minimum": 1},
        "many": {"type": "array", "items": {"type": "integer", "maximum": 9}},
    }});
    let validator = Validator::of_arguments(&schema).unwrap();
    let error = validator.check("read", &json!({"limit": 2f64.powi(64)})).unwrap_err();
    assert!(error.message.contains("at most 18446744073709551615"), "{error}");
    assert!(validator.check("read", &json!({"limit": u64::MAX, "many": [-1]})).is_ok());
    let error = validator.check("read", &json!({"many": [10]})).unwrap_err();
    assert!(error.message.contains("many.0 is 10, wanted: a number of at most 9"), "{error}");
    assert!(Validator::new(&schema).unwrap().is_valid(&json!({"limit": 2f64.powi(64)})));
}

#[test]
fn a_schema_that_points_elsewhere_is_never_fetched() {
    let why = Validator::new(&json!({"$ref": "https://example.com/schema.json"})).unwrap_err();
    assert!(
        why.contains("https://example.com/schema.json, and schemas are never fetched"),
        "{why}"
    );
}

#[test]
fn each_kind_of_problem_says_what_is_wanted() {
    for (schema, value, wanted) in [
        (json!({"type": ["null", "string"]}), json!(1), "1, wanted: string or null"),
        (json!({"const": "a"}), json!("b"), "\"b\", wanted: \"a\""),
        (json!({"exclusiveMinimum": 3}), json!(3), "3, wanted: a number above 3"),
        (json!({"exclusiveMaximum": 3}), json!(3.5), "3.5, wanted: a number below 3"),
        (json!({"multipleOf": 0.5}), json!(0.7), "0.7, wanted: a multiple of 0.5"),
        (json!({"minLength": 2}), json!("é"), "\"é\", wanted: at least 2 characters (there are 1)"),
        (json!({"maxItems": 1}), json!([1, 2]), "[1,2], wanted: at most 1 item (there are 2)"),
        (json!({"minProperties": 1}), json!({}), "{}, wanted: at least 1 field (there are 0)"),
        (json!({"pattern": "^a+$"}), json!("b"), "\"b\", wanted: a text that matches ^a+$"),
        (
            json!({"uniqueItems": true}),
            json!([1, 2, 1.0]),
            "[1,2,1.0], wanted: items that differ (those at 0 and 2 are the same)",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "[1], wanted: at least 1 item that fit: string (0 do)",
        ),
        (json!({"not": {"type": "string"}}), json!("a"), "\"a\", wanted: anything but string"),
        (
            json!({"prefixItems": [true], "items": false}),
            json!([1, 2]),
            "[1,2], wanted: at most 1 item (there are 2)",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]}),
            json!(true),
            "true, wanted: string or integer (at least 3)",
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 3}]}),
            json!(5),
            "5, wanted: what fits only one of several forms, and it fits two: integer; at least 3",
        ),
        (json!(false), json!(1), "1, wanted: nothing there"),
    ] {
        assert_eq!(one(&schema, &value), format!("the whole input is {wanted}"), "{schema}");
    }
}

#[test]
fn names_are_told_where_they_are_missing_or_unknown() {
    let schema = json!({
        "properties": {"headers": {"additionalProperties": {"type": "string"}}, "pattern": {}},
        "additionalProperties": false,
        "dependentRequired": {"pattern": ["path"]},
        "propertyNames": {"maxLength": 10},
    });
    for (value, wanted) in [
        (json!({"pattren": 1}), "pattren is not known, wanted: pattern"),
        (json!({"zzz": 1}), "zzz is not known, wanted: headers or pattern"),
        (json!({"pattern": 1}), "path is missing (pattern needs it)"),
        (json!({"headers": {"a.b/c": 1}}), "headers.\"a.b/c\" is 1, wanted: string"),
    ] {
        assert_eq!(one(&schema, &value), wanted);
    }
    let names = json!({"properties": {"env": {"propertyNames": {"pattern": "^[A-Z]+$"}}}});
    assert_eq!(
        one(&names, &json!({"env": {"a": 1}})),
        "the name of a field in env is \"a\", wanted: a text that matches ^[A-Z]+$"
    );
    let unevaluated = json!({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": false});
    assert_eq!(one(&unevaluated, &json!({"b": 1})), "b is not known, wanted: a");
}

#[test]
fn of_several_branches_the_one_that_is_meant_is_explained() {
    let schema = json!({
        "$defs": {"range": {
            "type": "object",
            "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
            "required": ["from"],
        }},
        "properties": {"range": {"anyOf": [{"$ref": "#/$defs/range"}, {"type": "null"}]}},
    });
    assert_eq!(
        told(&schema, &json!({"range": {"to": "end"}})),
        ["range.from is missing", "range.to is \"end\", wanted: integer"]
    );
    assert_eq!(
        told(&schema, &json!({"range": 5})),
        ["range is 5, wanted: object (with from) or null"]
    );
    let shape = |kind: &str, field: &str| {
        json!({
            "type": "object",
            "properties": {"kind": {"const": kind}, field: {"type": "number"}},
            "required": ["kind", field],
        })
    };
    let shapes = json!({"oneOf": [shape("circle", "radius"), shape("square", "side")]});
    assert_eq!(one(&shapes, &json!({"kind": "square"})), "side is missing");
    assert_eq!(
        one(&shapes, &json!({"kind": "line", "side": 1})),
        "kind is \"line\", wanted: one of \"circle\", \"square\""
    );
    assert_eq!(
        one(&shapes, &json!({"side": 1})),
        "the whole input is {\"side\":1}, wanted: object (kind \"circle\", with kind, radius) or \
         object (kind \"square\", with kind, side)"
    );
}

#[test]
fn a_schema_that_doubles_the_work_is_ended_after_a_number_of_steps() {
    let mut defs = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        defs.insert(level.to_string(), json!({"anyOf": [next, {"allOf": [next]}]}));
    }
    defs.insert("60".into(), json!({"type": "string"}));
    let schema = json!({"$ref": "#/$defs/0", "$defs": defs});
    let mut validator = Validator::new(&schema).unwrap();
    validator.steps = 100_000;
    let problems = validator.problems(&json!(1)).join("\n");
    assert!(problems.contains("takes too many steps"), "{problems}");
    assert!(!validator.is_valid(&json!(1)));
    assert!(validator.is_valid(&json!("the first branch fits")));
}

#[test]
fn a_schema_that_refers_to_itself_without_end_is_told() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"not": {"$ref": "#"}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        json!({"$dynamicAnchor": "x", "$dynamicRef": "#x"}),
        json!({"if": {"$ref": "#"}, "then": true}),
    ] {
        let (steps, problems) = steps(&schema, &json!({"a": 1}));
        assert!(problems.join("\n").contains("refers to itself without end"), "{problems:?}");
        assert!(steps < 100, "{schema}: {steps}");
        assert!(!Validator::new(&schema).unwrap().is_valid(&json!(1)), "{schema}");
    }
    // What goes on in other values ends with them.
    let tree = json!({"additionalProperties": {"$ref": "#"}, "type": "object"});
    assert_eq!(one(&tree, &json!({"a": {"b": 1}})), "a.b is 1, wanted: object");
}

#[test]
fn long_chains_and_deep_values_end_without_a_broken_stack() {
    let mut defs = serde_json::Map::new();
    for level in 0..10_000 {
        let next = format!("#/$defs/{}", level + 1);
        defs.insert(level.to_string(), json!({"allOf": [{"$ref": next}]}));
    }
    defs.insert("10000".into(), json!(true));
    let problem = one(&json!({"$ref": "#/$defs/0", "$defs": defs}), &json!(1));
    assert!(problem.contains(&format!("over {DEPTH} levels")), "{problem}");
    let any_json = json!({
        "$defs": {"json": {"anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#/$defs/json"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
        ]}},
        "$ref": "#/$defs/json",
    });
    let deep = (0..127).fold(json!("end"), |inner, level| {
        if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) }
    });
    assert!(told(&any_json, &deep).is_empty());
    let wrong = (0..127).fold(json!(5), |inner, _| json!([inner]));
    assert!(one(&any_json, &wrong).contains("0.0.0 is 5, wanted: string"));
    // What reads JSON refuses such a value; a program can make one.
    let deeper = (0..5_000).fold(json!("end"), |inner, _| Value::Array(vec![inner]));
    assert!(one(&any_json, &deeper).contains("levels"));
    // To drop it would take a deep stack.
    std::mem::forget(deeper);
}

#[test]
fn giant_values_take_a_few_steps_for_each_part() {
    let items: Vec<Value> = (0..100_000).map(Value::from).collect();
    let (taken, problems) = steps(&json!({"uniqueItems": true}), &json!(items));
    assert!(problems.is_empty() && taken < 500_000, "{taken}: {problems:?}");
    let choices = json!({"items": {"enum": items}});
    let (taken, problems) = steps(&choices, &json!(items));
    assert!(problems.is_empty() && taken < 1_000_000, "{taken}: {problems:?}");
    let wrong = vec![json!({"from": 1, "unknown": [1, 2]}); 200_000];
    let schema = json!({"items": {
        "properties": {"from": {"type": "string"}},
        "required": ["to"],
        "additionalProperties": false,
    }});
    let (taken, problems) = steps(&schema, &json!(wrong));
    assert!(taken < 3_000_000, "{taken}");
    assert_eq!(problems.len(), 21);
    assert_eq!(problems[20], "... and 599980 more");
    let branches = json!({"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}});
    let (taken, problems) = steps(&branches, &json!(items));
    assert!(problems.len() == 21 && taken < 1_000_000, "{taken}: {problems:?}");
}

#[test]
fn comparing_with_big_values_is_counted() {
    let big: Vec<Value> = (0..10_000).map(Value::from).collect();
    let close: Vec<Value> = (0..15).map(|last| json!([big, last])).collect();
    let schema = json!({"items": {"enum": close}});
    let values = vec![json!([big, 99]); 100];
    let mut validator = Validator::new(&schema).unwrap();
    validator.steps = 1_000_000;
    assert!(validator.problems(&json!(values)).join("\n").contains("too many steps"));
}

#[test]
fn a_giant_schema_is_read_in_one_pass() {
    let properties: serde_json::Map<String, Value> =
        (0..50_000).map(|number| (format!("p{number}"), json!({"$ref": "#/$defs/text"}))).collect();
    let schema = json!({"properties": properties, "$defs": {"text": {"type": "string"}}});
    let validator = Validator::new(&schema).unwrap();
    assert_eq!(validator.schema.nodes.len(), 50_002);
    assert!(validator.is_valid(&json!({"p49999": "a"})));
    assert!(!validator.is_valid(&json!({"p49999": 1})));
}
