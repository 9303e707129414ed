//! The ledger of a sandbox on one machine: JSON lines, in a file or in memory. Lines are only appended. Each line is
//! synced to disk before the sandbox responds to the request that caused the line.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::records::{EnteredPaymentMethod, LedgerPayment, OpenedCheckoutPage};
use billing::{GatewayToken, PaymentStatus};
use gateways::RefundRequest;

/// One line of the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every line is a payment")]
pub enum LedgerEntry {
    /// A payment was made.
    Payment(LedgerPayment),
    /// A payment that was processing has got its final `status`.
    Resolved { id: GatewayToken, status: PaymentStatus, at: DateTime<Utc> },
    /// The id of the gateway account. It is created together with the ledger, and each ledger has another id.
    Account { id: String },
    /// A payment, or a part of it, was refunded.
    Refunded { request: RefundRequest, id: GatewayToken, at: DateTime<Utc> },
    /// A checkout page was opened.
    PageOpened(OpenedCheckoutPage),
    /// A customer entered a payment method on a checkout page.
    PageCompleted { id: GatewayToken, payment_method: GatewayToken, at: DateTime<Utc> },
}

/// All payments, checkout pages and refunds of a sandbox, and the file in which they are stored.
#[derive(Debug, Default)]
pub struct Ledger {
    /// The file of the ledger and its path; `None` if the ledger exists only in memory.
    file: Option<(PathBuf, File)>,
    /// The entries about payments, in the order in which they were written. The data of all other entries is in the
    /// other fields.
    entries: Vec<LedgerEntry>,
    /// For each idempotency key, the index in `entries` of its payment.
    by_key: HashMap<String, usize>,
    /// For each customer, the indexes in `entries` of the customer's payments.
    by_customer: HashMap<GatewayToken, Vec<usize>>,
    /// The final statuses of the payments that were processing.
    resolved: HashMap<GatewayToken, PaymentStatus>,
    /// The checkout pages by id, each with the entered payment method; `None` if the customer has not entered one yet.
    pages: HashMap<GatewayToken, (OpenedCheckoutPage, Option<EnteredPaymentMethod>)>,
    /// The refunds, each with its id at the gateway.
    refunds: Vec<(RefundRequest, GatewayToken)>,
    /// The id of the gateway account; `None` for a ledger in memory.
    account: Option<String>,
}

impl Ledger {
    /// Creates an empty ledger that is kept in memory only.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Returns a copy of this ledger that is kept in memory only.
    pub(crate) fn copy_in_memory(&self) -> Self {
        Self {
            file: None,
            entries: self.entries.clone(),
            by_key: self.by_key.clone(),
            by_customer: self.by_customer.clone(),
            resolved: self.resolved.clone(),
            pages: self.pages.clone(),
            refunds: self.refunds.clone(),
            account: self.account.clone(),
        }
    }

