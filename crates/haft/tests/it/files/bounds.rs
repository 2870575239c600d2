//! Results that are bounded for programs and people as they are for models.

use serde_json::{Value, json};

use crate::{
    mcp_client::side_by_side,
    world::{World, text},
};

/// A workspace of three thousand files with long names.
fn crowded() -> World {
    let world = World::new();
    for n in 0..3_000 {
        world.file(&format!("{n:04}{}", "x".repeat(200)), "");
    }
    world
}

#[test]
fn a_huge_listing_is_bounded_for_programs_and_people_and_kept_whole() {
    let world = crowded();
    let input = json!({"path": ".", "limit": 3_000});
    let ran = world.tool("ls", &input, &["--json"]);
    let outcome = ran.json();
    assert_eq!(ran.code, Some(0), "{}", text(&outcome));
    for part in ["data", "detail"] {
        let size = outcome[part].to_string().len();
        assert!((50_000..=200_000).contains(&size), "{part} has {size} bytes");
    }
    assert!(
        text(&outcome).contains("the whole is kept: read or grep out://"),
        "{}",
        text(&outcome)
    );
    assert_eq!(outcome["data"]["truncated"], json!(true));
    let schema = world.run(&["tool", "spec", "ls"]).json();
    let entries = outcome["data"]["entries"].as_array().unwrap();
    assert!(entries.len() > 100 && entries.len() < 3_000, "{}", entries.len());
    assert!(entries.iter().all(Value::is_object) && schema["output_schema"].is_object());
    let cut = &outcome["detail"]["cut"];
    assert_eq!((&cut["by"], &cut["from"]), (&json!("items"), &json!(1)), "{cut}");
    assert!(cut["to"].as_u64().unwrap() < cut["total"].as_u64().unwrap(), "{cut}");
}

#[test]
fn a_client_of_the_server_gets_bounded_data_and_the_same_paths() {
    let world = crowded();
    world.file("a.txt", "alpha\n");
    let calls = [("ls", json!({"path": ".", "limit": 3_000})), ("read", json!({"path": "@a.txt"}))];
    let answers = side_by_side(&world, &["--structured"], &calls);
    let data = &answers[0]["result"]["structuredContent"];
    let size = data.to_string().len();
    // The text and the fields beside it share the budget of 50,000 characters.
    assert!((30_000..=55_000).contains(&size), "{size} bytes");
    assert!(data["text_content"].as_str().unwrap().contains("read or grep out://"), "{data}");
    let read = answers[1]["result"]["content"].to_string();
    assert!(read.contains("alpha") && read.contains("was taken as"), "{read}");
}
