//! A process as AWS would start one: a clock of its own that is not quite right, its own way to the table, the gateway and
//! the mailer, and the shipped code on top.

use std::cell::OnceCell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api::Api;
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use billing::Ceilings;
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use emulator::{Deployment, Injector, Wire};
use inbound::StripeEvents;
use mail::{Mail, MailError, Mailer};
use payments::ChargeDue;
use reminders::RemindDue;
use rest::Caller;
use store::TableError;
use sweep::Sweep;
use testkit::Faulty;
use tower::ServiceExt as _;
use ulid::Ulid;

use super::world::World;
use crate::history::Seen;
use crate::oracle::Oracle;
use crate::schedule::{Schedule, Turns};

/// A process of the deployment.
pub struct Process {
    pub turns: Arc<Turns>,
    pub injector: Arc<Injector>,
    pub clock: Arc<SkewedClock>,
    pub deployment: Deployment,
    pub payments: Sweep<ChargeDue>,
    pub reminders: Sweep<RemindDue>,
    /// What receives the gateway's events, if it sends any.
    pub receiver: Option<StripeEvents>,
    api: OnceCell<Router>,
}

impl Process {
    /// A process whose clock is ahead by `skew`.
    pub async fn start(
        world: &World,
        skew: TimeDelta,
        has_retries: bool,
        ceiling: Option<u64>,
    ) -> Result<Self, TableError> {
        let mut config = world.config.clone();
        config.charging.ceilings = Ceilings { charges: ceiling, ..Ceilings::default() };
        let turns = Arc::new(Turns::new(world.schedule.clone(), world.faults.clone()));
        let injector = Arc::new(Injector::new(turns.clone()));
        let seen = Seen { history: world.history.clone(), turns: turns.clone() };
        let wire = Wire::through(injector.clone()).and_no_tokens().and_witness(Arc::new(seen));
        let wire = if has_retries { wire } else { wire.and_no_retries() };
        let gateway = world.gateway.clone().for_process(turns.clone(), injector.clone());
        let post = Post {
            oracle: world.oracle.clone(),
            clock: world.clock.clone(),
            schedule: world.schedule.clone(),
            turns: turns.clone(),
        };
        let clock = Arc::new(SkewedClock { clock: world.clock.clone(), skew });
        let deployment = Deployment::new(
            world.engine.client_over(Arc::new(wire)),
            config,
            gateway,
            Arc::new(Faulty::new(Arc::new(post), injector.clone())),
            clock.clone(),
        );
        let deployment = deployment.ready().await?;
        let (payments, reminders) = (deployment.payments().await?, deployment.reminders().await?);
        let Deployment { table, config, .. } = &deployment;
        let receiver = world.stripe.as_ref().map(|stripe| stripe.receiver(table.clone(), config, clock.clone()));
        Ok(Self { turns, injector, clock, payments, reminders, receiver, api: OnceCell::new(), deployment })
    }

    /// The most that it may charge in a day.
    pub fn ceiling(&self) -> Option<usize> {
        self.deployment.config.charging.ceilings.charges.and_then(|most| usize::try_from(most).ok())
    }

    /// Whether it is of the API.
    pub fn has_api(&self) -> bool {
        self.api.get().is_some()
    }

    /// Makes its API, unless there is one: its routes describe themselves, which takes time.
    pub async fn serve(&self) -> Result<(), TableError> {
        if self.api.get().is_none() {
            let Deployment { table, config, .. } = &self.deployment;
            let api = Api::new(table.clone(), config.of_api(), self.clock.clone()).await?;
            // Nobody else could have set it.
            let _ = self.api.set(api.router());
        }
        Ok(())
    }

    /// The status that an operator's request is answered with, and the problem.
    pub async fn request(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let Ok(mut request) = request.body(Body::from(body.to_owned())) else { return (0, String::new()) };
        request.extensions_mut().insert(Caller::Operator);
        let Some(api) = self.api.get() else { return (0, String::new()) };
        let response = match api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status().as_u16();
        let text = to_bytes(response.into_body(), usize::MAX).await.unwrap_or_default();
        (status, String::from_utf8_lossy(&text).into_owned())
    }
}

/// A clock that is ahead, or behind.
#[derive(Debug)]
pub struct SkewedClock {
    clock: Arc<SimulatedClock>,
    pub skew: TimeDelta,
}

impl Clock for SkewedClock {
    fn now(&self) -> DateTime<Utc> {
        self.clock.now() + self.skew
    }

    fn ulid(&self) -> Ulid {
        self.clock.ulid()
    }

    fn secret(&self) -> [u8; 32] {
        self.clock.secret()
    }
}

/// The mailer of one process; the oracle reads every mail.
struct Post {
    oracle: Arc<Mutex<Oracle>>,
    clock: Arc<SimulatedClock>,
    schedule: Schedule,
    turns: Arc<Turns>,
}

#[async_trait]
impl Mailer for Post {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let mut oracle = self.oracle.lock().unwrap_or_else(PoisonError::into_inner);
        oracle.mailed(self.turns.actor(), self.clock.now(), mail);
        self.schedule.note(&format!("{} mail {} {}", self.turns.actor(), mail.to.as_str(), mail.text));
        Ok(())
    }
}

impl fmt::Debug for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Post")
    }
}
