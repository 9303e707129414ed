//! Who may speak to a server on this machine: its programs, and the pages that the server itself has served.
//!
//! Any web page can make a browser send requests to this machine. What gives such a request away: its `Origin` is that of
//! the page, and if the page's own name was made to lead here (DNS rebinding), its `Host` is that name. No answer carries
//! CORS headers, so a page is not even allowed to ask.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// How containers on this machine name it. They count only where a server listens beyond loopback.
const NAMES_IN_CONTAINERS: [&str; 3] = ["host.docker.internal", "gateway.docker.internal", "host.containers.internal"];

/// Knows the hosts of the server that listens on an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Guard(SocketAddr);

/// Why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum Foreign {
    #[error(
        "the Host header must name this server, as in http://{0}; for another address, start it with --listen ADDRESS"
    )]
    Host(SocketAddr),
    #[error("web pages of other origins are refused: leave the Origin header out, or make it http://{0}")]
    Origin(Authority),
}

impl Guard {
    /// The guard of the server that listens on `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Lets own requests through, and answers the others with 403.
    pub async fn admit(State(guard): State<Self>, request: Request, next: Next) -> Response {
        match guard.check(request.uri().authority(), request.headers()) {
            Ok(()) => next.run(request).await,
            Err(foreign) => foreign.into_response(),
        }
    }

    fn check(self, target: Option<&Authority>, headers: &HeaderMap) -> Result<(), Foreign> {
        let named = only(headers, HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = named.filter(|host| self.is_own(host) && target.is_none_or(|target| target == host)) else {
            return Err(Foreign::Host(self.reachable()));
        };
        let own = format!("http://{host}");
        match (headers.contains_key(ORIGIN), only(headers, ORIGIN)) {
            (false, _) => Ok(()),
            (true, Some(origin)) if origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()) => Ok(()),
            _ => Err(Foreign::Origin(host)),
        }
    }

    fn is_own(self, host: &Authority) -> bool {
        let listens_beyond = !self.0.ip().is_loopback();
        // Beyond loopback it may be reached through a container's port, which has another number outside.
        let is_own_port = listens_beyond || host.port_u16().unwrap_or(80) == self.0.port();
        let name = host.host();
        let is_own_name = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            // No name leads to an address that is spelled out, so no rebinding is possible.
            Ok(ip) => {
                [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), self.0.ip()].contains(&ip)
                    || self.0.ip().is_unspecified()
            }
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || listens_beyond && NAMES_IN_CONTAINERS.iter().any(|own| name.eq_ignore_ascii_case(own))
            }
        };
        // `user@127.0.0.1` is no host.
        is_own_port && is_own_name && !host.as_str().contains('@')
    }

    fn reachable(self) -> SocketAddr {
        match self.0 {
            SocketAddr::V4(address) if address.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
            SocketAddr::V6(address) if address.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
            address => address,
        }
    }
}

/// The header's value, if it is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).into_iter();
    values.next().filter(|_| values.next().is_none())
}

/// One body for all servers: a problem as the API has them, with the members that an AWS SDK looks for.
impl IntoResponse for Foreign {
    fn into_response(self) -> Response {
        let detail = self.to_string();
        let body = json!({
            "type": "about:blank", "title": "Forbidden", "status": 403, "detail": detail,
            "__type": "com.amazonaws.dynamodb.v20120810#AccessDeniedException", "message": detail,
        });
        (StatusCode::FORBIDDEN, [(CONTENT_TYPE, "application/problem+json")], format!("{body}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origin: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        for origin in origin {
            headers.append(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    fn admits(listen: &str, host: &str, origin: &[&str]) -> bool {
        Guard::new(listen.parse().unwrap()).check(None, &headers(host, origin)).is_ok()
    }

    #[test]
    fn check_on_loopback_admits_loopback_hosts_with_their_port_only() {
        for host in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"] {
            assert!(admits("127.0.0.1:8000", host, &[]), "{host}");
        }
        for host in [
            "evil.example:8000",
            "127.0.0.1.evil.example:8000",
            "localhost.evil.example:8000",
            "localhost",
            "localhost:8001",
            "127.0.0.1:80",
            "localhost:8000@evil.example",
            "evil.example@localhost:8000",
            "192.168.1.5:8000",
            "host.docker.internal:8000",
            "0.0.0.0:8000",
            "",
        ] {
            assert!(!admits("127.0.0.1:8000", host, &[]), "{host}");
        }
        assert!(admits("127.0.0.1:80", "localhost", &[]), "the port of http may be left out");
    }

    #[test]
    fn check_beyond_loopback_admits_addresses_and_the_names_that_containers_use() {
        for host in ["192.168.1.5:8000", "127.0.0.1:8000", "host.docker.internal:8000", "localhost:18000"] {
            assert!(admits("192.168.1.5:8000", host, &[]), "{host}");
            assert!(admits("0.0.0.0:8000", host, &[]), "{host}");
        }
        for host in ["evil.example:8000", "192.168.1.5.evil.example:8000"] {
            assert!(!admits("0.0.0.0:8000", host, &[]), "{host}");
        }
        assert!(!admits("192.168.1.5:8000", "192.168.1.6:8000", &[]), "another machine's address");
    }

    #[test]
    fn check_refuses_every_origin_but_that_of_the_host() {
        let host = "127.0.0.1:7878";
        assert!(admits(host, host, &["http://127.0.0.1:7878"]));
        for origin in [
            "http://evil.example",
            "null",
            "",
            "https://127.0.0.1:7878",
            "http://127.0.0.1:7879",
            "http://localhost:7878",
            "http://127.0.0.1:7878.evil.example",
        ] {
            assert!(!admits(host, host, &[origin]), "{origin}");
        }
        assert!(!admits(host, host, &["http://127.0.0.1:7878", "http://evil.example"]), "two origins");
    }

    #[test]
    fn check_refuses_a_target_of_another_host_and_two_hosts() {
        let guard = Guard::new("127.0.0.1:8000".parse().unwrap());
        let mut headers = headers("127.0.0.1:8000", &[]);
        assert!(guard.check(Some(&"127.0.0.1:8000".parse().unwrap()), &headers).is_ok());
        assert!(guard.check(Some(&"evil.example:8000".parse().unwrap()), &headers).is_err());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(guard.check(None, &headers).is_err());
        assert!(guard.check(None, &HeaderMap::new()).is_err(), "no host");
    }
}
