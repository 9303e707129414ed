//! Tests of the explanation why a subscription was or was not charged on a day, for the special cases of the rules.

use audit::ReasonCode;
use billing::{
    AfterLastRetry, AttemptOutcome, CatchUp, OnResume, PaymentRecords, Policy, Subscription, SubscriptionStatus,
};
use chrono_tz::Tz;

use crate::lifecycle::{LEAD, decline_outcome, success_outcome, with_open_attempt};
use crate::payment_history::History;
use crate::world::{billing_time, card, date, new_subscription, pause};

fn soft_decline(_: &Subscription) -> AttemptOutcome {
    decline_outcome(false)
}

fn hard_decline(_: &Subscription) -> AttemptOutcome {
    decline_outcome(true)
}

fn rejection(_: &Subscription) -> AttemptOutcome {
    AttemptOutcome::Rejected { code: "resource_missing".to_owned() }
}

/// Returns the outcome of an attempt that is dropped, because its subscription was stopped.
fn dropped_outcome(_: &Subscription) -> AttemptOutcome {
    AttemptOutcome::Dropped
}

#[test]
fn explanations_around_a_charged_month() {
    History::new().with_attempt("2026-03-10", success_outcome).assert_explanations(
        "2026-03-20",
        &[
            (
                "2026-02-28",
                ReasonCode::NotBegun,
                "not charged on 2026-02-28: no payment is due before 2026-03-10, the first due date of the subscription, which was created on 2026-03-01",
            ),
            (
                "2026-03-09",
                ReasonCode::NotBegun,
                "not charged on 2026-03-09: no payment is due before 2026-03-10, the first due date of the subscription, which was created on 2026-03-01",
            ),
            ("2026-03-10", ReasonCode::Charged, "charged on 2026-03-10: 12.99 EUR, due on 2026-03-10, payment pay_1"),
            (
                "2026-03-11",
                ReasonCode::Paid,
                "not charged on 2026-03-11: the payment due on 2026-03-10 was made on 2026-03-10",
            ),
            (
                "2026-03-31",
                ReasonCode::Paid,
                "not to be charged on 2026-03-31: the payment due on 2026-03-10 was made on 2026-03-10",
            ),
            ("2026-04-01", ReasonCode::NotDue, "nothing is due on 2026-04-01: the next payment is on 2026-04-10"),
            ("2026-04-09", ReasonCode::NotDue, "nothing is due on 2026-04-09: the next payment is on 2026-04-10"),
            ("2026-04-10", ReasonCode::Planned, "to be charged on 2026-04-10: the payment due on 2026-04-10"),
            ("2026-04-11", ReasonCode::NotDue, "nothing is due on 2026-04-11: the next payment is on 2026-05-10"),
        ],
    );
}

#[test]
fn explanations_for_payment_day_31_in_short_months() {
    let history = History::of_subscription(new_subscription(31, "2027-12-31"))
        .with_attempt("2028-01-31", success_outcome)
        .with_attempt("2028-02-29", success_outcome);
    history.assert_explanations(
        "2028-03-30",
        &[
            ("2028-01-31", ReasonCode::Charged, "charged on 2028-01-31: 12.99 EUR, due on 2028-01-31, payment pay_1"),
            ("2028-02-01", ReasonCode::NotDue, "nothing is due on 2028-02-01: the next payment is on 2028-02-29"),
            ("2028-02-28", ReasonCode::NotDue, "nothing is due on 2028-02-28: the next payment is on 2028-02-29"),
            ("2028-02-29", ReasonCode::Charged, "charged on 2028-02-29: 12.99 EUR, due on 2028-02-29, payment pay_1"),
            ("2028-03-30", ReasonCode::NotDue, "nothing is due on 2028-03-30: the next payment is on 2028-03-31"),
            ("2028-03-31", ReasonCode::Planned, "to be charged on 2028-03-31: the payment due on 2028-03-31"),
            ("2028-04-30", ReasonCode::Planned, "to be charged on 2028-04-30: the payment due on 2028-04-30"),
        ],
    );
    // A late payment for January, made in February, is not the payment for February.
    let late = History::of_subscription(new_subscription(31, "2027-12-31")).with_attempt("2028-02-02", success_outcome);
    late.assert_explanations(
        "2028-02-28",
        &[
            (
                "2028-02-01",
                ReasonCode::Owed,
                "no charge is recorded on 2028-02-01: the payment due on 2028-01-31 was owed; it was paid on 2028-02-02",
            ),
            ("2028-02-02", ReasonCode::Charged, "charged on 2028-02-02: 12.99 EUR, due on 2028-01-31, payment pay_1"),
            ("2028-02-03", ReasonCode::NotDue, "nothing is due on 2028-02-03: the next payment is on 2028-02-29"),
        ],
    );
}

