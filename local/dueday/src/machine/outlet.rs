//! Where events go on one machine: into the journal, to the webhook endpoints, to the order desk, and to the customers.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use delivery::{Bus, Entry, Refused, Told};
use delivery::{Deliverer, DeliveryQueue as _};
use orders::{OrderDesk, PlaceOutcome};

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
        let bodies: Vec<String> = entries
            .iter()
            .filter(|entry| matches!(entry.told, Told::Event(_)))
            .map(|entry| serde_json::to_string(&entry.told).expect("events are representable"))
            .collect();
        let sent = match self.deliverer.fan_out(&bodies).await {
            // What cannot be read stands in the log; here nothing waits for it to be mended.
            Ok(fanned_out) => match &self.queue {
                Some(queue) => queue.send(&fanned_out.pending).await.map_err(|error| error.to_string()),
                None => Ok(()),
            },
            Err(error) => Err(error.to_string()),
        };
        let sent = match sent {
            Ok(()) => self.order(&bodies).await,
            Err(reason) => Err(reason),
        };
        // Mails wait for themselves.
        let sent = match sent {
            Ok(()) => self.post.put(&bodies).map_err(|error| error.to_string()),
            Err(reason) => Err(reason),
        };
        match sent {
            Ok(()) => Vec::new(),
            Err(reason) => (0..entries.len()).map(|index| Refused { index, reason: reason.clone() }).collect(),
        }
    }
}

impl Outlet {
    /// Places the orders of what was paid.
    async fn order(&self, events: &[String]) -> Result<(), String> {
        for event in events {
            match orders::take(&self.desk, event).await {
                Ok(Some(PlaceOutcome::NoProducts { sku, is_news: true })) => {
                    output::tell(format!(
                        "{sku} has no products: what is paid of it makes no orders until `dueday orders import` says what it is"
                    ));
                    self.desk.table.note_without_products(&sku).await.map_err(|error| error.to_string())?;
                }
                Ok(_) => {}
                Err(error) if error.is_transient() => return Err(error.to_string()),
                // It would be refused for good, and hold up all that comes after it.
                Err(error) => {
                    let aside = self.not_ordered.path().display();
                    output::tell(format!("error: a month was paid and cannot be ordered: {error}. It is in {aside}"));
                    self.not_ordered.put(event).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Tells the desk again what it could not order; what it still cannot is set aside, and said, again.
    ///
    /// # Errors
    /// The file of it cannot be used, or the desk cannot be reached; it is told again next time.
    pub async fn order_again(&self) -> io::Result<()> {
        let events = self.not_ordered.again()?;
        self.order(&events).await.map_err(io::Error::other)?;
        self.not_ordered.done()
    }
}
