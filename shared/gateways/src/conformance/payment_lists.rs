//! Checks of the list of a customer's payments, which the batch reads to look up an attempt with an unknown outcome.

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};

use super::CheckStep;
use super::running_check::{
    CheckResult, ConformanceCheck, DECLINED_CHARGE_NO, MANY_CHARGE_NOS, OTHER_CUSTOMER_CHARGE_NO,
    PARTLY_REFUNDED_CHARGE_NO, PROCESSING_CHARGE_NO, REFUNDED_CHARGE_NO, broken_by_gateway_error, broken_promise,
    ensure_promise,
};
use crate::GatewayError;
use billing::{GatewayToken, Payment, PaymentStatus};

/// The start times of the lists that are read, in minutes before the start of the check. A gateway that misreads the
/// time zone is off by at least fifteen minutes. The last start time is 400 days ago: after a long outage, the batch
/// looks up attempts whose due date is long ago.
const MINUTES_BEFORE_START: [i64; 3] = [15, 24 * 60, 400 * 24 * 60];

/// Describes how the payment `made` differs from its entry in `listed`; `None` if there is no difference.
pub(super) fn describe_difference(made: &Payment, listed: &[Payment]) -> Option<String> {
    let found: Vec<&Payment> = listed.iter().filter(|payment| payment.id == made.id).collect();
    let no = made.attempt_no;
    match found.as_slice() {
        [] => Some(format!("{} of attempt {no} is not in the list", made.id)),
        [entry] => {
            let compared = |payment: &Payment| {
                let Payment { table, account, subscription, due_on, attempt_no, amount, status, created_at, .. } =
                    payment.clone();
                (table, account, subscription, due_on, attempt_no, amount, status, created_at)
            };
            (compared(entry) != compared(made))
                .then(|| format!("{} of attempt {no} was made as {made:?}, and is listed as {entry:?}", made.id))
        }
        entries => Some(format!("{} of attempt {no} is {} times in the list", made.id, entries.len())),
    }
}

