//! Disputes, each beside the receipt of its payment.

use super::items::DisputeItem;
use super::{Item, Key, Paging, Payments, Table, TableError, keys};
use billing::{AccountId, Dispute};
use dynamo::List;
use dynamo::Versioned;
use dynamo::{from_item, to_item};

impl Versioned<Payments> for Dispute {
    fn key(&self) -> Key {
        keys::dispute(&self.account, &self.receipt, &self.id)
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        to_item(&DisputeItem::from(self))
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        from_item::<DisputeItem>(item)?.try_into()
    }
}

impl Table {
    /// The disputes of an account, the oldest due date first. Query `begins_with(SK, "DSP#")`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_disputes_by_account(&self, account: &AccountId) -> Result<Vec<Dispute>, TableError> {
        let list = List::of(keys::partition(account), keys::DISPUTES);
        Ok(self.list(&list, &Paging::all()).await?.read(|item| Dispute::from_item(&item)).whole()?.items)
    }

    /// Writes `dispute`, if `seen` is still what is stored. PutItem if absent, else UpdateItem.
    ///
    /// # Errors
    /// [`TableError::Contended`] if somebody else was quicker.
    pub async fn write_dispute(&self, dispute: &Dispute, seen: Option<&Dispute>) -> Result<(), TableError> {
        let is_written = match seen {
            None => self.put_if_absent(dispute.to_item()).await?,
            Some(seen) => {
                let next = |stored: &Dispute| (stored == seen).then(|| dispute.clone());
                let kept = self.change(seen.clone(), next).await?;
                kept.is_some_and(|kept| kept == dispute.clone().at_version(kept.version))
            }
        };
        if is_written { Ok(()) } else { Err(TableError::Contended { key: dispute.key() }) }
    }
}
