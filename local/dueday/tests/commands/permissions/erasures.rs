//! Tests of the IAM policies of the Lambda function `erase`, which erases accounts.

use billing::{ActionKind, Actor, NewAction, Subscription};
use erasing::{Eraser, request_erasure};
use orders::{Customer, ShippingAddress};
use orders_table::OrdersTable;
use store::{CardLink, Paging};
use ulid::Ulid;

use crate::permissions::{World, assert_policy};

#[tokio::test]
async fn policy_of_erase_function_matches_its_requests() {
    let world = World::new(&[]).await;
    let (deployment, recorded) = (&world.system.deployment, &world.recorded);
    world.run_days(&deployment.payment_batch().await.unwrap(), "2027-01-01", "2027-01-20").await;
    let mut all = Vec::new();
    let each = |account: Result<billing::Account, _>| {
        all.push(account.unwrap());
        std::ops::ControlFlow::Continue(())
    };
    deployment.table.scan_accounts(each).await.unwrap();
    let now = recorded.clock.now();
    let action = NewAction { at: now, actor: Actor::Operator(None), kind: ActionKind::EraseAccount, reason: None };
    for account in &all {
        let stored = deployment.table.get_subscriptions_by_account(&account.id, &Paging::all()).await.unwrap();
        for subscription in stored.items {
            let link =
                CardLink { account: account.id.clone(), subscription: subscription.id, due_on: subscription.due_on };
            let id = Ulid::from_parts(1, subscription.shard.into());
            deployment.table.put_card_link(id, &link, now).await.unwrap();
            let cancelled = |stored: &Subscription| Ok::<_, ()>(stored.cancel(now.date_naive(), now));
            deployment.table.write_settlement(subscription, cancelled).await.unwrap();
        }
        let requested = request_erasure(&deployment.table, &account.id, &action, now).await;
        assert!(requested.is_ok(), "{requested:?}");
    }
    let report =
        Eraser::new(recorded.table.clone(), None, recorded.clock.clone()).continue_all_erasures(None).await.unwrap();
    assert!(report.erased > 3 && report.failed == 0, "{report:?}");
    assert_policy("EraseFunction", &world.connection.recorded_permissions());
}

#[tokio::test]
async fn policy_of_erase_function_for_the_order_desk_matches_its_requests() {
    let world = World::new(&[]).await;
    let unrecorded = OrdersTable::new(world.system.deployment.table.client().clone(), "dueday-orders");
    unrecorded.create_if_absent().await.unwrap();
    let address = ShippingAddress {
        name: "Acme".parse().unwrap(),
        street: "1 High Street".parse().unwrap(),
        line2: None,
        postal_code: "LS1".parse().unwrap(),
        city: "Leeds".parse().unwrap(),
        state: None,
        country: "gb".parse().unwrap(),
        region: "eu".parse().unwrap(),
        phone: None,
    };
    let account: billing::AccountId = "acme".parse().unwrap();
    let customer = Customer::new(account.clone(), None, world.recorded.clock.now());
    unrecorded.create_customer(&Customer { address: Some(address), ..customer }).await.unwrap();
    let table = OrdersTable::new(world.recorded.table.client().clone(), "dueday-orders");
    assert_eq!(table.count_orders_to_ship(&account).await.unwrap(), 0);
    assert_eq!(table.remove_addresses(&account).await.unwrap(), 1);
    assert_policy("OrdersErasurePolicy", &world.connection.recorded_permissions());
}
