//! `sleep`: lets time pass until something happens.
//!
//! **Invariant:** it ends at its time, at a message for the model, at the end of a job, and when it is
//! cancelled, whichever comes first. It holds no other call up, and the limit of calls does not end it.

use std::time::Duration;

use haft_tool::{Arrivals, Cx, Jobs, Tool, schema_of};
use haft_types::{Env, Kind, Loading, Outcome, Place, Plan, Shape, Status, ToolError, ToolSpec};
use jiff::{Timestamp, Zoned, civil::Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;

/// The longest sleep.
const LONGEST: Duration = Duration::from_hours(1);

/// Sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sleep {}

/// Arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Input {
    /// How long, at most 3600.
    seconds: Option<f64>,
    /// Until this time instead: "14:30" here, or as "2026-01-31T14:30:00Z".
    until: Option<String>,
}

/// What programs read.
#[derive(Debug, Serialize, JsonSchema)]
struct Data {
    /// Milliseconds that passed.
    slept_ms: u64,
    /// What ended it: time, message or job.
    woke: &'static str,
}

/// What ended a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Woke {
    Time,
    Message,
    Job,
    Cancelled,
}

impl Input {
    /// How long to sleep, and what is to be said of it.
    fn length(&self, now: &Zoned) -> Result<(Duration, Option<String>), ToolError> {
        let asked = match (self.seconds, self.until.as_deref()) {
            (Some(seconds), None) => Duration::try_from_secs_f64(seconds).map_err(|_| {
                let error = ToolError::new(format!("seconds is {seconds}"));
                error.hint("Give a number from 0 to 3600.")
            })?,
            (None, Some(until)) => until_then(until.trim(), now)?,
            (Some(_), Some(_)) => {
                let error = ToolError::new("seconds and until are both given");
                return Err(error.hint("Give one of them."));
            }
            (None, None) => {
                let error = ToolError::new("neither seconds nor until is given");
                return Err(error.hint("Give one of them: seconds: 60, or until: \"14:30\"."));
            }
        };
        let note = (asked > LONGEST).then(|| {
            format!(
                "[{} s are left of that: a call sleeps {} s at most]",
                asked.saturating_sub(LONGEST).as_secs(),
                LONGEST.as_secs()
            )
        });
        Ok((asked.min(LONGEST), note))
    }
}

/// The time from now to a moment; a time of day is the next one.
fn until_then(until: &str, now: &Zoned) -> Result<Duration, ToolError> {
    let wrong = || {
        let shown: String = until.chars().take(60).collect();
        ToolError::new(format!("until is {shown:?}, which is no time"))
            .hint("Write a time of day as \"14:30\", or a moment as \"2026-01-31T14:30:00Z\".")
    };
    let then = if let Ok(then) = until.parse::<Timestamp>() {
        then
    } else {
        let time: Time = until.parse().map_err(|_| wrong())?;
        let at = |day: &Zoned| day.with().time(time).build().map_err(|_| wrong());
        let today = at(now)?;
        let then = if today > *now { today } else { at(&now.tomorrow().map_err(|_| wrong())?)? };
        then.timestamp()
    };
    let left = then.as_millisecond().saturating_sub(now.timestamp().as_millisecond());
    u64::try_from(left).map(Duration::from_millis).map_err(|_| {
        let error = ToolError::new(format!("until is {until}, which is over"));
        error.hint(format!("It is {} now.", now.timestamp()))
    })
}

impl Tool for Sleep {
    type Input = Input;

    fn spec(&self, _: &Env) -> ToolSpec {
        ToolSpec {
            output_schema: schema_of::<Data>(),
            aliases: vec!["Sleep".into()],
            snippet: "Wait without doing anything, until a time, a message or a job's end".into(),
            hint: "sleep wait pause delay until time later poll".into(),
            kind: Kind::Think,
            loading: Loading::Deferred,
            ..ToolSpec::new(
                "sleep",
                "Sleep",
                "Wait, at most an hour. A message of the person and the end of a job end it \
                 early. To wait for a job alone, its output or a port, use job.",
            )
        }
    }

