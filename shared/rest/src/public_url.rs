//! The address at which customers reach the API in a browser.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::Problem;

/// The address at which customers reach the API in a browser, such as `https://api.example.com`, without a slash at the
/// end. The checkout page of the payment gateway sends customers back to this address.
///
/// The extractor returns the extension of this type that the server has added to the request. The server must not use the
/// header `Host`, because the client sets it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublicUrl(String);

impl PublicUrl {
    /// Creates the address from `url`.
    ///
    /// # Errors
    /// If the URL is not allowed, returns an error text that describes the allowed URLs.
    pub fn parse(url: &str) -> Result<Self, String> {
        config::parse_displayable_url(url).map(Self).map_err(|allowed| format!("must be {allowed}"))
    }

    /// Returns the address of an API at `domain`, such as `api.example.com`.
    pub fn of_domain(domain: &str) -> Self {
        Self(format!("https://{domain}"))
    }

    /// Returns the URL of the page at `path`, which starts with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for PublicUrl {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(|| {
            tracing::error!("the address of the API is not known; set DUEDAY_API_URL");
            Problem::internal_error()
        })
    }
}
