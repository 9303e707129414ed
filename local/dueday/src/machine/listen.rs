//! Opens the ports of the servers, and builds the URLs for their clients.

use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;

use crate::Failure;

/// The environment variable with the port of the API.
pub const API_PORT_VARIABLE: &str = "DUEDAY_API_PORT";
/// The port of the API if neither the option nor the environment variable is set.
pub const DEFAULT_API_PORT: u16 = 7878;

/// Returns the URL of the API on this machine if the server listens on `port`.
pub fn local_api_url(port: u16) -> String {
    format!("http://{}", SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

/// Returns the URL that the API of this machine will have when a server starts without the option for its port.
pub fn default_api_url() -> String {
    let port = std::env::var(API_PORT_VARIABLE).ok().and_then(|port| port.trim().parse().ok());
    local_api_url(port.unwrap_or(DEFAULT_API_PORT))
}

/// Listens on `address` and `port`. `flag` is the command-line flag that sets the port, for the error message.
///
/// # Errors
/// [`Failure::Listen`] if the address or the port cannot be used.
pub async fn listen_on_port(address: IpAddr, port: u16, flag: &str) -> Result<TcpListener, Failure> {
    let address = SocketAddr::new(address, port);
    TcpListener::bind(address).await.map_err(|source| listen_failure(address, source, flag))
}

/// Returns the error for an `address` that cannot be used, with a hint. The hint may recommend another port, to be set
/// with the command-line flag `flag`.
pub fn listen_failure(address: SocketAddr, source: Error, flag: &str) -> Failure {
    let hint = match source.kind() {
        ErrorKind::AddrNotAvailable => {
            "--listen must be an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them".to_owned()
        }
        ErrorKind::PermissionDenied => format!("Choose a port from 1024 with {flag}"),
        _ => format!("Choose another port with {flag}"),
    };
    Failure::Listen { address: address.to_string(), source, hint }
}

/// Returns the URL of `listener` for clients on this machine.
pub fn listener_url(listener: &TcpListener) -> String {
    listener.local_addr().map_or_else(|_| String::new(), |address| format!("http://{}", reachable_address(address)))
}

/// Returns the address at which clients on this machine reach a server that listens on `address`: the loopback address
/// if the server listens on all addresses.
pub fn reachable_address(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port())
    } else {
        address
    }
}
