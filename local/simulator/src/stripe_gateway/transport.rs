//! HTTP requests to Stripe. Like every external call, each request waits for its turn in the schedule, and the fault
//! injector of its process decides whether the request fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Method, StatusCode};
use chrono::{DateTime, Utc};
use clock::Clock as _;
use emulator::{ExternalOperation, Fault, FaultInjector, InProcessTransport};
use gateways::{HttpResponse, StripeTransport};

use super::ObservedStripeServer;
use crate::schedule::{CHARGE_DEADLINE, CallSchedule, ProcessSchedule};

tokio::task_local! {
    /// The process for which the Stripe adapter currently executes a call.
    pub static CALLING_PROCESS: CallingProcess;
}

/// The path of requests that create or list PaymentIntents.
const PAYMENT_INTENTS: &str = "/v1/payment_intents";
/// The reason in the error of a request that gets no response, because of an injected fault or because its deadline has
/// passed.
const NO_RESPONSE_REASON: &str = "no response";

/// A process that sends requests to Stripe.
#[derive(Clone)]
pub struct CallingProcess {
    pub process_schedule: Arc<ProcessSchedule>,
    pub injector: Arc<FaultInjector>,
}

impl fmt::Debug for CallingProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallingProcess({})", self.process_schedule.calling_actor())
    }
}

/// Sends the HTTP requests of all processes to the stand-in for Stripe.
pub struct ProcessTransport {
    pub in_process: InProcessTransport,
    pub observed: Arc<ObservedStripeServer>,
    pub schedule: CallSchedule,
}

impl fmt::Debug for ProcessTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProcessTransport")
    }
}

impl ProcessTransport {
    /// Returns whether the simulated clock has passed the deadline of the current charge. Returns false if the current
    /// call is not a charge.
    fn is_past_deadline(&self) -> bool {
        let deadline: Option<DateTime<Utc>> = CHARGE_DEADLINE.try_with(|at| *at).ok();
        deadline.is_some_and(|at| self.observed.clock.now() >= at)
    }

    /// Passes the request of `actor` to the stand-in for Stripe, and reports the resulting payments to the oracle.
    async fn pass_to_stand_in(&self, request: reqwest::Request, actor: u64) -> Result<HttpResponse, String> {
        self.observed.report_late_payments();
        if let Some(key) = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()) {
            self.observed.oracle().record_received_charge(key);
        }
        let summary = format!("{actor} {} {}", request.method(), request.url());
        let response = self.in_process.send(request).await;
        self.observed.report_payments_of(actor);
        let shown = response.as_ref().map(|response| (response.status, String::from_utf8_lossy(&response.body)));
        self.schedule.add_to_trace(&format!("{summary} {shown:?}"));
        response
    }
}

#[async_trait]
impl StripeTransport for ProcessTransport {
    fn http_client(&self) -> reqwest::Client {
        self.in_process.http_client()
    }

    async fn send(&self, request: reqwest::Request) -> Result<HttpResponse, String> {
        let Ok(CallingProcess { process_schedule, injector }) = CALLING_PROCESS.try_with(CallingProcess::clone) else {
            return Err("the request does not belong to a process".to_owned());
        };
        if self.is_past_deadline() {
            return Err(NO_RESPONSE_REASON.to_owned());
        }
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let operation = match (&method, path.as_str()) {
            (&Method::POST, PAYMENT_INTENTS) => ExternalOperation::Charge,
            (&Method::GET, PAYMENT_INTENTS) => ExternalOperation::PaymentsOf,
            (_, path) => ExternalOperation::Http(path),
        };
        let response = injector
            .call_with_faults(
                operation,
                response_to_fault,
                self.pass_to_stand_in(request, process_schedule.calling_actor()),
            )
            .await;
        if self.is_past_deadline() { Err(NO_RESPONSE_REASON.to_owned()) } else { response }
    }

    async fn wait(&self, _delay: Duration) {
        let actor = CALLING_PROCESS.try_with(|caller| caller.process_schedule.calling_actor()).unwrap_or_default();
        if actor != 0 {
            self.schedule.wait_for_turn(actor, None, None).await;
        }
    }
}

/// Returns the response that a request gets if `fault` was injected.
fn response_to_fault(fault: Fault) -> Result<HttpResponse, String> {
    match fault {
        Fault::Refused(_) | Fault::Cancelled(_) => {
            let body = br#"{"error": {"type": "invalid_request_error", "message": "see the status"}}"#.to_vec();
            Ok(HttpResponse { status: StatusCode::UNAUTHORIZED, headers: HeaderMap::new(), body })
        }
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => {
            Err(NO_RESPONSE_REASON.to_owned())
        }
    }
}
