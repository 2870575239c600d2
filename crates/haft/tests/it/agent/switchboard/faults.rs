//! The faults: what a server does instead of a good answer, and what a run has to come to then.

use std::time::Duration;

use bytes::Bytes;
use haft_testkit::http::{HttpResponse, Step};
use serde_json::json;

use crate::mock_provider::Wire;

/// What a run comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Want {
    /// It ends well, asked again or not.
    Well,
    /// It ends badly, with these words.
    Badly(&'static str),
    /// It ends well, or badly with a word on the answer.
    Either,
}

/// A server's answer, and what comes of it.
#[derive(Clone, Debug)]
pub struct Fault {
    pub name: String,
    pub answer: HttpResponse,
    pub want: Want,
    /// Whether only the virtual clock ends it.
    pub stalls: bool,
}

/// The events of a stream, each with the empty line behind it.
pub fn events(answer: &HttpResponse) -> Vec<String> {
    let [Step::Send(body)] = &answer.steps[..] else { panic!("one piece") };
    let body = String::from_utf8(body.to_vec()).unwrap();
    body.split_inclusive("\n\n").map(str::to_owned).collect()
}

fn fault(name: impl Into<String>, want: Want, steps: Vec<Step>) -> Fault {
    let stalls = steps.contains(&Step::Stall);
    let answer = HttpResponse { steps, ..HttpResponse::events("") };
    Fault { name: name.into(), answer, want, stalls }
}

fn send(text: impl Into<Bytes>) -> Step {
    Step::Send(text.into())
}

/// Faults at each event of a good stream: cut before it and inside of it, sent twice, and behind its
/// neighbour.
pub fn at_each_event(good: &HttpResponse) -> Vec<Fault> {
    let events = events(good);
    let mut all = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let before = events[..at].concat();
        let name = |what: &str| format!("{what} {} of {}", at + 1, events.len());
        let half = &event[..event.len() / 2];
        let cut = |text: String| vec![send(text), Step::Cut];
        all.push(fault(name("cut before event"), Want::Either, cut(before.clone())));
        all.push(fault(name("cut inside of event"), Want::Either, cut(format!("{before}{half}"))));
        let mut twice = events.clone();
        twice.insert(at, event.clone());
        all.push(fault(name("twice event"), Want::Either, vec![send(twice.concat())]));
        if at + 1 < events.len() {
            let mut swapped = events.clone();
            swapped.swap(at, at + 1);
            all.push(fault(name("swapped event"), Want::Either, vec![send(swapped.concat())]));
        }
    }
    all
}

/// A good stream that comes slowly, in pieces, or with what means nothing in it.
pub fn delays(good: &HttpResponse) -> Vec<Fault> {
    let events = events(good);
    let pause = Step::Wait(Duration::from_millis(2));
    let late = vec![Step::Wait(Duration::from_millis(20)), send(events.concat())];
    let paced = events.iter().flat_map(|event| [send(event.clone()), pause.clone()]).collect();
    let whole = Bytes::from(events.concat());
    let pieces =
        (0..whole.len()).step_by(7).map(|at| send(whole.slice(at..whole.len().min(at + 7))));
    let alive = events.iter().flat_map(|event| [send(": alive\n\n"), send(event.clone())]);
    let other_ends = events.concat().replace('\n', "\r\n");
    vec![
        fault("late", Want::Well, late),
        fault("event by event", Want::Well, paced),
        fault("in pieces of seven bytes", Want::Well, pieces.collect()),
        fault("with comments", Want::Well, alive.collect()),
        fault("with other line ends", Want::Well, vec![send(other_ends)]),
        fault(
            "behind a byte order mark",
            Want::Well,
            vec![send(format!("\u{feff}{}", events.concat()))],
        ),
    ]
}

