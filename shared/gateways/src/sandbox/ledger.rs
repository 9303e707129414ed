//! The sandbox's ledger: append-only JSON lines, each on disk before it is answered.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::super::{ChargeRequest, RefundRequest};
use super::methods;
use billing::{GatewayToken, Payment, PaymentStatus};

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "nearly every line is a payment")]
pub enum Entry {
    /// A payment was made.
    Payment(PaymentMade),
    /// A payment that was under way has ended.
    Resolved { id: GatewayToken, status: PaymentStatus, at: DateTime<Utc> },
    /// Whose ledger it is: made once with it, so that one ledger can be told from another.
    Account { id: String },
    /// A payment, or a part of it, was given back.
    Refunded { request: RefundRequest, id: GatewayToken, at: DateTime<Utc> },
    /// A page was opened, on which a payment method is to be given.
    PageOpened(PageOpened),
    /// It was given.
    PageCompleted { id: GatewayToken, payment_method: GatewayToken, at: DateTime<Utc> },
}

/// A page as it was opened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PageOpened {
    pub id: GatewayToken,
    /// Whose payment method it is.
    pub customer: GatewayToken,
    pub return_url: String,
    pub expires_at: DateTime<Utc>,
}

/// A payment as it was made: the request and its first answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PaymentMade {
    pub id: GatewayToken,
    #[serde(flatten)]
    pub request: ChargeRequest,
    /// The status it was first answered with.
    pub status: PaymentStatus,
    pub created_at: DateTime<Utc>,
}

impl PaymentMade {
    /// The payment, now in `status`.
    pub fn payment(&self, status: PaymentStatus) -> Payment {
        Payment {
            id: self.id.clone(),
            table: self.request.table,
            account: self.request.account.clone(),
            subscription: self.request.subscription,
            due_on: self.request.due_on,
            attempt_no: self.request.attempt_no,
            amount: self.request.amount,
            status,
            card: methods::card(&self.request.payment_method.payment_method).map(Box::new),
            created_at: self.created_at,
        }
    }
}

/// What was given on a page, and when.
type Given = (GatewayToken, DateTime<Utc>);

/// All lines, and the file they are in.
#[derive(Debug, Default)]
pub struct Ledger {
    file: Option<(PathBuf, File)>,
    entries: Vec<Entry>,
    by_key: HashMap<String, usize>,
    by_customer: HashMap<GatewayToken, Vec<usize>>,
    resolved: HashMap<GatewayToken, PaymentStatus>,
    /// With what was given on them.
    pages: HashMap<GatewayToken, (PageOpened, Option<Given>)>,
    refunds: Vec<(RefundRequest, GatewayToken)>,
    account: Option<String>,
}

impl Ledger {
    /// A ledger in memory.
    pub fn memory() -> Self {
        Self::default()
    }

    /// The ledger in the file at `path`, made if absent and held by this process alone; a new one is named by `new_id`. A last line that was cut off
    /// while being written was never answered, and is dropped.
    ///
    /// # Errors
    /// [`LedgerError`]: not readable, held by another process, or damaged.
    pub fn open(path: &Path, new_id: impl FnOnce() -> Ulid) -> Result<Self, LedgerError> {
        let io = |source| LedgerError::Io { path: path.to_owned(), source };
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        file.try_lock().map_err(|_| LedgerError::Held { path: path.to_owned() })?;
        let mut ledger = Ledger::default();
        let mut whole = 0;
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
            ledger.remember(entry);
            whole += u64::try_from(length).unwrap_or(u64::MAX);
        }
        file.set_len(whole).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        ledger.file = Some((path.to_owned(), file));
        if ledger.account.is_none() {
            ledger.append(Entry::Account { id: format!("sandbox_{}", new_id()) })?;
        }
        Ok(ledger)
    }

    /// Whose ledger it is, as the gateway names it.
    pub fn account(&self) -> &str {
        self.account.as_deref().unwrap_or("sandbox_in_memory")
    }

    /// All lines about payments, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn append(&mut self, entry: Entry) -> Result<(), LedgerError> {
        if let Some((path, file)) = &mut self.file {
            let mut line = serde_json::to_vec(&entry).expect("an entry is representable");
            line.push(b'\n');
            file.write_all(&line)
                .and_then(|()| file.sync_data())
                .map_err(|source| LedgerError::Io { path: path.clone(), source })?;
        }
        self.remember(entry);
        Ok(())
    }

    pub(super) fn by_key(&self, key: &str) -> Option<&PaymentMade> {
        self.by_key.get(key).and_then(|&index| self.payment(index))
    }

    pub(super) fn by_customer(&self, customer: &GatewayToken) -> impl Iterator<Item = &PaymentMade> {
        self.by_customer.get(customer).into_iter().flatten().filter_map(|&index| self.payment(index))
    }

    /// A page, with what was given on it.
    pub(super) fn page(&self, id: &GatewayToken) -> Option<&(PageOpened, Option<Given>)> {
        self.pages.get(id)
    }

    /// The payment `id`.
    pub(super) fn by_id(&self, id: &GatewayToken) -> Option<&PaymentMade> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Payment(made) if made.id == *id => Some(made),
            _ => None,
        })
    }

    /// All refunds, with what they are called.
    pub(super) fn refunds(&self) -> &[(RefundRequest, GatewayToken)] {
        &self.refunds
    }

    /// Where `made` stands now.
    pub fn status(&self, made: &PaymentMade) -> PaymentStatus {
        self.resolved.get(&made.id).cloned().unwrap_or_else(|| made.status.clone())
    }

    fn payment(&self, index: usize) -> Option<&PaymentMade> {
        match self.entries.get(index) {
            Some(Entry::Payment(made)) => Some(made),
            _ => None,
        }
    }

    fn remember(&mut self, entry: Entry) {
        let index = self.entries.len();
        match &entry {
            Entry::Payment(made) => {
                self.by_key.insert(made.request.idempotency_key.clone(), index);
                self.by_customer.entry(made.request.payment_method.customer.clone()).or_default().push(index);
            }
            Entry::Resolved { id, status, .. } => {
                self.resolved.insert(id.clone(), status.clone());
            }
            Entry::Account { id } => {
                self.account = Some(id.clone());
                return;
            }
            Entry::Refunded { request, id, .. } => {
                self.refunds.push((request.clone(), id.clone()));
                return;
            }
            Entry::PageOpened(opened) => {
                self.pages.insert(opened.id.clone(), (opened.clone(), None));
                return;
            }
            Entry::PageCompleted { id, payment_method, at } => {
                if let Some((_, given)) = self.pages.get_mut(id) {
                    *given = Some((payment_method.clone(), *at));
                }
                return;
            }
        }
        self.entries.push(entry);
    }
}

impl FromIterator<Entry> for Ledger {
    fn from_iter<T: IntoIterator<Item = Entry>>(entries: T) -> Self {
        let mut ledger = Ledger::default();
        entries.into_iter().for_each(|entry| ledger.remember(entry));
        ledger
    }
}

/// Why the ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    #[error("cannot use the sandbox's ledger {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the sandbox's ledger {} is in use by another process", path.display())]
    Held { path: PathBuf },
    #[error("the sandbox's ledger {} is damaged at line {line}: {reason}", path.display())]
    Damaged { path: PathBuf, line: u64, reason: String },
}
