//! The times in which a subscription was not charged, from its records: pauses and cancellations from the action log,
//! disputes, and payments without a receipt that waited for the decision of a person.

use chrono::{DateTime, NaiveDate, Utc};
use strum::Display;

use billing::{
    ChargeHold, Dispute, DisputeStatus, Finding, LoggedAction, PaymentRecords, Policy, Subscription, SubscriptionStatus,
};
use days::RequestedDay;

/// The reason why a subscription was not charged for some time, the most severe first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display)]
#[strum(serialize_all = "lowercase")]
pub enum HoldKind {
    Cancelled,
    /// The gateway had a payment without a receipt.
    OpenFinding,
    Unpaid,
    /// The payment method was disputed.
    Disputed,
    Paused,
}

/// A time in which a subscription was not charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PastHold {
    pub kind: HoldKind,
    /// The first day; `None` if the records do not contain it.
    pub since: Option<NaiveDate>,
    /// The day on which charges became possible again; `None` if the subscription is still not charged.
    pub until: Option<NaiveDate>,
}

/// The items of an account that show when its subscriptions were not charged.
#[derive(Clone, Debug, Default)]
pub struct HoldRecords {
    pub actions: Vec<LoggedAction>,
    pub disputes: Vec<Dispute>,
    pub findings: Vec<Finding>,
}

impl PastHold {
    /// Returns whether the subscription was not charged on `day`. A run of the day on which a hold ended may have begun
    /// before its end, so that day does not count.
    pub fn is_known_on(&self, day: NaiveDate) -> bool {
        self.since.is_some_and(|since| since <= day) && self.until.is_none_or(|until| until > day)
    }
}

impl HoldRecords {
    /// Returns the times in which `subscription` (in its current state) was not charged, the most severe kind first.
    /// `records` are its payments: a payment that was tried ends a dispute, even if the records do not show why.
    pub fn holds_of(
        &self,
        subscription: &Subscription,
        records: &PaymentRecords,
        policy: &Policy,
        day: &RequestedDay,
    ) -> Vec<PastHold> {
        let mut actions: Vec<&LoggedAction> =
            self.actions.iter().filter(|action| action.subscription == Some(subscription.id)).collect();
        actions.sort_by_key(|action| action.id);
        let history = HoldHistory { subscription, records, policy, actions, day };
        let mut holds = history.holds_in_action_log();
        holds.extend(self.findings.iter().filter_map(|finding| history.hold_of_finding(finding)));
        holds.extend(self.disputes.iter().filter_map(|dispute| history.hold_of_dispute(dispute)));
        holds.extend(
            history
                .current_hold()
                .filter(|now| !holds.iter().any(|hold| hold.kind == now.kind && hold.until.is_none())),
        );
        holds.sort_by_key(|hold| (hold.kind, hold.since));
        holds
    }
}

/// The records of one subscription. The oldest action is the first.
struct HoldHistory<'a> {
    subscription: &'a Subscription,
    records: &'a PaymentRecords,
    policy: &'a Policy,
    actions: Vec<&'a LoggedAction>,
    day: &'a RequestedDay,
}

