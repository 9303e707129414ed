//! The URL of a webhook endpoint.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::values::card_number::{NO_CARD_NUMBER, contains_card_number};

/// The maximum number of characters of the URL of a webhook endpoint.
const MAX_URL_CHARS: usize = 2_048;

/// The URL of a webhook endpoint: http or https, without user, password, fragment and card number.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EndpointUrl(Url);
crate::openapi_schema!(
    EndpointUrl,
    "EndpointUrl",
    crate::openapi::build_pattern_schema("The URL to which events are posted.", "^https?://.+")
        .max_length(Some(MAX_URL_CHARS))
);

/// The reason why a text is not an allowed URL of a webhook endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("must be an http or https URL of at most 2048 characters, without a user, a password or a fragment")]
    Url,
    #[error("{NO_CARD_NUMBER}")]
    CardNumber,
}

impl EndpointUrl {
    /// Returns the parsed URL.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// Returns the text of the URL.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether the scheme is https.
    pub fn is_https(&self) -> bool {
        self.0.scheme() == "https"
    }

    /// Returns the IP address in the URL; `None` if the URL contains a host name.
    pub fn address(&self) -> Option<IpAddr> {
        self.0.host_str()?.trim_matches(['[', ']']).parse().ok()
    }
}

impl FromStr for EndpointUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let is_allowed = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
                && url.as_str().len() <= MAX_URL_CHARS
        };
        if contains_card_number(text) {
            return Err(UrlError::CardNumber);
        }
        Url::parse(text).ok().filter(is_allowed).map(Self).ok_or(UrlError::Url)
    }
}

impl TryFrom<String> for EndpointUrl {
    type Error = UrlError;

    fn try_from(text: String) -> Result<Self, UrlError> {
        text.parse()
    }
}

impl From<EndpointUrl> for String {
    fn from(url: EndpointUrl) -> Self {
        url.0.into()
    }
}

/// Shows only the host, because the rest of the URL may contain a secret.
impl fmt::Debug for EndpointUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndpointUrl({})", self.0.host_str().unwrap_or_default())
    }
}
