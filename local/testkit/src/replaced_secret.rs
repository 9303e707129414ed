//! A secret that is replaced while a test runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use clock::{SimulatedClock, Timer as _};
use config::ConfigError;
use config::{CurrentSecret, SecretReader};

/// Returns a secret whose current value is `old`, and whose next read returns `new`. Moves `clock` ten seconds forward,
/// so that the secret may be read again when its old value is refused.
///
/// # Panics
/// Never: reading `old` succeeds.
pub async fn create_replaced_secret<T>(old: T, new: T, clock: &Arc<SimulatedClock>) -> CurrentSecret<T>
where
    T: Clone + PartialEq + Send + Sync + 'static,
{
    let secret = CurrentSecret::new(ReplacedOnce { old, new, is_replaced: AtomicBool::new(false) }, clock.clone());
    assert!(secret.get().await.is_ok());
    clock.sleep(Duration::from_secs(10)).await;
    secret
}

/// A reader whose first read returns `old`, and whose further reads return `new`.
struct ReplacedOnce<T> {
    old: T,
    new: T,
    is_replaced: AtomicBool,
}

#[async_trait]
impl<T: Clone + Send + Sync> SecretReader<T> for ReplacedOnce<T> {
    async fn read_secret(&self) -> Result<T, ConfigError> {
        let is_replaced = self.is_replaced.swap(true, Ordering::Relaxed);
        Ok(if is_replaced { self.new.clone() } else { self.old.clone() })
    }
}
