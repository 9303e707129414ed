//! The gateways that a play can be over.

use std::fmt;
use std::sync::Arc;

use billing::{GatewayToken, Payment};
use chrono::{DateTime, Utc};
use emulator::Injector;
use gateways::PaymentGateway;

use crate::schedule::Turns;

/// An event about a payment that succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Equal whenever it is sent again.
    pub id: String,
    /// The PaymentIntent.
    pub payment: String,
}

/// Which gateway a play is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GatewayKind {
    /// The sandbox, in a bad mood.
    #[default]
    Sandbox,
    /// The Stripe adapter over the stand-in for Stripe, which behaves as badly as Stripe may.
    Stripe,
}

/// The gateway of a play.
pub trait PlayedGateway: fmt::Debug {
    /// The gateway as a process with these `turns` reaches it. What goes wrong on the way is decided by `injector`.
    fn for_process(self: Arc<Self>, turns: Arc<Turns>, injector: Arc<Injector>) -> Arc<dyn PaymentGateway>;

    /// Makes the payments that are made by now without a request of this moment.
    fn make_late_payments(&self);

    /// When the next payment is made without a request of that moment.
    fn next_late_payment(&self) -> Option<DateTime<Utc>>;

    /// All payments of `customer` since an instant, as the gateway's own records show them to a person.
    fn records(&self, customer: &GatewayToken, since: DateTime<Utc>) -> Vec<Payment>;

    /// When the next event about a payment is sent.
    fn next_event(&self) -> Option<DateTime<Utc>> {
        None
    }

    /// The events about payments that are sent now, if this gateway sends any.
    fn events(&self) -> Vec<Event> {
        Vec::new()
    }

    /// Behaves well from now on.
    fn calm_down(&self);
}