#[test]
fn explanation_uses_the_date_in_the_billing_time_zone() {
    let history = History::new().with_attempt("2026-03-10", success_outcome);
    for (zone, on) in [(Tz::Pacific__Honolulu, "2026-03-09"), (Tz::Pacific__Kiritimati, "2026-03-10")] {
        assert_eq!(history.explain_in_zone(zone, on, "2026-03-12").reason(), ReasonCode::Charged, "{zone}");
        assert_eq!(history.explain_in_zone(zone, "2026-03-11", "2026-03-12").reason(), ReasonCode::Paid, "{zone}");
    }
}

#[test]
fn explanations_of_a_declined_month_that_is_paid_later() {
    let declined_twice =
        History::new().with_attempt("2026-03-10", soft_decline).with_attempt("2026-03-11", soft_decline);
    let decline_of =
        |no: u32| format!("attempt {no} to charge 12.99 EUR, due on 2026-03-10, was declined (card_declined)");
    let (first, second) = (decline_of(1), decline_of(2));
    declined_twice.assert_explanations(
        "2026-03-12",
        &[
            (
                "2026-03-10",
                ReasonCode::Declined,
                &format!("not charged on 2026-03-10: {first}; it will be tried again on 2026-03-13"),
            ),
            (
                "2026-03-12",
                ReasonCode::BetweenTries,
                &format!(
                    "not charged on 2026-03-12: {second} on 2026-03-11, and there was no attempt on this day; it will be tried again on 2026-03-13"
                ),
            ),
            ("2026-03-13", ReasonCode::Planned, "to be charged on 2026-03-13: the payment due on 2026-03-10"),
        ],
    );
    // There was no run on the day of the retry, March 13.
    declined_twice.assert_explanations(
        "2026-03-14",
        &[(
            "2026-03-13",
            ReasonCode::Owed,
            "no charge is recorded on 2026-03-13: the payment due on 2026-03-10 was owed; it will be tried at the next run",
        )],
    );
    declined_twice.with_attempt("2026-03-13", success_outcome).assert_explanations(
        "2026-04-09",
        &[
            ("2026-03-11", ReasonCode::Declined, &format!("not charged on 2026-03-11: {second}; it was paid on 2026-03-13")),
            (
                "2026-03-12",
                ReasonCode::BetweenTries,
                &format!(
                    "not charged on 2026-03-12: {second} on 2026-03-11, and there was no attempt on this day; it was paid on 2026-03-13"
                ),
            ),
            ("2026-03-13", ReasonCode::Charged, "charged on 2026-03-13: 12.99 EUR, due on 2026-03-10, payment pay_1"),
        ],
    );
}

#[test]
fn explanations_of_unpaid_months_that_are_waived_after_a_change_of_card() {
    let unpaid = History::new().with_attempt("2026-03-10", hard_decline);
    let decline = "attempt 1 to charge 12.99 EUR, due on 2026-03-10, was declined permanently (card_declined)";
    let since = "the subscription has been unpaid since 2026-03-10";
    unpaid.assert_explanations(
        "2026-04-20",
        &[
            ("2026-03-10", ReasonCode::Declined, &format!("not charged on 2026-03-10: {decline}; {since}")),
            ("2026-03-11", ReasonCode::Stopped, &format!("not charged on 2026-03-11: {since}")),
            ("2026-04-10", ReasonCode::Stopped, &format!("not charged on 2026-04-10: {since}")),
            ("2026-05-10", ReasonCode::Stopped, &format!("not to be charged on 2026-05-10: {since}")),
        ],
    );
    let changes = billing::SubscriptionChanges { payment_method: Some(card("pm_card_visa_new")), ..Default::default() };
    let revived = unpaid
        .with_change(|s| s.apply_changes(&changes, LEAD(), date("2026-05-20")).unwrap())
        .with_attempt("2026-05-20", success_outcome);
    let waived = "was waived on 2026-05-20, because the subscription was unpaid";
    revived.assert_explanations(
        "2026-05-21",
        &[
            (
                "2026-04-09",
                ReasonCode::BetweenTries,
                &format!(
                    "not charged on 2026-04-09: {decline} on 2026-03-10, and there was no attempt on this day; it was paid on 2026-05-20"
                ),
            ),
            ("2026-04-10", ReasonCode::Waived, &format!("not charged on 2026-04-10: the payment due on 2026-04-10 {waived}")),
            ("2026-05-19", ReasonCode::Waived, &format!("not charged on 2026-05-19: the payment due on 2026-05-10 {waived}")),
            ("2026-05-20", ReasonCode::Charged, "charged on 2026-05-20: 12.99 EUR, due on 2026-03-10, payment pay_1"),
            ("2026-05-21", ReasonCode::Waived, &format!("not charged on 2026-05-21: the payment due on 2026-05-10 {waived}")),
        ],
    );
    let strict = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    let because = "was waived on 2026-03-10, because the subscription was unpaid";
    History::new().with_attempt_and_policy("2026-03-10", hard_decline, &strict).assert_explanations(
        "2026-03-20",
        &[
            ("2026-03-10", ReasonCode::Declined, &format!("not charged on 2026-03-10: {decline}; it {because}")),
            (
                "2026-03-11",
                ReasonCode::Waived,
                &format!("not charged on 2026-03-11: the payment due on 2026-03-10 {because}"),
            ),
        ],
    );
}

