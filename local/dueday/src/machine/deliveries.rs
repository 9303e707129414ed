//! Deliveries to webhook endpoints, from one machine: the queue is in memory, and what it holds is in the table.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use billing::{DeliveryKey, DeliveryStatus};
use chrono::{DateTime, TimeDelta, Utc};
use clock::Clock;
use delivery::{Deliverer, DeliveryQueue, Next, QueueError};
use store::{Paging, Table, TableError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::terminal::output;

/// So many deliveries are under way at the same time: one endpoint that hangs holds up no other.
const AT_ONCE: usize = 16;
/// A machine that was asleep is late by no more than this.
const WAKE_INTERVAL: Duration = Duration::from_secs(1);
/// After the table could not be reached.
const PAUSE_AFTER_ERROR: TimeDelta = TimeDelta::seconds(5);

/// Takes deliveries that are to be tried.
#[derive(Clone, Debug)]
pub struct LocalQueue(UnboundedSender<DeliveryKey>);

#[async_trait]
impl DeliveryQueue for LocalQueue {
    async fn send(&self, keys: &[DeliveryKey]) -> Result<(), QueueError> {
        for key in keys {
            // It is pending in the table: whoever serves next finds it there.
            self.0.send(key.clone()).map_err(|_| QueueError("nothing serves the data folder".to_owned()))?;
        }
        Ok(())
    }
}

/// The deliveries of a machine that serves.
pub struct Deliveries {
    table: Table,
    deliverer: Deliverer,
    received: UnboundedReceiver<DeliveryKey>,
    waiting: BTreeSet<(DateTime<Utc>, DeliveryKey)>,
}

impl Deliveries {
    /// The deliveries in `table`, made by `deliverer`; and what takes more of them.
    pub fn new(table: Table, deliverer: Deliverer) -> (Self, LocalQueue) {
        let (sender, received) = unbounded_channel();
        (Self { table, deliverer, received, waiting: BTreeSet::new() }, LocalQueue(sender))
    }

    /// Delivers, for as long as the future is not dropped.
    pub async fn run(mut self, clock: &dyn Clock) {
        if let Err(error) = self.load().await {
            output::tell(format!("error: deliveries that were open are not made until the next start: {error}"));
        }
        let mut under_way: JoinSet<(DeliveryKey, Result<Next, TableError>)> = JoinSet::new();
        loop {
            let now = clock.now();
            while under_way.len() < AT_ONCE
                && self.waiting.first().is_some_and(|(then, _)| *then <= now)
                && let Some((_, key)) = self.waiting.pop_first()
            {
                let deliverer = self.deliverer.clone();
                under_way.spawn(async move {
                    let next = deliverer.deliver(&key).await;
                    (key, next)
                });
            }
            tokio::select! {
                Some(key) = self.received.recv() => {
                    self.waiting.insert((now, key));
                }
                Some(Ok((key, next))) = under_way.join_next() => match next {
                    Ok(Next::Done) => {}
                    Ok(Next::At(then)) => {
                        self.waiting.insert((then, key));
                    }
                    Err(error) => {
                        output::tell(format!("error: a delivery is tried again: {error}"));
                        self.waiting.insert((now + PAUSE_AFTER_ERROR, key));
                    }
                },
                () = tokio::time::sleep(WAKE_INTERVAL) => {}
            }
        }
    }

    /// What was pending when the machine last stopped.
    async fn load(&mut self) -> Result<(), TableError> {
        for endpoint in self.table.get_webhook_endpoints(&Paging::all()).await?.items {
            let deliveries = self.table.get_deliveries(endpoint.id, &Paging::all(), DateTime::UNIX_EPOCH).await?;
            let pending = deliveries.items.into_iter().filter(|delivery| delivery.status == DeliveryStatus::Pending);
            self.waiting.extend(pending.map(|delivery| (delivery.next_try_at.unwrap_or_default(), delivery.key)));
        }
        Ok(())
    }
}
