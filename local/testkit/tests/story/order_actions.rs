//! Tests of the entries of the action log that the order desk writes about an account, which have a partition of their own.

use aws_sdk_dynamodb::types::AttributeValue;
use billing::{AccountId, ActionKind, Actor, LoggedAction, NewAction};
use chrono::TimeDelta;
use erasing::{Eraser, request_erasure};
use store::{Item, Paging, check_other_item};
use testkit::sample_account;
use ulid::Ulid;

use crate::erasure::{erasure_action, erasure_time};
use crate::world::World;

/// Returns the entry with the number `n` about the account of the samples.
fn entry(n: u64, kind: ActionKind) -> LoggedAction {
    let at = erasure_time() + TimeDelta::seconds(i64::try_from(n).unwrap());
    let reason = Some("because of Ada".parse().unwrap());
    let action = NewAction { at, actor: Actor::Operator(None), kind, reason };
    let id = Ulid::from_parts(u64::try_from(at.timestamp_millis()).unwrap(), n.into());
    LoggedAction { id, account: Some(account()), ..action.on_job([("n", n)]) }
}

fn account() -> AccountId {
    sample_account().id
}

/// Stores five entries in both partitions, of which the third was stored by an earlier version.
async fn world_with_actions() -> World {
    let world = World::new().await;
    world.table.put_account(&sample_account()).await.unwrap();
    for (n, kind) in [
        (1, ActionKind::PutAccount),
        (2, ActionKind::ChangeOrder),
        (3, ActionKind::ChangeOrder),
        (4, ActionKind::ChangeCustomer),
        (5, ActionKind::ChangeSubscription),
    ] {
        world.table.put_action(&entry(n, kind)).await.unwrap();
    }
    // Move the third entry into the partition of the account, where earlier versions stored it.
    let client = world.table.client();
    let key = |item: &Item| ["PK", "SK"].map(|name| (name.to_owned(), item[name].clone()));
    let is_third =
        |item: &Item| item["SK"] == AttributeValue::S(format!("ACTION#{}", entry(3, ActionKind::ChangeOrder).id));
    let mut earlier = world.table.scan().await.unwrap().into_iter().find(is_third).unwrap();
    let delete = client.delete_item().table_name(world.table.name()).set_key(Some(key(&earlier).into()));
    delete.send().await.unwrap();
    earlier.insert("PK".to_owned(), AttributeValue::S(format!("ACC#{}", account())));
    client.put_item().table_name(world.table.name()).set_item(Some(earlier)).send().await.unwrap();
    world
}

#[tokio::test]
async fn list_pages_contain_the_entries_of_both_partitions_from_the_newest_to_the_oldest() {
    let world = world_with_actions().await;
    for limit in 1..=6 {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let paging = Paging { after, limit: Some(limit) };
            let page = world.table.get_actions_by_account(&account(), &paging, erasure_time()).await.unwrap();
            assert!(page.items.len() <= limit && page.unreadable.is_empty(), "{page:?}");
            listed.extend(page.items.iter().map(|action| action.after["n"].clone()));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, ["5", "4", "3", "2", "1"], "{limit} entries in a list page");
    }
}

#[tokio::test]
async fn order_desk_writes_its_entries_into_no_partition_of_an_account_and_the_audit_accepts_earlier_ones() {
    let world = world_with_actions().await;
    let items = world.table.scan().await.unwrap();
    let of_order_desk = items.iter().filter(|item| item["PK"].as_s().unwrap() == &format!("ACTIONS#ACC#{}", account()));
    let of_order_desk: Vec<_> = of_order_desk.collect();
    assert_eq!(of_order_desk.len(), 2);
    for item in of_order_desk {
        assert_eq!(check_other_item(item, erasure_time()), []);
    }
    let partition = world.table.get_partition(&account(), 100, erasure_time()).await.unwrap().unwrap();
    assert_eq!((partition.actions.len(), partition.altered.len(), partition.unreadable.len()), (3, 0, 0));
}

#[tokio::test]
async fn erasure_removes_the_reasons_from_the_entries_of_the_order_desk() {
    let world = world_with_actions().await;
    world.clock.set(erasure_time() + TimeDelta::days(1));
    request_erasure(&world.table, &account(), &erasure_action(), erasure_time()).await.unwrap();
    let eraser = Eraser::new(world.table.clone(), None, world.clock.clone());
    assert_eq!(eraser.continue_all_erasures(None).await.unwrap().erased, 1);
    let actions = world.table.get_actions_by_account(&account(), &Paging::all(), erasure_time()).await.unwrap();
    let with_reason = actions.items.iter().filter(|action| action.reason.is_some());
    assert_eq!((actions.items.len(), with_reason.count()), (6, 0), "{actions:?}");
}
