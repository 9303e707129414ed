//! Why a subscription was charged on a day, or was not: the rules at their edges.

use audit::Reason;
use billing::{AfterLastRetry, CatchUp, OnResume, Outcome, Policy, Records, Status, Subscription};
use chrono_tz::Tz;

use crate::history::History;
use crate::lifecycle::{LEAD, claimed, declined, paid};
use crate::world::{card, date, morning, new_subscription, paused};

fn soft(_: &Subscription) -> Outcome {
    declined(false)
}

fn hard(_: &Subscription) -> Outcome {
    declined(true)
}

fn rejected(_: &Subscription) -> Outcome {
    Outcome::Rejected { code: "resource_missing".to_owned() }
}

fn dropped(_: &Subscription) -> Outcome {
    Outcome::Dropped
}

#[test]
fn why_tells_a_month_that_was_charged() {
    History::new().on("2026-03-10", paid).answers(
        "2026-03-20",
        &[
            (
                "2026-02-28",
                Reason::NotBegun,
                "not charged on 2026-02-28: the subscription was created on 2026-03-01, and its first payment is due on 2026-03-10",
            ),
            (
                "2026-03-09",
                Reason::NotBegun,
                "not charged on 2026-03-09: the subscription was created on 2026-03-01, and its first payment is due on 2026-03-10",
            ),
            ("2026-03-10", Reason::Charged, "charged on 2026-03-10: 12.99 EUR, due on 2026-03-10, payment pay_1"),
            (
                "2026-03-11",
                Reason::Paid,
                "not charged on 2026-03-11: the payment due on 2026-03-10 was made on 2026-03-10",
            ),
            (
                "2026-03-31",
                Reason::Paid,
                "not to be charged on 2026-03-31: the payment due on 2026-03-10 was made on 2026-03-10",
            ),
            ("2026-04-01", Reason::NotDue, "nothing is due on 2026-04-01: the next payment is on 2026-04-10"),
            ("2026-04-09", Reason::NotDue, "nothing is due on 2026-04-09: the next payment is on 2026-04-10"),
            ("2026-04-10", Reason::Planned, "to be charged on 2026-04-10: the payment due on 2026-04-10"),
            ("2026-04-11", Reason::NotDue, "nothing is due on 2026-04-11: the next payment is on 2026-05-10"),
        ],
    );
}

#[test]
fn why_tells_short_months_and_ends_of_months() {
    let history = History::of(new_subscription(31, "2027-12-31")).on("2028-01-31", paid).on("2028-02-29", paid);
    history.answers(
        "2028-03-30",
        &[
            ("2028-01-31", Reason::Charged, "charged on 2028-01-31: 12.99 EUR, due on 2028-01-31, payment pay_1"),
            ("2028-02-01", Reason::NotDue, "nothing is due on 2028-02-01: the next payment is on 2028-02-29"),
            ("2028-02-28", Reason::NotDue, "nothing is due on 2028-02-28: the next payment is on 2028-02-29"),
            ("2028-02-29", Reason::Charged, "charged on 2028-02-29: 12.99 EUR, due on 2028-02-29, payment pay_1"),
            ("2028-03-30", Reason::NotDue, "nothing is due on 2028-03-30: the next payment is on 2028-03-31"),
            ("2028-03-31", Reason::Planned, "to be charged on 2028-03-31: the payment due on 2028-03-31"),
            ("2028-04-30", Reason::Planned, "to be charged on 2028-04-30: the payment due on 2028-04-30"),
        ],
    );
    // What was owed in January and paid in February is no payment of February's.
    let late = History::of(new_subscription(31, "2027-12-31")).on("2028-02-02", paid);
    late.answers(
        "2028-02-28",
        &[
            (
                "2028-02-01",
                Reason::Owed,
                "no charge is recorded on 2028-02-01: the payment due on 2028-01-31 was owed; it was paid on 2028-02-02",
            ),
            ("2028-02-02", Reason::Charged, "charged on 2028-02-02: 12.99 EUR, due on 2028-01-31, payment pay_1"),
            ("2028-02-03", Reason::NotDue, "nothing is due on 2028-02-03: the next payment is on 2028-02-29"),
        ],
    );
}

