//! Protects the servers on this machine from foreign web pages: only programs on this machine and pages that the server
//! itself served may send requests.
//!
//! Any web page can make a browser send requests to this machine. Two headers reveal such a request. The `Origin`
//! header contains the origin of the web page. If the host name of the web page was made to resolve to this machine
//! (DNS rebinding), the `Host` header contains this host name. No response has CORS headers, so the preflight requests
//! of a browser fail.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// The names that containers use for this machine. They are accepted only if the server listens on an address other
/// than loopback.
const CONTAINER_HOST_NAMES: [&str; 3] = ["host.docker.internal", "gateway.docker.internal", "host.containers.internal"];

/// Checks the requests to the server that listens on this address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HostGuard(SocketAddr);

/// The reason why a request was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum GuardRejection {
    /// The `Host` header does not contain an address of this server. The value is an address that the header may
    /// contain.
    #[error(
        "the Host header must name this server, as in http://{0}; for another address, start it with --listen ADDRESS"
    )]
    Host(SocketAddr),
    /// The `Origin` header contains an origin other than this server's. The value is the host of the only accepted
    /// origin.
    #[error("web pages of other origins are refused: send no Origin header, or http://{0}")]
    Origin(Authority),
}

impl HostGuard {
    /// Creates the guard of the server that listens on `address`.
    pub fn new(address: SocketAddr) -> Self {
        Self(address)
    }

    /// Passes permitted requests on, and responds to all others with 403.
    pub async fn admit(State(guard): State<Self>, request: Request, next: Next) -> Response {
        match guard.check_headers(request.uri().authority(), request.headers()) {
            Ok(()) => next.run(request).await,
            Err(rejection) => rejection.into_response(),
        }
    }

    /// Checks the `Host` and `Origin` headers. `target` is the host in the request line, if the request line contains a
    /// host.
    fn check_headers(self, target: Option<&Authority>, headers: &HeaderMap) -> Result<(), GuardRejection> {
        let parsed = single_header_value(headers, HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = parsed.filter(|host| self.is_local_host(host) && target.is_none_or(|target| target == host))
        else {
            return Err(GuardRejection::Host(self.allowed_host_address()));
        };
        let own = format!("http://{host}");
        match (headers.contains_key(ORIGIN), single_header_value(headers, ORIGIN)) {
            (false, _) => Ok(()),
            (true, Some(origin)) if origin.as_bytes().eq_ignore_ascii_case(own.as_bytes()) => Ok(()),
            _ => Err(GuardRejection::Origin(host)),
        }
    }

    /// Returns whether `host` is an address or a name of this server.
    fn is_local_host(self, host: &Authority) -> bool {
        let listens_beyond = !self.0.ip().is_loopback();
        // If the server listens on an address other than loopback, it may run in a container whose port is published
        // under another number. So every port number is accepted.
        let is_server_port = listens_beyond || host.port_u16().unwrap_or(80) == self.0.port();
        let name = host.host();
        let is_local_name = match name.trim_matches(['[', ']']).parse::<IpAddr>() {
            // A `Host` header with an IP address cannot result from DNS rebinding, because no DNS lookup happens.
            Ok(ip) => {
                [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), self.0.ip()].contains(&ip)
                    || self.0.ip().is_unspecified()
            }
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || listens_beyond && CONTAINER_HOST_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
            }
        };
        // A value such as `user@127.0.0.1` is not a host.
        is_server_port && is_local_name && !host.as_str().contains('@')
    }

    /// Returns an address that is allowed in the `Host` header. The error message of a refused request contains it.
    fn allowed_host_address(self) -> SocketAddr {
        match self.0 {
            SocketAddr::V4(address) if address.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, address.port()).into(),
            SocketAddr::V6(address) if address.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, address.port()).into(),
            address => address,
        }
    }
}

/// Returns the value of the header `name`; `None` if it does not occur exactly once.
fn single_header_value(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).into_iter();
    values.next().filter(|_| values.next().is_none())
}

/// Converts the rejection to a response with the status 403. All servers use the same body: a problem in the API's
/// format, with the members that an AWS SDK expects.
impl IntoResponse for GuardRejection {
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

    /// Returns the headers of a request: one `Host` header and one `Origin` header for each element of `origin`.
    fn request_headers(host: &str, origin: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        for origin in origin {
            headers.append(ORIGIN, origin.parse().unwrap());
        }
        headers
    }

    /// Returns whether a server that listens on the address `listen` accepts a request with these headers.
    fn is_admitted(listen: &str, host: &str, origin: &[&str]) -> bool {
        HostGuard::new(listen.parse().unwrap()).check_headers(None, &request_headers(host, origin)).is_ok()
    }

    #[test]
    fn server_on_loopback_accepts_only_loopback_hosts_with_its_port() {
        for host in ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000", "[::1]:8000"] {
            assert!(is_admitted("127.0.0.1:8000", host, &[]), "{host}");
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
            assert!(!is_admitted("127.0.0.1:8000", host, &[]), "{host}");
        }
        assert!(is_admitted("127.0.0.1:80", "localhost", &[]), "port 80 may be left out");
    }

    #[test]
    fn server_on_another_address_than_loopback_accepts_its_addresses_and_container_host_names() {
        for host in ["192.168.1.5:8000", "127.0.0.1:8000", "host.docker.internal:8000", "localhost:18000"] {
            assert!(is_admitted("192.168.1.5:8000", host, &[]), "{host}");
            assert!(is_admitted("0.0.0.0:8000", host, &[]), "{host}");
        }
        for host in ["evil.example:8000", "192.168.1.5.evil.example:8000"] {
            assert!(!is_admitted("0.0.0.0:8000", host, &[]), "{host}");
        }
        assert!(!is_admitted("192.168.1.5:8000", "192.168.1.6:8000", &[]), "another machine's address");
    }

    #[test]
    fn check_refuses_every_origin_except_that_of_the_host() {
        let host = "127.0.0.1:7878";
        assert!(is_admitted(host, host, &["http://127.0.0.1:7878"]));
        for origin in [
            "http://evil.example",
            "null",
            "",
            "https://127.0.0.1:7878",
            "http://127.0.0.1:7879",
            "http://localhost:7878",
            "http://127.0.0.1:7878.evil.example",
        ] {
            assert!(!is_admitted(host, host, &[origin]), "{origin}");
        }
        assert!(!is_admitted(host, host, &["http://127.0.0.1:7878", "http://evil.example"]), "two origins");
    }

    #[test]
    fn check_refuses_a_target_with_another_host_and_repeated_host_headers() {
        let guard = HostGuard::new("127.0.0.1:8000".parse().unwrap());
        let mut headers = request_headers("127.0.0.1:8000", &[]);
        assert!(guard.check_headers(Some(&"127.0.0.1:8000".parse().unwrap()), &headers).is_ok());
        assert!(guard.check_headers(Some(&"evil.example:8000".parse().unwrap()), &headers).is_err());
        headers.append(HOST, "evil.example".parse().unwrap());
        assert!(guard.check_headers(None, &headers).is_err());
        assert!(guard.check_headers(None, &HeaderMap::new()).is_err(), "no host");
    }
}
