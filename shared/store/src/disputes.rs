//! Disputes, each beside the receipt of its payment.

use super::{Paging, Table, TableError, keys};
use billing::{AccountId, Dispute};
use dynamo::{Entity as _, List, Versioned as _};

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
