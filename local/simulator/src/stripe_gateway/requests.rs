//! HTTP requests to Stripe. Each takes its turn in the schedule and meets the faults of its process, as every call to the outside does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::{HeaderMap, Method, StatusCode};
use chrono::{DateTime, Utc};
use clock::Clock as _;
use emulator::{Fault, InProcess, Injector, Operation};
use gateways::{Response, Transport};

use super::Books;
use crate::schedule::{GIVEN_UP_AT, Schedule, Turns};

tokio::task_local! {
    /// The process whose call the adapter carries out.
    pub static SENDER: Sender;
}

/// The path under which PaymentIntents are created and listed.
const PAYMENT_INTENTS: &str = "/v1/payment_intents";
const NO_RESPONSE: &str = "no response";

/// A process that sends requests to Stripe.
#[derive(Clone)]
pub struct Sender {
    pub turns: Arc<Turns>,
    pub injector: Arc<Injector>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({})", self.turns.actor())
    }
}

/// Sends the requests of all processes.
pub struct Requests {
    pub in_process: InProcess,
    pub books: Arc<Books>,
    pub schedule: Schedule,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Requests")
    }
}

impl Requests {
    /// Whether the adapter has given up the charge that it is carrying out: a timer that only the simulated clock drives.
    fn is_given_up(&self) -> bool {
        let given_up_at: Option<DateTime<Utc>> = GIVEN_UP_AT.try_with(|at| *at).ok();
        given_up_at.is_some_and(|at| self.books.clock.now() >= at)
    }

    /// Stripe receives `request` of `actor`, and the oracle learns what it has made.
    async fn receive(&self, request: reqwest::Request, actor: u64) -> Result<Response, String> {
        self.books.show_repairs();
        if let Some(key) = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()) {
            self.books.oracle().received(key);
        }
        let asked = format!("{actor} {} {}", request.method(), request.url());
        let response = self.in_process.send(request).await;
        self.books.show(actor);
        let shown = response.as_ref().map(|response| (response.status, String::from_utf8_lossy(&response.body)));
        self.schedule.note(&format!("{asked} {shown:?}"));
        response
    }
}

#[async_trait]
impl Transport for Requests {
    async fn send(&self, request: reqwest::Request) -> Result<Response, String> {
        let Ok(Sender { turns, injector }) = SENDER.try_with(Sender::clone) else {
            return Err("no process sends this".to_owned());
        };
        if self.is_given_up() {
            return Err(NO_RESPONSE.to_owned());
        }
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let operation = match (&method, path.as_str()) {
            (&Method::POST, PAYMENT_INTENTS) => Operation::Charge,
            (&Method::GET, PAYMENT_INTENTS) => Operation::PaymentsOf,
            (_, path) => Operation::Http(path),
        };
        let response = injector.call(operation, failed, self.receive(request, turns.actor())).await;
        if self.is_given_up() { Err(NO_RESPONSE.to_owned()) } else { response }
    }

    async fn wait(&self, _delay: Duration) {
        let actor = SENDER.try_with(|sender| sender.turns.actor()).unwrap_or_default();
        if actor != 0 {
            self.schedule.wait(actor, None, None).await;
        }
    }
}

/// The response to a request with this fault.
fn failed(fault: Fault) -> Result<Response, String> {
    match fault {
        Fault::Refused(_) | Fault::Cancelled(_) => {
            let body = br#"{"error": {"type": "invalid_request_error", "message": "see the status"}}"#.to_vec();
            Ok(Response { status: StatusCode::UNAUTHORIZED, headers: HeaderMap::new(), body })
        }
        Fault::LostBefore | Fault::LostAfter | Fault::CrashBefore | Fault::CrashAfter => Err(NO_RESPONSE.to_owned()),
    }
}
