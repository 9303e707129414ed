//! Tests of the amounts that Stripe accepts: the rules of the adapter agree with the stand-in, which has a table of its
//! own.

use std::sync::Arc;

use audit::NightlyAudit;
use billing::{Currency, GatewayAccount, MAX_PRICE_MINOR, Money, Subscription, SubscriptionStatus};
use chrono::TimeDelta;
use emulator::{InProcessTransport, STRIPE_KEY, StripeServer, stripe_currencies};
use gateways::{ChargeRequest, ChargeResponse, PaymentGateway as _, stripe_amount_rules};
use store::Settings;

use crate::stripe::{charge_request, connect};
use crate::world::{World, billing_time, cancel, numbered_subscription};

/// Returns the amounts in `currency` at which the response of Stripe may change: around each power of ten and around
/// each documented smallest amount.
fn border_amounts(currency: Currency) -> Vec<Money> {
    let powers = (0..=12).map(|digits| 10_i64.pow(digits));
    let documented = [30, 50, 175, 200, 250, 300, 400, 1_000, 1_500, 17_500, 9_999_999_900, 99_999_900];
    let near = powers.chain(documented).flat_map(|border| [border - 10, border - 1, border, border + 1, border + 10]);
    near.filter(|minor| (1..=MAX_PRICE_MINOR).contains(minor)).map(|minor| Money::new(minor, currency)).collect()
}

#[tokio::test]
async fn amounts_are_refused_at_entry_exactly_if_stripe_refuses_the_charge() {
    let world = World::new().await;
    let server = StripeServer::new(world.clock.clone());
    let stripe = InProcessTransport::stripe_adapter(Arc::new(InProcessTransport(server)));
    let rules = stripe.amount_rules().await.unwrap();
    assert_eq!(rules, stripe_amount_rules());
    let mut differences = Vec::new();
    for currency in stripe_currencies() {
        for amount in border_amounts(currency.parse().unwrap()) {
            let request = ChargeRequest { idempotency_key: format!("key {amount}"), ..charge_request(amount) };
            let is_charged = match stripe.charge(&request).await {
                ChargeResponse::Succeeded(payment) => payment.amount == amount,
                ChargeResponse::Rejected { .. } => false,
                other => panic!("{amount}: {other:?}"),
            };
            if rules.check_amount(amount).is_ok() != is_charged {
                differences.push(format!("{amount} is charged: {is_charged}"));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:?}");
}

#[tokio::test]
async fn stand_in_refuses_amounts_with_the_error_codes_of_stripe() {
    let world = World::new().await;
    let stripe = connect(&StripeServer::new(world.clock.clone()), STRIPE_KEY).await;
    for (minor, currency, code) in [
        (10, "USD", "amount_too_small"),
        (49, "EUR", "amount_too_small"),
        (100_000_000, "USD", "amount_too_large"),
        (1_000, "IQD", "invalid_request_error"),
    ] {
        let amount = Money::new(minor, currency.parse().unwrap());
        let request = ChargeRequest { idempotency_key: format!("key {amount}"), ..charge_request(amount) };
        assert_eq!(stripe.charge(&request).await, ChargeResponse::Rejected { code: code.to_owned() }, "{amount}");
        assert!(stripe_amount_rules().check_amount(amount).is_err(), "{amount}");
    }
}

#[tokio::test]
async fn nightly_audit_reports_prices_that_stripe_can_never_charge() {
    let world = World::new().await;
    let day = "2026-03-01";
    let priced = |n: u32, minor: i64, currency: &str| {
        let price = Money::new(minor, currency.parse().unwrap());
        Subscription { price, ..numbered_subscription(n, 10, day) }
    };
    let all = [priced(0, 57_505, "KWD"), priced(1, 10, "USD"), priced(2, 1_299, "EUR"), priced(3, 1_005, "IQD")];
    for subscription in &all {
        world.store(subscription).await;
    }
    world.change_subscription(&all[1], cancel).await;
    assert_eq!(world.load(&all[1]).await.status, SubscriptionStatus::Cancelled);
    let settings = world.table.get_settings().await.unwrap().unwrap();
    world.clock.set(billing_time(day));
    let nightly = NightlyAudit { table: world.table.clone(), orders: None, clock: world.clock.clone() };
    for (kind, expected) in [("sandbox", 0), ("stripe", 2)] {
        let account = GatewayAccount { kind: kind.to_owned(), account: "acct_1".to_owned(), live: false };
        let settings = Settings { gateway: Some(account), ..settings.clone() };
        let deadline = billing_time(day) + TimeDelta::hours(1);
        let audit = nightly.audit_next_part(&settings, deadline).await.unwrap();
        assert_eq!(audit.violations.get("chargeable").copied().unwrap_or_default(), expected, "{kind}: {audit:?}");
        assert_eq!(audit.violation_count(), expected, "{kind}: {audit:?}");
    }
}
