//! The function killed at each of its calls, to the table, to SQS and to the merchant's program.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use billing::DeliveryStatus;
use chrono::DateTime;
use emulator::{Call, Fault, Injector};
use store::Paging;

use crate::servers::program_through;
use crate::world::{World, event};

/// Works on two events for a program that refuses what comes first, with `fault` at the call `number`. Answers how many calls
/// there were until then.
async fn killed_at(number: u64, fault: Fault) -> u64 {
    let is_due = Arc::new(AtomicBool::new(true));
    let faults =
        move |call: &Call<'_>| (call.number == number && is_due.swap(false, Ordering::SeqCst)).then_some(fault);
    let injector = Arc::new(Injector::for_runs(Arc::new(faults)));
    let world = World::through(injector.clone()).await;
    let (program, got) = program_through(injector.clone()).await;
    let endpoint = world.endpoint(1, &format!("{program}/refuses-first"), &[]).await;
    let mut queue = vec![event("e1", "account.created"), event("e2", "payment.succeeded")];
    let (mut kills, mut rounds) = (0, 0);
    loop {
        // Nobody has answered for what is in the queue when the function is killed: it comes again.
        let before = queue.clone();
        match injector.run(world.work_on(&mut queue)).await {
            Some(false) => break,
            Some(true) => {}
            None => {
                kills += 1;
                queue = before;
                queue.extend(world.queued().0);
            }
        }
        rounds += 1;
        assert!(rounds < 20, "killed at {number}, {fault:?}: {queue:?} is never done");
    }
    let mut times = BTreeMap::new();
    for (_, event) in got.lock().unwrap().iter() {
        *times.entry(event["id"].as_str().unwrap().to_owned()).or_insert(0) += 1;
    }
    let all: u32 = times.values().sum();
    assert!(times.len() == 2 && all <= 3 + kills, "killed at {number}, {fault:?}: {times:?}");
    let deliveries = world.table.get_deliveries(endpoint.id, &Paging::all(), DateTime::UNIX_EPOCH).await.unwrap().items;
    let statuses: Vec<_> = deliveries.iter().map(|delivery| delivery.status).collect();
    assert_eq!(statuses, [DeliveryStatus::Delivered; 2], "killed at {number}, {fault:?}");
    assert_eq!(kills, u32::from(number <= injector.calls()));
    injector.calls()
}

#[tokio::test(flavor = "multi_thread")]
async fn function_that_is_killed_at_any_call_delivers_everything() {
    let calls = killed_at(u64::MAX, Fault::CrashBefore).await;
    assert!(calls >= 15, "{calls}");
    for number in 1..=calls {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            killed_at(number, fault).await;
        }
    }
}
