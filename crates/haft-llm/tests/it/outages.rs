//! Outages on a virtual clock: how long each is sat out, and that nothing is asked for twice at once.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use haft_llm::{
    Answer, Blobs, Delta, Encoded, LlmError, Provider, Request, Retry, RetryPolicy, Target,
};
use haft_types::{Message, Stop, ToolSpec, Usage};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A server that is up in some spans of time, in seconds from its start, and else fails in one way.
struct Server {
    start: Instant,
    up: Vec<(u64, u64)>,
    error: LlmError,
    asked: Mutex<Vec<u64>>,
}

impl Server {
    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    fn asked(&self) -> Vec<u64> {
        self.asked.lock().unwrap().clone()
    }
}

impl Provider for Server {
    fn name(&self) -> &'static str {
        "server"
    }

    fn host(&self) -> &'static str {
        "h:1"
    }

    fn encode(&self, _: &Message, _: &Target, _: &dyn Blobs) -> Encoded {
        unreachable!("nothing is said here")
    }

    fn encode_tools(&self, _: &[ToolSpec]) -> String {
        String::new()
    }

    fn stream(&self, _: Request, _: CancellationToken) -> Answer {
        let now = self.now();
        self.asked.lock().unwrap().push(now);
        if !self.up.iter().any(|(from, to)| (*from..*to).contains(&now)) {
            return stream::iter([Err(self.error.clone())]).boxed();
        }
        let text = Delta::Text { index: 0, text: "here".into() };
        let end = Delta::End { stop: Stop::EndTurn, usage: Usage::default() };
        stream::iter([Ok(text), Ok(end)]).boxed()
    }
}

fn busy(retry_after_ms: Option<u64>) -> LlmError {
    LlmError::Busy { message: "status 529".into(), retry_after_ms, paid: false }
}

fn lost() -> LlmError {
    LlmError::Unreachable("http://h:1 cannot be reached".into())
}

/// A server and a client of it.
fn meet(up: &[(u64, u64)], error: LlmError, beyond_ms: Option<u64>) -> (Arc<Server>, Retry) {
    let server = Server { start: Instant::now(), up: up.to_vec(), error, asked: Mutex::default() };
    let server = Arc::new(server);
    let policy = RetryPolicy { beyond_ms, ..RetryPolicy::default() };
    (server.clone(), Retry::new(server, policy))
}

