//! Tests of the explanations of past days on which a subscription was paused, cancelled or disputed, or waited for the
//! decision of a person: the facts of that day count, not the current state of the subscription.

use audit::ReasonCode;
use billing::{
    Dispute, DisputeStatus, Finding, FindingReason, LeadDays, OnResume, ReceiptId, ResolvedFinding, Subscription,
    SubscriptionChanges,
};

use crate::lifecycle::{decline_outcome, success_outcome};
use crate::payment_history::History;
use crate::world::{billing_time, card, date, pause};

/// Returns a change that resumes a subscription on `day` so that the months of the pause are charged.
fn resume(day: &'static str) -> impl Fn(&Subscription) -> billing::Settlement {
    move |paused| paused.resume(OnResume::Charge, LeadDays::default(), date(day), billing_time(day)).unwrap()
}

/// Returns the dispute of the payment for March of the subscription in `history`, opened on March 20, 2026.
fn dispute(history: &History, status: DisputeStatus, closed_on: Option<&str>) -> Dispute {
    let receipt = &history.records.receipts[0];
    Dispute {
        id: "dp_1".parse().unwrap(),
        account: receipt.account.clone(),
        receipt: ReceiptId {
            due_on: receipt.due_on,
            subscription: receipt.subscription,
            sku: history.subscription.sku.clone(),
        },
        payment: receipt.payment.clone(),
        payment_method: history.subscription.payment_method.payment_method.clone(),
        amount: receipt.amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: billing_time("2026-03-20"),
        closed_at: closed_on.map(billing_time),
        version: 1,
    }
}

/// Returns a history in which March was paid, and April was paid on `april`.
fn paid_in_april(april: &str) -> History {
    History::new().with_attempt("2026-03-10", success_outcome).with_attempt(april, success_outcome)
}

#[test]
fn pause_explains_its_days_after_the_subscription_was_resumed_and_paid() {
    let history = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_logged_change("2026-04-02", pause)
        .with_logged_change("2026-04-20", resume("2026-04-20"))
        .with_attempt("2026-04-21", success_outcome);
    let paused = "the payment due on 2026-04-10 was owed, and the subscription was paused from 2026-04-02 to 2026-04-20; it \
                  was paid on 2026-04-21";
    let answer = |on: &str| format!("not charged on {on}: {paused}");
    history.assert_explanations(
        "2026-06-01",
        &[
            ("2026-04-01", ReasonCode::NotDue, "nothing is due on 2026-04-01: the next payment is on 2026-04-10"),
            ("2026-04-10", ReasonCode::Stopped, &answer("2026-04-10")),
            ("2026-04-19", ReasonCode::Stopped, &answer("2026-04-19")),
            (
                "2026-04-20",
                ReasonCode::Owed,
                "no charge is recorded on 2026-04-20: the payment due on 2026-04-10 was owed; it was paid on 2026-04-21",
            ),
        ],
    );
}

#[test]
fn later_pause_does_not_explain_an_earlier_day() {
    let history =
        History::new().with_attempt("2026-03-11", |_| decline_outcome(false)).with_logged_change("2026-03-20", pause);
    history.assert_explanations(
        "2026-06-01",
        &[
            (
                "2026-03-10",
                ReasonCode::Owed,
                "no charge is recorded on 2026-03-10: the payment due on 2026-03-10 was owed; the subscription has been \
                 paused since 2026-03-20",
            ),
            (
                "2026-03-25",
                ReasonCode::Stopped,
                "not charged on 2026-03-25: the subscription has been paused since 2026-03-20",
            ),
        ],
    );
}

#[test]
fn pause_whose_begin_has_expired_is_known_from_its_end() {
    let mut history = History::new()
        .with_attempt("2026-03-10", success_outcome)
        .with_logged_change("2026-04-02", pause)
        .with_logged_change("2026-04-20", resume("2026-04-20"));
    history.hold_records.actions.remove(0);
    let explanation = history.explain("2026-04-12", "2026-04-20");
    assert_eq!(explanation.reason(), ReasonCode::Owed, "the log does not say that this day was in the pause");
}

