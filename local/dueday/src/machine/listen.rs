//! Where the servers listen, and how they are reached there.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::Failure;

/// Listens on `address`, on the port that `flag` chose.
///
/// # Errors
/// [`Failure::Listen`].
pub async fn listen(address: IpAddr, port: u16, flag: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddr::new(address, port);
    TcpListener::bind(address).await.map_err(|source| Failure::Listen {
        address: address.to_string(),
        source,
        hint: format!(" Choose another port with {flag}"),
    })
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
