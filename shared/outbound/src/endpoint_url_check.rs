//! Checks the URL of a webhook endpoint when an operator creates or changes the endpoint.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use billing::EndpointUrl;

use super::non_public_networks::{AllowedAddresses, is_public_address};

/// The longest time to wait for the addresses of a host name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);

/// Finds the IP addresses of host names.
#[async_trait]
pub trait HostResolver: Send + Sync + fmt::Debug {
    /// Returns the IP addresses of `host`; an empty list if no address could be found.
    async fn resolve_host(&self, host: &str) -> Vec<IpAddr>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug)]
struct SystemResolver;

#[async_trait]
impl HostResolver for SystemResolver {
    async fn resolve_host(&self, host: &str) -> Vec<IpAddr> {
        let found = tokio::time::timeout(LOOKUP_TIMEOUT, tokio::net::lookup_host((host, 0))).await;
        found.ok().and_then(Result::ok).into_iter().flatten().map(|address| address.ip()).collect()
    }
}

/// The reason why a URL must not be the URL of a webhook endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    #[error("must be an https URL")]
    NotHttps,
    #[error("must have a public address; this host has only private, loopback or reserved addresses")]
    NotPublic,
}

/// Decides which URLs webhook endpoints may have.
#[derive(Clone, Debug)]
pub struct EndpointUrlCheck {
    allowed: AllowedAddresses,
    resolver: Arc<dyn HostResolver>,
}

impl EndpointUrlCheck {
    /// Returns the policy that allows only `allowed` addresses. The addresses of host names are found with the resolver
    /// of the operating system.
    pub fn new(allowed: AllowedAddresses) -> Self {
        Self { allowed, resolver: Arc::new(SystemResolver) }
    }

    /// Returns the policy that allows only public addresses. The addresses of host names are found with `resolver`.
    pub fn public_only_with(resolver: Arc<dyn HostResolver>) -> Self {
        Self { allowed: AllowedAddresses::PublicOnly, resolver }
    }

    /// Checks whether `url` may be the URL of an endpoint. A host name without a known address is accepted, because its
    /// DNS entry may be created later. The address is also checked before every delivery.
    ///
    /// # Errors
    /// Returns an error if only public addresses are allowed, and `url` is not an https URL or has no public address.
    pub async fn check(&self, url: &EndpointUrl) -> Result<(), AddressError> {
        if self.allowed == AllowedAddresses::Any {
            return Ok(());
        }
        if !url.is_https() {
            return Err(AddressError::NotHttps);
        }
        let is_allowed = match url.address() {
            Some(address) => is_public_address(address),
            None => {
                let host = url.as_url().host_str().unwrap_or_default().trim_end_matches('.');
                let is_localhost = host == "localhost" || host.ends_with(".localhost");
                let addresses = if is_localhost { Vec::new() } else { self.resolver.resolve_host(host).await };
                !is_localhost && (addresses.is_empty() || addresses.into_iter().any(is_public_address))
            }
        };
        if is_allowed { Ok(()) } else { Err(AddressError::NotPublic) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A resolver that finds only private addresses for `internal.example.com`, a private and a public address for
    /// `both.example.com`, and no address for other names.
    #[derive(Debug)]
    struct FixedAddresses;

    #[async_trait]
    impl HostResolver for FixedAddresses {
        async fn resolve_host(&self, host: &str) -> Vec<IpAddr> {
            let addresses: &[&str] = match host {
                "internal.example.com" => &["10.0.0.1", "fd00::1"],
                "both.example.com" => &["10.0.0.1", "1.1.1.1"],
                _ => &[],
            };
            addresses.iter().map(|address| address.parse().unwrap()).collect()
        }
    }

    #[tokio::test]
    async fn endpoint_must_have_an_https_url_with_a_public_address() {
        let policy = EndpointUrlCheck::public_only_with(Arc::new(FixedAddresses));
        for (url, expected) in [
            ("https://1.1.1.1/hook", Ok(())),
            ("https://both.example.com/", Ok(())),
            ("https://unknown.example.com/", Ok(())),
            ("http://1.1.1.1/", Err(AddressError::NotHttps)),
            ("https://localhost/", Err(AddressError::NotPublic)),
            ("https://localhost./", Err(AddressError::NotPublic)),
            ("https://shop.localhost/", Err(AddressError::NotPublic)),
            ("https://2130706433/", Err(AddressError::NotPublic)),
            ("https://169.254.169.254/", Err(AddressError::NotPublic)),
            ("https://[::1]/", Err(AddressError::NotPublic)),
            ("https://internal.example.com/", Err(AddressError::NotPublic)),
        ] {
            assert_eq!(policy.check(&url.parse().unwrap()).await, expected, "{url}");
        }
        let any = EndpointUrlCheck::new(AllowedAddresses::Any);
        assert_eq!(any.check(&"http://localhost:4000/".parse().unwrap()).await, Ok(()));
    }
}
