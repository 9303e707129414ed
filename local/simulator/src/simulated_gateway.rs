//! The interface between a simulation with faults and its gateway.

use std::fmt;
use std::sync::Arc;

use billing::{GatewayToken, Payment};
use chrono::{DateTime, Utc};
use emulator::FaultInjector;
use gateways::PaymentGateway;

use crate::schedule::ProcessSchedule;

/// An event in which the gateway reports that a payment succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GatewayEvent {
    /// The event's id; the same in each delivery of the event.
    pub id: String,
    /// The id of the PaymentIntent that succeeded.
    pub payment: String,
}

/// The gateway that a simulation uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GatewayKind {
    /// The sandbox gateway, with random faults.
    #[default]
    Sandbox,
    /// The Stripe adapter, connected to the stand-in for Stripe with random faults.
    Stripe,
}

/// The gateway of a simulation with faults.
pub trait SimulatedGateway: fmt::Debug {
    /// Returns the gateway for one process. `process_schedule` decides when the calls of this process happen, and
    /// `injector` decides which calls fail.
    fn gateway_of_process(
        self: Arc<Self>,
        process_schedule: Arc<ProcessSchedule>,
        injector: Arc<FaultInjector>,
    ) -> Arc<dyn PaymentGateway>;

    /// Makes the late payments that are due now. A late payment is a payment that the gateway makes some time after the
    /// request failed for the client.
    fn make_late_payments(&self);

    /// Returns the instant of the next late payment; `None` if no late payment is planned.
    fn next_late_payment_time(&self) -> Option<DateTime<Utc>>;

    /// Returns all payments of `customer` that were created at `since` or later, as an operator sees them on the
    /// website of the gateway.
    fn payments_for_operator(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment>;

    /// Returns the instant at which the next event is sent; `None` if no event is waiting.
    fn next_event_time(&self) -> Option<DateTime<Utc>> {
        None
    }

    /// Returns the events that the gateway sends now; a gateway without events returns no event.
    fn events_to_send(&self) -> Vec<GatewayEvent> {
        Vec::new()
    }

    /// Stops all random faults of the gateway.
    fn stop_faults(&self);
}
