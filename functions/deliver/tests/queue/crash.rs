//! Tests that kill the function at each of its calls to the table, to SQS and to the merchant's endpoint.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use billing::DeliveryStatus;
use chrono::DateTime;
use emulator::{ExternalCall, Fault, FaultInjector};
use store::Paging;

use crate::servers::start_merchant_server_with;
use crate::world::{Message, World, event};

/// Processes two events for the endpoint with the path `endpoint` of the merchant's server, until the queue is empty.
/// The endpoint rejects the first `rejected` requests. The outgoing call with the number `number` has the fault
/// `fault`, which kills the function. Asserts that both events are delivered, and returns the total number of outgoing
/// calls.
async fn run_with_kill_at(endpoint: &str, rejected: u32, number: u64, fault: Fault) -> u64 {
    let is_due = Arc::new(AtomicBool::new(true));
    let faults =
        move |call: &ExternalCall<'_>| (call.number == number && is_due.swap(false, Ordering::SeqCst)).then_some(fault);
    let injector = Arc::new(FaultInjector::active_during_runs(Arc::new(faults)));
    let world = World::with_injector(injector.clone()).await;
    let (merchant, received) = start_merchant_server_with(injector.clone()).await;
    let endpoint = world.create_endpoint(1, &format!("{merchant}/{endpoint}"), &[]).await;
    let events = [event("e1", "account.created"), event("e2", "payment.succeeded")];
    let mut queue: Vec<_> = events.map(Message::first).into();
    let (mut kills, mut rounds) = (0, 0);
    loop {
        match injector.run(world.process_queue(&mut queue)).await {
            Some(false) => break,
            Some(true) => {}
            None => {
                // All messages of the batch stay in the queue.
                kills += 1;
                queue.extend(world.take_sent().into_iter().map(Message::first));
            }
        }
        rounds += 1;
        assert!(rounds < 40, "killed at {number}, {fault:?}: {queue:?} is never empty");
    }
    let mut times = BTreeMap::new();
    for (_, event) in received.lock().unwrap().iter() {
        *times.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    // Without a kill, the merchant's server gets the rejected requests, and one accepted request for each event. A kill
    // can add one request for each of the two deliveries in progress.
    let all: u32 = times.values().sum();
    assert!(times.len() == 2 && all <= rejected + 2 + 2 * kills, "killed at {number}, {fault:?}: {times:?}");
    let deliveries = world.table.get_deliveries(endpoint.id, &Paging::all(), DateTime::UNIX_EPOCH).await.unwrap().items;
    let statuses: Vec<_> = deliveries.iter().map(|delivery| delivery.status).collect();
    assert_eq!(statuses, [DeliveryStatus::Delivered; 2], "killed at {number}, {fault:?}");
    assert_eq!(kills, u32::from(number <= injector.call_count()));
    injector.call_count()
}

/// Runs the test once for each outgoing call of the function and each fault: the function is killed before the call, or
/// after it.
async fn kill_at_every_call(endpoint: &str, rejected: u32) {
    let calls = run_with_kill_at(endpoint, rejected, u64::MAX, Fault::CrashBefore).await;
    assert!(calls >= 15, "{calls}");
    for number in 1..=calls {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            run_with_kill_at(endpoint, rejected, number, fault).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_events_are_delivered_if_the_function_is_killed_at_any_call() {
    kill_at_every_call("rejects-first", 1).await;
}

/// The first three rejected requests start the back-off of the endpoint. The fourth rejected request is the first
/// probe.
#[tokio::test(flavor = "multi_thread")]
async fn all_events_are_delivered_if_the_function_is_killed_at_any_call_of_a_back_off() {
    kill_at_every_call("rejects-the-first-four", 4).await;
}
