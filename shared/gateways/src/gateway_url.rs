//! The URL of a merchant's own gateway.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use config::parse_displayable_url;
use reqwest::Url;

/// Host names of this machine. The last three are the names under which a container reaches the machine on which the
/// container runs.
const LOCAL_NAMES: [&str; 4] =
    ["localhost", "host.docker.internal", "gateway.docker.internal", "host.containers.internal"];

/// The URL of a gateway, with https, or with http if the gateway runs on this machine. It contains no user, password,
/// query or fragment, and does not end with a slash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayUrl {
    url: String,
    is_local: bool,
}

/// The error for a text that is not the URL of a gateway. The error message is the end of a sentence that begins with
/// "must be".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an https URL such as https://gateway.example.com, or on this machine a URL such as http://127.0.0.1:7879, without a user, a password or a query"
)]
pub struct GatewayUrlError;

impl GatewayUrl {
    /// Returns the text of the URL.
    pub fn as_str(&self) -> &str {
        &self.url
    }

    /// Returns whether the gateway runs on this machine: its host is a loopback address, `localhost`, or the name under
    /// which a container reaches its machine. Only such a gateway may use http, and may get requests without
    /// signatures.
    pub fn is_local(&self) -> bool {
        self.is_local
    }
}

impl FromStr for GatewayUrl {
    type Err = GatewayUrlError;

    fn from_str(text: &str) -> Result<Self, GatewayUrlError> {
        let url = parse_displayable_url(text).map_err(|_| GatewayUrlError)?;
        let parsed = Url::parse(&url).map_err(|_| GatewayUrlError)?;
        let host = parsed.host_str().ok_or(GatewayUrlError)?.trim_matches(['[', ']']);
        let is_local = host.parse().map_or(LOCAL_NAMES.contains(&host), |address: IpAddr| address.is_loopback());
        if is_local || parsed.scheme() == "https" { Ok(Self { url, is_local }) } else { Err(GatewayUrlError) }
    }
}

impl fmt::Display for GatewayUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_on_this_machine_may_use_http() {
        for url in [
            "http://127.0.0.1:7879",
            "http://127.9.8.7",
            "http://[::1]:7879",
            "http://LOCALHOST:7879/",
            "http://host.docker.internal:7879",
            "https://127.0.0.1:7879",
        ] {
            assert_eq!(url.parse().map(|url: GatewayUrl| url.is_local()), Ok(true), "{url}");
        }
        for url in ["https://gateway.example.com/dueday", "https://10.0.0.7", "https://localhost.example.com"] {
            assert_eq!(url.parse().map(|url: GatewayUrl| url.is_local()), Ok(false), "{url}");
        }
        for url in [
            "http://gateway.example.com",
            "http://10.0.0.7",
            "http://localhost.example.com",
            "http://0.0.0.0",
            "http://127.0.0.1.example.com",
            "ftp://127.0.0.1",
            "https://me:secret@example.com",
            "https://a.example?b",
            "",
        ] {
            assert_eq!(url.parse::<GatewayUrl>(), Err(GatewayUrlError), "{url}");
        }
    }
}
