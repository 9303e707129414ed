//! The requests for comparisons of days with the gateway: their progress and their results.

use chrono::NaiveDate;

use super::{Page, Paging, Table, TableError, keys};
use billing::DayReconciliation;
use dynamo::{Entity as _, PrefixQuery, with_next_version};

impl Table {
    /// Returns the latest comparison of the day `on`; `None` if the day was not compared. Sends one strongly consistent
    /// GetItem request.
    pub async fn get_reconciliation(&self, on: NaiveDate) -> Result<Option<DayReconciliation>, TableError> {
        let stored = self.get(keys::key_of_reconciliation(on)).await?;
        stored.map(|item| DayReconciliation::from_item(&item)).transpose()
    }

    /// Returns the latest comparison of each day, the newest day first. Sends a Query with `PK = RECONCILED`.
    pub async fn get_reconciliations(&self, paging: &Paging) -> Result<Page<DayReconciliation>, TableError> {
        let list = PrefixQuery::new(keys::RECONCILIATIONS, keys::RECONCILED_DAYS).descending();
        Ok(self.list(&list, paging).await?.read(|item| DayReconciliation::from_item(&item)))
    }

    /// Stores the comparison `new`, which has compared nothing yet, if no comparison of its day is stored. Returns whether
    /// it was stored. Sends one PutItem request.
    pub async fn create_reconciliation(&self, new: &DayReconciliation) -> Result<bool, TableError> {
        self.put_if_absent(new.to_item()).await
    }

    /// Stores `next` in place of `stored`: the progress of a comparison, its result, or a new comparison of the same day.
    /// Returns the stored comparison. Sends one UpdateItem request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process compares the same day.
    pub async fn update_reconciliation(
        &self,
        stored: &DayReconciliation,
        next: DayReconciliation,
    ) -> Result<DayReconciliation, TableError> {
        let written = with_next_version(stored, next.clone());
        let change = |current: &DayReconciliation| (current == stored).then(|| next.clone());
        match self.change(stored.clone(), change).await? {
            Some(current) if current == written => Ok(written),
            _ => Err(TableError::Contended { key: stored.key() }),
        }
    }
}
