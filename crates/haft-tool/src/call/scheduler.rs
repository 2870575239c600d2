//! Schedules the calls of one caller: which may run at the same time, and in which order the others
//! run.
//!
//! **Invariant:** no call starts before one that came earlier, nor beside one with which it
//! conflicts. A call is planned when all calls before it have started. It is planned again whenever
//! one of them has ended, since the plan may depend on what they do. A dropped [`Ticket`] holds up
//! no other call.
//!
//! One connection may carry several conversations, and none of them waits for what another one
//! waits for. So a call that only waits holds up no later call of a connection. In one answer of a
//! model, a call after a wait is meant to run after it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use haft_types::{Plan, ToolUse};
use tokio::sync::Notify;

use crate::Dispatcher;

/// The calls of one caller: of one model answer, or of one connection.
#[derive(Default)]
pub struct Scheduler {
    calls: Mutex<Calls>,
    moved: Notify,
    /// Whether several conversations share it.
    is_shared: bool,
}

#[derive(Default)]
struct Calls {
    last: u64,
    /// Those that have not ended, in the order in which they came, each with its plan once it has
    /// started.
    open: Vec<(u64, Option<Plan>)>,
}

/// The place of a call in a [`Scheduler`], until it is dropped.
pub struct Ticket {
    order: Arc<Scheduler>,
    number: u64,
}

impl Scheduler {
    /// Creates a scheduler for a connection that several conversations may share.
    pub fn shared() -> Self {
        Self { is_shared: true, ..Self::default() }
    }

    /// Gives the next call its place in the order.
    pub fn turn(self: &Arc<Self>) -> Ticket {
        let mut calls = self.calls();
        calls.last += 1;
        let number = calls.last;
        calls.open.push((number, None));
        Ticket { order: Arc::clone(self), number }
    }

    /// Waits until a call starts or ends.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticket {
    /// Waits until the call may start; `plan` says what it would do now.
    ///
    /// # Cancel safety
    /// The call keeps its place.
    async fn ready(&self, plan: impl Fn() -> Plan) {
        loop {
            let mut moved = pin!(self.order.moved.notified());
            moved.as_mut().enable();
            if self.is_next() && self.starts(plan()) {
                return;
            }
            moved.await;
        }
    }

    /// Reports whether all that came earlier have started.
    fn is_next(&self) -> bool {
        let calls = self.order.calls();
        calls.open.iter().find(|(_, plan)| plan.is_none()).is_none_or(|(n, _)| *n == self.number)
    }

    /// Starts the call where nothing that runs conflicts with it.
    fn starts(&self, plan: Plan) -> bool {
        let mut calls = self.order.calls();
        let holds_up =
            |running: &Plan| !(self.order.is_shared && running.waits) && running.conflicts(&plan);
        if calls.open.iter().any(|(_, running)| running.as_ref().is_some_and(holds_up)) {
            return false;
        }
        if let Some(own) = calls.open.iter_mut().find(|(number, _)| *number == self.number) {
            own.1 = Some(plan);
        }
        drop(calls);
        self.order.moved.notify_waiters();
        true
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.order.calls().open.retain(|(number, _)| *number != self.number);
        self.order.moved.notify_waiters();
    }
}

