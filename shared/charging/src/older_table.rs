//! Notices a table that is older than the gateway: a copy of the data folder of one machine that was restored from a
//! backup. Such a table has no mark that is newer than itself, but the gateway has payments of later attempts.
//!
//! On AWS, DynamoDB gives a restored table another id, so only the look-ups of attempts check this.

use std::sync::Arc;

use billing::AccountId;
use chrono::{DateTime, TimeDelta, Utc};
use gateways::{ListProgress, Refunds, TimeRange};
use store::{OLDER_TABLE, Settings, StoredAccount, Table, TableError};
use tokio::sync::OnceCell;

/// How long before the latest payment run and after now payments are listed, because the clocks of the gateway and of
/// this machine may differ.
const CLOCK_MARGIN: TimeDelta = TimeDelta::hours(1);

/// The check of one process that the table is not older than the gateway's latest payments.
#[derive(Debug)]
pub struct OlderTableCheck {
    gateway: Arc<dyn Refunds>,
    /// Set when a run of this process has found no payment of a later attempt.
    is_current: OnceCell<()>,
}

impl OlderTableCheck {
    /// Creates the check that lists the payments at `gateway`.
    pub fn new(gateway: Arc<dyn Refunds>) -> Self {
        Self { gateway, is_current: OnceCell::new() }
    }

    /// Returns the reason why nothing may be charged in `table` because the gateway has a payment of a later attempt
    /// than the table, and switches charging off; `None` if there is no such payment. Lists the gateway's payments
    /// since the latest payment run, once per process. Checks nothing if the gateway does not list the payments of a
    /// time range.
    ///
    /// # Errors
    /// [`TableError`] if a request to the table failed.
    pub async fn reason_to_refuse(
        &self,
        table: &Table,
        settings: &Settings,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, TableError> {
        if self.is_current.initialized() {
            return Ok(None);
        }
        let refused = self.find_payment_of_later_attempt(table, settings, now).await?;
        if refused.is_none() {
            let _ = self.is_current.set(());
        }
        Ok(refused)
    }

    /// Looks for a payment of a later attempt at the gateway, as [`OlderTableCheck::reason_to_refuse`] describes.
    async fn find_payment_of_later_attempt(
        &self,
        table: &Table,
        settings: &Settings,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, TableError> {
        // A run with a clock that was ahead may have stored a later time.
        let latest = settings.payments_known_until().min(now);
        let range = TimeRange { from: latest - CLOCK_MARGIN, to: now + CLOCK_MARGIN };
        let (mut after, mut progress) = (None, ListProgress::default());
        loop {
            let page = match self.gateway.payments_in_range(&range, after.as_deref()).await {
                Ok(Some(page)) => page,
                Ok(None) => {
                    tracing::warn!(
                        "the gateway does not list the payments of a time range: a restored data folder would be noticed \
                         only when an attempt is looked up"
                    );
                    return Ok(None);
                }
                Err(error) => {
                    return Ok(Some(format!(
                        "the gateway's latest payments cannot be compared with the table: {error}"
                    )));
                }
            };
            if let Err(error) = progress.record(&page) {
                return Ok(Some(format!("the gateway's latest payments cannot be compared with the table: {error}")));
            }
            for payment in page.items.iter().filter(|payment| payment.table == Some(settings.table_id)) {
                let is_proof = match table.get_subscription(&payment.account, payment.subscription).await {
                    Ok(Some(stored)) => {
                        let listed = std::slice::from_ref(payment);
                        stored.payments_of_later_attempts(settings.table_id, listed, range.to).next().is_some()
                    }
                    // An erasure deletes the subscription, but its payments stay at the gateway. A person has accepted
                    // the earlier payments of subscriptions that the backup does not contain.
                    Ok(None) => payment.created_at > latest && !is_account_erased(table, &payment.account).await?,
                    // An item that cannot be read proves nothing. Its row fails.
                    Err(TableError::Unreadable { .. }) => false,
                    Err(error) => return Err(error),
                };
                if is_proof {
                    table.record_backup_time(latest).await?;
                    table.record_copy(now).await?;
                    tracing::error!(payment = %payment.id, "{OLDER_TABLE}");
                    return Ok(Some(format!("{OLDER_TABLE}; the table does not contain the payment {}", payment.id)));
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(None),
            }
        }
    }
}

/// Returns whether `account` was erased in `table`, or its erasure was requested.
async fn is_account_erased(table: &Table, account: &AccountId) -> Result<bool, TableError> {
    Ok(match table.get_stored_account(account).await? {
        Some(StoredAccount::Erased(_)) => true,
        Some(StoredAccount::Account(account)) => account.erasure_requested_at.is_some(),
        None => false,
    })
}
