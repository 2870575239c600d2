//! haft with a second front end: another program sends commands and reads events through a socket.
//!
//! Each line that it sends is a command as JSON. Each line that it gets has an `event`, or the
//! `answer` to its oldest command without one. The socket is `second.sock` in the current folder.

use futures::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::FuturesOrdered};
use haft_agent::{Control, Feed};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    net::{
        UnixListener,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

fn main() -> std::process::ExitCode {
    haft::Runner::new().front_end("second", start).run()
}

fn start(control: Control) {
    // Before the task, so that no event is missed.
    let feed = control.subscribe();
    tokio::spawn(async move {
        let Ok(listener) = UnixListener::bind("second.sock") else { return };
        let Ok((stream, _)) = listener.accept().await else { return };
        let (read, write) = stream.into_split();
        // The other side may go at any moment.
        drop(serve(&control, feed, BufReader::new(read).lines(), write).await);
    });
}

async fn serve(
    control: &Control,
    mut feed: Feed,
    mut lines: Lines<BufReader<OwnedReadHalf>>,
    mut write: OwnedWriteHalf,
) -> std::io::Result<()> {
    let mut answers = FuturesOrdered::new();
    loop {
        let line: Value = tokio::select! {
            event = feed.next() => match event {
                Some(event) => json!({ "event": *event }),
                None => return Ok(()),
            },
            line = lines.next_line() => match line? {
                Some(line) => {
                    answers.push_back(answer(control, &line));
                    continue;
                }
                None => return Ok(()),
            },
            Some(answer) = answers.next(), if !answers.is_empty() => json!({ "answer": answer }),
        };
        write.write_all(format!("{line}\n").as_bytes()).await?;
    }
}

/// Sends a command at once; the future gives its answer.
fn answer(control: &Control, line: &str) -> BoxFuture<'static, Value> {
    let command = match serde_json::from_str(line) {
        Ok(command) => control.send(command),
        Err(error) => {
            let text = error.to_string();
            return async move { json!({ "error": "no command", "text": text }) }.boxed();
        }
    };
    let answered = async move {
        match command.await {
            Ok(done) => json!(done),
            Err(error) => json!({ "error": error, "text": error.to_string() }),
        }
    };
    answered.boxed()
}