#[test]
fn why_dates_a_payment_in_the_billing_time_zone() {
    let history = History::new().on("2026-03-10", paid);
    for (zone, on) in [(Tz::Pacific__Honolulu, "2026-03-09"), (Tz::Pacific__Kiritimati, "2026-03-10")] {
        assert_eq!(history.explained_in(zone, on, "2026-03-12").reason(), Reason::Charged, "{zone}");
        assert_eq!(history.explained_in(zone, "2026-03-11", "2026-03-12").reason(), Reason::Paid, "{zone}");
    }
}

#[test]
fn why_tells_a_month_that_was_declined_until_it_was_paid() {
    let trying = History::new().on("2026-03-10", soft).on("2026-03-11", soft);
    let was = |no: u32| format!("attempt {no} to charge 12.99 EUR, due on 2026-03-10, was declined (card_declined)");
    let (first, second) = (was(1), was(2));
    trying.answers(
        "2026-03-12",
        &[
            (
                "2026-03-10",
                Reason::Declined,
                &format!("not charged on 2026-03-10: {first}; it is tried again on 2026-03-13"),
            ),
            (
                "2026-03-12",
                Reason::BetweenTries,
                &format!(
                    "not charged on 2026-03-12: {second} on 2026-03-11, and not tried on this day; it is tried again on 2026-03-13"
                ),
            ),
            ("2026-03-13", Reason::Planned, "to be charged on 2026-03-13: the payment due on 2026-03-10"),
        ],
    );
    // Nobody came on the day of the next try.
    trying.answers(
        "2026-03-14",
        &[(
            "2026-03-13",
            Reason::Owed,
            "no charge is recorded on 2026-03-13: the payment due on 2026-03-10 was owed; it is tried at the next run",
        )],
    );
    trying.on("2026-03-13", paid).answers(
        "2026-04-09",
        &[
            ("2026-03-11", Reason::Declined, &format!("not charged on 2026-03-11: {second}; it was paid on 2026-03-13")),
            (
                "2026-03-12",
                Reason::BetweenTries,
                &format!(
                    "not charged on 2026-03-12: {second} on 2026-03-11, and not tried on this day; it was paid on 2026-03-13"
                ),
            ),
            ("2026-03-13", Reason::Charged, "charged on 2026-03-13: 12.99 EUR, due on 2026-03-10, payment pay_1"),
        ],
    );
}

#[test]
fn why_tells_a_month_that_stays_unpaid_and_is_waived_after_a_change_of_card() {
    let unpaid = History::new().on("2026-03-10", hard);
    let refused = "attempt 1 to charge 12.99 EUR, due on 2026-03-10, was declined for good (card_declined)";
    let since = "the subscription is unpaid since 2026-03-10";
    unpaid.answers(
        "2026-04-20",
        &[
            ("2026-03-10", Reason::Declined, &format!("not charged on 2026-03-10: {refused}; {since}")),
            ("2026-03-11", Reason::Stopped, &format!("not charged on 2026-03-11: {since}")),
            ("2026-04-10", Reason::Stopped, &format!("not charged on 2026-04-10: {since}")),
            ("2026-05-10", Reason::Stopped, &format!("not to be charged on 2026-05-10: {since}")),
        ],
    );
    let changes = billing::Changes { payment_method: Some(card("pm_card_visa_new")), ..Default::default() };
    let revived = unpaid.changed(|s| s.change(&changes, LEAD(), date("2026-05-20")).unwrap()).on("2026-05-20", paid);
    let waived = "was waived on 2026-05-20, because the subscription was unpaid";
    revived.answers(
        "2026-05-21",
        &[
            (
                "2026-04-09",
                Reason::BetweenTries,
                &format!(
                    "not charged on 2026-04-09: {refused} on 2026-03-10, and not tried on this day; it was paid on 2026-05-20"
                ),
            ),
            ("2026-04-10", Reason::Waived, &format!("not charged on 2026-04-10: the payment due on 2026-04-10 {waived}")),
            ("2026-05-19", Reason::Waived, &format!("not charged on 2026-05-19: the payment due on 2026-05-10 {waived}")),
            ("2026-05-20", Reason::Charged, "charged on 2026-05-20: 12.99 EUR, due on 2026-03-10, payment pay_1"),
            ("2026-05-21", Reason::Waived, &format!("not charged on 2026-05-21: the payment due on 2026-05-10 {waived}")),
        ],
    );
    let strict = Policy { after_last_retry: AfterLastRetry::Cancelled, ..Policy::default() };
    let because = "was waived on 2026-03-10, because the subscription was unpaid";
    History::new().by("2026-03-10", hard, &strict).answers(
        "2026-03-20",
        &[
            ("2026-03-10", Reason::Declined, &format!("not charged on 2026-03-10: {refused}; it {because}")),
            (
                "2026-03-11",
                Reason::Waived,
                &format!("not charged on 2026-03-11: the payment due on 2026-03-10 {because}"),
            ),
        ],
    );
}