/// Statuses that are no 200 with a stream.
pub fn statuses() -> Vec<Fault> {
    let said = json!({"error": {"message": "planted fault"}}).to_string();
    let of = |status: u16, want: Want| {
        let answer = HttpResponse::new(status, "application/json", said.clone());
        Fault { name: format!("status {status}"), answer, want, stalls: false }
    };
    let with = |mut fault: Fault, name: &str, header: (&str, &str), want: Want| {
        fault.answer.headers.push((header.0.into(), header.1.into()));
        Fault { name: format!("{}, {name}", fault.name), want, ..fault }
    };
    let saying = |status: u16, error: serde_json::Value, want: Want| {
        let body = json!({ "error": error });
        let answer = HttpResponse::new(status, "application/json", body.to_string());
        Fault { name: format!("status {status} saying {error}"), answer, want, stalls: false }
    };
    let mut all = vec![
        of(400, Want::Badly("planted fault")),
        of(401, Want::Badly("Check the key")),
        of(402, Want::Badly("Check the account")),
        of(403, Want::Badly("Check the key")),
        of(404, Want::Badly("Check the model's name")),
        of(413, Want::Badly("too long")),
        of(418, Want::Badly("418")),
        of(422, Want::Badly("planted fault")),
    ];
    all.extend([408, 409, 425, 429, 500, 502, 503, 529].map(|status| of(status, Want::Well)));
    let quota = json!({"code": "insufficient_quota", "message": "planted"});
    let bad = json!({"type": "invalid_request_error", "message": "planted"});
    let busy = json!({"type": "overloaded_error", "message": "planted"});
    all.extend([
        with(of(429, Want::Well), "come back soon", ("retry-after", "1"), Want::Well),
        with(
            of(429, Want::Well),
            "come back in an hour",
            ("retry-after", "3600"),
            Want::Badly("3,600 s"),
        ),
        with(
            of(301, Want::Well),
            "somewhere else",
            ("location", "http://127.0.0.1:9/"),
            Want::Badly("Redirects are not followed"),
        ),
        saying(429, quota, Want::Badly("quota")),
        saying(200, bad, Want::Badly("planted")),
        saying(200, busy, Want::Well),
    ]);
    let mut nothing = of(204, Want::Badly("204"));
    nothing.answer.steps.clear();
    all.push(nothing);
    all
}

/// What is no stream of this wire.
pub fn junk(wire: Wire, good: &HttpResponse) -> Vec<Fault> {
    let stream = events(good).concat();
    let whole = |name: &str, kind: &str, body: Bytes, want: Want| {
        let answer = HttpResponse::new(200, kind, body);
        Fault { name: name.into(), answer, want, stalls: false }
    };
    let sse = "text/event-stream";
    let mut not_utf8 = stream.clone().into_bytes();
    let at = stream.find("note two").unwrap_or(stream.len() / 2);
    not_utf8[at..at + 3].copy_from_slice(b"\xff\xfe\xc0");
    let busy = match wire {
        Wire::Anthropic | Wire::Responses => json!({"type": "error",
            "error": {"type": "overloaded_error", "message": "planted"}}),
        Wire::OpenAi => json!({"error": {"type": "server_error", "message": "planted"}}),
    };
    let html = "<!doctype html><html><body>Sign in to the planted network</body></html>";
    let gzip = {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(stream.as_bytes()).unwrap();
        packed.finish().unwrap()
    };
    let long = format!("data: \"{}\"\n\n", "x".repeat(17 << 20));
    vec![
        whole("words", sse, "I am no stream, I am words.\n".into(), Want::Badly("words")),
        whole("half of a JSON", sse, "data: {\"type\": \"mess\n\n".into(), Want::Badly("JSON")),
        whole("other JSON", sse, "data: [1, 2, 3]\n\n".into(), Want::Either),
        whole("a page", "text/html", html.into(), Want::Badly("planted network")),
        whole("a page that says it is a stream", sse, html.into(), Want::Badly("planted network")),
        whole("a huge line", sse, long.into(), Want::Badly("larger than")),
        whole("NULs", sse, vec![0; 10_000].into(), Want::Badly("no event stream")),
        whole("bytes that are no UTF-8", sse, not_utf8.into(), Want::Either),
        whole("another kind", "application/octet-stream", stream.clone().into(), Want::Well),
        whole("packed unannounced", sse, gzip.into(), Want::Badly("no event stream")),
        whole("nothing", sse, Bytes::new(), Want::Well),
        whole("only keep-alives", sse, ": alive\n\n: alive\n\n".into(), Want::Well),
        whole(
            "busy in the stream",
            sse,
            format!("event: error\ndata: {busy}\n\n").into(),
            Want::Well,
        ),
    ]
}

/// A server that says nothing more.
pub fn stalls(good: &HttpResponse) -> Vec<Fault> {
    let events = events(good);
    let stall =
        |name: &str, text: String, want: Want| fault(name, want, vec![send(text), Step::Stall]);
    vec![
        stall("stall at once", String::new(), Want::Well),
        stall("stall after the first event", events[0].clone(), Want::Well),
        stall("stall in an event", events[0][..10].to_owned(), Want::Well),
        stall("stall before the last event", events[..events.len() - 1].concat(), Want::Either),
        stall("stall after the last event", events.concat(), Want::Well),
    ]
}
