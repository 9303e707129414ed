//! The rules by which the table is compared with the gateway, as pure functions. The daily comparison and the audit use
//! the same rules. Each function compares one payment, refund or dispute of the gateway with the table, or one stored
//! record of the table with the gateway.

use billing::{
    AccountId, DifferenceKind, Dispute, DisputeStatus, GatewayDifference, GatewayToken, Payment, PaymentStatus,
    Receipt, Refund, RefundStatus,
};

use crate::{GatewayDispute, GatewayRefund, TimeRange};

/// The result of the comparison of a successful payment with the receipt of its period.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PaymentComparison {
    /// The receipt contains this payment, with the same amount.
    Matches,
    /// The receipt contains this payment, with another amount.
    Differs(GatewayDifference),
    /// The payment has no receipt. Contains the difference to report if the payment is not settled.
    WithoutReceipt(GatewayDifference),
}

fn create_difference(kind: DifferenceKind, id: impl ToString, what: String) -> GatewayDifference {
    GatewayDifference { kind, id: id.to_string(), what }
}

/// Compares the successful `payment` with `receipt`, the receipt of its subscription for its period.
pub fn compare_payment(payment: &Payment, receipt: Option<&Receipt>) -> PaymentComparison {
    let Payment { id, account, subscription, due_on, amount, .. } = payment;
    match receipt {
        Some(receipt) if receipt.payment == *id && receipt.amount == *amount => PaymentComparison::Matches,
        Some(receipt) if receipt.payment == *id => PaymentComparison::Differs(create_difference(
            DifferenceKind::AmountDiffers,
            id,
            format!(
                "the receipt of {account} for {due_on} states {}, but the gateway charged {amount}",
                receipt.amount
            ),
        )),
        Some(receipt) => PaymentComparison::WithoutReceipt(create_difference(
            DifferenceKind::PaidTwice,
            id,
            format!(
                "{account} paid {amount} for {due_on} ({subscription}), but the receipt of this period is of {}",
                receipt.payment
            ),
        )),
        None => PaymentComparison::WithoutReceipt(create_difference(
            DifferenceKind::PaymentWithoutReceipt,
            id,
            format!("{account} paid {amount} for {due_on} ({subscription}), but there is no receipt"),
        )),
    }
}

/// Compares `refund`, a refund of `payment` of `account` at the gateway, with `stored`, the stored refunds of the
/// receipt. Returns the difference; `None` if there is none. A failed refund need not be stored.
pub fn compare_refund(
    refund: &GatewayRefund,
    account: &AccountId,
    payment: &GatewayToken,
    stored: &[Refund],
) -> Option<GatewayDifference> {
    let has_failed = refund.state.status() == RefundStatus::Failed;
    let (id, amount) = (&refund.id, refund.amount);
    match stored.iter().find(|stored| refund.matches(stored)) {
        None if has_failed => None,
        None => {
            let what = format!("the gateway refunded {amount} of {payment} ({account}), but no refund is stored");
            Some(create_difference(DifferenceKind::RefundNotStored, id, what))
        }
        Some(stored) if stored.amount != amount && !has_failed => {
            let what =
                format!("the refund {} is stored with {}, but the gateway made {amount}", stored.id, stored.amount);
            Some(create_difference(DifferenceKind::AmountDiffers, id, what))
        }
        Some(stored) => compare_refund_status(stored, refund),
    }
}

/// Compares the status of the `stored` refund with `made`, the same refund at the gateway. Returns the difference;
/// `None` if there is none.
pub fn compare_refund_status(stored: &Refund, made: &GatewayRefund) -> Option<GatewayDifference> {
    let Refund { id, account, amount, status, payment, .. } = stored;
    let reported = made.state.status();
    (*status != reported).then(|| {
        let what = format!(
            "the refund {id} of {amount} for {payment} ({account}) is {status} in the table and {reported} at the gateway"
        );
        create_difference(DifferenceKind::RefundStatusDiffers, &made.id, what)
    })
}

/// Compares `dispute`, a dispute of `payment` of `account` at the gateway, with `stored`, the stored disputes of the
/// account. Returns the difference; `None` if there is none.
pub fn compare_dispute(
    dispute: &GatewayDispute,
    account: &AccountId,
    payment: &GatewayToken,
    stored: &[Dispute],
) -> Option<GatewayDifference> {
    if let Some(stored) = stored.iter().find(|stored| stored.id == dispute.id) {
        return compare_dispute_status(stored, dispute);
    }
    let GatewayDispute { id, amount, status, .. } = dispute;
    let what = format!("the dispute of {amount} for {payment} ({account}) is {status}, but is not stored");
    Some(create_difference(DifferenceKind::DisputeNotStored, id, what))
}

