//! Where events go on one machine: into the journal, to the webhook endpoints, to the order desk, and to the customers.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use billing::ReceivedEvent;
use delivery::{Bus, Deliverer, DeliveryQueue as _, Entry, Refused, StreamEvent};
use orders::{OrderDesk, PlaceOutcome, TakeError};

use super::deliveries::LocalQueue;
use super::journal::Journal;
use super::post::Post;
use super::set_aside::SetAside;
use crate::terminal::output;

/// The bus of one machine.
pub struct Outlet {
    pub journal: Arc<Journal>,
    pub deliverer: Deliverer,
    /// `None`: nothing is served, and whoever serves next delivers what is pending.
    pub queue: Option<LocalQueue>,
    pub desk: OrderDesk,
    /// The events of what was paid and could not be ordered.
    pub not_ordered: SetAside,
    pub post: Arc<Post>,
}

#[async_trait]
impl Bus for Outlet {
    async fn put(&self, entries: &[Entry]) -> Vec<Refused> {
        let refused = self.journal.put(entries).await;
        if !refused.is_empty() {
            return refused;
        }
        let events: Vec<ReceivedEvent> = entries
            .iter()
            .filter_map(|entry| match &entry.event {
                StreamEvent::Event(event) => Some(event.clone().into()),
                StreamEvent::Unreadable(_) => None,
            })
            .collect();
        match self.consume(&events).await {
            Ok(()) => Vec::new(),
            Err(reason) => (0..entries.len()).map(|index| Refused { index, reason: reason.clone() }).collect(),
        }
    }
}

impl Outlet {
    /// Hands `events` to every consumer.
    async fn consume(&self, events: &[ReceivedEvent]) -> Result<(), String> {
        // Endpoints that cannot be read are in the log; on one machine nothing waits until they are repaired.
        let deliveries = self.deliverer.fan_out(events).await.map_err(|error| error.to_string())?;
        if let Some(queue) = &self.queue {
            queue.send(&deliveries.pending).await.map_err(|error| error.to_string())?;
        }
        for event in events {
            self.order(event).await?;
        }
        self.post.put(events).map_err(|error| error.to_string())
    }

    /// Places the order of a payment, and sets its event aside if the order can never be placed.
    async fn order(&self, event: &ReceivedEvent) -> Result<(), String> {
        match orders::take(&self.desk, event).await {
            Ok(Some(PlaceOutcome::NoProducts { sku, is_news: true })) => {
                output::tell(format!(
                    "{sku} has no products: what is paid of it makes no orders until `dueday orders import` says what it is"
                ));
                self.desk.table.note_without_products(&sku).await.map_err(|error| error.to_string())
            }
            Ok(_) => Ok(()),
            Err(error) if error.is_transient() => Err(error.to_string()),
            Err(error) => self.set_aside(&event.json, &error),
        }
    }

    /// Sets `event` aside: it would be refused for good, and hold up all later events.
    fn set_aside(&self, event: &str, error: &TakeError) -> Result<(), String> {
        let aside = self.not_ordered.path().display();
        output::tell(format!("error: a month was paid and cannot be ordered: {error}. It is in {aside}"));
        self.not_ordered.put(event).map_err(|error| error.to_string())
    }

    /// Places the orders that could not be placed before. Those that still cannot be placed are set aside and reported again.
    ///
    /// # Errors
    /// The file of the events cannot be used, or the desk cannot be reached: they are tried again next time.
    pub async fn order_again(&self) -> io::Result<()> {
        for event in self.not_ordered.again()? {
            let ordered = match ReceivedEvent::read(&event) {
                Ok(event) => self.order(&event).await,
                Err(error) => self.set_aside(&event, &error.into()),
            };
            ordered.map_err(io::Error::other)?;
        }
        self.not_ordered.done()
    }
}
