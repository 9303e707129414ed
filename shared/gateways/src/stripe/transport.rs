//! How requests reach Stripe: over HTTPS, or in a simulation without a network.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;

/// A connection is made within this time, or is not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A whole response of Stripe.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Sends requests to Stripe.
#[async_trait]
pub trait Transport: Send + Sync + fmt::Debug {
    /// Sends `request` once and reads the whole response.
    ///
    /// # Errors
    /// Why there is no usable response: whether Stripe carried the request out is unknown then.
    async fn send(&self, request: reqwest::Request) -> Result<Response, String>;

    /// Waits before the same request is sent again.
    async fn wait(&self, delay: Duration);
}

/// The HTTP client of the machine.
#[derive(Clone, Debug)]
pub struct Https(reqwest::Client);

impl Https {
    /// Gives each request `timeout` from its first byte to the last byte of the response.
    ///
    /// # Panics
    /// If the HTTP client of the machine cannot be set up at all.
    pub fn new(timeout: Duration) -> Self {
        let http = reqwest::Client::builder().timeout(timeout).connect_timeout(CONNECT_TIMEOUT);
        Self(http.redirect(reqwest::redirect::Policy::none()).build().expect("an HTTP client"))
    }
}

#[async_trait]
impl Transport for Https {
    async fn send(&self, request: reqwest::Request) -> Result<Response, String> {
        let without_url = |error: reqwest::Error| error.without_url().to_string();
        let response = self.0.execute(request).await.map_err(without_url)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(without_url)?.to_vec();
        Ok(Response { status, headers, body })
    }

    async fn wait(&self, delay: Duration) {
        tokio::time::sleep(delay).await;
    }
}
