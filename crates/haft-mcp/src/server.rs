//! The server: lists the pinned tools and takes calls of them.

use std::{
    borrow::Cow,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{StreamExt as _, stream::BoxStream};
use haft_tool::Dispatcher;
use haft_types::{Body, CallId, Event, Shape, ToolUse, TurnId};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, InitializeResult, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
        ServerCapabilities,
    },
    service::RequestContext,
    transport::async_rw::AsyncRwTransport,
};
use serde_json::Value;
use tokio::{
    io::{AsyncRead, ReadBuf, Stdin},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{ask, translate};

/// Gives everything that happens from now on, for progress and questions of one call.
pub type Watch = Arc<dyn Fn() -> BoxStream<'static, Arc<Event>> + Send + Sync>;

/// Longest line that a client may send, in bytes.
const LINE_MAX: usize = 64 << 20;
/// How long calls may go on when the client has gone, before they are cancelled.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long cancelled calls may take to end.
const END_WITHIN: Duration = Duration::from_secs(3);

/// An MCP server over one session's tools. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    dispatcher: Arc<Dispatcher>,
    watch: Watch,
    places: Arc<Semaphore>,
    calls: TaskTracker,
    stop: CancellationToken,
}

impl Server {
    /// A server that runs at most `concurrency` calls at once; others wait their turn.
    pub fn new(dispatcher: Arc<Dispatcher>, watch: Watch, concurrency: usize) -> Self {
        Self {
            dispatcher,
            watch,
            places: Arc::new(Semaphore::new(concurrency.max(1))),
            calls: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Runs one call to its end, telling the client how far it is and what it asks.
    async fn run(
        self,
        request: ToolUse,
        context: RequestContext<RoleServer>,
    ) -> rmcp::model::CallToolResult {
        let stop = self.stop.child_token();
        let place = tokio::select! {
            place = self.places.acquire() => place.ok(),
            () = context.ct.cancelled() => { stop.cancel(); None }
            () = stop.cancelled() => None,
        };
        let watching = tokio::spawn(follow(
            (self.watch)(),
            request.id.clone(),
            self.dispatcher.clone(),
            context.clone(),
        ));
        let running = self.dispatcher.run(request, TurnId::default(), stop.clone());
        let mut running = std::pin::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = context.ct.cancelled() => {
                stop.cancel();
                running.await
            }
        };
        watching.abort();
        drop(place);
        translate::result(outcome, &*self.dispatcher.session.blobs)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = InitializeResult::new(capabilities);
        info.server_info = Implementation::new("haft", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(format!(
            "Tools for files, search and commands in {}. Relative paths start there. Results over \
             a tool's budget are kept whole under an out:// address that read and grep take.",
            self.dispatcher.place.cwd
        ));
        info
    }

    /// Later revisions have no requests from the server, so nobody could be asked.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.dispatcher.tools.specs().iter().map(|spec| translate::tool(spec));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if ask::can_answer(&context.peer) {
            self.dispatcher.session.questions.set_somebody(true);
        }
        let input = Value::Object(request.arguments.unwrap_or_default());
        let id = self.dispatcher.session.next_call();
        let call = ToolUse::new(id, request.name.into_owned(), input);
        // Tracked, so that the end of the connection waits for what runs.
        let running = self.calls.track_future(self.clone().run(call, context));
        Ok(tokio::spawn(running)
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            .into())
    }
}

/// Passes on what a call tells while it runs.
async fn follow(
    mut events: BoxStream<'static, Arc<Event>>,
    call: CallId,
    dispatcher: Arc<Dispatcher>,
    context: RequestContext<RoleServer>,
) {
    let token = context.meta.get_progress_token();
    let mut count = 0.0;
    while let Some(event) = events.next().await {
        match &event.body {
            Body::Asked { question } if question.call.as_ref() == Some(&call) => {
                let (question, questions) =
                    (question.clone(), dispatcher.session.questions.clone());
                let peer = context.peer.clone();
                tokio::spawn(async move { ask::ask(&peer, &question, &questions).await });
            }
            body => {
                let Some(token) = &token else { continue };
                if let Some(progress) = progress(body, &call, token, &mut count) {
                    // A client that does not listen is not a reason to stop the call.
                    drop(context.peer.notify_progress(progress).await);
                }
            }
        }
    }
}

/// Progress of this call as the protocol tells it; the count only ever grows.
#[expect(clippy::cast_precision_loss, reason = "counts of steps are far below 2^53")]
fn progress(
    body: &Body,
    call: &CallId,
    token: &ProgressToken,
    count: &mut f64,
) -> Option<ProgressNotificationParam> {
    let (message, done, total) = match body {
        Body::CallOutput { call: of, text, .. } if of == call => (text.clone(), None, None),
        Body::CallProgress { call: of, detail } if of == call => match &detail.shape {
            Shape::Progress { text, done, total } => (text.clone(), *done, *total),
            _ => return None,
        },
        _ => return None,
    };
    *count = done.map_or(*count + 1.0, |done| done as f64).max(*count);
    let mut progress = ProgressNotificationParam::new(token.clone(), *count);
    progress.total = total.map(|total| total as f64);
    progress.message = Some(message);
    Some(progress)
}

/// Standard input that cancels what still runs a moment after the client has gone: a script that
/// writes its calls and closes the pipe still gets the answers of short ones.
struct UntilEnd {
    input: Stdin,
    stop: CancellationToken,
}

impl AsyncRead for UntilEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = ready!(Pin::new(&mut self.input).poll_read(cx, into));
        if read.is_err() || (into.filled().len() == before && into.remaining() > 0) {
            let stop = self.stop.clone();
            tokio::spawn(async move {
                tokio::time::sleep(LAST_CALLS).await;
                stop.cancel();
            });
        }
        Poll::Ready(read)
    }
}

/// Serves one client over standard input and output until it goes, or `until` is over, then ends
/// what still runs.
///
/// # Errors
/// When the client breaks the protocol before it is connected.
pub async fn serve_stdio(server: Server, until: impl Future<Output = ()>) -> Result<(), String> {
    let (calls, stop) = (server.calls.clone(), server.stop.clone());
    let input = UntilEnd { input: tokio::io::stdin(), stop: stop.clone() };
    let transport =
        AsyncRwTransport::new(input, tokio::io::stdout()).with_max_line_length(LINE_MAX);
    let serving = async {
        match server.serve(transport).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| error.to_string()),
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let ended = tokio::select! {
        ended = serving => ended,
        () = until => Ok(()),
    };
    stop.cancel();
    calls.close();
    // Children die with their calls; whatever does not end in time ends with the process.
    drop(tokio::time::timeout(END_WITHIN, calls.wait()).await);
    ended
}