#[test]
fn why_says_that_a_rejected_payment_is_owed_again_the_day_after() {
    let history = History::new().on("2026-03-10", rejected);
    let was = "attempt 1 to charge 12.99 EUR, due on 2026-03-10, was rejected by the gateway (resource_missing)";
    history.answers(
        "2026-03-11",
        &[
            (
                "2026-03-10",
                Reason::Rejected,
                &format!("not charged on 2026-03-10: {was}; it is tried at the next run"),
            ),
            (
                "2026-03-11",
                Reason::Owed,
                "no charge is recorded on 2026-03-11: the payment due on 2026-03-10 was owed; it is tried at the next run",
            ),
        ],
    );
    assert!(history.explained("2026-03-10", "2026-03-11").needs_attention());
    let paid = history.on("2026-03-13", paid);
    assert_eq!(paid.explained("2026-03-12", "2026-03-14").reason(), Reason::Owed, "nobody came");
    assert!(!paid.explained("2026-03-10", "2026-03-14").needs_attention(), "it is paid by now");
}

#[test]
fn why_counts_an_open_payment_from_the_day_it_was_begun() {
    let open = History::new().changed(claimed);
    let begun =
        "the payment due on 2026-03-10 has been begun at 2026-03-10 06:00 UTC, and what came of it is not known yet";
    open.answers(
        "2026-03-12",
        &[
            ("2026-03-10", Reason::Open, &format!("no charge is recorded on 2026-03-10: {begun}")),
            ("2026-03-12", Reason::Open, &format!("no charge is recorded on 2026-03-12: {begun}")),
        ],
    );
    assert!(open.explained("2026-03-10", "2026-03-12").needs_attention());
    let late =
        History::new().changed(|s| claimed(&Subscription { next_payment_on: Some(date("2026-03-12")), ..s.clone() }));
    late.answers(
        "2026-03-12",
        &[(
            "2026-03-11",
            Reason::Owed,
            "no charge is recorded on 2026-03-11: the payment due on 2026-03-10 was owed; it was begun at 2026-03-12 06:00 UTC, and is open",
        )],
    );
}

#[test]
fn why_says_that_a_subscription_is_stopped_now() {
    let told = "the subscription is paused now; since when is not recorded";
    History::new().changed(paused).answers(
        "2026-03-20",
        &[
            ("2026-03-10", Reason::Stopped, &format!("not charged on 2026-03-10: {told}")),
            ("2026-04-10", Reason::Stopped, &format!("not to be charged on 2026-04-10: {told}")),
        ],
    );
    History::new().on("2026-03-10", dropped).answers(
        "2026-03-20",
        &[
            (
                "2026-03-10",
                Reason::Dropped,
                &format!(
                    "not charged on 2026-03-10: attempt 1 to charge 12.99 EUR, due on 2026-03-10, was dropped (paused); {told}"
                ),
            ),
            ("2026-03-11", Reason::Stopped, &format!("not charged on 2026-03-11: {told}")),
        ],
    );
    let resumed = History::new()
        .on("2026-03-10", paid)
        .changed(|s| s.pause(date("2026-03-20")).unwrap())
        .changed(|s| s.resume(OnResume::Wait, LEAD(), date("2026-04-20"), morning("2026-04-20")).unwrap());
    let waived = "the payment due on 2026-04-10 was waived on 2026-04-20, because the subscription was paused";
    resumed.answers(
        "2026-04-21",
        &[
            ("2026-04-09", Reason::NotDue, "nothing is due on 2026-04-09: the next payment is on 2026-05-10"),
            ("2026-04-10", Reason::Waived, &format!("not charged on 2026-04-10: {waived}")),
            ("2026-05-01", Reason::NotDue, "nothing is due on 2026-05-01: the next payment is on 2026-05-10"),
        ],
    );
    // Of a pause before such months were recorded.
    let lost = Subscription { due_on: date("2026-05-10"), next_payment_on: Some(date("2026-05-10")), ..resumed.now };
    let unrecorded = "the payment of 2026-04 is neither made nor waived nor owed: it was missed, or fell due in a pause before pauses were recorded";
    History::of(lost).answers(
        "2026-04-21",
        &[("2026-04-10", Reason::Unrecorded, &format!("not charged on 2026-04-10: {unrecorded}"))],
    );
    let cancelled =
        History::new().on("2026-03-10", paid).changed(|s| s.cancel(date("2026-04-05"), morning("2026-04-05")));
    cancelled.answers(
        "2026-04-05",
        &[
            ("2026-04-05", Reason::NotDue, "nothing is due on 2026-04-05, and no payment is planned"),
            (
                "2026-04-10",
                Reason::Stopped,
                "not to be charged on 2026-04-10: the subscription is cancelled now; since when is not recorded",
            ),
        ],
    );
}

