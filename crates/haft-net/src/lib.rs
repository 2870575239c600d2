//! The network for everything above: the one HTTP client, a bounded parser of event streams, the
//! guard that says which addresses may be dialled, and the proxy through which commands reach the
//! hosts that they may.
//!
//! **Invariant:** nothing is opened, read or resolved before the first request, and nothing that
//! a peer sends makes memory grow beyond a stated bound. This crate knows no model, no tool and
//! no settings: addresses, headers and limits come from the caller.

mod address;
mod client;
mod direct;
mod guard;
mod proxy;
mod sse;
mod tls;

pub use self::{
    address::{AddressError, Checked, Host, Resolve, SystemResolver, check, dial, special},
    client::{Client, NetError, Response, host_and_port, install_crypto, shown_url},
    direct::post_direct,
    guard::{
        BodyEnd, ExceptionError, Exceptions, Gate, Guard, Proxies, Web, WebError, WebLimits,
        WebMethod, WebRequest, WebResponse, WebUrl, twin,
    },
    proxy::{Hosts, HostsError, Pass, Proxy, Refusals, Refused, Why},
    sse::{SseError, SseEvent, SseItem, SseParser},
};
/// Bytes of a body, cheap to clone.
pub use bytes::Bytes;
