//! Tests of refunds of disputed payments: no refund gives the customer money that the bank has reversed or may still
//! reverse, unless an operator permits it. The net amount of a receipt may be negative.

use audit::ReportSource;
use billing::{
    ActionKind, Actor, Dispute, DisputeStatus, Money, MoneySums, NewAction, Receipt, RefundDemand, RefundRefusal,
    RefundStatus, Reversal, Subscription,
};
use clock::Clock as _;
use gateway_objects::{RefundError, RefundRequester};
use store::Paging;
use ulid::Ulid;

use crate::world::{World, billing_time, date, new_subscription};

/// The day on which the payment was made.
const DAY: &str = "2026-03-10";

fn eur(minor: i64) -> Money {
    Money::new(minor, "EUR".parse().unwrap())
}

/// A world in which a month of 12.99 EUR of the subscription `gold` was paid at the sandbox gateway.
struct PaidWorld {
    world: World,
    gold: Subscription,
}

impl PaidWorld {
    /// Creates a world, and runs its payment batch on [`DAY`].
    async fn new() -> Self {
        let (world, gold) = (World::new().await, new_subscription(10, "2026-03-01"));
        world.store(&gold).await;
        world.run_payments(DAY).await;
        Self { world, gold }
    }

    async fn receipt(&self) -> Receipt {
        let (table, now) = (&self.world.table, self.world.clock.now());
        table.get_receipts_by_account(&self.gold.account, &Paging::all(), now).await.unwrap().items.remove(0)
    }

    /// Stores a dispute of `amount` with `status`, or replaces the stored dispute.
    async fn store_dispute(&self, status: DisputeStatus, amount: Money) {
        let stored = self.world.table.get_disputes_by_account(&self.gold.account).await.unwrap();
        let dispute = dispute(&self.receipt().await, status, amount);
        self.world.table.write_dispute(&dispute, stored.first()).await.unwrap();
    }

    /// Requests the refund `n`.
    async fn refund(&self, n: u128, demand: RefundDemand) -> Result<RefundStatus, RefundError> {
        let gateway = self.world.sandbox.clone();
        let refunds = RefundRequester::new(self.world.table.clone(), gateway, self.world.clock.clone());
        let reason = Some("ticket 4711".parse().unwrap());
        let (at, actor) = (self.world.clock.now(), Actor::Operator(None));
        let action = NewAction { at, actor, kind: ActionKind::CreateRefund, reason };
        let receipt = self.receipt().await.id();
        let made = refunds.refund(&self.gold.account, &receipt, Ulid(n), demand, Some(&action)).await;
        made.map(|refund| refund.status)
    }

    /// Returns the kinds of the entries in the action log of the account, the oldest first.
    async fn logged_kinds(&self) -> Vec<String> {
        let (table, now) = (&self.world.table, self.world.clock.now());
        let entries = table.get_actions_by_account(&self.gold.account, &Paging::all(), now).await.unwrap().items;
        let mut kinds: Vec<String> = entries.iter().map(|entry| entry.kind.to_string()).collect();
        kinds.sort();
        kinds
    }
}

/// Returns the dispute `dp_1` of the payment of `receipt`.
fn dispute(receipt: &Receipt, status: DisputeStatus, amount: Money) -> Dispute {
    Dispute {
        id: "dp_1".parse().unwrap(),
        account: receipt.account.clone(),
        receipt: receipt.id(),
        payment: receipt.payment.clone(),
        payment_method: "pm_card_visa".parse().unwrap(),
        amount,
        reason: "fraudulent".to_owned(),
        status,
        opened_at: billing_time("2026-03-20"),
        closed_at: None,
        version: 1,
    }
}

/// Returns the demand for `minor` minor units; `None` for the whole refundable amount.
fn demand(minor: Option<i64>) -> RefundDemand {
    minor.into()
}