#[test]
fn rejected_payment_is_explained_as_owed_on_the_next_day() {
    let history = History::new().with_attempt("2026-03-10", rejection);
    let rejection = "attempt 1 to charge 12.99 EUR, due on 2026-03-10, was rejected by the gateway (resource_missing)";
    history.assert_explanations(
        "2026-03-11",
        &[
            (
                "2026-03-10",
                ReasonCode::Rejected,
                &format!("not charged on 2026-03-10: {rejection}; it will be tried at the next run"),
            ),
            (
                "2026-03-11",
                ReasonCode::Owed,
                "no charge is recorded on 2026-03-11: the payment due on 2026-03-10 was owed; it will be tried at the next run",
            ),
        ],
    );
    assert!(history.explain("2026-03-10", "2026-03-11").needs_attention());
    let paid = history.with_attempt("2026-03-13", success_outcome);
    assert_eq!(paid.explain("2026-03-12", "2026-03-14").reason(), ReasonCode::Owed, "there was no run");
    assert!(!paid.explain("2026-03-10", "2026-03-14").needs_attention(), "the month was paid in the meantime");
}

#[test]
fn open_payment_is_explained_as_open_from_the_day_of_its_start() {
    let open = History::new().with_change(with_open_attempt);
    let open_text = "an attempt to charge the payment due on 2026-03-10 began at 2026-03-10 06:00 UTC, and its outcome is not known yet";
    open.assert_explanations(
        "2026-03-12",
        &[
            ("2026-03-10", ReasonCode::Open, &format!("no charge is recorded on 2026-03-10: {open_text}")),
            ("2026-03-12", ReasonCode::Open, &format!("no charge is recorded on 2026-03-12: {open_text}")),
        ],
    );
    assert!(!open.explain("2026-03-10", "2026-03-12").needs_attention());
    let late = History::new()
        .with_change(|s| with_open_attempt(&Subscription { next_payment_on: Some(date("2026-03-12")), ..s.clone() }));
    late.assert_explanations(
        "2026-03-12",
        &[(
            "2026-03-11",
            ReasonCode::Owed,
            "no charge is recorded on 2026-03-11: the payment due on 2026-03-10 was owed; an attempt began at 2026-03-12 06:00 UTC and is still open",
        )],
    );
}

#[test]
fn explanations_of_a_stopped_subscription() {
    let paused_text = "the subscription is paused now; the records do not show since when";
    History::new().with_change(pause).assert_explanations(
        "2026-03-20",
        &[
            ("2026-03-10", ReasonCode::Stopped, &format!("not charged on 2026-03-10: {paused_text}")),
            ("2026-04-10", ReasonCode::Stopped, &format!("not to be charged on 2026-04-10: {paused_text}")),
        ],
    );
    History::new().with_attempt("2026-03-10", dropped_outcome).assert_explanations(
        "2026-03-20",
        &[
            (
                "2026-03-10",
                ReasonCode::Dropped,
                &format!(
                    "not charged on 2026-03-10: attempt 1 to charge 12.99 EUR, due on 2026-03-10, was dropped (paused); {paused_text}"
                ),
            ),
            ("2026-03-11", ReasonCode::Stopped, &format!("not charged on 2026-03-11: {paused_text}")),
        ],
    );
    let resumed = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_change(|s| s.pause(date("2026-03-20")).unwrap())
        .with_change(|s| s.resume(OnResume::Wait, LEAD(), date("2026-04-20"), billing_time("2026-04-20")).unwrap());
    let waived = "the payment due on 2026-04-10 was waived on 2026-04-20, because the subscription was paused";
    resumed.assert_explanations(
        "2026-04-21",
        &[
            ("2026-04-09", ReasonCode::NotDue, "nothing is due on 2026-04-09: the next payment is on 2026-05-10"),
            ("2026-04-10", ReasonCode::Waived, &format!("not charged on 2026-04-10: {waived}")),
            ("2026-05-01", ReasonCode::NotDue, "nothing is due on 2026-05-01: the next payment is on 2026-05-10"),
        ],
    );
    // An earlier version of Dueday did not record the months that a pause waived.
    let due_on = date("2026-05-10");
    let without_record = Subscription { due_on, next_payment_on: Some(due_on), ..resumed.subscription };
    let unrecorded = "the payment of 2026-04 is neither paid nor waived nor owed: an outage missed it, or it fell due during a pause before pauses were recorded";
    History::of_subscription(without_record).assert_explanations(
        "2026-04-21",
        &[("2026-04-10", ReasonCode::Unrecorded, &format!("not charged on 2026-04-10: {unrecorded}"))],
    );
    let cancelled = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_change(|s| s.cancel(date("2026-04-05"), billing_time("2026-04-05")));
    cancelled.assert_explanations(
        "2026-04-05",
        &[
            ("2026-04-05", ReasonCode::NotDue, "nothing is due on 2026-04-05, and no payment is planned"),
            (
                "2026-04-10",
                ReasonCode::Stopped,
                "not to be charged on 2026-04-10: the subscription is cancelled now; the records do not show since when",
            ),
        ],
    );
}

