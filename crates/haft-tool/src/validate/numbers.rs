//! Numbers as JSON Schema means them: by their mathematical value, whatever way they are written.
//!
//! **Invariant:** nothing is rounded: integers and floats compare exactly, and `multipleOf` counts
//! in decimals, by the shortest text of a float, so that 0.0075 is a multiple of 0.0001.

use std::cmp::Ordering;

use serde_json::Number;

/// From here on, and below its negative, no float fits 128 bits.
const BEYOND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;

/// The number where it is whole and has at most 128 bits.
#[expect(clippy::cast_possible_truncation, reason = "checked to be whole and within the bounds")]
pub(super) fn whole(number: &Number) -> Option<i128> {
    if let Some(whole) = number.as_i128() {
        return Some(whole);
    }
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < BEYOND).then_some(float as i128)
}

/// Reports whether a number has no fraction, however big it is.
pub(super) fn is_whole(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// Compares by value.
pub(super) fn compare(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(one), None) => beside(one, float(other)),
        (None, Some(other)) => beside(other, float(one)).reverse(),
        // JSON has no number that is none.
        (None, None) => float(one).partial_cmp(&float(other)).unwrap_or(Ordering::Equal),
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be within the bounds")]
fn beside(whole: i128, float: f64) -> Ordering {
    if float >= BEYOND {
        return Ordering::Less;
    }
    if float <= -BEYOND {
        return Ordering::Greater;
    }
    let rest = 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal);
    whole.cmp(&(float.trunc() as i128)).then(rest)
}

/// A number without its sign, as digits times a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u64,
    power: i32,
}

impl Decimal {
    /// Reads the shortest text of a number, which is what it is written as.
    pub(super) fn of(number: &Number) -> Self {
        if let Some(whole) = number.as_i128() {
            let digits = u64::try_from(whole.unsigned_abs()).unwrap_or(u64::MAX);
            return Self { digits, power: 0 }.shortened();
        }
        let text = number.to_string();
        let (digits, power) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let mut power: i32 = power.parse().unwrap_or(0);
        if let Some((_, fraction)) = digits.split_once('.') {
            power -= i32::try_from(fraction.len()).unwrap_or(0);
        }
        let digits = digits.bytes().filter(u8::is_ascii_digit).fold(0_u64, |sum, digit| {
            sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
        });
        Self { digits, power }.shortened()
    }

    /// Without zeros at the end, so that there are few digits.
    fn shortened(mut self) -> Self {
        while self.digits != 0 && self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.power += 1;
        }
        self
    }

    /// Reports whether nothing is left when this is divided by another, which is not 0.
    pub(super) fn is_multiple_of(self, divisor: Self) -> bool {
        if self.digits == 0 || divisor.digits == 0 {
            return self.digits == 0;
        }
        let (digits, by) = (u128::from(self.digits), u128::from(divisor.digits));
        match u32::try_from(self.power - divisor.power) {
            Ok(power) => (digits % by * power_of_ten(power, by)).is_multiple_of(by),
            // More zeros than the number has digits.
            Err(_) if divisor.power - self.power > 19 => false,
            Err(_) => {
                let zeros = (self.power - divisor.power).unsigned_abs();
                digits.is_multiple_of(by * 10_u128.pow(zeros))
            }
        }
    }
}

/// The steps that it takes to divide a number: a float is written as text for that.
pub(super) fn divided(number: &Number) -> u64 {
    if number.is_f64() { 50 } else { 1 }
}

/// What a power of ten leaves when it is divided by a number of 64 bits.
fn power_of_ten(mut power: u32, by: u128) -> u128 {
    let (mut result, mut base) = (1 % by, 10 % by);
    while power > 0 {
        if power % 2 == 1 {
            result = result * base % by;
        }
        base = base * base % by;
        power /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn number(value: &Value) -> Number {
        value.as_number().unwrap().clone()
    }

    #[test]
    fn multiples_are_exact_in_decimals() {
        for (value, divisor, wanted) in [
            (json!(0.0075), json!(0.0001), true),
            (json!(0.00751), json!(0.0001), false),
            (json!(4.5), json!(1.5), true),
            (json!(35), json!(1.5), false),
            (json!(0), json!(7), true),
            (json!(-9), json!(3), true),
            (json!(1e308), json!(0.5), true),
            (json!(1e308), json!(0.123_456_789), false),
            (json!(1e-300), json!(1e300), false),
            (json!(u64::MAX), json!(3), true),
            (json!(u64::MAX), json!(u64::MAX), true),
            (json!(u64::MAX), json!(1e19), false),
            (json!(i64::MIN), json!(2), true),
            (json!(12_391_239_123_u64), json!(1e-8), true),
            (json!(19.99), json!(0.01), true),
            (json!(0.1), json!(0.3), false),
        ] {
            let (value, divisor) = (number(&value), number(&divisor));
            let found = Decimal::of(&value).is_multiple_of(Decimal::of(&divisor));
            assert_eq!(found, wanted, "{value} by {divisor}");
        }
    }

    #[test]
    fn whole_numbers_and_floats_compare_by_value() {
        for (one, other, wanted) in [
            (json!(1), json!(1.0), Ordering::Equal),
            (json!(1), json!(1.5), Ordering::Less),
            (json!(-1), json!(-1.5), Ordering::Greater),
            (json!(u64::MAX), json!(18_446_744_073_709_551_616.0), Ordering::Less),
            (json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992.0), Ordering::Greater),
            (json!(1e300), json!(5), Ordering::Greater),
            (json!(-1e300), json!(i64::MIN), Ordering::Less),
            (json!(-0.0), json!(0), Ordering::Equal),
        ] {
            let (one, other) = (number(&one), number(&other));
            assert_eq!(compare(&one, &other), wanted, "{one} {other}");
            assert_eq!(compare(&other, &one), wanted.reverse(), "{other} {one}");
        }
    }
}