#[test]
fn dispute_explains_its_days_after_its_end() {
    let mut won = paid_in_april("2026-04-16");
    won.hold_records.disputes.push(dispute(&won, DisputeStatus::Won, Some("2026-04-15")));
    let mut charged = paid_in_april("2026-04-16");
    charged.hold_records.disputes.push(dispute(&charged, DisputeStatus::Lost, Some("2026-05-15")));
    let new_card = |subscription: &Subscription| {
        let changes =
            SubscriptionChanges { payment_method: Some(card("pm_card_mastercard")), ..SubscriptionChanges::default() };
        subscription.apply_changes(&changes, LeadDays::default(), date("2026-04-13")).unwrap()
    };
    let first = History::new().with_attempt("2026-03-10", success_outcome);
    let opened = dispute(&first, DisputeStatus::Open, None);
    let mut replaced = first.with_change(|stored| stored.with_dispute_mark(std::slice::from_ref(&opened)));
    replaced = replaced
        .with_logged_change("2026-04-13", |stored| Subscription { disputed_at: None, ..new_card(stored) })
        .with_attempt("2026-04-16", success_outcome);
    replaced.hold_records.disputes.push(opened);
    for (history, until) in [(won, "2026-04-15"), (charged, "2026-04-16"), (replaced, "2026-04-13")] {
        let expected = format!(
            "not charged on 2026-04-10: the payment due on 2026-04-10 was owed, and the payment method was disputed from \
             2026-03-20 to {until}; it was paid on 2026-04-16"
        );
        history.assert_explanations("2026-06-01", &[("2026-04-10", ReasonCode::Disputed, &expected)]);
    }
}

#[test]
fn dispute_of_a_payment_method_that_was_replaced_before_explains_nothing() {
    let history = History::new().with_attempt("2026-03-10", success_outcome);
    let old = dispute(&history, DisputeStatus::Lost, None);
    let inquiry = Dispute { status: DisputeStatus::Inquiry, ..old.clone() };
    let mut inquired = paid_in_april("2026-04-16");
    inquired.hold_records.disputes.push(inquiry);
    let mut replaced = history
        .with_logged_change("2026-03-15", |stored| {
            let changes = SubscriptionChanges {
                payment_method: Some(card("pm_card_mastercard")),
                ..SubscriptionChanges::default()
            };
            stored.apply_changes(&changes, LeadDays::default(), date("2026-03-15")).unwrap()
        })
        .with_attempt("2026-04-16", success_outcome);
    replaced.hold_records.disputes.push(old);
    for history in [inquired, replaced] {
        assert_eq!(history.explain("2026-04-10", "2026-06-01").reason(), ReasonCode::Owed);
    }
}

#[test]
fn finding_explains_the_days_until_a_person_has_resolved_it() {
    let mut history = paid_in_april("2026-04-16");
    let finding = Finding {
        account: history.subscription.account.clone(),
        subscription: history.subscription.id,
        sku: history.subscription.sku.clone(),
        due_on: date("2026-03-10"),
        payment: "pay_2".parse().unwrap(),
        amount: history.subscription.price,
        reason: FindingReason::PaidTwice,
        blocks: true,
        found_at: billing_time("2026-04-09"),
        resolved: Some(ResolvedFinding { at: billing_time("2026-04-16"), reason: "refunded".to_owned() }),
        version: 2,
    };
    history.hold_records.findings.push(Finding { blocks: false, ..finding.clone() });
    assert_eq!(history.explain("2026-04-10", "2026-06-01").reason(), ReasonCode::Owed, "the finding blocks nothing");
    history.hold_records.findings = vec![finding];
    let explanation = history.explain("2026-04-10", "2026-06-01");
    assert_eq!(
        (explanation.reason(), explanation.needs_attention(), explanation.to_string().as_str()),
        (
            ReasonCode::OpenFinding,
            false,
            "not charged on 2026-04-10: the payment due on 2026-04-10 was owed, and the subscription was blocked by a payment \
             without a receipt from 2026-04-09 to 2026-04-16; it was paid on 2026-04-16"
        )
    );
}

#[test]
fn explanation_promises_no_retry_that_a_dispute_or_a_finding_prevents() {
    let declined = || History::new().with_attempt("2026-03-10", |_| decline_outcome(false));
    let disputed = declined()
        .with_change(|stored| Subscription { disputed_at: Some(billing_time("2026-03-11")), ..stored.clone() });
    let found = declined().with_change(|stored| Subscription { open_findings: 1, ..stored.clone() });
    for (history, end) in [
        (disputed, "; the payment method has been disputed since 2026-03-11"),
        (found, "; the subscription is blocked by a payment without a receipt now; the records do not show since when"),
    ] {
        let text = history.explain("2026-03-10", "2026-03-12").to_string();
        assert!(text.contains("was declined") && text.ends_with(end), "{text}");
    }
}
