//! The address at which customers reach the API in a browser.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use lambda_http::request::RequestContext;

use crate::Problem;

/// The address at which customers reach the API in a browser, such as `https://api.example.com`, without a slash at the
/// end. The checkout page of the payment gateway sends customers back to this address.
///
/// If the server has added this type to the request as an extension, the extractor returns the extension; otherwise it
/// returns the domain that API Gateway serves. The extractor never uses the header `Host`, because the client sets it.
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

    /// Returns the URL of the page at `path`, which starts with a slash.
    pub fn join(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for PublicUrl {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if let Some(configured) = parts.extensions.get::<Self>() {
            return Ok(configured.clone());
        }
        let domain = match parts.extensions.get() {
            Some(RequestContext::ApiGatewayV2(context)) => context.domain_name.as_deref(),
            _ => None,
        };
        let Some(domain) = domain else {
            tracing::error!("the address of the API is not known; set DUEDAY_API_URL");
            return Err(Problem::internal());
        };
        Ok(Self(format!("https://{domain}")))
    }
}
