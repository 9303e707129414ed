//! [`CurrentSecret`]: the current value of a secret, such as a password, that can be replaced while the program runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::Mutex;

use clock::Clock;

use crate::ConfigError;

/// How long the value of a secret is used before the secret is read again.
const MAX_SECRET_AGE: TimeDelta = TimeDelta::minutes(5);
/// The minimum time from the last read of a secret to the next read, if the secret is read again because its value was
/// refused. Without this limit, a sender of wrong signatures could cause a read with each request.
const MIN_AGE_TO_READ_AGAIN: TimeDelta = TimeDelta::seconds(10);
/// The delay before a read is repeated after the first failed read. The delay doubles after each further failed read.
const FIRST_READ_DELAY: Duration = Duration::from_secs(1);
/// The longest delay before a read is repeated after a failed read.
const MAX_READ_DELAY: Duration = Duration::from_secs(60);

/// The log message for a secret that could not be read. A metric filter in `template.yaml` matches this text.
pub const SECRET_UNREADABLE: &str = "a secret could not be read";

/// Reads a secret, for example from AWS Secrets Manager.
#[async_trait]
pub trait SecretReader<T>: Send + Sync {
    /// Reads the secret and parses it.
    ///
    /// # Errors
    /// [`ConfigError`] if the secret cannot be read or is not valid. The error never contains the secret.
    async fn read_secret(&self) -> Result<T, ConfigError>;
}

/// A secret that is read when it is needed. The secret is read again after five minutes, and at once if its value is
/// refused (but at most once in ten seconds). If a read fails, the previous value stays in use, and the read is
/// repeated with increasing delays.
pub struct CurrentSecret<T>(SecretSource<T>);

/// The source of a secret's value: a fixed value, or a reader with the state of its reads.
enum SecretSource<T> {
    Fixed(T),
    Read { reader: Box<dyn SecretReader<T>>, clock: Arc<dyn Clock>, state: Mutex<SecretState<T>> },
}

/// The value that was read last, and the times of the last and the next read.
struct SecretState<T> {
    /// The value of the last successful read; `None` if no read has succeeded.
    value: Option<T>,
    /// The time from which the next use of the secret reads it again.
    next_read: DateTime<Utc>,
    last_read: DateTime<Utc>,
    /// The number of failed reads since the last successful read.
    failures: u32,
    last_error: ConfigError,
}

impl<T> fmt::Debug for CurrentSecret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentSecret")
    }
}

/// Creates a secret whose value never changes.
impl<T> From<T> for CurrentSecret<T> {
    fn from(value: T) -> Self {
        Self(SecretSource::Fixed(value))
    }
}

impl<T: Clone + PartialEq> CurrentSecret<T> {
    /// Creates a secret that `reader` reads when it is needed.
    pub fn new(reader: impl SecretReader<T> + 'static, clock: Arc<dyn Clock>) -> Self {
        let never = DateTime::<Utc>::MIN_UTC;
        let last_error = ConfigError::Invalid { name: "a secret", reason: "has not been read".to_owned() };
        let state = SecretState { value: None, next_read: never, last_read: never, failures: 0, last_error };
        Self(SecretSource::Read { reader: Box::new(reader), clock, state: Mutex::new(state) })
    }

    /// Returns the current value.
    ///
    /// # Errors
    /// [`ConfigError`] if the secret has never been read successfully.
    pub async fn get(&self) -> Result<T, ConfigError> {
        let (reader, clock, state) = match &self.0 {
            SecretSource::Fixed(value) => return Ok(value.clone()),
            SecretSource::Read { reader, clock, state } => (reader, clock, state),
        };
        let mut state = state.lock().await;
        let now = clock.now();
        if now >= state.next_read {
            state.read_again(reader.as_ref(), now).await;
        }
        state.value.clone().ok_or_else(|| state.last_error.clone())
    }

    /// Returns the value that has replaced the value `refused`: a server refused this value, or no signature could be
    /// verified with it. Reads the secret again, unless the last read was in the last ten seconds. Returns `None` if
    /// `refused` is still the current value.
    pub async fn get_replacement(&self, refused: &T) -> Option<T> {
        let SecretSource::Read { reader, clock, state } = &self.0 else { return None };
        let mut state = state.lock().await;
        let now = clock.now();
        let may_read = now.signed_duration_since(state.last_read) >= MIN_AGE_TO_READ_AGAIN;
        if state.value.as_ref() == Some(refused) && may_read {
            state.read_again(reader.as_ref(), now).await;
        }
        state.value.clone().filter(|value| value != refused)
    }
}

