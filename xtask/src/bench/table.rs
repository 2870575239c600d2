//! Figures as data and as a table: value, peer, ratio, and the spread of the runs.
//!
//! The value is the median of the runs and the spread is their smallest and largest, so that a
//! single slow run is seen and does not move the value. It does not measure anything.

use std::fmt::Write as _;

/// One row of the table.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// What was measured.
    pub(super) name: String,
    /// Of all the values in the row, such as `ms`.
    pub(super) unit: &'static str,
    /// Ours.
    pub(super) value: Runs,
    /// The name and the runs of what it is compared with; the reason where there is none.
    pub(super) peer: Result<(String, Runs), String>,
}

/// The values of several runs, at least one.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    sorted: Vec<f64>,
}

impl Runs {
    /// Takes the values in any order; `None` when there is none or one is not a number.
    pub(super) fn new(mut values: Vec<f64>) -> Option<Self> {
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        Some(Self { sorted: values })
    }

    /// The value in the middle, or between the two in the middle.
    pub(super) fn median(&self) -> f64 {
        let middle = self.sorted.len() / 2;
        if self.sorted.len() % 2 == 1 {
            return self.sorted[middle];
        }
        f64::midpoint(self.sorted[middle - 1], self.sorted[middle])
    }

    fn spread(&self) -> String {
        let (first, last) = (self.sorted[0], self.sorted[self.sorted.len() - 1]);
        format!("{}..{}", shown(first), shown(last))
    }
}

/// The rows as a table in Markdown, ready for docs/measured.md.
pub(super) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| figure | value | spread | peer | its value | its spread | ratio |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let (name, unit) = (&row.name, row.unit);
        let value = format!("{} {unit} | {}", shown(row.value.median()), row.value.spread());
        let peer = match &row.peer {
            Ok((peer, runs)) => format!(
                "{peer} | {} {unit} | {} | {}",
                shown(runs.median()),
                runs.spread(),
                ratio(row.value.median(), runs.median())
            ),
            Err(reason) if reason.is_empty() => "no peer | | |".to_owned(),
            Err(reason) => format!("no peer ({reason}) | | |"),
        };
        let _ = writeln!(text, "| {name} | {value} | {peer} |");
    }
    text
}

fn ratio(value: f64, peer: f64) -> String {
    if peer > 0.0 { format!("{:.2}x", value / peer) } else { "none".to_owned() }
}

/// Three digits that mean something.
fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64]) -> Runs {
        Runs::new(values.to_vec()).unwrap()
    }

    #[test]
    fn the_median_is_not_moved_by_one_slow_run() {
        assert!((runs(&[3.0, 1.0, 90.0, 2.0, 2.5]).median() - 2.5).abs() < 1e-9);
        assert!((runs(&[1.0, 2.0]).median() - 1.5).abs() < 1e-9);
        assert!(Runs::new(Vec::new()).is_none());
        assert!(Runs::new(vec![f64::NAN]).is_none());
    }

    #[test]
    fn rows_with_and_without_a_peer() {
        let value = runs(&[1.0, 2.0, 3.0]);
        let with = Row {
            name: "start".to_owned(),
            unit: "ms",
            value: value.clone(),
            peer: Ok(("rg".to_owned(), runs(&[4.0]))),
        };
        let without = Row { peer: Err(String::new()), ..with.clone() };
        let text = markdown(&[with, without]);
        let lines: Vec<_> = text.lines().skip(2).collect();
        assert_eq!(
            lines[0],
            "| start | 2.00 ms | 1.00..3.00 | rg | 4.00 ms | 4.00..4.00 | 0.50x |"
        );
        assert_eq!(lines[1], "| start | 2.00 ms | 1.00..3.00 | no peer | | | |");
        let cells: Vec<_> = text.lines().map(|line| line.matches('|').count()).collect();
        assert!(cells.iter().all(|count| *count == 8), "{text}");
    }
}
