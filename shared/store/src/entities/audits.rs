//! The requests for audits, and for the violations that they found.

use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use ulid::Ulid;

use crate::keys;
use crate::table::payments_table::Table;
use billing::{AuditRecord, AuditViolation};
use dynamo::{Cursor, Page, Paging, TableError};
use dynamo::{Entity as _, PrefixQuery, is_expired, with_next_version};

/// The number of violations that are written at the same time.
const MAX_CONCURRENT_VIOLATION_WRITES: usize = 25;

impl Table {
    /// Creates `audit`, whose id is new. Sends one PutItem request.
    pub async fn create_audit(&self, audit: &AuditRecord) -> Result<(), TableError> {
        self.put(audit.to_item()).await
    }

    /// Stores the progress of an audit: first `violations`, and then `next` in place of `stored`. After an interruption
    /// between the two writes, the continued audit checks the same accounts again, and replaces these violations.
    /// Returns the stored audit. Sends one PutItem request for each violation, 25 at the same time, and then one
    /// UpdateItem request.
    ///
    /// # Errors
    /// [`TableError::Contended`] if another process has continued the audit.
    pub async fn update_audit(
        &self,
        stored: &AuditRecord,
        next: AuditRecord,
        violations: Vec<AuditViolation>,
    ) -> Result<AuditRecord, TableError> {
        for batch in violations.chunks(MAX_CONCURRENT_VIOLATION_WRITES) {
            try_join_all(batch.iter().map(|violation| self.put(violation.to_item()))).await?;
        }
        let written = with_next_version(stored, next.clone());
        let change = |current: &AuditRecord| (current == stored).then(|| next.clone());
        match self.change_item(stored.clone(), change).await? {
            Some(current) if current == written => Ok(written),
            _ => Err(TableError::Contended { key: stored.key() }),
        }
    }

    /// Returns the audit `id`; `None` if it does not exist or has expired at `now`. Sends one GetItem request.
    pub async fn get_audit(&self, id: Ulid, now: DateTime<Utc>) -> Result<Option<AuditRecord>, TableError> {
        let item = self.get(keys::key_of_audit(id)).await?.filter(|item| !is_expired(item, now));
        item.map(|item| AuditRecord::from_item(&item)).transpose()
    }

    /// Returns the audits that have not expired at `now`, the newest first. Sends a Query with `PK = AUDITS`.
    pub async fn get_audits(&self, paging: &Paging, now: DateTime<Utc>) -> Result<Page<AuditRecord>, TableError> {
        let list = PrefixQuery::new(keys::AUDITS, keys::AUDIT).descending().unexpired_at(now);
        Ok(self.list_items(&list, paging).await?.read(|item| AuditRecord::from_item(&item)))
    }

    /// Returns the stored violations of `audit`, in the order in which they were found. Violations that an interrupted
    /// audit wrote, but did not count, are left out. Sends a Query with `PK = AUDIT#<id>`.
    pub async fn get_audit_violations(
        &self,
        audit: &AuditRecord,
        paging: &Paging,
    ) -> Result<Page<AuditViolation>, TableError> {
        let list = PrefixQuery::new(keys::partition_key_of_violations(audit.id), keys::VIOLATIONS);
        let mut page = self.list_items(&list, paging).await?.read(|item| AuditViolation::from_item(&item));
        let count = audit.violation_count();
        if page.items.iter().any(|violation| violation.number >= count) {
            page.next = None;
            page.items.retain(|violation| violation.number < count);
        }
        Ok(page)
    }

    /// Reads from `text` the cursor of a list of audits; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_audits(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::AUDIT, text)
    }

    /// Reads from `text` the cursor of a list of violations; `None` if `text` cannot be such a cursor.
    pub fn cursor_of_violations(text: String) -> Option<Cursor> {
        Cursor::with_prefix(keys::VIOLATIONS, text)
    }
}
