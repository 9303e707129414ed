//! The arguments that name one receipt.

use billing::{AccountId, Receipt, ReceiptReference};
use chrono::{DateTime, Utc};
use clap::Args;
use store::Table;

use crate::Failure;

/// The arguments that name one receipt: its number alone, or its account and its number or id.
#[derive(Clone, Debug, Args)]
pub struct ReceiptSelector {
    /// The account's id; a receipt number does not need it
    pub account: Option<AccountId>,
    /// The receipt's number or id
    pub receipt: ReceiptReference,
}

impl ReceiptSelector {
    /// Returns the receipt.
    ///
    /// # Errors
    /// [`Failure::Refused`] if there is no such receipt, or if the receipt's id is given without its account.
    pub async fn find_receipt(&self, table: &Table, now: DateTime<Utc>) -> Result<Receipt, Failure> {
        let (found, hint) = match (&self.account, &self.receipt) {
            (Some(account), reference) => (table.find_receipt(account, reference, now).await?, ""),
            (None, ReceiptReference::Number(number)) => {
                let hint =
                    ". If its subscription was created by an earlier version of Dueday, give the account as well";
                (table.find_receipt_by_number(*number, now).await?, hint)
            }
            (None, ReceiptReference::Id(_)) => {
                let reason = "a receipt's id needs its account: give ACCOUNT and RECEIPT, or the receipt's number";
                return Err(Failure::Refused(reason.to_owned()));
            }
        };
        found.ok_or_else(|| Failure::Refused(format!("there is no receipt {}, or it has expired{hint}", self.receipt)))
    }
}