#[tokio::test]
async fn refundable_amount_is_paid_minus_refunded_minus_reversed_minus_disputed() {
    let paid = Receipt { refunded: eur(299), ..PaidWorld::new().await.receipt().await };
    for (status, amount, refundable) in [
        (DisputeStatus::Inquiry, 1_299, 1_000),
        (DisputeStatus::Won, 1_299, 1_000),
        (DisputeStatus::Open, 1_299, -299),
        (DisputeStatus::Open, 400, 600),
        (DisputeStatus::Lost, 1_299, -299),
        (DisputeStatus::Returned, 400, 600),
    ] {
        let disputes = [dispute(&paid, status, eur(amount))];
        assert_eq!(paid.refundable_amount(&disputes), eur(refundable), "{status} {amount}");
        let other = [Dispute { payment: "pi_other".parse().unwrap(), ..disputes[0].clone() }];
        assert_eq!(paid.refundable_amount(&other), eur(1_000), "the dispute of another payment");
        let whole = paid.checked_refund_amount(demand(None), &disputes);
        match refundable {
            1.. => assert_eq!(whole.map(|checked| checked.amount), Ok(eur(refundable)), "{status} {amount}"),
            _ => assert!(matches!(whole, Err(RefundRefusal::Disputed { .. })), "{status} {amount}: {whole:?}"),
        }
        let permitted = RefundDemand { minor: None, although_disputed: true, has_daily_limit: false };
        let checked = paid.checked_refund_amount(permitted, &disputes).unwrap();
        assert_eq!((checked.amount, checked.is_disputed), (eur(1_000), refundable < 1_000), "{status} {amount}");
    }
    // A receipt that an earlier version marked as reversed counts, too.
    let reversed = Receipt { reversal: Some(Reversal { at: billing_time(DAY), amount: eur(500) }), ..paid.clone() };
    assert_eq!(reversed.refundable_amount(&[]), eur(500));
    let too_much = paid.checked_refund_amount(
        RefundDemand { minor: Some(1_001), although_disputed: true, has_daily_limit: false },
        &[],
    );
    assert_eq!(too_much, Err(RefundRefusal::InvalidAmount { remaining: eur(1_000) }));
}

#[tokio::test]
async fn refund_of_disputed_money_needs_the_permission_of_an_operator() {
    for status in [DisputeStatus::Open, DisputeStatus::Lost] {
        let paid = PaidWorld::new().await;
        paid.store_dispute(status, eur(900)).await;
        let refused = paid.refund(1, demand(Some(400))).await.unwrap_err();
        let text = refused.to_string();
        assert!(matches!(refused, RefundError::Refused(RefundRefusal::Disputed { .. })), "{status}: {text}");
        assert!(text.starts_with("the customer would get the money twice"), "{text}");
        assert!(text.ends_with("3.99 EUR can be refunded"), "{text}");
        assert_eq!(paid.receipt().await.refunded, eur(0), "{status}");
        // The rest of the payment is not disputed.
        assert_eq!(paid.refund(1, demand(None)).await.unwrap(), RefundStatus::Succeeded);
        assert_eq!(paid.receipt().await.refunded, eur(399), "{status}");
        let permitted = RefundDemand { minor: None, although_disputed: true, has_daily_limit: false };
        assert_eq!(paid.refund(2, permitted).await.unwrap(), RefundStatus::Succeeded);
        assert_eq!(paid.receipt().await.refunded, eur(1_299), "{status}");
        assert_eq!(paid.logged_kinds().await, ["refund.create", "refund.create_although_disputed"], "{status}");
    }
    for status in [DisputeStatus::Inquiry, DisputeStatus::Won] {
        let paid = PaidWorld::new().await;
        paid.store_dispute(status, eur(1_299)).await;
        let permitted = RefundDemand { minor: None, although_disputed: true, has_daily_limit: false };
        assert_eq!(paid.refund(1, permitted).await.unwrap(), RefundStatus::Succeeded);
        assert_eq!(paid.logged_kinds().await, ["refund.create"], "{status}: the permission was not needed");
    }
}

#[tokio::test]
async fn net_amount_is_negative_if_the_customer_got_the_money_twice() {
    let paid = PaidWorld::new().await;
    paid.refund(1, demand(Some(1_000))).await.unwrap();
    let reversal = Reversal { at: paid.world.clock.now(), amount: eur(1_299) };
    paid.world.table.mark_reversal(&paid.receipt().await, Some(reversal)).await.unwrap();
    assert_eq!(paid.receipt().await.net_amount(), eur(-1_000));
    let settings = paid.world.table.get_settings().await.unwrap().unwrap();
    let source = ReportSource { table: &paid.world.table, settings: &settings, now: paid.world.clock.now() };
    let days = source.reported_days(Some(date(DAY)), Some(date(DAY))).unwrap();
    let report = audit::build_sales_report(source, days).await.unwrap();
    let nets: Vec<i64> = report.days.iter().flat_map(|day| &day.taken).map(|taken| taken.net_amount).collect();
    assert_eq!(nets, [-1_000]);
    let mut sums = MoneySums::default();
    sums.extend([Money::new(i64::MIN, eur(0).currency()), eur(-1)]);
    assert_eq!(sums.to_string(), Money::new(i64::MIN, eur(0).currency()).to_string(), "the sum stays negative");
}
