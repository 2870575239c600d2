//! Whether two values are the same: `1` is `1.0`, and the order of an object's properties is none.
//!
//! **Invariant:** what is equal has one hash. Work is counted, a step for each value looked at; the
//! hash has a key, so that nobody can choose values whose hashes are the same.

use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::Value;

use super::numbers;

/// Reports whether two values are equal; adds to `steps` what it took.
pub(super) fn equal(one: &Value, other: &Value, steps: &mut u64) -> bool {
    *steps += 1;
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => numbers::compare(one, other).is_eq(),
        (Value::String(one), Value::String(other)) => {
            *steps += one.len().min(other.len()) as u64 / 64;
            one == other
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| equal(one, other, steps))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(name, one)| {
                    *steps += name.len() as u64 / 64;
                    other.get(name).is_some_and(|other| equal(one, other, steps))
                })
        }
        _ => one == other,
    }
}

/// The hash of a value; adds to `steps` what it took.
pub(super) fn hash(value: &Value, keys: &RandomState, steps: &mut u64) -> u64 {
    *steps += 1;
    let mut hasher = keys.build_hasher();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(value) => value.hash(&mut hasher),
        Value::Number(number) => match numbers::whole(number) {
            Some(whole) => whole.hash(&mut hasher),
            None => number.as_f64().map(f64::to_bits).hash(&mut hasher),
        },
        Value::String(text) => {
            *steps += text.len() as u64 / 64;
            text.hash(&mut hasher);
        }
        Value::Array(items) => {
            (1_u8, items.len()).hash(&mut hasher);
            for item in items {
                hash(item, keys, steps).hash(&mut hasher);
            }
        }
        Value::Object(map) => {
            // A sum, which no order changes.
            let sum = map.iter().fold(0_u64, |sum, (name, value)| {
                *steps += name.len() as u64 / 64;
                sum.wrapping_add(keys.hash_one((name, hash(value, keys, steps))))
            });
            (2_u8, map.len(), sum).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Fewer items than this are compared each with each: that needs no memory.
const FEW: usize = 8;

/// The positions of two items that are equal, if there are any.
pub(super) fn twins(
    items: &[Value],
    keys: &RandomState,
    steps: &mut u64,
) -> Option<(usize, usize)> {
    if items.len() < FEW {
        let mut pairs =
            (1..items.len()).flat_map(|later| (0..later).map(move |first| (first, later)));
        return pairs.find(|(first, later)| equal(&items[*first], &items[*later], steps));
    }
    let mut hashes: Vec<(u64, usize)> =
        items.iter().enumerate().map(|(at, item)| (hash(item, keys, steps), at)).collect();
    hashes.sort_unstable();
    *steps += items.len() as u64;
    let mut runs = hashes.chunk_by(|one, other| one.0 == other.0).filter(|run| run.len() > 1);
    runs.find_map(|run| {
        let (_, first) = run[0];
        // Others of one hash are no more likely than a broken machine.
        let twin = run[1..].iter().find(|(_, at)| equal(&items[first], &items[*at], steps));
        twin.map(|(_, at)| (first, *at))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_equal_however_they_are_written() {
        let keys = RandomState::new();
        for (one, other, wanted) in [
            (json!(1), json!(1.0), true),
            (json!([1, {"a": 0}]), json!([1.0, {"a": -0.0}]), true),
            (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), true),
            (json!(1e300), json!(1e300), true),
            (json!(1), json!(true), false),
            (json!(0), json!(false), false),
            (json!([[]]), json!([{}]), false),
            (json!({"a": 1}), json!({"b": 1}), false),
            (json!("a"), json!(["a"]), false),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0), false),
        ] {
            let mut steps = 0;
            assert_eq!(equal(&one, &other, &mut steps), wanted, "{one} {other}");
            let same = hash(&one, &keys, &mut steps) == hash(&other, &keys, &mut steps);
            assert_eq!(same, wanted, "{one} {other}");
        }
    }

    #[test]
    fn twins_among_many_are_found_in_a_linear_number_of_steps() {
        let keys = RandomState::new();
        let mut items: Vec<Value> = (0..100_000).map(|number| json!([number])).collect();
        let mut steps = 0;
        assert_eq!(twins(&items, &keys, &mut steps), None);
        items.push(json!([7.0]));
        assert_eq!(twins(&items, &keys, &mut steps), Some((7, 100_000)));
        assert!(steps < 1_000_000, "{steps}");
        assert_eq!(twins(&[json!(1), json!(2), json!(1.0)], &keys, &mut steps), Some((0, 2)));
    }
}
