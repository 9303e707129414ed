//! The requests for payment method setups: create, read and change them. In a payment method setup, a customer enters a
//! payment method on a checkout page of the gateway.

use ulid::Ulid;

use crate::entities::actions::ChangeRecords;
use crate::keys;
use crate::table::payments_table::Table;
use billing::PaymentMethodSetup;
use dynamo::{ABSENT, Entity as _, TransactionOutcome};
use dynamo::{IdempotencyKeyReuse, TableError};

/// The writes of the transaction that creates a payment method setup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NewSetupWrite {
    Setup,
    AccountCheck,
    IdempotencyRecord,
    ActionEntry,
}

impl Table {
    /// Creates `setup`, whose id is new, with `records`. If the idempotency key was used before, creates nothing and
    /// returns the earlier use of the key. Sends one TransactWriteItems request, which also checks that the account
    /// exists and that its erasure was not requested.
    ///
    /// # Errors
    /// [`TableError::Contended`] if the erasure of the account was requested after the caller has read the account.
    pub async fn create_setup<'a>(
        &self,
        setup: &PaymentMethodSetup,
        records: impl Into<ChangeRecords<'a>>,
    ) -> Result<Option<IdempotencyKeyReuse>, TableError> {
        let ChangeRecords { request, action } = records.into();
        let mut writes = vec![
            (NewSetupWrite::Setup, self.build_put_if(setup.to_item(), ABSENT, None)),
            (NewSetupWrite::AccountCheck, self.build_account_check(&setup.account)),
        ];
        writes.extend(request.map(|request| (NewSetupWrite::IdempotencyRecord, self.build_idempotency_put(request))));
        let entry = action.map(|action| self.build_action_put(&action.on_setup(setup)));
        writes.extend(entry.map(|entry| (NewSetupWrite::ActionEntry, entry)));
        let TransactionOutcome::ConditionFailed(failed) = self.transact_named(writes).await? else {
            return Ok(None);
        };
        if let (Some(request), Some(stored)) = (request, failed.item(NewSetupWrite::IdempotencyRecord)) {
            return request.compare_with_record(stored).map(Some);
        }
        Err(match failed.item(NewSetupWrite::AccountCheck) {
            Some(_) => TableError::Contended { key: keys::key_of_account(&setup.account) },
            None => TableError::Exists { key: setup.key() },
        })
    }

    /// Returns the setup `id`; `None` if it does not exist. Sends one strongly consistent GetItem request.
    pub async fn get_setup(&self, id: Ulid) -> Result<Option<PaymentMethodSetup>, TableError> {
        self.get(keys::key_of_payment_method_setup(id))
            .await?
            .map(|item| PaymentMethodSetup::from_item(&item))
            .transpose()
    }

    /// Changes the setup `stored` with `change`, and computes the change again on a write conflict. If `change` returns
    /// `None`, nothing is written. Returns the stored setup; `None` if it does not exist any more. Sends one UpdateItem
    /// request per try.
    pub async fn change_setup(
        &self,
        stored: PaymentMethodSetup,
        change: impl Fn(&PaymentMethodSetup) -> Option<PaymentMethodSetup>,
    ) -> Result<Option<PaymentMethodSetup>, TableError> {
        self.change_item(stored, change).await
    }
}
