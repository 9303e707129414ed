//! Where the servers listen, and how they are reached there.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::Failure;

/// Listens on `address`, on the port that `flag` chose.
///
/// # Errors
/// [`Failure::Listen`].
pub async fn listen(address: IpAddr, port: u16, flag: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddr::new(address, port);
    TcpListener::bind(address).await.map_err(|source| refused(address, source, flag))
}

/// That `address` cannot be listened on, and what to do.
pub fn refused(address: SocketAddr, source: Error, flag: &str) -> Failure {
    let hint = match source.kind() {
        ErrorKind::AddrNotAvailable => {
            "--listen must be an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them".to_owned()
        }
        ErrorKind::PermissionDenied => format!("Choose a port from 1024 with {flag}"),
        _ => format!("Choose another port with {flag}"),
    };
    Failure::Listen { address: address.to_string(), source, hint }
}

/// Where `listener` is reached on this machine.
pub fn url(listener: &TcpListener) -> String {
    listener.local_addr().map_or_else(|_| String::new(), |address| format!("http://{}", reachable(address)))
}

/// An address that listens everywhere is reached on loopback.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port())
    } else {
        address
    }
}