impl HoldHistory<'_> {
    /// Returns the pauses, the cancellation and the ends of unpaid times in the action log. An entry contains the status
    /// before and after the change, so a pause whose begin has expired is still known from its end.
    fn holds_in_action_log(&self) -> Vec<PastHold> {
        let mut holds: Vec<PastHold> = Vec::new();
        for action in &self.actions {
            let on = Some(self.day.date_of(action.at));
            if let Some(kind) = hold_kind_of_status(action.before.get("status")) {
                match holds.last_mut().filter(|hold| hold.kind == kind && hold.until.is_none()) {
                    Some(hold) => hold.until = on,
                    None => holds.push(PastHold { kind, since: self.unpaid_before(kind, action.at), until: on }),
                }
            }
            let begun = hold_kind_of_status(action.after.get("status"));
            if let Some(kind) = begun.filter(|kind| *kind != HoldKind::Unpaid) {
                holds.push(PastHold { kind, since: on, until: None });
            }
        }
        // A run cancels a paused subscription at the end of a planned cancellation, without an action.
        let is_now = |hold: &PastHold| hold.until.is_some() || Some(hold.kind) == self.current_kind();
        holds.retain(is_now);
        holds
    }

    /// Returns the day of the last failed attempt before `until`, at which an unpaid time began.
    fn unpaid_before(&self, kind: HoldKind, until: DateTime<Utc>) -> Option<NaiveDate> {
        let failed = self.records.attempts.iter().map(|attempt| attempt.processed_at).filter(|at| *at < until);
        failed.max().filter(|_| kind == HoldKind::Unpaid).map(|at| self.day.date_of(at))
    }

    /// Returns the time in which `finding` prevented charges; `None` if it did not.
    fn hold_of_finding(&self, finding: &Finding) -> Option<PastHold> {
        let until = finding.resolved.as_ref().map(|resolved| self.day.date_of(resolved.at));
        (finding.subscription == self.subscription.id && finding.blocks).then(|| PastHold {
            kind: HoldKind::OpenFinding,
            since: Some(self.day.date_of(finding.found_at)),
            until,
        })
    }

    /// Returns the time in which `dispute` prevented charges of the subscription; `None` if it did not: the bank only
    /// asked, or the dispute is about a payment method that the subscription did not have.
    fn hold_of_dispute(&self, dispute: &Dispute) -> Option<PastHold> {
        let (subscription, opened_at) = (self.subscription, dispute.opened_at);
        let is_of_current_method = dispute.payment_method == subscription.payment_method.payment_method;
        let is_own = dispute.receipt.subscription == subscription.id && !self.is_method_replaced_before(dispute);
        if dispute.status == DisputeStatus::Inquiry || !(is_of_current_method || is_own) {
            return None;
        }
        let won_at = dispute.closed_at.filter(|_| dispute.status == DisputeStatus::Won);
        let is_disputed_now = subscription.disputed_at.is_some_and(|since| since <= opened_at);
        let ends = if is_disputed_now {
            [None; 3]
        } else {
            [won_at, self.dispute_mark_removed_after(opened_at), self.first_attempt_after(opened_at)]
        };
        let until = ends.into_iter().flatten().min().map(|at| self.day.date_of(at));
        Some(PastHold { kind: HoldKind::Disputed, since: Some(self.day.date_of(opened_at)), until })
    }

    /// Returns whether the subscription got another payment method after the payment that `dispute` is about, before the
    /// dispute was opened.
    fn is_method_replaced_before(&self, dispute: &Dispute) -> bool {
        let paid = self.records.receipts.iter().find(|receipt| receipt.payment == dispute.payment);
        let is_between = |at| paid.is_some_and(|paid| paid.processed_at < at) && at <= dispute.opened_at;
        self.actions.iter().any(|action| action.after.contains_key("payment_method") && is_between(action.at))
    }

    /// Returns the time of the first action after `opened_at` that made a disputed subscription chargeable again: another
    /// payment method, or a retry.
    fn dispute_mark_removed_after(&self, opened_at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let is_removed = |action: &&&LoggedAction| {
            action.at > opened_at
                && action.before.contains_key("disputed_at")
                && !action.after.contains_key("disputed_at")
        };
        self.actions.iter().find(is_removed).map(|action| action.at)
    }

    /// Returns the time of the first payment or failed attempt after `opened_at`. The attempt that was open at that time
    /// also ends the hold, because the records do not contain its begin.
    fn first_attempt_after(&self, opened_at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let paid = self.records.receipts.iter().map(|receipt| receipt.processed_at);
        let failed = self.records.attempts.iter().map(|attempt| attempt.processed_at);
        paid.chain(failed).filter(|at| *at > opened_at).min()
    }

    /// Returns the hold that the current state of the subscription shows.
    fn current_hold(&self) -> Option<PastHold> {
        let subscription = self.subscription;
        let since = match self.current_kind()? {
            HoldKind::Disputed => subscription.disputed_at.map(|at| self.day.date_of(at)),
            HoldKind::Unpaid => subscription.unpaid_since,
            HoldKind::Cancelled | HoldKind::OpenFinding | HoldKind::Paused => None,
        };
        Some(PastHold { kind: self.current_kind()?, since, until: None })
    }

    /// Returns the kind of the hold that the current state of the subscription shows; `None` if it is charged.
    fn current_kind(&self) -> Option<HoldKind> {
        self.subscription.hold_reason(self.policy).map(HoldKind::from)
    }
}

/// Returns the kind of hold for the text of a status in the action log; `None` for a status that is charged.
fn hold_kind_of_status(status: Option<&String>) -> Option<HoldKind> {
    let status = status?;
    let stopped = [
        (SubscriptionStatus::Paused, HoldKind::Paused),
        (SubscriptionStatus::Unpaid, HoldKind::Unpaid),
        (SubscriptionStatus::Cancelled, HoldKind::Cancelled),
    ];
    stopped.into_iter().find(|(stopped, _)| stopped.to_string() == *status).map(|(_, kind)| kind)
}

impl From<ChargeHold> for HoldKind {
    fn from(hold: ChargeHold) -> Self {
        match hold {
            ChargeHold::Paused { .. } => Self::Paused,
            ChargeHold::Unpaid => Self::Unpaid,
            ChargeHold::Cancelled => Self::Cancelled,
            ChargeHold::Disputed => Self::Disputed,
            ChargeHold::OpenFinding => Self::OpenFinding,
        }
    }
}
