//! Trouble, thrown by dice that a seed decides: requests and answers that are lost, refusals, runs that end anywhere, and
//! days on which the gateway or we are away.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use emulator::{Fault, Wire};
use futures::FutureExt as _;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use shared::billing::{GatewayToken, Payment};
use shared::gateway::{ChargeAnswer, ChargeRequest, LookUpError, PaymentGateway, Sandbox};
use shared::mail::{Mail, MailError, Mailer};
use tokio::sync::Notify;

/// How much trouble there is, and which.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Odds {
    /// The part of all requests that something happens to.
    pub faults: f64,
    /// Equal seeds make equal trouble.
    pub seed: u64,
}

/// What happens to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mishap {
    LostBefore,
    LostAfter,
    Refused,
    /// The run ends there, before the request takes effect or after.
    EndsBefore,
    EndsAfter,
}

/// The dice, and what they have done so far.
#[derive(Debug)]
pub struct Trouble {
    faults: f64,
    dice: Mutex<ChaCha8Rng>,
    is_brewing: AtomicBool,
    is_gateway_away: AtomicBool,
    ended: Notify,
    mishaps: AtomicU64,
    crashes: AtomicU64,
}

impl Trouble {
    /// Trouble that has not begun yet.
    pub fn new(odds: Odds) -> Arc<Self> {
        Arc::new(Self {
            faults: odds.faults,
            dice: Mutex::new(ChaCha8Rng::seed_from_u64(odds.seed)),
            is_brewing: AtomicBool::new(false),
            is_gateway_away: AtomicBool::new(false),
            ended: Notify::new(),
            mishaps: AtomicU64::new(0),
            crashes: AtomicU64::new(0),
        })
    }

    /// The dice, for whoever else is to be decided by the seed.
    pub fn dice(&self) -> MutexGuard<'_, ChaCha8Rng> {
        self.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether requests go wrong from now on.
    pub fn brew(&self, is_brewing: bool) {
        // What ended an earlier run twice must not end this one.
        let _ = self.ended.notified().now_or_never();
        self.is_brewing.store(is_brewing, Ordering::Relaxed);
    }

    /// Whether the gateway is away from now on.
    pub fn take_gateway_away(&self, is_away: bool) {
        self.is_gateway_away.store(is_away, Ordering::Relaxed);
    }

    /// Ends when the run in progress is to end.
    pub async fn end_of_run(&self) {
        self.ended.notified().await;
        self.crashes.fetch_add(1, Ordering::Relaxed);
    }

    /// Requests that something happened to, and runs that ended by it.
    pub fn counts(&self) -> (u64, u64) {
        (self.mishaps.load(Ordering::Relaxed), self.crashes.load(Ordering::Relaxed))
    }

    /// A wire to the table on which this trouble happens.
    pub fn wire(self: &Arc<Self>) -> Wire {
        let trouble = self.clone();
        let wire = Wire::with_faults(move |_, operation| match trouble.next() {
            None => Fault::None,
            Some(Mishap::LostBefore) => Fault::LostBefore,
            Some(Mishap::LostAfter) => Fault::LostAfter,
            Some(Mishap::Refused) if operation == "TransactWriteItems" => Fault::Cancelled("TransactionConflict"),
            Some(Mishap::Refused) => Fault::Answered("ThrottlingException"),
            Some(Mishap::EndsBefore) => Fault::SilentBefore,
            Some(Mishap::EndsAfter) => Fault::SilentAfter,
        });
        let has_retries = self.dice().random();
        if has_retries { wire.and_no_tokens() } else { wire.and_no_tokens().and_no_retries() }
    }

    fn next(&self) -> Option<Mishap> {
        let mut dice = self.dice();
        if !self.is_brewing.load(Ordering::Relaxed) || !dice.random_bool(self.faults) {
            return None;
        }
        self.mishaps.fetch_add(1, Ordering::Relaxed);
        let mishap = match dice.random_range(0..10) {
            0..3 => Mishap::LostBefore,
            3..6 => Mishap::LostAfter,
            6..8 => Mishap::Refused,
            8 => Mishap::EndsBefore,
            _ => Mishap::EndsAfter,
        };
        if matches!(mishap, Mishap::EndsBefore | Mishap::EndsAfter) {
            self.ended.notify_one();
        }
        Some(mishap)
    }

    /// Makes `call`, or what happens to it instead.
    async fn call<T>(&self, lost: impl FnOnce() -> T, call: impl Future<Output = T>) -> T {
        match self.next() {
            None => call.await,
            Some(Mishap::LostBefore | Mishap::Refused) => lost(),
            Some(Mishap::LostAfter) => {
                call.await;
                lost()
            }
            Some(Mishap::EndsBefore) => std::future::pending().await,
            Some(Mishap::EndsAfter) => {
                call.await;
                std::future::pending().await
            }
        }
    }
}

/// The sandbox or a mailer, with trouble on the way to it.
#[derive(Debug)]
pub struct Troubled<T> {
    pub inner: Arc<T>,
    pub trouble: Arc<Trouble>,
}

#[async_trait]
impl PaymentGateway for Troubled<Sandbox> {
    async fn charge(&self, request: &ChargeRequest) -> ChargeAnswer {
        let lost = || ChargeAnswer::Unknown { reason: "no answer".to_owned() };
        if self.trouble.is_gateway_away.load(Ordering::Relaxed) {
            return lost();
        }
        self.trouble.call(lost, self.inner.charge(request)).await
    }

    async fn payments_of(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Result<Vec<Payment>, LookUpError> {
        let lost = || Err(LookUpError::Unknown { reason: "no answer".to_owned() });
        if self.trouble.is_gateway_away.load(Ordering::Relaxed) {
            return lost();
        }
        self.trouble.call(lost, self.inner.payments_of(customer, since)).await
    }
}

#[async_trait]
impl<T: Mailer> Mailer for Troubled<T> {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let lost = || Err(MailError { reason: "no answer".to_owned(), is_transient: true });
        self.trouble.call(lost, self.inner.send(mail)).await
    }
}