impl<T> SecretState<T> {
    /// Reads the secret with `reader`. Stores the new value, or the error, and the time of the next read.
    async fn read_again(&mut self, reader: &dyn SecretReader<T>, now: DateTime<Utc>) {
        self.last_read = now;
        match reader.read_secret().await {
            Ok(value) => {
                (self.value, self.failures) = (Some(value), 0);
                self.next_read = now + MAX_SECRET_AGE;
            }
            Err(error) => {
                tracing::error!(%error, error_type = "Secret", "{SECRET_UNREADABLE}");
                let delay = FIRST_READ_DELAY.saturating_mul(2_u32.saturating_pow(self.failures)).min(MAX_READ_DELAY);
                self.failures = self.failures.saturating_add(1);
                self.last_error = error;
                self.next_read = now + delay;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex as StdMutex;

    use clock::{SimulatedClock, Timer as _};

    use super::*;

    /// A fake store with one secret, whose value a test replaces. `None` makes the reads fail. Counts the reads.
    #[derive(Default)]
    struct FakeSecretStore(StdMutex<(Option<&'static str>, u32)>);

    #[async_trait]
    impl SecretReader<String> for Arc<FakeSecretStore> {
        async fn read_secret(&self) -> Result<String, ConfigError> {
            let (value, reads) = &mut *self.0.lock().unwrap();
            *reads += 1;
            let unreadable = || ConfigError::Invalid { name: "SECRET", reason: "cannot be read".to_owned() };
            value.map(str::to_owned).ok_or_else(unreadable)
        }
    }

    impl FakeSecretStore {
        /// Replaces the value of the secret. With `None`, the next reads fail.
        fn replace_value(&self, value: Option<&'static str>) {
            self.0.lock().unwrap().0 = value;
        }

        /// Returns how often the secret was read.
        fn read_count(&self) -> u32 {
            self.0.lock().unwrap().1
        }
    }

    /// Returns a secret that was not read yet, with the fake store from which it is read and with its clock.
    fn unread_secret() -> (Arc<FakeSecretStore>, Arc<SimulatedClock>, CurrentSecret<String>) {
        let clock = Arc::new(SimulatedClock::new("2027-01-31T06:00:00Z".parse().unwrap(), 1));
        let store = Arc::new(FakeSecretStore::default());
        let secret = CurrentSecret::new(store.clone(), clock.clone());
        (store, clock, secret)
    }

    #[tokio::test]
    async fn failed_reads_are_repeated_with_increasing_delays_until_one_succeeds() {
        let (store, clock, secret) = unread_secret();
        for (reads, delay) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (8, 60)] {
            assert!(secret.get().await.is_err() && secret.get().await.is_err());
            assert_eq!(store.read_count(), reads, "a read is not repeated before the delay has passed");
            clock.sleep(Duration::from_secs(delay)).await;
        }
        store.replace_value(Some("new"));
        assert_eq!((secret.get().await.unwrap(), store.read_count()), ("new".to_owned(), 9));
    }

    #[tokio::test]
    async fn secret_is_read_again_after_five_minutes_and_the_old_secret_stays_valid_if_the_read_fails() {
        let (store, clock, secret) = unread_secret();
        store.replace_value(Some("old"));
        assert_eq!(secret.get().await.unwrap(), "old");
        store.replace_value(Some("new"));
        clock.sleep(Duration::from_secs(299)).await;
        assert_eq!((secret.get().await.unwrap(), store.read_count()), ("old".to_owned(), 1));
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!((secret.get().await.unwrap(), store.read_count()), ("new".to_owned(), 2));
        store.replace_value(None);
        clock.sleep(Duration::from_secs(300)).await;
        assert_eq!((secret.get().await.unwrap(), store.read_count()), ("new".to_owned(), 3));
        assert_eq!((secret.get().await.unwrap(), store.read_count()), ("new".to_owned(), 3));
    }

    #[tokio::test]
    async fn refused_secret_is_replaced_at_once_with_at_most_one_read_in_ten_seconds() {
        let (store, clock, secret) = unread_secret();
        store.replace_value(Some("old"));
        let used = secret.get().await.unwrap();
        store.replace_value(Some("new"));
        clock.sleep(Duration::from_secs(9)).await;
        assert_eq!((secret.get_replacement(&used).await, store.read_count()), (None, 1));
        clock.sleep(Duration::from_secs(1)).await;
        assert_eq!((secret.get_replacement(&used).await.as_deref(), store.read_count()), (Some("new"), 2));
        assert_eq!((secret.get_replacement(&used).await.as_deref(), store.read_count()), (Some("new"), 2));
        assert_eq!((secret.get_replacement(&"new".to_owned()).await, store.read_count()), (None, 2));
        assert_eq!(CurrentSecret::from("fixed".to_owned()).get_replacement(&"fixed".to_owned()).await, None);
    }
}