    fn plan(&self, input: &Input, place: &Place) -> Result<Plan, ToolError> {
        let title = match (input.seconds, &input.until) {
            (Some(seconds), _) => format!("Sleeping {seconds} s"),
            (None, Some(until)) => {
                format!("Sleeping until {}", until.chars().take(60).collect::<String>())
            }
            (None, None) => "Sleeping".to_owned(),
        };
        Ok(Plan::new(place, title).waiting())
    }

    async fn run(&self, input: Input, cx: &Cx) -> Result<Outcome, ToolError> {
        let (length, note) = input.length(&Zoned::now())?;
        let begin = Instant::now();
        let text = format!("asleep for {} s", length.as_secs_f64());
        cx.progress(Shape::Progress { text, done: None, total: None });
        let woke = cx.rest(slept(length, cx)).await;
        let passed = begin.elapsed();
        let slept_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let seconds = Duration::from_millis(slept_ms).as_secs_f64();
        let (woke, why) = match woke {
            Woke::Cancelled => {
                let text = format!("cancelled after {seconds} s");
                return Ok(Outcome::ended(Status::Cancelled, text));
            }
            Woke::Time => ("time", "the time is over".to_owned()),
            Woke::Message => ("message", "a message came: you get it with what follows".to_owned()),
            Woke::Job => ("job", "a job has ended".to_owned()),
        };
        let mut text = format!("Slept {seconds} s: {why}.");
        if let Some(note) = note.filter(|_| woke == "time") {
            text.push('\n');
            text.push_str(&note);
        }
        let detail = Shape::Markdown { text: text.clone() };
        let data = json!(Data { slept_ms, woke });
        let mut outcome = Outcome::text(text).with_data(data).with_detail(detail);
        let news = cx.session().map.get::<Jobs>().news(cx);
        outcome.content.extend(news.into_iter().map(Into::into));
        Ok(outcome)
    }
}

/// Waits for whatever comes first.
async fn slept(length: Duration, cx: &Cx) -> Woke {
    let (jobs, arrivals) =
        (cx.session().map.get::<Jobs>(), cx.conversation().map.get::<Arrivals>());
    // From here on none is missed; what ended before that the model does not know ends it at once.
    let mut ends = jobs.ends();
    let known = jobs.unreported(cx.agent()).is_empty();
    let ended = async {
        if known {
            // Where nothing can end any more, nothing does.
            match ends.changed().await {
                Ok(()) => {}
                Err(_) => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        biased;
        () = cx.stop.cancelled() => Woke::Cancelled,
        () = arrivals.came() => Woke::Message,
        () = ended => Woke::Job,
        () = tokio::time::sleep(length) => Woke::Time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(seconds: Option<f64>, until: Option<&str>) -> Result<u64, String> {
        let now: Zoned = "2026-01-31T13:30:30+02:00[+02:00]".parse().unwrap();
        let input = Input { seconds, until: until.map(str::to_owned) };
        let length = input.length(&now).map_err(|error| error.to_string());
        length.map(|(length, note)| {
            assert_eq!(note.is_some(), length == LONGEST, "{length:?}");
            length.as_secs()
        })
    }

    #[test]
    fn a_time_is_the_next_one_and_an_hour_is_the_most() {
        let until = |text: &str| length(None, Some(text));
        assert_eq!(length(Some(1.5), None), Ok(1));
        assert_eq!(length(Some(1e9), None), Ok(3_600));
        assert_eq!(until("14:00"), Ok(29 * 60 + 30));
        assert_eq!(until("13:30:31"), Ok(1));
        // That was half a minute ago.
        assert_eq!(until("13:30"), Ok(3_600));
        assert_eq!(until("2026-01-31T11:31:00Z"), Ok(30));
        assert_eq!(until("2027-01-31T11:31:00Z"), Ok(3_600));
        for (wrong, said) in [
            (until("2026-01-31T11:30:00Z"), "which is over"),
            (until("soon"), "which is no time"),
            (length(Some(-1.0), None), "seconds is -1"),
            (length(Some(f64::NAN), None), "seconds is NaN"),
            (length(None, None), "neither"),
            (length(Some(1.0), Some("14:00")), "both"),
        ] {
            let error = wrong.unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
