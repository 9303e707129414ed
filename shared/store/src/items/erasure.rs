//! The stored items of the erasure of an account: its progress, and the mark that replaces the account.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::keys;
use crate::table::payments_table::PaymentsSchema;
use billing::{Account, ErasedAccount, Erasure, ErasureCounts, ErasureStep};
use dynamo::{Entity, Instant};
use dynamo::{Item, Key, TableError};

/// The attribute that only the mark of an erased account has.
const ERASED_DATE: &str = "ErasedDate";

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ErasureItem {
    erasure_date: Instant,
    step: ErasureStep,
    position: Option<String>,
    counts: ErasureCounts,
    waits_for: Option<String>,
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ErasedAccountItem {
    erasure_date: Instant,
    erased_date: Instant,
    counts: ErasureCounts,
    version: u64,
}

impl Entity<PaymentsSchema> for Erasure {
    type Attributes = ErasureItem;

    fn key(&self) -> Key {
        keys::key_of_erasure(&self.account)
    }

    fn attributes(&self) -> ErasureItem {
        ErasureItem {
            erasure_date: Instant(self.requested_at),
            step: self.step,
            position: self.position.clone(),
            counts: self.counts,
            waits_for: self.waits_for.clone(),
            version: self.version,
        }
    }

    fn read(key: Key, item: ErasureItem) -> Result<Self, TableError> {
        let account = key.sk.strip_prefix(keys::ERASURE).and_then(|id| id.parse().ok());
        Ok(Self {
            account: account.ok_or_else(|| TableError::unreadable(key, "its key is not the key of an erasure"))?,
            requested_at: item.erasure_date.0,
            step: item.step,
            position: item.position,
            counts: item.counts,
            waits_for: item.waits_for,
            version: item.version,
        })
    }
}

impl Entity<PaymentsSchema> for ErasedAccount {
    type Attributes = ErasedAccountItem;

    fn key(&self) -> Key {
        keys::key_of_account(&self.id)
    }

    fn attributes(&self) -> ErasedAccountItem {
        ErasedAccountItem {
            erasure_date: Instant(self.requested_at),
            erased_date: Instant(self.erased_at),
            counts: self.counts,
            version: self.version,
        }
    }

    fn read(key: Key, item: ErasedAccountItem) -> Result<Self, TableError> {
        let id = key.pk.strip_prefix(keys::ACCOUNTS).and_then(|id| id.parse().ok());
        Ok(Self {
            id: id.ok_or_else(|| TableError::unreadable(key, "its key is not the key of an account"))?,
            requested_at: item.erasure_date.0,
            erased_at: item.erased_date.0,
            counts: item.counts,
            version: item.version,
        })
    }
}

/// Returns whether `item` is the mark of an erased account.
pub fn is_erased_account(item: &Item) -> bool {
    item.contains_key(ERASED_DATE)
}

/// Reads the account in `item`; `None` if the account was erased.
pub fn read_account(item: &Item) -> Result<Option<Account>, TableError> {
    if is_erased_account(item) { Ok(None) } else { Account::from_item(item).map(Some) }
}
