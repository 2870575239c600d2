//! Data-driven: what was there, what is called, what is there then, on both hosts.
//!
//! A fixture is a JSON file: `about`, `before` and `after` (path to text, or to `{"hex": ...}`),
//! and `calls` with `tool`, `input`, `status` (done by default), and `says` or `lacks`: texts
//! that the answer has or does not have.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;
use serde_json::Value;

use crate::{Files, both, fits};
use haft_types::Status;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    about: String,
    before: BTreeMap<String, Content>,
    calls: Vec<Step>,
    after: BTreeMap<String, Content>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Bytes { hex: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    tool: String,
    input: Value,
    #[serde(default)]
    status: Status,
    #[serde(default)]
    says: Vec<String>,
    #[serde(default)]
    lacks: Vec<String>,
}

impl Content {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.clone().into_bytes(),
            Self::Bytes { hex } => {
                let digits: Vec<u8> =
                    hex.chars().filter_map(|c| u8::try_from(c.to_digit(16)?).ok()).collect();
                digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
            }
        }
    }
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let all: Vec<Fixture> = serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        all
    };
    paths.iter().flat_map(read).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fixture_holds_on_both_hosts() {
    let fixtures = fixtures();
    assert!(fixtures.len() > 20, "only {} fixtures", fixtures.len());
    for fixture in fixtures {
        let files: Vec<(&str, Vec<u8>)> =
            fixture.before.iter().map(|(path, content)| (path.as_str(), content.bytes())).collect();
        let files: Vec<(&str, &[u8])> =
            files.iter().map(|(path, content)| (*path, content.as_slice())).collect();
        for world in both(&files as Files<'_>) {
            let name = format!("{} ({})", fixture.about, world.host.name());
            for step in &fixture.calls {
                let outcome = world.call(&step.tool, step.input.clone()).await;
                let text = outcome.joined_text();
                assert_eq!(outcome.status, step.status, "{name}: {text}");
                for wanted in &step.says {
                    assert!(text.contains(wanted), "{name}: lacks {wanted:?}:\n{text}");
                }
                for unwanted in &step.lacks {
                    assert!(!text.contains(unwanted), "{name}: has {unwanted:?}:\n{text}");
                }
                if step.status == Status::Done {
                    fits(&world, &step.tool, &outcome);
                }
            }
            let mut found = world.files().await.unwrap();
            found.retain(|path, _| !path.ends_with('/'));
            let wanted: BTreeMap<String, Vec<u8>> =
                fixture.after.iter().map(|(path, c)| (path.clone(), c.bytes())).collect();
            assert_eq!(found, wanted, "{name}");
        }
    }
}
