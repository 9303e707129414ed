//! A simulated process, like a process that AWS starts: the production code, with its own slightly wrong clock and its
//! own connections to the table, the gateway and the mailer.

use std::cell::OnceCell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use api::Api;
use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use chrono::{DateTime, TimeDelta, Utc};
use clock::{Clock, SimulatedClock};
use deployment::{Deployment, DeploymentConfig, FaultyService};
use emulator::{EngineConnection, FaultInjector};
use inbound::StripeEventHandler;
use mail::{Mail, MailError, Mailer};
use payments::PaymentBatch;
use reminders::ReminderBatch;
use rest::{Caller, Role};
use store::TableError;
use sweep::Sweep;
use tower::ServiceExt as _;
use ulid::Ulid;

use super::environment::SimulationEnvironment;
use crate::history::ProcessObserver;
use crate::oracle::Oracle;
use crate::schedule::{CallSchedule, ProcessSchedule};

/// A simulated process of the deployment, which executes one actor's task at a time.
pub struct SimulatedProcess {
    pub process_schedule: Arc<ProcessSchedule>,
    pub injector: Arc<FaultInjector>,
    pub clock: Arc<SkewedClock>,
    pub deployment: Deployment,
    pub payments: Sweep<PaymentBatch>,
    pub reminders: Sweep<ReminderBatch>,
    /// The webhook receiver of the gateway's events; `None` if the gateway sends no events.
    pub receiver: Option<StripeEventHandler>,
    api: OnceCell<Router>,
}

impl SimulatedProcess {
    /// Starts a process with the configuration `config`, whose clock is ahead of the simulated clock by `skew`.
    /// `has_retries` states whether the AWS SDK of the process repeats failed requests.
    pub async fn start(
        environment: &SimulationEnvironment,
        config: DeploymentConfig,
        skew: TimeDelta,
        has_retries: bool,
    ) -> Result<Self, TableError> {
        let process_schedule = Arc::new(ProcessSchedule::new(environment.schedule.clone(), environment.faults.clone()));
        let injector = Arc::new(FaultInjector::new(process_schedule.clone()));
        let observer =
            ProcessObserver { history: environment.history.clone(), process_schedule: process_schedule.clone() };
        let connection = EngineConnection::with_injector(injector.clone())
            .without_transaction_tokens()
            .with_observer(Arc::new(observer));
        let connection = if has_retries { connection } else { connection.without_retries() };
        let gateway = environment.gateway.clone().gateway_of_process(process_schedule.clone(), injector.clone());
        let mailer = RecordingMailer {
            oracle: environment.oracle.clone(),
            clock: environment.clock.clone(),
            schedule: environment.schedule.clone(),
            process_schedule: process_schedule.clone(),
        };
        let clock = Arc::new(SkewedClock { clock: environment.clock.clone(), skew });
        let deployment = Deployment::new(
            environment.engine.client_with_connection(Arc::new(connection)),
            config,
            gateway,
            Arc::new(FaultyService::new(Arc::new(mailer), injector.clone())),
            clock.clone(),
        );
        let deployment = deployment.create_table_if_absent().await?;
        let (payments, reminders) = (deployment.payment_batch().await?, deployment.reminder_batch().await?);
        let table = &deployment.table;
        let receiver = environment.stripe.as_ref().map(|stripe| stripe.event_handler(table.clone(), clock.clone()));
        Ok(Self { process_schedule, injector, clock, payments, reminders, receiver, api: OnceCell::new(), deployment })
    }

    /// Returns whether the process serves the API.
    pub fn has_api(&self) -> bool {
        self.api.get().is_some()
    }

    /// Creates the API if the process has none. Only some processes need the API, and its creation is slow.
    pub async fn create_api(&self) -> Result<(), TableError> {
        if self.api.get().is_none() {
            let Deployment { table, config, .. } = &self.deployment;
            let merchant = config.merchant.clone();
            let api = Api::new(table.clone(), &config.table, merchant, self.clock.clone()).await?;
            // Ignores the result: `set` fails only if the API was created before, which the condition above excludes.
            let _ = self.api.set(api.router());
        }
        Ok(())
    }

    /// Sends a request with operator rights to the API, and returns the status and the body of the response. The status
    /// is 0 if the request is invalid or the process has no API.
    pub async fn send_api_request(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> (u16, String) {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let Ok(mut request) = request.body(Body::from(body.to_owned())) else { return (0, String::new()) };
        request.extensions_mut().insert(Caller::Operator(Role::Admin));
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

/// A clock that is ahead of the simulated clock by `skew`, or behind if `skew` is negative.
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

    fn random_secret(&self) -> [u8; 32] {
        self.clock.random_secret()
    }
}

/// The mailer of one process. It reports every mail to the oracle.
struct RecordingMailer {
    oracle: Arc<Mutex<Oracle>>,
    clock: Arc<SimulatedClock>,
    schedule: CallSchedule,
    process_schedule: Arc<ProcessSchedule>,
}

#[async_trait]
impl Mailer for RecordingMailer {
    async fn send(&self, mail: &Mail) -> Result<(), MailError> {
        let mut oracle = self.oracle.lock().unwrap_or_else(PoisonError::into_inner);
        oracle.record_sent_mail(self.process_schedule.calling_actor(), self.clock.now(), mail);
        self.schedule.add_to_trace(&format!(
            "{} mail {} {}",
            self.process_schedule.calling_actor(),
            mail.to.as_str(),
            mail.text
        ));
        Ok(())
    }
}

impl fmt::Debug for RecordingMailer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RecordingMailer")
    }
}