impl ConformanceCheck<'_> {
    /// Checks that `listed` contains every successful payment of the first customer exactly once and with unchanged
    /// data, and that it contains no unexpected payment.
    fn check_list_matches_payments(&self, listed: &[Payment]) -> CheckResult {
        self.check_list_matches_payments_since(DateTime::<Utc>::MIN_UTC, listed)
    }

    /// Checks that `listed` contains every successful payment of the first customer that was created at or after
    /// `since` exactly once and with unchanged data, and that it contains no unexpected payment. It may contain earlier
    /// payments.
    fn check_list_matches_payments_since(&self, since: DateTime<Utc>, listed: &[Payment]) -> CheckResult {
        let mut made = self.payments();
        made.remove(&OTHER_CUSTOMER_CHARGE_NO);
        made.retain(|_, payment| payment.created_at >= since);
        let differences: Vec<String> = made.values().filter_map(|made| describe_difference(made, listed)).collect();
        ensure_promise(differences.is_empty(), || {
            let first = differences.first().cloned().unwrap_or_default();
            format!("of {} payments {} are missing or differ: {first}", made.len(), differences.len())
        })?;
        self.check_no_unexpected_payment_in(listed)
    }

    /// Checks that `listed` contains no unexpected payment. A payment is unexpected if it has succeeded or can still
    /// succeed, and no response to a charge contained it.
    fn check_no_unexpected_payment_in(&self, listed: &[Payment]) -> CheckResult {
        let made = self.payments();
        let ids: BTreeSet<&GatewayToken> = made.values().map(|payment| &payment.id).collect();
        let is_expected = |payment: &&Payment| {
            ids.contains(&payment.id)
                || [DECLINED_CHARGE_NO, PROCESSING_CHARGE_NO].contains(&payment.attempt_no)
                || matches!(payment.status, PaymentStatus::Declined(_))
        };
        let other = listed.iter().find(|payment| !is_expected(payment));
        ensure_promise(other.is_none(), || format!("the list has a payment that no response returned: {other:?}"))
    }

    /// Checks that the lists of both customers contain no unexpected payment. A payment is unexpected if it has
    /// succeeded or can still succeed, and no response to a charge contained it.
    pub async fn check_no_unexpected_payments(&self) -> CheckResult {
        self.check_no_unexpected_payment_in(&self.list_payments_of_first_customer().await?)?;
        self.check_no_unexpected_payment_in(&self.list_payments_of_other_customer().await?)
    }

    /// Makes many charges, and checks that the list contains every payment exactly once, across all list pages.
    pub async fn check_list(&self) -> CheckResult {
        let total = u64::from(MANY_CHARGE_NOS.end - MANY_CHARGE_NOS.start);
        for (done, no) in (1..).zip(MANY_CHARGE_NOS) {
            self.make_payment(no).await?;
            self.report_progress(CheckStep::Charging, done, total);
        }
        self.check_list_matches_payments(&self.list_payments_of_first_customer().await?)
    }

    /// Checks that a list since an earlier time contains every later payment, even if this time is long ago, and that
    /// it contains the payments that were created exactly at this time.
    pub async fn check_list_since(&self) -> CheckResult {
        let earlier = MINUTES_BEFORE_START.map(|minutes| self.started_at - TimeDelta::minutes(minutes));
        for since in earlier.into_iter().chain(self.creation_times()) {
            let listed = self.list_payments(&self.parameters.customer, since).await.map_err(broken_by_gateway_error)?;
            self.check_list_matches_payments_since(since, &listed).map_err(|verdict| match verdict {
                super::PromiseVerdict::Broken(how) => broken_promise(format!(
                    "since {since}: {how}; the list must contain every payment that was created at this time or later"
                )),
                other => other,
            })?;
        }
        Ok(())
    }

    /// Returns the creation times of the first payment, of the last payment, and of the payment that was created latest
    /// within a second. Dueday's times have whole milliseconds.
    fn creation_times(&self) -> BTreeSet<DateTime<Utc>> {
        let times: Vec<_> = self.payments().values().map(|payment| payment.created_at.trunc_subsecs(3)).collect();
        let latest_in_second = times.iter().max_by_key(|time| time.timestamp_subsec_millis());
        [times.iter().min(), times.iter().max(), latest_in_second].into_iter().flatten().copied().collect()
    }

    /// Checks that the list of one customer contains no payment of another customer.
    pub async fn check_list_by_customer(&self) -> CheckResult {
        let before = self.list_payments_of_other_customer().await?;
        ensure_promise(before.is_empty(), || {
            format!("{} has paid nothing yet, and its list has {before:?}", self.parameters.other_customer)
        })?;
        let paid = self.make_payment(OTHER_CUSTOMER_CHARGE_NO).await?;
        let of_other = self.list_payments_of_other_customer().await?;
        ensure_promise(of_other.len() == 1 && describe_difference(&paid, &of_other).is_none(), || {
            format!("{} has paid once, and its list has {} payments", self.parameters.other_customer, of_other.len())
        })?;
        let of_first = self.list_payments_of_first_customer().await?;
        ensure_promise(of_first.iter().all(|payment| payment.id != paid.id), || {
            format!("the list of {} has a payment of {}", self.parameters.customer, self.parameters.other_customer)
        })?;
        for similar in self.similar_customers() {
            match self.list_payments(&similar, self.started_at - TimeDelta::days(1)).await {
                Ok(listed) => ensure_promise(listed.is_empty(), || {
                    format!("the list of {similar}, who has paid nothing, has {} payments", listed.len())
                })?,
                // A gateway may respond with an error to a list request for an unknown customer. This is not a broken
                // promise.
                Err(GatewayError::Unknown { .. }) => {}
                Err(error) => return Err(broken_promise(format!("the list of {similar}, who is unknown: {error}"))),
            }
        }
        Ok(())
    }

    /// Returns ids that are similar to the id of the first customer, but belong to no customer. A gateway that compares
    /// ids inexactly would return the payments of the first customer in the list of such an id.
    fn similar_customers(&self) -> Vec<GatewayToken> {
        let name = self.parameters.customer.as_str();
        let shorter = name.char_indices().next_back().map_or("", |(last, _)| &name[..last]);
        let other_case = if name == name.to_uppercase() { name.to_lowercase() } else { name.to_uppercase() };
        let names = [shorter.to_owned(), format!("{name}0"), other_case, format!("cus_{}", self.parameters.run)];
        let is_similar =
            |similar: &GatewayToken| *similar != self.parameters.customer && *similar != self.parameters.other_customer;
        names.iter().filter_map(|name| name.parse().ok()).filter(is_similar).collect()
    }

    /// Checks that the list contains refunded payments with their original amounts.
    pub async fn check_list_after_refunds(&self) -> CheckResult {
        let paid = self.payments();
        for no in [PARTLY_REFUNDED_CHARGE_NO, REFUNDED_CHARGE_NO] {
            ensure_promise(paid.contains_key(&no), || "no payment could be refunded".to_owned())?;
        }
        self.check_list_matches_payments(&self.list_payments_of_first_customer().await?)
    }

    /// Checks, after the wait, that the list still contains every payment with unchanged data.
    pub async fn check_list_again(&self) -> CheckResult {
        self.check_list_matches_payments(&self.list_payments_of_first_customer().await?)
    }
}