/// Compares the status and the amount of the `stored` dispute with `listed`, the same dispute at the gateway. Returns
/// the difference; `None` if there is none.
pub fn compare_dispute_status(stored: &Dispute, listed: &GatewayDispute) -> Option<GatewayDifference> {
    let Dispute { id, account, payment, amount, status, .. } = stored;
    ((*amount, *status) != (listed.amount, listed.status)).then(|| {
        let what = format!(
            "the dispute of {amount} for {payment} ({account}) is {status} in the table, and at the gateway it is {} \
             with {}",
            listed.status, listed.amount
        );
        create_difference(DifferenceKind::DisputeStatusDiffers, id, what)
    })
}

/// Compares `receipt` with `payment`, the payment of this table that the gateway returns for the id in the receipt.
/// Returns the difference; `None` if there is none. If the payment was created in the time range `listed`, its amount is
/// not compared here: [`compare_payment`] compares the payments that the gateway lists for this time range.
pub fn compare_receipt(receipt: &Receipt, payment: Option<&Payment>, listed: &TimeRange) -> Option<GatewayDifference> {
    let Receipt { account, due_on, amount, payment: id, .. } = receipt;
    let without = |reason: &str| {
        let what = format!("the receipt of {account} for {due_on} states {amount}, but {reason}");
        Some(create_difference(DifferenceKind::ReceiptWithoutPayment, id, what))
    };
    let Some(payment) = payment else { return without("the gateway has no such payment of this table") };
    let is_of_receipt = (&payment.account, payment.subscription) == (account, receipt.subscription);
    match payment.status {
        _ if !is_of_receipt => without("the payment belongs to another subscription"),
        // This is no difference if the receipt shows a reversal: the gateway may report a payment that the bank has
        // reversed as failed.
        PaymentStatus::Processing | PaymentStatus::Declined(_) if receipt.reversal.is_some() => None,
        PaymentStatus::Processing => without("the bank is still processing the payment"),
        PaymentStatus::Declined(_) => without("the payment has not succeeded"),
        PaymentStatus::Succeeded if payment.amount != *amount && !listed.contains(payment.created_at) => {
            let what = format!(
                "the receipt of {account} for {due_on} states {amount}, but the gateway charged {}",
                payment.amount
            );
            Some(create_difference(DifferenceKind::AmountDiffers, id, what))
        }
        PaymentStatus::Succeeded => None,
    }
}

/// Compares the stored `refund` with `made`, the refunds of its payment at the gateway. Returns the difference; `None`
/// if there is none. A failed refund need not exist at the gateway.
pub fn compare_stored_refund(refund: &Refund, made: &[GatewayRefund]) -> Option<GatewayDifference> {
    if refund.status == RefundStatus::Failed || made.iter().any(|made| made.matches(refund)) {
        return None;
    }
    let Refund { id, account, amount, status, payment, .. } = refund;
    let what = format!(
        "the refund of {amount} for {payment} ({account}) is {status} in the table, but the gateway does not have it"
    );
    Some(create_difference(DifferenceKind::RefundNotAtGateway, id, what))
}

/// Returns the difference if the gateway does not list the stored `dispute` (`is_listed` is false). A dispute with the
/// status `returned` is never a difference: it stands for a debit that the bank returned without a dispute at the
/// gateway.
pub fn compare_stored_dispute(dispute: &Dispute, is_listed: bool) -> Option<GatewayDifference> {
    if is_listed || dispute.status == DisputeStatus::Returned {
        return None;
    }
    let Dispute { id, account, payment, status, .. } = dispute;
    let what =
        format!("the dispute of {payment} ({account}) is {status} in the table, but the gateway does not list it");
    Some(create_difference(DifferenceKind::DisputeNotAtGateway, id, what))
}

#[cfg(test)]
mod tests {
    use billing::{Decline, Money, Reversal, SubscriptionId};
    use chrono::{DateTime, TimeDelta, Utc};
    use ulid::Ulid;

    use super::*;

