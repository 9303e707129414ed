//! One delivery: a POST that is signed, waits so long, follows no redirect, and goes to no address inside.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

use billing::{Answer, EndpointUrl, Secret};

use super::address::{Reach, is_public};
use super::signature::sign;

/// As long as a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// As long as an answer may take (the specification advises 15 to 30 seconds).
pub const TIMEOUT: Duration = Duration::from_secs(15);

/// Delivers events.
#[derive(Clone, Debug)]
pub struct Sender {
    client: Client,
    reach: Reach,
}

impl Sender {
    /// One that goes as far as `reach`, and waits `timeout` for an answer.
    ///
    /// # Errors
    /// The machine has no certificates that TLS could trust.
    pub fn new(reach: Reach, timeout: Duration) -> reqwest::Result<Self> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .redirect(Policy::none())
            // A proxy would resolve the name where nobody looks at the address.
            .no_proxy()
            .user_agent(concat!("Dueday/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Guarded(reach)));
        Ok(Self { client: client.build()?, reach })
    }

    /// Delivers the event `id`, whose JSON is `body`, at `timestamp` (seconds since 1970), signed with each of `secrets`.
    pub async fn deliver(&self, url: &EndpointUrl, secrets: &[Secret], id: &str, timestamp: i64, body: &str) -> Answer {
        if self.reach == Reach::Public {
            if !url.is_https() {
                return Answer::None("it is not reached by HTTPS".to_owned());
            }
            // A resolver is asked for names alone.
            if url.address().is_some_and(|address| !is_public(address)) {
                return Answer::None(FORBIDDEN.to_owned());
            }
        }
        let signatures: Vec<_> = secrets.iter().map(|secret| sign(secret, id, timestamp, body)).collect();
        let request = self
            .client
            .post(url.as_url().clone())
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signatures.join(" "))
            .body(body.to_owned());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Answer::Taken(answer.status().as_u16()),
            Ok(answer) => Answer::Refused(answer.status().as_u16()),
            Err(error) => Answer::None(reason(&error)),
        }
    }
}

const FORBIDDEN: &str = "its address is not public";

/// Why there was no answer, without the URL.
fn reason(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let is_forbidden = causes.map(ToString::to_string).any(|text| text.contains(FORBIDDEN));
    if is_forbidden {
        FORBIDDEN.to_owned()
    } else if error.is_timeout() {
        "it did not answer in time".to_owned()
    } else if error.is_connect() {
        "it cannot be connected to".to_owned()
    } else {
        "the connection was lost".to_owned()
    }
}

/// Resolves names to addresses that may be reached.
struct Guarded(Reach);

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<_> = found.filter(|address| reach == Reach::Anywhere || is_public(address.ip())).collect();
            if allowed.is_empty() { Err(FORBIDDEN.into()) } else { Ok(Box::new(allowed.into_iter()) as Addrs) }
        })
    }
}
