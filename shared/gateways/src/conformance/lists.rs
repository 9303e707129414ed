//! Checks of the list of a customer's payments, in which an attempt with an unknown outcome is looked up.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use super::Step;
use super::case::{
    Case, DECLINED, MANY, OTHER_CUSTOMER, Outcome, PROCESSING, REFUNDED, REFUNDED_IN_PART, broken, ensure,
};
use crate::GatewayError;
use billing::{GatewayToken, Payment, PaymentStatus};

/// Since when the list is read, in minutes before the check began. Zones differ by at least 15 minutes; an attempt is looked up from
/// the day before its due date, which may be long ago after an outage.
const SINCE: [i64; 3] = [15, 24 * 60, 400 * 24 * 60];

/// How the payment `made` differs from its entry in `listed`; `None` if it does not.
fn differing(made: &Payment, listed: &[Payment]) -> Option<String> {
    let found: Vec<&Payment> = listed.iter().filter(|payment| payment.id == made.id).collect();
    let no = made.attempt_no;
    match found.as_slice() {
        [] => Some(format!("{} of attempt {no} is not in the list", made.id)),
        [one] => {
            let of = |payment: &Payment| {
                let Payment { table, account, subscription, due_on, attempt_no, amount, status, .. } = payment.clone();
                (table, account, subscription, due_on, attempt_no, amount, status)
            };
            (of(one) != of(made))
                .then(|| format!("{} of attempt {no} was made as {made:?}, and is listed as {one:?}", made.id))
        }
        more => Some(format!("{} of attempt {no} is {} times in the list", made.id, more.len())),
    }
}

impl Case<'_> {
    /// Checks that `listed` has every successful payment of the customer once, as it was made, and no other payment that may be paid.
    fn compare(&self, listed: &[Payment]) -> Outcome {
        let mut made = self.payments();
        made.remove(&OTHER_CUSTOMER);
        let differing: Vec<String> = made.values().filter_map(|made| differing(made, listed)).collect();
        ensure(differing.is_empty(), || {
            let first = differing.first().cloned().unwrap_or_default();
            format!("of {} payments {} are missing or differ: {first}", made.len(), differing.len())
        })?;
        self.no_other_is_paid(listed)
    }

    /// Checks that `listed` has no payment which is or may be paid, and which no response named.
    fn no_other_is_paid(&self, listed: &[Payment]) -> Outcome {
        let made = self.payments();
        let ids: BTreeSet<&GatewayToken> = made.values().map(|payment| &payment.id).collect();
        let is_expected = |payment: &&Payment| {
            ids.contains(&payment.id)
                || [DECLINED, PROCESSING].contains(&payment.attempt_no)
                || matches!(payment.status, PaymentStatus::Declined(_))
        };
        let other = listed.iter().find(|payment| !is_expected(payment));
        ensure(other.is_none(), || format!("it has a payment that no response named: {other:?}"))
    }

    /// Checks the same of the lists of both customers.
    pub async fn nothing_is_paid_unnamed(&self) -> Outcome {
        self.no_other_is_paid(&self.listed().await?)?;
        self.no_other_is_paid(&self.listed_of_other().await?)
    }

    pub async fn lists(&self) -> Outcome {
        let of = u64::from(MANY.end - MANY.start);
        for (done, no) in (1..).zip(MANY) {
            self.paid(no).await?;
            self.progress(Step::Charging, done, of);
        }
        self.compare(&self.listed().await?)
    }

    pub async fn lists_since(&self) -> Outcome {
        for minutes in SINCE {
            let since = self.began - TimeDelta::minutes(minutes);
            let listed = self.list(&self.sample.customer, since).await.map_err(|error| broken(error.to_string()))?;
            self.compare(&listed).map_err(|verdict| match verdict {
                super::Verdict::Broken(how) => broken(format!("since {since}: {how}")),
                other => other,
            })?;
        }
        Ok(())
    }

    pub async fn customers(&self) -> Outcome {
        let before = self.listed_of_other().await?;
        ensure(before.is_empty(), || {
            format!("{} has paid nothing yet, and its list has {before:?}", self.sample.other_customer)
        })?;
        let paid = self.paid(OTHER_CUSTOMER).await?;
        let of_other = self.listed_of_other().await?;
        ensure(of_other.len() == 1 && differing(&paid, &of_other).is_none(), || {
            format!("{} has paid once, and its list has {} payments", self.sample.other_customer, of_other.len())
        })?;
        let of_first = self.listed().await?;
        ensure(of_first.iter().all(|payment| payment.id != paid.id), || {
            format!("the list of {} has a payment of {}", self.sample.customer, self.sample.other_customer)
        })?;
        for similar in self.similar_customers() {
            match self.list(&similar, self.began - TimeDelta::days(1)).await {
                Ok(listed) => ensure(listed.is_empty(), || {
                    format!("the list of {similar}, who has paid nothing, has {} payments", listed.len())
                })?,
                // A gateway may refuse to list the payments of a customer whom it does not know.
                Err(GatewayError::Unknown { .. }) => {}
                Err(error) => return Err(broken(format!("the list of {similar}, who is unknown: {error}"))),
            }
        }
        Ok(())
    }

    /// Customers who do not exist, with names that are similar to the customer's.
    fn similar_customers(&self) -> Vec<GatewayToken> {
        let name = self.sample.customer.as_str();
        let shorter = name.char_indices().next_back().map_or("", |(last, _)| &name[..last]);
        let other_case = if name == name.to_uppercase() { name.to_lowercase() } else { name.to_uppercase() };
        let names = [shorter.to_owned(), format!("{name}0"), other_case, format!("cus_{}", self.sample.run)];
        let is_similar =
            |similar: &GatewayToken| *similar != self.sample.customer && *similar != self.sample.other_customer;
        names.iter().filter_map(|name| name.parse().ok()).filter(is_similar).collect()
    }

    pub async fn lists_refunded(&self) -> Outcome {
        let paid = self.payments();
        for no in [REFUNDED_IN_PART, REFUNDED] {
            ensure(paid.contains_key(&no), || "no payment could be refunded".to_owned())?;
        }
        self.compare(&self.listed().await?)
    }

    /// Reads payments by their ids: one of the first, one that was refunded, and one that does not exist.
    pub async fn reads_one(&self) -> Outcome {
        for no in [MANY.start, REFUNDED_IN_PART] {
            let Some(made) = self.payments().get(&no).cloned() else {
                return Err(broken("no payment could be made"));
            };
            let read = self.gateway.payment(&made.id).await.map_err(|error| broken(error.to_string()))?;
            let read = read.ok_or_else(|| broken(format!("it does not know {}, which it has made", made.id)))?;
            if let Some(how) = differing(&made, std::slice::from_ref(&read)) {
                return Err(broken(how));
            }
        }
        let none: GatewayToken = format!("pay_{}", self.sample.run).parse().map_err(|_| broken("no id"))?;
        match self.gateway.payment(&none).await {
            Ok(None) => Ok(()),
            Ok(Some(other)) => {
                Err(broken(format!("it shows {} as the payment {none}, which does not exist", other.id)))
            }
            Err(error) => Err(broken(format!("the payment {none}, which does not exist: {error}"))),
        }
    }

    pub async fn list_stays(&self) -> Outcome {
        self.compare(&self.listed().await?)
    }
}
