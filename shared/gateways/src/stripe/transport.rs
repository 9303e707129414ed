//! The transport of requests to Stripe: over HTTPS, or without a network in a simulation.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// The timeout for opening a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A complete HTTP response from Stripe.
#[derive(Clone, Debug)]
pub struct HttpResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Sends requests to Stripe.
#[async_trait]
pub trait StripeTransport: Send + Sync + fmt::Debug {
    /// Returns an HTTP client, with which the requests for [`send`](Self::send) are built.
    fn http_client(&self) -> reqwest::Client;

    /// Sends `request` once and reads the complete response.
    ///
    /// # Errors
    /// If there is no complete response; the error is the reason. It is then unknown whether Stripe carried out the
    /// request.
    async fn send(&self, request: reqwest::Request) -> Result<HttpResponse, String>;

    /// Waits for `delay` before the same request is repeated.
    async fn wait(&self, delay: Duration);
}

/// Sends requests over HTTPS.
#[derive(Clone, Debug)]
pub struct HttpsStripeTransport(reqwest::Client);

impl HttpsStripeTransport {
    /// Creates a transport. A request takes at most `timeout`, from its start to the last byte of the response.
    ///
    /// # Panics
    /// If the HTTP client cannot be created.
    pub fn new(timeout: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(timeout).connect_timeout(CONNECT_TIMEOUT);
        Self(http.redirect(reqwest::redirect::Policy::none()).build().expect("an HTTP client"))
    }
}

#[async_trait]
impl StripeTransport for HttpsStripeTransport {
    fn http_client(&self) -> reqwest::Client {
        self.0.clone()
    }

    async fn send(&self, request: reqwest::Request) -> Result<HttpResponse, String> {
        let without_url = |error: reqwest::Error| error.without_url().to_string();
        let response = self.0.execute(request).await.map_err(without_url)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(without_url)?.to_vec();
        Ok(HttpResponse { status, headers, body })
    }

    async fn wait(&self, delay: Duration) {
        tokio::time::sleep(delay).await;
    }
}
