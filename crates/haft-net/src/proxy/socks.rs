//! SOCKS5 (RFC 1928) with user name and password (RFC 1929): CONNECT alone.
//!
//! **Invariant:** nothing is read beyond a message, since what follows belongs to the tunnel; each
//! message is of bounded length. It knows no list of hosts.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr},
    sync::Arc,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    Why,
    connection::{Failure, Guest, Watched, tunnel},
    credential::Command,
};

const VERSION: u8 = 5;
const BY_PASSWORD: u8 = 2;
const NO_WAY_IN: u8 = 0xff;
/// The version of the exchange of passwords.
const PASSWORDS: u8 = 1;

/// Replies of section 6.
mod reply {
    pub const DONE: u8 = 0;
    pub const FAILED: u8 = 1;
    pub const NOT_ALLOWED: u8 = 2;
    pub const HOST_UNREACHABLE: u8 = 4;
    pub const REFUSED: u8 = 5;
    pub const NO_SUCH_COMMAND: u8 = 7;
    pub const NO_SUCH_ADDRESS: u8 = 8;
}

/// Serves a connection that begins with the version of SOCKS5.
pub(super) async fn serve_socks(mut client: Watched, guest: &Guest) {
    // Until there is a request the connection is nobody's, and so lasts no longer than a head may.
    let Ok(Some((command, host, port))) = greet(&mut client, guest).await else { return };
    let opened = match host {
        Ok(host) => guest.open(&command, &host, port).await.map(|(_, server)| server),
        Err(refused) => Err(refused),
    };
    match opened {
        Ok(server) => connect(client, server).await,
        Err(failure) => {
            let _ = answer(&mut client, code(&failure)).await;
            let _ = client.shutdown().await;
        }
    }
}

async fn connect(mut client: Watched, server: TcpStream) {
    if answer(&mut client, reply::DONE).await.is_ok() {
        tunnel(client, server).await;
    }
}

fn code(failure: &Failure) -> u8 {
    match failure {
        Failure::Refused(_) => reply::NOT_ALLOWED,
        Failure::Unresolved(_) => reply::HOST_UNREACHABLE,
        Failure::Unreachable(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => reply::REFUSED,
            io::ErrorKind::TimedOut
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable => reply::HOST_UNREACHABLE,
            _ => reply::FAILED,
        },
    }
}

/// Who asks, and for which host and port.
type Request = (Arc<Command>, Result<String, Failure>, u16);

/// Reads all until the request; none where the client was told that there is no way in.
async fn greet(client: &mut Watched, guest: &Guest) -> io::Result<Option<Request>> {
    let Some(command) = identify(client, guest).await? else { return Ok(None) };
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [version, kind, _, form] = head;
    let host = match form {
        1 => {
            let mut bytes = [0; 4];
            client.read_exact(&mut bytes).await?;
            Ok(Ipv4Addr::from(bytes).to_string())
        }
        4 => {
            let mut bytes = [0; 16];
            client.read_exact(&mut bytes).await?;
            Ok(Ipv6Addr::from(bytes).to_string())
        }
        3 => String::from_utf8(text(client).await?),
        _ => {
            answer(client, reply::NO_SUCH_ADDRESS).await?;
            return Ok(None);
        }
    };
    let port = client.read_u16().await?;
    if version != VERSION || kind != 1 {
        answer(client, reply::NO_SUCH_COMMAND).await?;
        return Ok(None);
    }
    let host = host.map_err(|error| {
        let host = String::from_utf8_lossy(error.as_bytes()).into_owned();
        Failure::Refused(command.refuse(&host, port, Why::Unreadable("it is no text")))
    });
    Ok(Some((command, host, port)))
}

/// Has the client say whose it is.
async fn identify(client: &mut Watched, guest: &Guest) -> io::Result<Option<Arc<Command>>> {
    if client.read_u8().await? != VERSION {
        return Ok(None);
    }
    if !text(client).await?.contains(&BY_PASSWORD) {
        client.write_all(&[VERSION, NO_WAY_IN]).await?;
        return Ok(None);
    }
    client.write_all(&[VERSION, BY_PASSWORD]).await?;
    if client.read_u8().await? != PASSWORDS {
        return Ok(None);
    }
    let (user, password) = (text(client).await?, text(client).await?);
    let command = guest.identify(&user, &password);
    client.write_all(&[PASSWORDS, u8::from(command.is_none())]).await?;
    Ok(command)
}

/// Reads a length of one byte, and so many bytes.
async fn text(client: &mut Watched) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

/// Replies with no address of its own: nobody may connect to that.
async fn answer(client: &mut Watched, code: u8) -> io::Result<()> {
    client.write_all(&[VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
