//! Changes of the list of tasks, many at a time.

use futures::future::join_all;
use haft_testkit::world::World;
use haft_types::Status;
use serde_json::json;

/// Calls that nothing puts in order: each counts, and no number is given twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_change_is_lost_to_another_one() {
    let world = World::memory(haft_tools::builtin(), [("a.txt", "")]).unwrap();
    let create = |number: usize| {
        let input = json!({"subject": format!("thing {number}")});
        world.call("task_create", input)
    };
    let made = join_all((0..60).map(create)).await;
    assert!(made.iter().all(|outcome| outcome.status == Status::Done), "{made:?}");
    // Each of sixty calls adds another blocker of one task, beside others that complete these.
    let change = |id: usize| {
        let world = &world;
        async move {
            let add = json!({"task": "60", "add_blocked_by": [id.to_string()]});
            let done = json!({"task": id.to_string(), "status": "completed"});
            futures::join!(world.call("task_update", add), world.call("task_update", done))
        }
    };
    join_all((1..60).map(change)).await;
    let data = world.call("task_list", json!({})).await.data.unwrap();
    let tasks = data["tasks"].as_array().unwrap();
    let ids: Vec<usize> =
        tasks.iter().map(|task| task["id"].as_str().unwrap().parse().unwrap()).collect();
    assert_eq!(ids, (1..=60).collect::<Vec<_>>());
    assert_eq!((&data["done"], &data["total"]), (&json!(59), &json!(60)));
    assert_eq!(tasks[59]["blocked_by"].as_array().unwrap().len(), 59);
    // Two that would close a circle together: one of them is refused.
    let (one, other) = futures::join!(
        world.call("task_update", json!({"task": "1", "add_blocked_by": ["2"]})),
        world.call("task_update", json!({"task": "2", "add_blocked_by": ["1"]})),
    );
    let refused = [one, other].iter().filter(|outcome| outcome.status == Status::Failed).count();
    assert_eq!(refused, 1);
}