/// Asks once; gives the pauses that were told in milliseconds, and the error of the end.
async fn ask(client: &Retry, stop: &CancellationToken) -> (Vec<u64>, Option<LlmError>) {
    let mut answer = client.stream(Request::default(), stop.clone());
    let (mut pauses, mut error) = (Vec::new(), None);
    while let Some(item) = answer.next().await {
        match item {
            Ok(Delta::Restart { wait_ms, .. }) => pauses.push(wait_ms),
            Ok(_) => {}
            Err(why) => error = Some(why),
        }
    }
    (pauses, error)
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_sat_out_once_a_request_was_answered() {
    for error in [lost(), busy(None), LlmError::Cut("cut".into())] {
        for (seconds, survives) in [(30, true), (110, true), (600, false)] {
            let up = [(0, 1), (1 + seconds, u64::MAX)];
            let (server, client) = meet(&up, error.clone(), None);
            let stop = CancellationToken::new();
            assert_eq!(ask(&client, &stop).await, (vec![], None));
            tokio::time::advance(Duration::from_secs(1)).await;
            let (pauses, end) = ask(&client, &stop).await;
            println!("{error:?} for {seconds} s: asked at {:?}", server.asked());
            assert_eq!(end.is_none(), survives, "{seconds} s of {error:?}: {end:?}");
            let waited: u64 = pauses.iter().sum();
            assert_eq!(1 + waited / 1_000, server.now(), "what was told is what was waited");
            assert!(pauses.iter().all(|pause| *pause <= 15_000), "{pauses:?}");
            let Some(end) = end else { continue };
            assert_eq!(server.now(), 121, "it gives up after 120 s");
            assert!(
                end.to_string().contains("tried") && end.to_string().contains("in 120 s"),
                "{end}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn before_any_success_only_an_address_that_cannot_be_reached_ends_soon() {
    for (error, seconds) in [(lost(), 10), (busy(None), 120), (LlmError::Cut("cut".into()), 120)] {
        for beyond in [None, Some(30_000)] {
            let (server, client) = meet(&[(600, u64::MAX)], error.clone(), beyond);
            let waits_on = beyond.is_some() && seconds > 10;
            let (_, end) = ask(&client, &CancellationToken::new()).await;
            assert_eq!(end.is_none(), waits_on, "{error:?} {beyond:?} {end:?}");
            let Some(end) = end else { continue };
            assert_eq!(server.now(), seconds, "{error:?}");
            assert!(end.to_string().contains(&format!("times in {seconds} s")), "{end}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_somebody_waits_it_waits_on_until_it_is_cancelled() {
    let (server, client) = meet(&[(0, 1), (601, u64::MAX)], lost(), Some(30_000));
    let stop = CancellationToken::new();
    ask(&client, &stop).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let (pauses, end) = ask(&client, &stop).await;
    assert_eq!((end, pauses.last()), (None, Some(&30_000)));
    assert!((601..640).contains(&server.now()), "{}", server.now());

    let (server, client) = meet(&[(0, 1)], lost(), Some(30_000));
    ask(&client, &stop).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let cancel = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_mins(5)).await;
        cancel.cancel();
    });
    let (_, end) = ask(&client, &stop).await;
    assert_eq!((end, server.now()), (Some(LlmError::Cancelled), 301), "at once");
}

#[tokio::test(start_paused = true)]
async fn the_servers_hint_is_kept_and_one_that_is_too_long_ends_at_once() {
    let (server, client) = meet(&[(20, u64::MAX)], busy(Some(20_000)), None);
    let (pauses, end) = ask(&client, &CancellationToken::new()).await;
    assert_eq!((pauses, end, server.asked()), (vec![20_000], None, vec![0, 20]));

    let (server, client) = meet(&[], busy(Some(3_600_000)), Some(30_000));
    let (pauses, end) = ask(&client, &CancellationToken::new()).await;
    assert_eq!((pauses, server.now()), (vec![], 0));
    assert!(end.unwrap().to_string().contains("asks to wait 3,600 s, longer than haft waits"));
}

/// A server whose connections break before the first word until a moment, however it is asked.
struct Breaking {
    start: Instant,
    until: u64,
    wholes: Mutex<Vec<u64>>,
}

impl Provider for Breaking {
    fn name(&self) -> &'static str {
        "breaking"
    }

    fn host(&self) -> &'static str {
        "h:1"
    }

    fn encode(&self, _: &Message, _: &Target, _: &dyn Blobs) -> Encoded {
        unreachable!("nothing is said here")
    }

    fn encode_tools(&self, _: &[ToolSpec]) -> String {
        String::new()
    }

    fn stream(&self, request: Request, _: CancellationToken) -> Answer {
        let now = self.start.elapsed().as_secs();
        let text = "the connection broke".to_owned();
        if request.whole {
            self.wholes.lock().unwrap().push(now);
        }
        let end = Delta::End { stop: Stop::EndTurn, usage: Usage::default() };
        stream::iter([match (now < self.until, request.whole) {
            (true, true) => Err(LlmError::Cut(text)),
            (true, false) => Err(LlmError::Empty(text)),
            (false, _) => Ok(end),
        }])
        .boxed()
    }
}

/// Who breaks off before the first word is asked why, without a stream. Where that breaks off, too,
/// it is an outage like any other.
#[tokio::test(start_paused = true)]
async fn a_network_that_breaks_before_the_first_word_is_sat_out() {
    for (until, survives) in [(60, true), (600, false)] {
        let start = Instant::now();
        let server = Arc::new(Breaking { start, until, wholes: Mutex::default() });
        let client = Retry::new(server.clone(), RetryPolicy::default());
        let (_, end) = ask(&client, &CancellationToken::new()).await;
        assert_eq!(end.is_none(), survives, "{end:?}");
        let wholes = server.wholes.lock().unwrap();
        assert!(wholes.len() > 2, "it is asked why each time: {wholes:?}");
        if let Some(end) = end {
            assert_eq!(start.elapsed().as_secs(), 120);
            assert!(end.to_string().contains("the connection broke\nhaft tried"), "{end}");
        }
    }
}