#[test]
fn explanation_of_a_subscription_that_is_scheduled_to_end() {
    let ending = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_change(|s| s.cancel_at_period_end(date("2026-03-20")).unwrap());
    let ends = "the cancellation of the subscription is planned for 2026-04-10, without a charge";
    for today in ["2026-03-20", "2026-04-10"] {
        let explanation = ending.explain("2026-04-10", today);
        let is_expected = explanation.reason() == ReasonCode::Ending && explanation.to_string().ends_with(ends);
        assert!(is_expected, "{explanation}");
    }
    ending.assert_explanations(
        "2026-03-20",
        &[("2026-04-09", ReasonCode::NotDue, "nothing is due on 2026-04-09, and no payment is planned")],
    );
}

#[test]
fn month_before_the_scheduled_end_is_explained_as_owed() {
    let ending = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_attempt("2026-04-10", soft_decline)
        .with_change(|s| s.cancel_at_period_end(date("2026-04-10")).unwrap());
    assert_eq!(ending.subscription.cancels_on(), Some(date("2026-05-10")));
    assert_eq!(ending.explain("2026-05-12", "2026-05-12").reason(), ReasonCode::Owed, "no run since April");
    assert_eq!(ending.explain("2026-05-10", "2026-04-11").reason(), ReasonCode::Ending);
}

#[test]
fn explanations_of_months_that_were_missed_and_waived() {
    let latest = CatchUp::Latest.waive_months_of_outage(
        &new_subscription(31, "2026-01-15"),
        date("2026-04-02"),
        billing_time("2026-04-02"),
    );
    let history = History::of_subscription(new_subscription(31, "2026-01-15"))
        .with_settlement(latest.unwrap())
        .with_attempt("2026-04-02", success_outcome);
    let waived =
        |due_on: &str| format!("the payment due on {due_on} was waived on 2026-04-02, because an outage missed it");
    history.assert_explanations(
        "2026-04-03",
        &[
            ("2026-01-31", ReasonCode::Waived, &format!("not charged on 2026-01-31: {}", waived("2026-01-31"))),
            ("2026-02-27", ReasonCode::Waived, &format!("not charged on 2026-02-27: {}", waived("2026-01-31"))),
            ("2026-02-28", ReasonCode::Waived, &format!("not charged on 2026-02-28: {}", waived("2026-02-28"))),
            (
                "2026-03-31",
                ReasonCode::Owed,
                "no charge is recorded on 2026-03-31: the payment due on 2026-03-31 was owed; it was paid on 2026-04-02",
            ),
            ("2026-04-02", ReasonCode::Charged, "charged on 2026-04-02: 12.99 EUR, due on 2026-03-31, payment pay_1"),
            ("2026-04-03", ReasonCode::NotDue, "nothing is due on 2026-04-03: the next payment is on 2026-04-30"),
        ],
    );
}

#[test]
fn day_whose_records_may_have_expired_is_explained_as_expired() {
    let mut history =
        History::new().with_attempt("2026-03-10", success_outcome).with_attempt("2026-04-10", success_outcome);
    let expired = "the records of 2026-03-10 may have expired: records are kept for 190 days";
    assert_eq!(
        history.explain("2026-03-10", "2026-09-16").to_string()[..7],
        *"charged",
        "the receipt has not expired yet"
    );
    history.records = PaymentRecords::default();
    history.assert_explanations("2026-09-16", &[("2026-03-10", ReasonCode::Expired, expired)]);
    // A day earlier the records cannot have expired yet, so the month is explained as unrecorded.
    assert_eq!(history.explain("2026-03-10", "2026-09-15").reason(), ReasonCode::Unrecorded);
    history.subscription.status = SubscriptionStatus::Paused;
    assert_eq!(
        history.explain("2026-03-09", "2026-09-16").reason(),
        ReasonCode::NotBegun,
        "the start of the subscription does not expire"
    );
}
