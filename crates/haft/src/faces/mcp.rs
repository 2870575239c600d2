//! `haft mcp`: the tools for any MCP client, over standard input and output.

use std::sync::Arc;

use futures::StreamExt as _;
use tokio::io::{Interest, unix::AsyncFd};

use super::view;
use crate::{
    app::{
        agent,
        session::{Extensions, SessionBuilder, SessionChoice},
    },
    cli::{
        Mcp,
        exit::{Ending, Failure},
    },
};

/// Serves until the client disconnects or a signal comes.
pub async fn run(arguments: &Mcp, extensions: &Extensions) -> Ending {
    let mut base = super::base(&arguments.common, arguments.root.as_deref())?;
    base.every_tool = true;
    base.no_conversation = true;
    let concurrency = base.loaded.settings.tools.concurrency;
    // Whether somebody can answer is known of each client, once it has said hello.
    let env = base.env(None, true)?;
    let which = SessionChoice::IfNeeded;
    let common = &arguments.common;
    let core = super::open(SessionBuilder { base, common, which, env, extensions }).await?;
    let told = view::notices(&core.bus);
    let bus = core.bus.clone();
    let watch = Arc::new(move || {
        let feed = bus.subscribe();
        futures::stream::unfold(feed, |mut feed| async { Some((feed.next().await?, feed)) }).boxed()
    });
    let concurrency = usize::try_from(concurrency).unwrap_or(usize::MAX);
    let server = haft_mcp::Server::new(core.dispatcher.clone(), watch, concurrency)
        .structured(arguments.structured);
    let mut signals = agent::Signals::new()?;
    let end = async move {
        tokio::select! {
            _ = signals.received() => {}
            () = output_closed() => {}
        }
    };
    let ended = haft_mcp::serve_stdio(server, end).await;
    super::close(&core).await;
    drop(told.await);
    ended.map_err(Failure::Failed)
}

/// Returns once nobody can read standard output any more; never where that cannot be seen.
async fn output_closed() {
    #[expect(deprecated, reason = "standard output is never closed here, so this one is sound")]
    let watched = AsyncFd::with_interest(std::io::stdout(), Interest::WRITABLE);
    if let Ok(output) = watched {
        while let Ok(mut state) = output.writable().await {
            if state.ready().is_write_closed() {
                return;
            }
            state.clear_ready();
        }
    }
    std::future::pending::<()>().await;
}
