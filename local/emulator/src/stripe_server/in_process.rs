//! Access to the stand-in within the process, without a network: each request gets its response immediately.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, HeaderValue, header};
use gateways::{HttpResponse, StripeTransport};

use super::requests::{SHOULD_RETRY, StripeRequest};
use super::{STRIPE_KEY, StripeServer};
use gateways::Stripe;

/// The base URL of the stand-in for Stripe in the same process.
const BASE_URL: &str = "http://stripe.invalid";
/// The time-out that the Stripe adapter requires. The time-out never ends a request, because the stand-in for Stripe is
/// in the same process and responds immediately.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The client that builds the requests. It is created once, because each new client reads the certificates of the
/// operating system.
static HTTP_CLIENT: LazyLock<reqwest::Client> = LazyLock::new(reqwest::Client::new);

/// The transport to the stand-in for Stripe in the same process.
#[derive(Clone, Debug)]
pub struct InProcessTransport(pub Arc<StripeServer>);

impl InProcessTransport {
    /// Returns the Stripe adapter with the transport `transport` and the key that the stand-in accepts.
    pub fn stripe_adapter(transport: Arc<dyn StripeTransport>) -> Stripe {
        Stripe::with_transport(transport, STRIPE_KEY, BASE_URL, TIMEOUT)
    }
}

#[async_trait]
impl StripeTransport for InProcessTransport {
    fn http_client(&self) -> reqwest::Client {
        HTTP_CLIENT.clone()
    }

    async fn send(&self, request: reqwest::Request) -> Result<HttpResponse, String> {
        let form = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let form = std::str::from_utf8(form).map_err(|error| error.to_string())?;
        let parameters = request.url().query().unwrap_or(form);
        let (method, path, headers) = (request.method(), request.url().path(), request.headers());
        let response = self.0.respond(&StripeRequest { method, path, headers, parameters });
        if response.is_late {
            return Err("no response in time".to_owned());
        }
        let mut headers = HeaderMap::new();
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("0"));
        if response.should_retry {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("true"));
        }
        Ok(HttpResponse { status: response.status, headers, body: response.body.to_string().into_bytes() })
    }

    async fn wait(&self, _delay: Duration) {}
}
