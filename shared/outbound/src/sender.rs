//! Sends one delivery to a webhook endpoint: a signed POST request with a timeout. The sender follows no redirects, and
//! connects only to allowed IP addresses (normally only public addresses).

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;

use billing::{DeliveryResponse, EndpointUrl, SigningSecret};

use super::non_public_networks::{AllowedAddresses, is_public_address};
use super::signature::sign_webhook;

/// The maximum time to establish a connection to a webhook endpoint.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum time to wait for the response of a webhook endpoint (the Standard Webhooks specification recommends 15
/// to 30 seconds).
pub const DELIVERY_TIMEOUT: Duration = Duration::from_secs(15);

/// Sends events to webhook endpoints by HTTP.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    client: Client,
    allowed_addresses: AllowedAddresses,
}

impl WebhookSender {
    /// Creates a sender that sends only to `allowed_addresses` and waits at most `timeout` for a response.
    ///
    /// # Errors
    /// Returns an error if the machine has no root certificates for TLS.
    pub fn new(allowed_addresses: AllowedAddresses, timeout: Duration) -> reqwest::Result<Self> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .redirect(Policy::none())
            // Use no proxy, because a proxy would resolve the host name itself, without the check of the address.
            .no_proxy()
            .user_agent(concat!("Dueday/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(FilteringResolver(allowed_addresses)));
        Ok(Self { client: client.build()?, allowed_addresses })
    }

    /// Delivers the event `id` to `url`. `body` is the event's JSON, `timestamp` the current Unix time in seconds. The
    /// request has one signature for each of `secrets`.
    pub async fn deliver_event(
        &self,
        url: &EndpointUrl,
        secrets: &[SigningSecret],
        id: &str,
        timestamp: i64,
        body: &str,
    ) -> DeliveryResponse {
        if self.allowed_addresses == AllowedAddresses::PublicOnly {
            if !url.is_https() {
                return DeliveryResponse::NoResponse("the URL is not an HTTPS URL".to_owned());
            }
            // The resolver below checks the addresses of host names. A URL with an IP address does not use the
            // resolver, so check the address here.
            if url.address().is_some_and(|address| !is_public_address(address)) {
                return DeliveryResponse::NoResponse(FORBIDDEN_ADDRESS.to_owned());
            }
        }
        let signatures: Vec<_> = secrets.iter().map(|secret| sign_webhook(secret, id, timestamp, body)).collect();
        let request = self
            .client
            .post(url.as_url().clone())
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", signatures.join(" "))
            .body(body.to_owned());
        match request.send().await {
            Ok(response) if response.status().is_success() => DeliveryResponse::Accepted(response.status().as_u16()),
            Ok(response) => {
                let header = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
                let retry_after = header.and_then(|header| parse_retry_after(header, timestamp));
                DeliveryResponse::Rejected { status: response.status().as_u16(), retry_after }
            }
            Err(error) => DeliveryResponse::NoResponse(delivery_failure_reason(&error)),
        }
    }
}

/// Returns the waiting time in the header `Retry-After`: a number of seconds or a date (RFC 9110, section 10.2.3). The
/// request was sent at `timestamp` (Unix time in seconds). Returns `None` if the header is not valid or the date is past.
fn parse_retry_after(header: &str, timestamp: i64) -> Option<TimeDelta> {
    let seconds = match header.trim().parse::<i64>() {
        Ok(seconds) => seconds,
        Err(_) => DateTime::parse_from_rfc2822(header.trim()).ok()?.timestamp().saturating_sub(timestamp),
    };
    TimeDelta::try_seconds(seconds).filter(|wait| *wait > TimeDelta::zero())
}

/// The reason why nothing was sent to an address that is not allowed.
const FORBIDDEN_ADDRESS: &str = "the address is not public";

/// Returns the reason why there was no response. The text does not contain the URL, which may contain a secret.
fn delivery_failure_reason(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let is_forbidden = causes.map(ToString::to_string).any(|text| text.contains(FORBIDDEN_ADDRESS));
    if is_forbidden {
        FORBIDDEN_ADDRESS.to_owned()
    } else if error.is_timeout() {
        "no response in time".to_owned()
    } else if error.is_connect() {
        "the connection failed".to_owned()
    } else {
        "the connection was lost".to_owned()
    }
}

/// A DNS resolver that returns only allowed addresses.
struct FilteringResolver(AllowedAddresses);

impl Resolve for FilteringResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed_addresses = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<_> = found
                .filter(|address| allowed_addresses == AllowedAddresses::Any || is_public_address(address.ip()))
                .collect();
            if allowed.is_empty() { Err(FORBIDDEN_ADDRESS.into()) } else { Ok(Box::new(allowed.into_iter()) as Addrs) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_contains_seconds_or_a_date() {
        let sent_at = DateTime::parse_from_rfc3339("2027-01-31T06:00:00Z").unwrap().timestamp();
        for (header, expected) in [
            ("120", Some(120)),
            (" 120 ", Some(120)),
            ("0", None),
            ("-5", None),
            ("99999999999999999999", None),
            ("9223372036854775807", None),
            ("Sun, 31 Jan 2027 06:02:00 GMT", Some(120)),
            ("Sun, 31 Jan 2027 05:59:00 GMT", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(parse_retry_after(header, sent_at).map(|wait| wait.num_seconds()), expected, "{header}");
        }
    }
}
