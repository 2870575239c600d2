//! The hosts that a confined command may connect to: through the proxy of its session, and no other
//! way.
//!
//! **Invariant:** a command reaches what its own pass names, for as long as it runs.

use std::sync::Arc;

use haft_host::{Limits, Net};
use haft_net::{Hosts, Pass, Proxy, Refused, SystemResolver};
use haft_types::{Target, ToolError};

use crate::{Call, Job, session::network::Network};

/// What lets one command connect.
pub(super) struct Admitted {
    pass: Pass,
    network: Arc<Network>,
}

/// Lets the programs of a call connect to the hosts that its plan and the settings name; none where
/// there are none.
pub(super) async fn admit(call: &Call, limits: &mut Limits) -> Result<Option<Admitted>, ToolError> {
    if limits.net == Net::On {
        return Ok(None);
    }
    let effects = call.plan().map(|plan| plan.effects.as_slice()).unwrap_or_default();
    let named = effects.iter().filter_map(|effect| match &effect.target {
        Target::Net { host } => Some(host.as_str()),
        _ => None,
    });
    let walls = call.walls.iter().filter(|_| !limits.reads_only());
    let hosts: Vec<&str> =
        walls.flat_map(|walls| walls.hosts.iter().map(String::as_str)).chain(named).collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let hosts = Hosts::parse(&hosts).map_err(|error| {
        ToolError::new(error.to_string()).hint("Correct needs.hosts, or the setting sandbox.hosts.")
    })?;
    let network = call.cx.session().map.get::<Network>();
    let failed =
        |error| ToolError::new(format!("the proxy for its hosts cannot be started: {error}"));
    let start = || Proxy::start(Arc::new(SystemResolver::default()));
    let proxy = network.proxy.get_or_try_init(start).await.map_err(failed)?;
    limits.net = Net::Port(proxy.port());
    let pass = proxy.admit(hosts).map_err(failed)?;
    Ok(Some(Admitted { pass, network }))
}

impl Admitted {
    /// By what programs find the proxy.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let all = self.pass.variables().into_iter();
        all.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// What was refused; a job that the call left keeps its pass to its end.
    pub(super) fn end(self, job: Option<&Job>) -> Vec<Refused> {
        let refused = self.pass.refused().list;
        if let Some(job) = job {
            self.network.holds(job.id(), self.pass);
        }
        refused
    }
}