    /// The time at which the payment of these tests was created.
    fn test_time() -> DateTime<Utc> {
        "2027-01-31T12:00:00Z".parse().unwrap()
    }

    fn euro_amount(minor: i64) -> Money {
        Money::new(minor, "EUR".parse().unwrap())
    }

    /// A payment that matches [`sample_receipt`].
    fn sample_payment() -> Payment {
        Payment {
            id: "pi_1".parse().unwrap(),
            table: Some(Ulid::nil()),
            account: "acme".parse().unwrap(),
            subscription: SubscriptionId::new(Ulid::from_parts(1, 1)),
            due_on: test_time().date_naive(),
            attempt_no: 1,
            amount: euro_amount(1299),
            status: PaymentStatus::Succeeded,
            card: None,
            created_at: test_time(),
        }
    }

    /// The receipt of [`sample_payment`].
    fn sample_receipt() -> Receipt {
        Receipt {
            account: sample_payment().account,
            subscription: sample_payment().subscription,
            sku: "gold".parse().unwrap(),
            product_name: "Gold plan".parse().unwrap(),
            email: None,
            due_on: sample_payment().due_on,
            amount: sample_payment().amount,
            payment: sample_payment().id,
            customer: None,
            card: None,
            processed_at: test_time(),
            refunded: euro_amount(0),
            refunded_at: None,
            reversal: None,
        }
    }

    #[test]
    fn payment_is_compared_with_the_receipt_of_its_period() {
        let other_amount = Receipt { amount: euro_amount(1298), ..sample_receipt() };
        let other_payment = Receipt { payment: "pi_2".parse().unwrap(), ..sample_receipt() };
        assert_eq!(compare_payment(&sample_payment(), Some(&sample_receipt())), PaymentComparison::Matches);
        for (receipt, kind, has_receipt) in [
            (Some(&other_amount), DifferenceKind::AmountDiffers, true),
            (Some(&other_payment), DifferenceKind::PaidTwice, false),
            (None, DifferenceKind::PaymentWithoutReceipt, false),
        ] {
            match compare_payment(&sample_payment(), receipt) {
                PaymentComparison::Differs(found) => assert_eq!((found.kind, has_receipt), (kind, true)),
                PaymentComparison::WithoutReceipt(found) => assert_eq!((found.kind, has_receipt), (kind, false)),
                PaymentComparison::Matches => panic!("{kind}"),
            }
        }
    }

    #[test]
    fn receipt_is_compared_with_its_payment() {
        use DifferenceKind::{AmountDiffers, ReceiptWithoutPayment};

        let day = TimeRange::of_day(test_time().date_naive());
        let declined = PaymentStatus::Declined(Decline { code: "lost_card".to_owned(), hard: true });
        let with_status = |status: PaymentStatus| Some(Payment { status, ..sample_payment() });
        let earlier = test_time() - TimeDelta::days(1);
        let reversal = Some(Reversal { at: test_time(), amount: euro_amount(1299) });
        let reversed = || Receipt { reversal, ..sample_receipt() };
        let later = SubscriptionId::new(Ulid::from_parts(3, 3));
        for (name, receipt, payment, expected) in [
            ("equal", sample_receipt(), Some(sample_payment()), None),
            ("unknown", sample_receipt(), None, Some(ReceiptWithoutPayment)),
            ("declined", sample_receipt(), with_status(declined.clone()), Some(ReceiptWithoutPayment)),
            ("processing", sample_receipt(), with_status(PaymentStatus::Processing), Some(ReceiptWithoutPayment)),
            ("reversed", reversed(), with_status(declined), None),
            ("reversed, unknown", reversed(), None, Some(ReceiptWithoutPayment)),
            (
                "other owner",
                sample_receipt(),
                Some(Payment { subscription: later, ..sample_payment() }),
                Some(ReceiptWithoutPayment),
            ),
            (
                "other amount on the day",
                sample_receipt(),
                Some(Payment { amount: euro_amount(1), ..sample_payment() }),
                None,
            ),
            (
                "other amount of an earlier day",
                sample_receipt(),
                Some(Payment { amount: euro_amount(1), created_at: earlier, ..sample_payment() }),
                Some(AmountDiffers),
            ),
        ] {
            let found = compare_receipt(&receipt, payment.as_ref(), &day);
            assert_eq!(found.map(|found| found.kind), expected, "{name}");
        }
    }
}
