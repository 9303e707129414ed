//! The part of the engine that charges: its limits of time and of the request rate, and the gateway account.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use billing::{Attempt, ClaimToken, GatewayAccount};
use chrono::{DateTime, Utc};
use clock::Clock;
use gateways::{GatewayError, PaymentGateway};
use store::{Claim, Table};
use tokio::sync::OnceCell;

use crate::request_pace::RequestPace;
use crate::{ChargeConfig, ChargeRun, ChargingEngine};

/// The timeout of one request to the gateway.
pub const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that is reserved for the settlement after a charge.
const SETTLE_MARGIN: Duration = Duration::from_secs(10);
/// How long a process waits at its start for the gateway's response with the gateway account. Lambda allows ten seconds
/// for the whole start of a process.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Claims due payments, charges them, and takes over attempts in doubt.
#[derive(Debug)]
pub struct Charger {
    pub(crate) engine: ChargingEngine,
    pub(crate) gateway: Arc<dyn PaymentGateway>,
    /// The longest time that a charge and its settlement can take.
    pub(crate) time_to_charge: Duration,
    pub(crate) pace: RequestPace,
    /// The gateway account to which the API key belongs; it is set when the gateway has returned the account.
    pub(crate) account: OnceCell<GatewayAccount>,
    /// The marker: a customer at the gateway by which runs recognize the gateway account, if the API key may not read
    /// the account. It is set when the marker was found at the gateway.
    pub(crate) marker: OnceCell<GatewayAccount>,
}

impl Charger {
    /// Creates the charger of the due payments of `table`, which charges through `gateway`.
    pub fn new(table: Table, gateway: Arc<dyn PaymentGateway>, config: &ChargeConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            engine: ChargingEngine::new(table, clock),
            gateway,
            time_to_charge: GATEWAY_TIMEOUT + SETTLE_MARGIN,
            pace: RequestPace::with_rate(config.gateway_rate),
            account: OnceCell::new(),
            marker: OnceCell::new(),
        }
    }

    /// Opens the connection to the gateway before the first charge, by reading the gateway account. If the account cannot
    /// be read, or not in time, the first run reads it again.
    pub async fn connect(&self) {
        let account = self.account.get_or_try_init(|| self.gateway.account());
        let no_response = |_| Err(GatewayError::Unknown { reason: "no response in time".to_owned() });
        if let Err(error) = tokio::time::timeout(CONNECT_TIMEOUT, account).await.unwrap_or_else(no_response) {
            let error_type = error.error_type();
            tracing::warn!(%error, error_type, "the gateway account could not be read yet: the first run reads it again");
        }
    }

    /// Begins a new run, one of `runs` concurrent runs, which share the configured request rate.
    pub fn start_run(&self, runs: NonZeroU32) -> ChargeRun {
        self.pace.start_run(runs);
        ChargeRun::default()
    }

    /// Waits until the rate limit allows a new request. Wait before a claim, so that the claimed payment can be charged
    /// immediately.
    pub async fn wait_for_turn(&self) {
        self.pace.wait_for_turn().await;
    }

    /// Returns whether the time until `deadline` is enough for a charge and its settlement.
    pub fn has_time_to_charge(&self, deadline: DateTime<Utc>) -> bool {
        self.engine.clock.now() + self.time_to_charge < deadline
    }

    /// Returns whether enough time is left to charge before `deadline`, after the current pause of requests to the
    /// gateway. If no pause is active, returns `true` without looking at the deadline.
    pub(crate) fn has_time_to_charge_after_pause(&self, deadline: DateTime<Utc>) -> bool {
        let pause = self.pace.remaining_pause();
        pause.is_zero() || self.has_time_to_charge(deadline - pause)
    }

    /// Records that the gateway has responded: resets the circuit breaker of `run`, and makes the next pause of
    /// requests short again.
    pub(crate) fn record_response(&self, run: &ChargeRun) {
        run.breaker.reset();
        self.pace.record_response();
    }

    /// Creates a claim with a new token, whose lease begins now.
    pub(crate) fn new_claim(&self) -> Claim {
        let now = self.engine.clock.now();
        Claim { token: ClaimToken(self.engine.clock.ulid()), now, leased_until: now + Attempt::LEASE }
    }
}