    /// Opens the ledger in the file at `path` and locks it for this process. Creates the file if it does not exist;
    /// `new_id` creates the account id of a new ledger. Drops the last line if it is incomplete: the earlier process
    /// ended while it wrote this line, so the request that caused the line got no response.
    ///
    /// # Errors
    /// [`LedgerError`] if the file cannot be read or written, is locked by another process, or contains a line that is
    /// not an entry.
    pub fn open(path: &Path, new_id: impl FnOnce() -> Ulid) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        file.try_lock().map_err(|_| LedgerError::InUse { path: path.to_owned() })?;
        let mut ledger = Ledger::default();
        let mut complete_bytes = 0;
        let mut reader = BufReader::new(&file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(io)?;
            if line.last() != Some(&b'\n') {
                break;
            }
            let entry = serde_json::from_slice(&line).map_err(|error| LedgerError::Damaged {
                path: path.to_owned(),
                line: number,
                reason: error.to_string(),
            })?;
            ledger.apply_entry(entry);
            complete_bytes += u64::try_from(length).unwrap_or(u64::MAX);
        }
        file.set_len(complete_bytes).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        ledger.file = Some((path.to_owned(), file));
        if ledger.account.is_none() {
            ledger.append(LedgerEntry::Account { id: format!("sandbox_{}", new_id()) })?;
        }
        Ok(ledger)
    }

    /// Returns the id of the gateway account.
    pub fn account(&self) -> &str {
        self.account.as_deref().unwrap_or("sandbox_in_memory")
    }

    /// Returns all entries about payments, in the order in which they were written.
    pub fn entries(&self) -> &[LedgerEntry] {
        &self.entries
    }

    /// Writes `entry` to the file, if there is a file, and then to the data in memory.
    pub(crate) fn append(&mut self, entry: LedgerEntry) -> Result<(), LedgerError> {
        if let Some((path, file)) = &mut self.file {
            let mut line = serde_json::to_vec(&entry).expect("an entry is representable");
            line.push(b'\n');
            file.write_all(&line)
                .and_then(|()| file.sync_data())
                .map_err(|source| LedgerError::Io { path: path.clone(), source })?;
        }
        self.apply_entry(entry);
        Ok(())
    }

    /// Returns the latest payment that was made under the idempotency key `key`.
    pub(crate) fn payment_by_key(&self, key: &str) -> Option<&LedgerPayment> {
        self.by_key.get(key).and_then(|&index| self.payment(index))
    }

    /// Returns all payments of `customer`, in the order in which they were made.
    pub(crate) fn payments_by_customer(&self, customer: &GatewayToken) -> impl Iterator<Item = &LedgerPayment> {
        self.by_customer.get(customer).into_iter().flatten().filter_map(|&index| self.payment(index))
    }

    /// Returns the checkout page `id` with the entered payment method, which is `None` if the customer has not entered
    /// one yet.
    pub(crate) fn find_page(&self, id: &GatewayToken) -> Option<&(OpenedCheckoutPage, Option<EnteredPaymentMethod>)> {
        self.pages.get(id)
    }

    /// Returns the payment `id`.
    pub(crate) fn payment_by_id(&self, id: &GatewayToken) -> Option<&LedgerPayment> {
        self.entries.iter().find_map(|entry| match entry {
            LedgerEntry::Payment(made) if made.id == *id => Some(made),
            _ => None,
        })
    }

    /// Returns all refunds, each with its id at the gateway.
    pub(crate) fn refunds(&self) -> &[(RefundRequest, GatewayToken)] {
        &self.refunds
    }

    /// Returns the latest stored status of the payment `made`.
    pub fn status_of_payment(&self, made: &LedgerPayment) -> PaymentStatus {
        self.resolved.get(&made.id).cloned().unwrap_or_else(|| made.status.clone())
    }

    /// Returns the payment in the entry with the index `index`; `None` if the entry is not a new payment.
    fn payment(&self, index: usize) -> Option<&LedgerPayment> {
        match self.entries.get(index) {
            Some(LedgerEntry::Payment(made)) => Some(made),
            _ => None,
        }
    }

    /// Adds the data of `entry` to the data in memory.
    fn apply_entry(&mut self, entry: LedgerEntry) {
        let index = self.entries.len();
        match &entry {
            LedgerEntry::Payment(made) => {
                self.by_key.insert(made.request.idempotency_key.clone(), index);
                self.by_customer.entry(made.request.payment_method.customer.clone()).or_default().push(index);
            }
            LedgerEntry::Resolved { id, status, .. } => {
                self.resolved.insert(id.clone(), status.clone());
            }
            LedgerEntry::Account { id } => {
                self.account = Some(id.clone());
                return;
            }
            LedgerEntry::Refunded { request, id, .. } => {
                self.refunds.push((request.clone(), id.clone()));
                return;
            }
            LedgerEntry::PageOpened(opened) => {
                self.pages.insert(opened.id.clone(), (opened.clone(), None));
                return;
            }
            LedgerEntry::PageCompleted { id, payment_method, at } => {
                if let Some((_, entered)) = self.pages.get_mut(id) {
                    *entered = Some((payment_method.clone(), *at));
                }
                return;
            }
        }
        self.entries.push(entry);
    }
}

impl FromIterator<LedgerEntry> for Ledger {
    fn from_iter<T: IntoIterator<Item = LedgerEntry>>(entries: T) -> Self {
        let mut ledger = Ledger::default();
        entries.into_iter().for_each(|entry| ledger.apply_entry(entry));
        ledger
    }
}

/// The reason why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("cannot use the sandbox's ledger {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the sandbox's ledger {} is in use by another process", path.display())]
    InUse { path: PathBuf },
    #[error("the sandbox's ledger {} is damaged at line {line}: {reason}", path.display())]
    Damaged { path: PathBuf, line: u64, reason: String },
}
