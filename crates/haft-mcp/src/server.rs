//! The server: lists the pinned tools and takes calls of them.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream::BoxStream};
use haft_tool::{Dispatcher, Scheduler, Ticket};
use haft_types::{Body, CallId, Event, QuestionId, Shape, ToolUse, TurnId};
#[expect(deprecated, reason = "the revisions that are served have it")]
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam, SetLevelRequestParams};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, InitializeResult, JsonObject,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
        ProtocolVersion, ServerCapabilities,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::task::JoinSet;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    ask,
    outbox::Level,
    stdio, translate,
    transport::{InTurn, Places, RawArguments, Wire},
};

/// Gives everything that happens from now on, for progress and questions of one call.
pub type Watch = Arc<dyn Fn() -> BoxStream<'static, Arc<Event>> + Send + Sync>;

/// How long calls may still run once the client has said all, and none of them starts or ends.
const LAST_CALLS: Duration = Duration::from_secs(1);
/// How long their answers may take when they are cancelled then.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How often the client hears that a call waits for those before it.
const WAITS: Duration = Duration::from_secs(3);
/// What that counts of its progress: the first of a call that runs is 1.
const SMALL: f64 = 1e-6;
/// How long cancelled calls may take to end.
const END_WITHIN: Duration = Duration::from_secs(3);

/// An MCP server over one session's tools. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    dispatcher: Arc<Dispatcher>,
    watch: Watch,
    concurrency: usize,
    /// Whether answers have `structuredContent`, too.
    structured: bool,
    /// The calls of the connection: those that conflict run in the order in which they came, but that
    /// none waits for a wait.
    order: Arc<Scheduler>,
    places: Places,
    calls: TaskTracker,
    unread: Level,
    /// The least level of what is told beside the calls, as its place among the levels.
    least: Arc<AtomicU8>,
    stop: CancellationToken,
    /// Cancelled once the client has said all: from then on nobody can be asked.
    said: CancellationToken,
}

impl Server {
    /// A server that runs at most `concurrency` calls at once; others wait their turn.
    pub fn new(dispatcher: Arc<Dispatcher>, watch: Watch, concurrency: usize) -> Self {
        dispatcher.session.cancelled_are_unheard();
        let order = Arc::new(Scheduler::shared());
        let (all, session) = (order.clone(), dispatcher.session.clone());
        let places = Arc::new(move || InTurn(Arc::new(all.turn()), session.next_call()));
        Self {
            dispatcher,
            watch,
            concurrency,
            structured: false,
            order,
            places,
            calls: TaskTracker::new(),
            unread: Level::default(),
            least: Arc::default(),
            stop: CancellationToken::new(),
            said: CancellationToken::new(),
        }
    }

    /// Gives what programs get beside the content, and declares it. Many clients then hand the model
    /// that alone.
    #[must_use]
    pub fn structured(mut self, on: bool) -> Self {
        self.structured = on;
        self
    }

    /// Waits until a call may start, or is cancelled; meanwhile the client hears that it waits.
    async fn come(&self, turn: &Ticket, request: &ToolUse, context: &RequestContext<RoleServer>) {
        let waits = async {
            let mut count = 0.0;
            let Some(token) = context.meta.get_progress_token() else { return };
            loop {
                tokio::time::sleep(WAITS).await;
                count += SMALL;
                let told = ProgressNotificationParam::new(token.clone(), count)
                    .with_message("waits until calls before it have ended");
                // A client that does not listen is not a reason to stop the call.
                drop(context.peer.notify_progress(told).await);
            }
        };
        tokio::select! {
            biased;
            () = self.dispatcher.ready(turn, request) => {}
            () = context.ct.cancelled() => {}
            () = self.stop.cancelled() => {}
            () = async { waits.await; std::future::pending().await } => {}
        }
    }

