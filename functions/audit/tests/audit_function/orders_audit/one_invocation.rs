//! Audits that end in one invocation.

use chrono::TimeDelta;

use super::world::{World, at, audit, violations};

#[tokio::test]
async fn audit_compares_the_orders_with_the_receipts_and_the_stock_with_its_movements() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (checks, deadline) = (world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z"));
    let clean = audit(&checks, deadline).await;
    assert_eq!((clean.complete, clean.accounts, clean.orders, clean.violations), (true, 12, 12, 0), "{clean:?}");

    world.damage().await;
    let damaged = audit(&checks, deadline).await;
    assert!(damaged.complete && damaged.orders == 11, "{damaged:?}");
    assert_eq!(world.violations(&damaged.audit).await, world.damages());
}

#[tokio::test]
async fn audit_requires_no_order_before_the_order_desk_was_used_or_while_the_queue_may_deliver_the_payment() {
    let world = World::new().await;
    world.delete_order(world.orders[1]).await;
    // The columns are: the time of the audit, the time from which each payment must have an order, and the expected
    // number of violations. One of them is the stock movement of the deleted order.
    for (now, ordered_from, expected) in [
        ("2027-01-10T17:00:00Z", None, 1),
        ("2027-01-10T19:00:00Z", None, 2),
        ("2027-01-10T19:00:00Z", Some("2027-01-10T06:00:01Z"), 1),
    ] {
        world.system.clock.set(at(now));
        if let Some(from) = ordered_from {
            world.desk.table.set_ordered_from(at(from)).await.unwrap();
        }
        let checks = world.checks(world.system.clock.clone());
        let response = audit(&checks, at(now) + TimeDelta::minutes(15)).await;
        assert_eq!((response.complete, response.violations), (true, expected), "{now} {ordered_from:?}");
    }
}

#[tokio::test]
async fn item_that_cannot_be_read_is_a_violation_and_does_not_stop_the_audit() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (checks, deadline) = (world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z"));
    // Two payments have no order, because the products of their SKU cannot be read.
    let [first, second] = [world.delete_order(world.orders[1]).await, world.delete_order(world.orders[2]).await];
    world.make_unreadable("SKU#gold", "PRODUCT#beans").await;
    let response = audit(&checks, deadline).await;
    assert_eq!((response.complete, response.accounts, response.orders), (true, 12, 10), "{response:?}");
    let expected = [("readable", "SKU#gold PRODUCT#beans"), ("related", &first), ("related", &second)];
    assert_eq!(world.violations(&response.audit).await, violations(&expected));
}

#[tokio::test]
async fn first_order_that_cannot_be_read_hides_no_missing_order() {
    let world = World::new().await;
    world.system.clock.set(at("2027-01-12T01:40:00Z"));
    let (unreadable, missing) = (world.make_first_order_unreadable().await, world.orders[1].to_string());
    let movement = world.delete_order(world.orders[1]).await;
    let response = audit(&world.checks(world.system.clock.clone()), at("2027-01-12T01:55:00Z")).await;
    assert_eq!((response.complete, response.orders), (true, 10), "{response:?}");
    assert_eq!(
        world.violations(&response.audit).await,
        violations(&[("ordered", &missing), ("readable", &unreadable), ("related", &movement)])
    );
}
