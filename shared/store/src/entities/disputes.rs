//! The requests for disputes of payments: read and write them.

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AccountId, Dispute};
use dynamo::{Entity as _, PrefixQuery, VersionedEntity as _};
use dynamo::{Paging, TableError};

impl Table {
    /// Returns the disputes of an account, the oldest due date first. Sends a Query with `begins_with(SK, "DSP#")`.
    pub async fn get_disputes_by_account(&self, account: &AccountId) -> Result<Vec<Dispute>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_account(account), keys::DISPUTES);
        Ok(self
            .list_items(&list, &Paging::all())
            .await?
            .read(|item| Dispute::from_item(&item))
            .require_all_readable()?
            .items)
    }

    /// Writes `dispute` if the stored dispute is equal to `expected`. If `expected` is `None`, writes `dispute` only if
    /// no such dispute is stored. Sends one PutItem or UpdateItem request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if the condition fails because another worker has written the dispute.
    pub async fn write_dispute(&self, dispute: &Dispute, expected: Option<&Dispute>) -> Result<(), TableError> {
        let is_written = match expected {
            None => self.put_if_absent(dispute.to_item()).await?,
            Some(expected) => {
                let next = |stored: &Dispute| (stored == expected).then(|| dispute.clone());
                let stored = self.change_item(expected.clone(), next).await?;
                stored.is_some_and(|stored| stored == dispute.clone().with_version(stored.version))
            }
        };
        if is_written { Ok(()) } else { Err(TableError::Contended { key: dispute.key() }) }
    }
}