    /// Runs one call to its end, telling the client how far it is and what it asks.
    async fn run(
        self,
        request: ToolUse,
        turn: Arc<Ticket>,
        context: RequestContext<RoleServer>,
    ) -> rmcp::model::CallToolResult {
        self.come(&turn, &request, &context).await;
        let stop = self.stop.child_token();
        if context.ct.is_cancelled() {
            stop.cancel();
        }
        let over = CancellationToken::new();
        let following = tokio::spawn(
            Follow {
                call: request.id.clone(),
                dispatcher: self.dispatcher.clone(),
                context: context.clone(),
                asked: BTreeMap::new(),
                asking: JoinSet::new(),
                count: 0.0,
            }
            .run((self.watch)(), over.clone()),
        );
        let tools = &self.dispatcher.tools;
        let spec = tools.spec(&request.name).filter(|_| self.structured).cloned();
        let running = self.dispatcher.run(request, TurnId::default(), stop.clone());
        let mut running = std::pin::pin!(running);
        let outcome = tokio::select! {
            outcome = &mut running => outcome,
            () = context.ct.cancelled() => {
                stop.cancel();
                running.await
            }
        };
        over.cancel();
        // The answer is the last that the client hears of a call.
        drop(following.await);
        translate::result(outcome, spec.as_deref(), &*self.dispatcher.session.blobs)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> InitializeResult {
        let mut capabilities = ServerCapabilities::builder().enable_tools().build();
        capabilities.logging = Some(JsonObject::new());
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
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let has_person = ask::can_answer(&context.peer);
        let specs = self.dispatcher.tools.specs().iter().filter(|spec| has_person || !spec.asks);
        let tools = specs.map(|spec| translate::tool(spec, self.structured));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    #[expect(deprecated, reason = "the revisions that are served have it")]
    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.least.store(request.level as u8, Ordering::Relaxed);
        Ok(())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if ask::can_answer(&context.peer) {
            self.dispatcher.session.questions.set_somebody(true);
            if self.said.is_cancelled() {
                self.dispatcher.session.questions.set_somebody(false);
            }
        }
        let place = context.extensions.remove::<InTurn>();
        let InTurn(turn, id) = place.unwrap_or_else(|| (self.places)());
        let (name, wire_id) = (request.name.into_owned(), id.0.to_string());
        let raw = context.extensions.remove::<RawArguments>().map_or_else(String::new, |raw| raw.0);
        let call = ToolUse::from_wire(id, wire_id, name, raw);
        // Tracked, so that the end of the connection waits for what runs.
        let running = self.calls.track_future(self.clone().run(call, turn, context));
        Ok(tokio::spawn(running)
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?
            .into())
    }
}

/// Passes on what a call tells while it runs.
struct Follow {
    call: CallId,
    dispatcher: Arc<Dispatcher>,
    context: RequestContext<RoleServer>,
    /// The questions that are open, each with what ends it.
    asked: BTreeMap<QuestionId, CancellationToken>,
    asking: JoinSet<()>,
    count: f64,
}

impl Follow {
    /// Follows to the call's end, and past `over` only to the end of what is there already.
    async fn run(mut self, mut events: BoxStream<'static, Arc<Event>>, over: CancellationToken) {
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => event,
                () = over.cancelled() => None,
            };
            let Some(event) = event else { break };
            if matches!(&event.body, Body::CallEnded { call, .. } if *call == self.call) {
                break;
            }
            self.tell(&event.body).await;
        }
        self.asked.values().for_each(CancellationToken::cancel);
        while self.asking.join_next().await.is_some() {}
    }

    async fn tell(&mut self, body: &Body) {
        match body {
            Body::Asked { question } if question.call.as_ref() == Some(&self.call) => {
                let (peer, over) = (self.context.peer.clone(), CancellationToken::new());
                self.asked.insert(question.id.clone(), over.clone());
                let (question, session) = (question.clone(), self.dispatcher.session.clone());
                let root = self.dispatcher.place.cwd.clone();
                self.asking.spawn(async move {
                    ask::ask(&peer, &question, &session, root, &over).await;
                });
            }
            Body::Answered { question, .. } => {
                if let Some(over) = self.asked.remove(question) {
                    over.cancel();
                }
            }
            body => {
                let Some(token) = self.context.meta.get_progress_token() else { return };
                if let Some(progress) = progress(body, &self.call, &token, &mut self.count) {
                    // A client that does not listen is not a reason to stop the call.
                    drop(self.context.peer.notify_progress(progress).await);
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
            // What is not there any more is no news.
            Shape::Progress { text, done: None, .. } if text.is_empty() => return None,
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

/// Tells the client what has to be said beside its calls, to the end of the session's events.
#[expect(deprecated, reason = "the revisions that are served have it")]
async fn notices(
    peer: Peer<RoleServer>,
    mut events: BoxStream<'static, Arc<Event>>,
    least: Arc<AtomicU8>,
) {
    while let Some(event) = events.next().await {
        let Body::Notice { level, text } = &event.body else { continue };
        let level = match level {
            haft_types::Level::Info => LoggingLevel::Info,
            haft_types::Level::Warning => LoggingLevel::Warning,
            haft_types::Level::Error => LoggingLevel::Error,
        };
        if level as u8 >= least.load(Ordering::Relaxed) {
            let said = LoggingMessageNotificationParam::new(level, Value::from(text.as_str()));
            // A client that does not listen is told nothing.
            drop(peer.notify_logging_message(said.with_logger("haft")).await);
        }
    }
}

/// Serves one client over standard input and output until it has said all and has its answers, or
/// `until` is over, then ends what still runs. Once the client has said all and for a second no call
/// starts or ends, what runs is cancelled, and answered as that.
///
/// # Errors
/// When the client reads nothing of what it asks for.
pub async fn serve_stdio(server: Server, until: impl Future<Output = ()>) -> Result<(), String> {
    let (calls, stop) = (server.calls.clone(), server.stop.clone());
    let unread = server.unread.clone();
    let (said, session) = (server.said.clone(), server.dispatcher.session.clone());
    let (events, least) = ((server.watch)(), server.least.clone());
    let (input, output) = (stdio::input(), stdio::output());
    let in_turn = (server.concurrency, server.places.clone());
    let transport = Wire::new(input, output, in_turn, unread.clone(), server.said.clone());
    let order = server.order.clone();
    let serving = async {
        match server.serve(transport).await {
            Ok(running) => {
                let telling = tokio::spawn(notices(running.peer().clone(), events, least));
                let ended = running.waiting().await;
                telling.abort();
                ended.map(drop).map_err(|error| error.to_string())
            }
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let alone = async {
        said.cancelled().await;
        session.questions.set_somebody(false);
        while tokio::time::timeout(LAST_CALLS, order.moved()).await.is_ok() {}
        stop.cancel();
        tokio::time::sleep(LAST_WORDS).await;
        // Who has all answers may still read them.
        if calls.is_empty() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = serving => ended,
        () = until => Ok(()),
        () = alone => Ok(()),
    };
    stop.cancel();
    calls.close();
    // Children die with their calls; whatever does not end in time ends with the process.
    drop(tokio::time::timeout(END_WITHIN, calls.wait()).await);
    if unread.is_overrun() {
        return Err("the client reads none of its answers, and too many wait".to_owned());
    }
    ended
}
