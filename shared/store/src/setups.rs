//! Setups of payment methods.

use ulid::Ulid;

use super::{IdempotentRequest, Replayed, Table, TableError, keys};
use billing::Setup;
use dynamo::{ABSENT, Entity as _, TransactAnswer};

impl Table {
    /// Creates `setup`, whose id is new, with the idempotency record of `request`; answers what was answered to that before, and
    /// creates nothing then. TransactWriteItems.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn create_setup(
        &self,
        setup: &Setup,
        request: Option<&IdempotentRequest>,
    ) -> Result<Option<Replayed>, TableError> {
        let mut writes = vec![self.put_of_on(setup.to_item(), ABSENT, None)];
        writes.extend(request.map(|request| self.keep_answer(request)));
        match (self.transact_when_free(writes).await?, request) {
            (TransactAnswer::Done, _) => Ok(None),
            (TransactAnswer::Refused(refused), Some(request)) if refused.get(1).is_some_and(Option::is_some) => {
                let stored = refused.into_iter().nth(1).flatten().unwrap_or_default();
                request.replayed(&stored).map(Some)
            }
            _ => Err(TableError::Exists { key: setup.key() }),
        }
    }

    /// The setup `id`. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn get_setup(&self, id: Ulid) -> Result<Option<Setup>, TableError> {
        self.get(keys::setup(id)).await?.map(|item| Setup::from_item(&item)).transpose()
    }

    /// Writes what `change` makes of `stored`, or of what is stored by then. Answers what is stored, `None` if that is gone.
    /// UpdateItem.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn change_setup(
        &self,
        stored: Setup,
        change: impl Fn(&Setup) -> Option<Setup>,
    ) -> Result<Option<Setup>, TableError> {
        self.change(stored, change).await
    }
}
