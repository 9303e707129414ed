//! The actors of a simulation, and what the oracle records about their reads. Also checks the responses to API
//! requests.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::expected_subscription::{CustomerAction, ExpectedSubscription};
use super::{Oracle, subscription_of_item_key};
use crate::change::ItemKey;
use crate::lagging_index::MAX_LAG;
use crate::schedule::ActorId;
use crate::stored_items::SubscriptionName;

/// A batch run, an API request, the webhook receiver or an operator that acts in the simulation, with the data that the
/// oracle needs.
#[derive(Clone, Debug)]
pub struct SimulatedActor {
    pub role: ActorRole,
    /// The amount by which the actor's clock is ahead of the simulated clock; negative if it is behind.
    pub skew: TimeDelta,
    /// The day on which the actor started, by its own clock.
    pub today: NaiveDate,
    /// The due date up to which a run charges or reminds; `None` for other roles.
    pub date: Option<NaiveDate>,
}

/// The role of an actor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ActorRole {
    /// A run of the payment batch.
    Payments,
    /// A run of the reminder batch.
    Reminders,
    /// An operator who resolves a payment attempt.
    Resolver,
    /// The webhook receiver of the gateway's events.
    Webhook,
    /// An API request of a customer, or of an operator for a customer.
    Request { subscription: SubscriptionName, action: CustomerAction },
    /// An operator task that changes no existing subscription.
    Operator,
}

/// The result of a customer request, as the API response states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestOutcome {
    Done,
    Refused,
}

/// An actor that has not finished, and the oracle's records about it.
pub(super) struct ActorState {
    pub actor: SimulatedActor,
    /// Whether the actor has written to a subscription.
    pub has_written: bool,
    /// Whether the requested action was allowed in the state that the actor read last; `None` before the first read of
    /// the actor.
    pub was_allowed: Option<bool>,
    /// The highest ceiling (maximum number of charges per day) that the actor has read in the settings. `None` if the
    /// actor has not read the settings, or has read settings without a ceiling. If the number of due payments of a run
    /// is higher than the ceiling, the run must not charge any of these payments.
    ceiling: Option<usize>,
    /// Whether the actor has read the settings.
    has_read_settings: bool,
    /// True if charging was switched off when the actor last read the settings.
    has_read_charging_off: bool,
    /// The subscriptions whose index rows the actor read before the actor read in the settings that charging is
    /// switched off.
    rows_read_while_on: BTreeSet<SubscriptionName>,
    /// The instant at which the actor started.
    pub began_at: DateTime<Utc>,
}

impl Oracle {
    /// Records that an actor started.
    pub fn record_actor_start(&mut self, id: ActorId, now: DateTime<Utc>, actor: SimulatedActor) {
        let active = ActorState {
            actor,
            has_written: false,
            was_allowed: None,
            ceiling: None,
            has_read_settings: false,
            has_read_charging_off: false,
            rows_read_while_on: BTreeSet::new(),
            began_at: now,
        };
        self.active_actors.insert(id, active);
    }

    /// Records that an actor finished, or that a crash ended the actor.
    pub fn record_actor_end(&mut self, id: ActorId) {
        self.active_actors.remove(&id);
    }

    /// Returns whether the number of due payments is higher than the ceiling of the run `active`. Counts only payments
    /// that have been due, and visible in the index, since the start of the run.
    pub(super) fn exceeds_ceiling(&self, active: &ActorState) -> bool {
        let (Some(most), Some(date)) = (active.ceiling, active.actor.date) else { return false };
        let is_due = |expected: &&ExpectedSubscription| {
            expected.open.is_none()
                && expected.is_chargeable()
                && !expected.ends_on_due_date()
                && expected.next_payment.is_some_and(|next| next <= date)
                && expected.changed_at + MAX_LAG < active.began_at
        };
        self.expected_subscriptions.values().filter(is_due).count() > most
    }

    /// Records whether the requested action is allowed in the state that the actor has just read.
    pub(super) fn record_whether_action_is_allowed(&mut self, id: ActorId) {
        let Some(active) = self.active_actors.get_mut(&id) else { return };
        let ActorRole::Request { subscription, action } = &active.actor.role else { return };
        if active.has_written {
            return;
        }
        let expected = self.expected_subscriptions.get(subscription);
        active.was_allowed =
            expected.map(|expected| expected.predict_after_action(action, active.actor.today, &self.rules).is_some());
    }

    /// Checks the response to the customer request of actor `id`.
    pub fn record_api_response(&mut self, id: ActorId, now: DateTime<Utc>, outcome: RequestOutcome) {
        let Some(active) = self.active_actors.get(&id) else { return };
        let ActorRole::Request { subscription, action } = active.actor.role.clone() else { return };
        let was_allowed = active.was_allowed;
        match (outcome, was_allowed) {
            (RequestOutcome::Refused, Some(true)) if !active.has_written => {
                self.report_violation(now, &subscription, format!("{action:?} was refused, but is allowed"));
            }
            (RequestOutcome::Done, Some(false)) if !active.has_written => {
                self.report_violation(now, &subscription, format!("{action:?} was done, but had to be refused"));
            }
            _ => {}
        }
        match outcome {
            RequestOutcome::Done => self.counts.accepted_requests += 1,
            RequestOutcome::Refused => self.counts.refused_requests += 1,
        }
    }

    /// Records that an actor has read the settings: whether charging is switched on, and the ceiling (maximum number of
    /// charges per day).
    pub fn record_settings_read_by_actor(&mut self, id: ActorId, is_charging: bool, ceiling: Option<usize>) {
        if let Some(active) = self.active_actors.get_mut(&id) {
            // The actor may use any of the settings that it has read, so only the highest ceiling is certain to apply.
            active.ceiling = match active.has_read_settings {
                true => active.ceiling.zip(ceiling).map(|(one, other)| one.max(other)),
                false => ceiling,
            };
            active.has_read_settings = true;
            active.has_read_charging_off = !is_charging;
        }
    }

    /// Records that an actor has read these index rows.
    pub fn record_index_rows_read_by_actor(&mut self, id: ActorId, rows: &[ItemKey]) {
        if let Some(active) = self.active_actors.get_mut(&id)
            && !active.has_read_charging_off
        {
            active.rows_read_while_on.extend(rows.iter().filter_map(subscription_of_item_key));
        }
    }
}

impl ActorState {
    /// Returns whether the actor must not charge `subscription`, because the actor read the index row only after the
    /// actor had read that charging is switched off.
    pub fn has_read_row_after_charging_off(&self, subscription: &SubscriptionName) -> bool {
        self.has_read_charging_off && !self.rows_read_while_on.contains(subscription)
    }
}
