//! The official test suite of JSON Schema for draft 2020-12: every case gives the right answer, but
//! for those that ask for what haft has not on purpose, each of which is named here.

use std::{
    fs,
    path::{Path, PathBuf},
};

use haft_testkit::machine;
use haft_tool::validate::Validator;
use serde_json::Value;

/// Cases that have to give the right answer.
const CASES: usize = 1_409;

/// File, schema, and the start of the case; with the reason.
const LEFT_OUT: &[(&str, &str, &str, &str)] = &[
    (
        "vocabulary",
        "schema that uses custom metaschema with with no validation vocabulary",
        "no validation: invalid number",
        "`$schema` is not looked at, so every schema has all vocabularies",
    ),
    (
        "optional/format-assertion",
        "",
        "",
        "`format` describes and checks nothing, whatever the metaschema says",
    ),
    (
        "optional/cross-draft",
        "refs to historic drafts are processed as historic drafts",
        "",
        "`$schema` is not looked at: every schema is one of draft 2020-12",
    ),
];

fn json(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The JSON files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let inner = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    paths.into_iter().flat_map(inner).collect()
}

/// What schemas of the suite refer to, with addresses.
fn documents(suite: &Path) -> Vec<(String, Value)> {
    let remotes = suite.join("remotes");
    let mut all: Vec<(String, Value)> = files(&remotes)
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&remotes).unwrap().to_str().unwrap().replace('\\', "/");
            (format!("http://localhost:1234/{name}"), json(&path))
        })
        .collect();
    for path in files(&suite.join("metaschemas/draft202012")) {
        let schema = json(&path);
        all.push((schema["$id"].as_str().unwrap().to_owned(), schema));
    }
    all
}

fn is_left_out(file: &str, schema: &str, case: &str) -> bool {
    LEFT_OUT.iter().any(|(other, group, start, _)| {
        *other == file && (group.is_empty() || *group == schema) && case.starts_with(start)
    })
}

#[test]
fn every_case_of_the_official_suite_gives_the_right_answer() {
    let suite = machine::json_schema_suite();
    let documents = documents(&suite);
    let documents: Vec<(&str, &Value)> =
        documents.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let root = suite.join("tests/draft2020-12");
    let (mut right, mut wrong, mut left_out) = (0, Vec::new(), 0);
    for path in files(&root) {
        let name = path.strip_prefix(&root).unwrap().with_extension("");
        let name = name.to_str().unwrap().replace('\\', "/");
        // Each of these is about what one format means.
        if name.starts_with("optional/format/") {
            continue;
        }
        for group in json(&path).as_array().unwrap() {
            let about = group["description"].as_str().unwrap();
            let validator = Validator::with_documents(&group["schema"], &documents);
            for case in group["tests"].as_array().unwrap() {
                let what = case["description"].as_str().unwrap();
                if is_left_out(&name, about, what) {
                    left_out += 1;
                    continue;
                }
                let found = validator.as_ref().map(|validator| {
                    let valid = validator.is_valid(&case["data"]);
                    let problems = validator.problems(&case["data"]);
                    assert_eq!(valid, problems.is_empty(), "{name}: {about}: {what}: {problems:?}");
                    valid
                });
                match found {
                    Ok(valid) if case["valid"] == valid => right += 1,
                    found => wrong.push(format!("{name}: {about}: {what}: {found:?}")),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!((right, left_out), (CASES, 6), "cases that are right, and that are left out");
}

#[test]
fn every_schema_of_the_suite_fits_the_metaschema() {
    let suite = machine::json_schema_suite();
    let documents = documents(&suite);
    let documents: Vec<(&str, &Value)> =
        documents.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let about = serde_json::json!({"$ref": "https://json-schema.org/draft/2020-12/schema"});
    let metaschema = Validator::with_documents(&about, &documents).unwrap();
    for path in files(&suite.join("tests/draft2020-12")) {
        for group in json(&path).as_array().unwrap() {
            let problems = metaschema.problems(&group["schema"]);
            assert!(problems.is_empty(), "{}: {}: {problems:?}", path.display(), group["schema"]);
        }
    }
    let wrong = serde_json::json!({"properties": {"a": {"minimum": "many", "type": "strng"}}});
    let problems = metaschema.problems(&wrong).join("\n");
    assert!(problems.contains("properties.a.minimum is \"many\", wanted: number"), "{problems}");
    assert!(problems.contains("properties.a.type is \"strng\", wanted: one of"), "{problems}");
}
