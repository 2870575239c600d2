//! What is going on, for how long, and what stops it.
//!
//! **Invariant:** a fold over events; it knows no tool and writes nothing.

use haft_render::clean;
use haft_types::{AgentPath, Body, CallId, Event, From, Part};

/// What goes on while no answer comes.
const WAITING: &str = "waiting for the model";
/// Most columns of what is going on.
const LONGEST: usize = 60;

/// See the module.
#[derive(Default)]
pub struct Activity {
    /// The agent whose it is; none for that of all, in which the main one has the turns.
    agent: Option<AgentPath>,
    doing: Option<Doing>,
    /// Calls that run, with what each does.
    calls: Vec<(CallId, String)>,
    /// Whether a turn runs: a person's own command runs in none.
    in_turn: bool,
}

struct Doing {
    what: String,
    since: u64,
    /// When it ends by itself.
    until: Option<u64>,
}

impl Activity {
    /// What one agent does.
    pub fn of(agent: AgentPath) -> Self {
        Self { agent: Some(agent), ..Self::default() }
    }

    /// Updates the status by an event.
    pub fn event(&mut self, event: &Event, now: u64) {
        let is_main = match &self.agent {
            Some(agent) if event.agent != *agent => return,
            Some(_) => true,
            None => event.agent.is_main(),
        };
        match &event.body {
            // Words of haft begin no turn by themselves.
            Body::User { from, .. } if is_main && (self.in_turn || *from != From::Haft) => {
                (self.doing, self.in_turn) = (None, true);
                self.doing(WAITING, now);
            }
            Body::AnswerPart { part: Part::Thinking { .. }, .. } => self.doing("thinking", now),
            Body::AnswerPart { part: Part::Text { .. }, .. } => self.doing("writing", now),
            Body::CallPart { name, .. } => self.doing(&format!("{} ...", safe(name)), now),
            Body::AnswerFailed { retried: true, wait_ms, .. } => {
                let until = now.saturating_add(wait_ms.unwrap_or_default());
                let what = "asking again".to_owned();
                self.doing = Some(Doing { what, since: until, until: Some(until) });
            }
            Body::CallStarted { call, tool, plan, .. } => {
                let title = plan.as_ref().map_or(tool.as_str(), |plan| plan.title.as_str());
                self.calls.retain(|(other, _)| other != call);
                self.calls.push((call.clone(), safe(title)));
                self.running(now);
            }
            Body::CallEnded { call, .. } => {
                self.calls.retain(|(other, _)| other != call);
                self.running(now);
            }
            Body::TurnEnded { .. } if is_main => {
                *self = Self { agent: self.agent.take(), ..Self::default() };
            }
            _ => {}
        }
    }

    fn running(&mut self, now: u64) {
        match &self.calls[..] {
            [] if !self.in_turn => self.doing = None,
            [] => self.doing(WAITING, now),
            [(_, title)] => self.doing(&title.clone(), now),
            [(_, title), more @ ..] => {
                self.doing(&format!("{title}, and {} more", more.len()), now);
            }
        }
    }

    fn doing(&mut self, what: &str, now: u64) {
        if self.doing.as_ref().is_none_or(|doing| doing.what != what || doing.until.is_some()) {
            self.doing = Some(Doing { what: what.to_owned(), since: now, until: None });
        }
    }

    /// Whether something is going on.
    pub const fn is_shown(&self) -> bool {
        self.doing.is_some()
    }

    /// What is going on, in one line of at most so many columns that ends with what stops it, if
    /// anything does; none if nothing goes on.
    pub fn text(&self, now: u64, columns: usize, stops: &str) -> Option<String> {
        let doing = self.doing.as_ref()?;
        let left = doing.until.map(|until| until.saturating_sub(now));
        let time = if let Some(left) = left.filter(|left| *left > 0) {
            format!(" in {} s", left.div_ceil(1_000))
        } else {
            let seconds = now.saturating_sub(doing.since) / 1_000;
            format!(" \u{b7} {seconds} s")
        };
        let stops = if stops.is_empty() { String::new() } else { format!(" \u{b7} {stops} stops") };
        let end = time + &stops;
        let room = columns.saturating_sub(end.chars().count());
        Some(cut(&doing.what, room.min(LONGEST)) + &end)
    }
}