#[test]
fn why_says_that_a_pending_cancellation_is_not_charged_from_its_date() {
    let ending = History::new().on("2026-03-10", paid).changed(|s| s.cancel_at_period_end(date("2026-03-20")).unwrap());
    let ends = "the subscription is to be cancelled on 2026-04-10, uncharged";
    for today in ["2026-03-20", "2026-04-10"] {
        let explained = ending.explained("2026-04-10", today);
        assert!(explained.reason() == Reason::Ending && explained.to_string().ends_with(ends), "{explained}");
    }
    ending.answers(
        "2026-03-20",
        &[("2026-04-09", Reason::NotDue, "nothing is due on 2026-04-09, and no payment is planned")],
    );
}

#[test]
fn why_says_that_what_fell_due_before_the_last_month_is_still_owed() {
    let ending = History::new()
        .on("2026-03-10", paid)
        .on("2026-04-10", soft)
        .changed(|s| s.cancel_at_period_end(date("2026-04-10")).unwrap());
    assert_eq!(ending.now.cancels_on(), Some(date("2026-05-10")));
    assert_eq!(ending.explained("2026-05-12", "2026-05-12").reason(), Reason::Owed, "nobody has come since April");
    assert_eq!(ending.explained("2026-05-10", "2026-04-11").reason(), Reason::Ending);
}

#[test]
fn why_tells_a_month_that_was_missed_and_waived() {
    let latest = CatchUp::Latest.skip(&new_subscription(31, "2026-01-15"), date("2026-04-02"), morning("2026-04-02"));
    let history = History::of(new_subscription(31, "2026-01-15")).then(latest.unwrap()).on("2026-04-02", paid);
    let waived = |due_on: &str| format!("the payment due on {due_on} was waived on 2026-04-02, because it was missed");
    history.answers(
        "2026-04-03",
        &[
            ("2026-01-31", Reason::Waived, &format!("not charged on 2026-01-31: {}", waived("2026-01-31"))),
            ("2026-02-27", Reason::Waived, &format!("not charged on 2026-02-27: {}", waived("2026-01-31"))),
            ("2026-02-28", Reason::Waived, &format!("not charged on 2026-02-28: {}", waived("2026-02-28"))),
            (
                "2026-03-31",
                Reason::Owed,
                "no charge is recorded on 2026-03-31: the payment due on 2026-03-31 was owed; it was paid on 2026-04-02",
            ),
            ("2026-04-02", Reason::Charged, "charged on 2026-04-02: 12.99 EUR, due on 2026-03-31, payment pay_1"),
            ("2026-04-03", Reason::NotDue, "nothing is due on 2026-04-03: the next payment is on 2026-04-30"),
        ],
    );
}

#[test]
fn why_claims_nothing_of_days_whose_records_may_have_expired() {
    let mut history = History::new().on("2026-03-10", paid).on("2026-04-10", paid);
    let expired = "what became of 2026-03-10 may have expired: records are kept for 190 days";
    assert_eq!(history.explained("2026-03-10", "2026-09-16").to_string()[..7], *"charged", "it is there still");
    history.records = Records::default();
    history.answers("2026-09-16", &[("2026-03-10", Reason::Expired, expired)]);
    // A day earlier it would be there.
    assert_eq!(history.explained("2026-03-10", "2026-09-15").reason(), Reason::Unrecorded);
    history.now.status = Status::Paused;
    assert_eq!(history.explained("2026-03-09", "2026-09-16").reason(), Reason::NotBegun, "that is known for ever");
}