impl Dispatcher {
    /// Waits until a call may start beside those that came before it.
    ///
    /// # Cancel safety
    /// The call keeps its place.
    pub async fn ready(&self, turn: &Ticket, request: &ToolUse) {
        turn.ready(|| {
            // A plan that breaks down does so again when the call runs, and is told there.
            let planned = catch_unwind(AssertUnwindSafe(|| self.plan(request)));
            planned.unwrap_or_else(|_| Plan::anything(&self.place, &*request.name))
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::FutureExt as _;
    use haft_types::{Access, HostPath, Place, Style, Target};

    use super::*;

    fn at(text: &str) -> HostPath {
        HostPath::new(text.as_bytes(), Style::Posix).unwrap()
    }

    fn plan() -> Plan {
        let place = Place {
            host: "local".into(),
            cwd: at("/w"),
            roots: vec![at("/w")],
            read_roots: Vec::new(),
            home: at("/home/me"),
            temp: at("/tmp"),
        };
        Plan::new(&place, "")
    }

    /// Lets all start that may, one after the other; gives how many did in each round, whose calls
    /// then end.
    fn rounds(plans: &[Plan]) -> Vec<usize> {
        let order = Arc::new(Scheduler::default());
        let mut left: Vec<_> = plans.iter().map(|plan| (order.turn(), plan)).collect();
        let mut sizes = Vec::new();
        while !left.is_empty() {
            let started: Vec<bool> = left
                .iter()
                .map(|(turn, plan)| turn.ready(|| (*plan).clone()).now_or_never().is_some())
                .collect();
            sizes.push(started.iter().filter(|started| **started).count());
            let mut started = started.into_iter();
            left.retain(|_| !started.next().unwrap());
        }
        sizes
    }

    #[test]
    fn those_that_do_not_conflict_go_together_and_the_others_in_order() {
        let plans = [
            plan().searches(at("/w")),
            plan().searches(at("/w")),
            plan().changes(at("/w/a")),
            plan().changes(at("/w/b")),
            plan().searches(at("/w")),
            plan().changes(at("/x")),
        ];
        assert_eq!(rounds(&plans), [2, 2, 2]);
        assert_eq!(rounds(&[]), [0; 0]);
    }

    #[test]
    fn nothing_is_planned_behind_the_first_conflict() {
        let order = Arc::new(Scheduler::default());
        let planned = Cell::new(0);
        let plan = || {
            planned.set(planned.get() + 1);
            plan().changes(at("/w/a"))
        };
        let turns: Vec<Ticket> = (0..5).map(|_| order.turn()).collect();
        let started = turns.iter().filter(|turn| turn.ready(plan).now_or_never().is_some()).count();
        assert_eq!((started, planned.get()), (1, 2));
    }

    #[test]
    fn what_came_earlier_and_waits_is_not_overtaken() {
        let plans =
            [plan().changes(at("/w/a")), plan().changes(at("/w/a")), plan().reads(at("/x"))];
        assert_eq!(rounds(&plans), [1, 2]);
    }

    #[tokio::test]
    async fn a_plan_is_made_anew_when_a_call_before_it_has_ended() {
        let order = Arc::new(Scheduler::default());
        let (first, second) = (order.turn(), order.turn());
        first.ready(|| plan().changes(at("/w/a"))).await;
        let meant = Mutex::new(at("/w/a"));
        let mut second = pin!(second.ready(|| plan().changes(meant.lock().unwrap().clone())));
        assert!(second.as_mut().now_or_never().is_none());
        let third = order.turn();
        *meant.lock().unwrap() = at("/w/b");
        drop(first);
        second.await;
        assert!(third.ready(|| plan().changes(at("/w/b"))).now_or_never().is_none());
    }

    #[test]
    fn what_waits_holds_up_others_in_one_answer_alone() {
        let at_jobs = |access| plan().with(access, Target::State { name: "jobs".into() });
        let calls = [
            plan().with(Access::Destroy, Target::command("serve &".into())),
            at_jobs(Access::Observe).waiting(),
            plan().with(Access::Destroy, Target::command("curl localhost".into())),
            at_jobs(Access::Modify),
        ];
        assert_eq!(rounds(&calls), [1, 1, 1, 1]);
        let order = Arc::new(Scheduler::shared());
        let turns: Vec<Ticket> = calls.iter().map(|_| order.turn()).collect();
        let starts =
            |number: usize| turns[number].ready(|| calls[number].clone()).now_or_never().is_some();
        assert_eq!([starts(0), starts(1)], [true, false], "it waits for what came before it");
        drop(order.calls().open.remove(0));
        assert_eq!([starts(1), starts(2), starts(3)], [true, true, false]);
    }

    #[tokio::test]
    async fn a_turn_that_is_let_go_of_holds_up_nobody() {
        let order = Arc::new(Scheduler::default());
        let (first, second) = (order.turn(), order.turn());
        assert!(second.ready(plan).now_or_never().is_none(), "it overtook");
        drop(first);
        second.ready(plan).await;
    }
}