/// A text on one line.
fn safe(text: &str) -> String {
    clean(text).replace(['\n', '\t'], " ")
}

/// As much of a text as these columns surely take.
fn cut(text: &str, columns: usize) -> String {
    let wide = |c: char| if c.is_ascii() { 1 } else { 2 };
    if text.chars().map(wide).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let (mut used, mut short) = (1, String::new());
    for c in text.chars() {
        used += wide(c);
        if used > columns {
            break;
        }
        short.push(c);
    }
    short + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use haft_types::{Outcome, TurnId};

    use super::*;

    fn event(body: Body) -> Event {
        Event {
            v: 1,
            id: None,
            parent: None,
            turn: TurnId(1),
            agent: haft_types::AgentPath::default(),
            at: 0,
            body,
        }
    }

    #[test]
    fn what_is_going_on_is_said_with_its_seconds() {
        let (mut status, start) = (Activity::default(), 0_u64);
        let at = |seconds: u64| start + seconds * 1_000;
        assert_eq!(status.text(at(0), 80, "esc"), None);
        let words = |from| Body::User { from, parts: Vec::new() };
        status.event(&event(words(From::Haft)), at(0));
        assert_eq!(status.text(at(1), 80, "esc"), None, "words of haft begin nothing");
        let user = words(From::Person);
        let thinking = Part::Thinking { text: "hm".into(), signature: None };
        let part = |part| Body::AnswerPart { index: 0, part };
        let failed = |wait_ms| Body::AnswerFailed { error: "e".into(), retried: true, wait_ms };
        let started = |n| Body::CallStarted {
            call: CallId::nth(n),
            tool: format!("tool\u{1b}{n}"),
            input: None,
            plan: None,
        };
        let ended =
            |n| Body::CallEnded { call: CallId::nth(n), outcome: Outcome::default(), took: 1 };
        for (when, body, wanted) in [
            (0, user, "waiting for the model \u{b7} 2 s"),
            (3, part(thinking.clone()), "thinking \u{b7} 2 s"),
            (5, part(thinking), "thinking \u{b7} 4 s"),
            (9, failed(Some(8_000)), "asking again in 6 s"),
            (20, failed(Some(1_000)), "asking again \u{b7} 1 s"),
            (30, started(1), "tool\u{241b}1 \u{b7} 2 s"),
            (33, started(2), "tool\u{241b}1, and 1 more \u{b7} 2 s"),
            (36, ended(1), "tool\u{241b}2 \u{b7} 2 s"),
            (39, ended(2), "waiting for the model \u{b7} 2 s"),
        ] {
            status.event(&event(body), at(when));
            let text = status.text(at(when + 2), 80, "esc").unwrap();
            assert_eq!(text.strip_suffix(" \u{b7} esc stops"), Some(wanted));
        }
        assert_eq!(
            status.text(at(41), 30, "esc").unwrap(),
            "waiting for\u{2026} \u{b7} 2 s \u{b7} esc stops"
        );
        assert!(status.text(at(41), 30, "Ctrl-C").unwrap().ends_with(" \u{b7} Ctrl-C stops"));
    }

    #[test]
    fn nothing_goes_on_behind_a_command_of_the_person() {
        let mut status = Activity::default();
        let (tool, call) = ("bash".to_owned(), CallId::nth(1));
        let started = Body::CallStarted { call: call.clone(), tool, input: None, plan: None };
        status.event(&event(started), 0);
        assert!(status.is_shown());
        let ended = Body::CallEnded { call, outcome: Outcome::default(), took: 1 };
        status.event(&event(ended), 1);
        assert!(!status.is_shown());
    }
}
