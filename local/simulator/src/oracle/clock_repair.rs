//! Checks the repair of a subscription that a run with a clock that was ahead had written. The oracle knows the state
//! before that run, which the code under test cannot know.

use chrono::{DateTime, Days, NaiveDate, Utc};
use serde_json::Value;

use super::{Oracle, subscription_of_item_key};
use crate::json::{read_date_attribute, read_instant_attribute, read_text_attribute};
use crate::stored_items::StoredStatus;

/// A look-up lists the payments from this number of days before the claim, so a claim that is repaired to less than this
/// number of days after the true claim is early enough.
const LOOK_UP_MARGIN: Days = Days::new(1);

impl Oracle {
    /// Checks that the repair on `today` at `now` has led to a possible item `repaired`, and expects its dates from now
    /// on. `before` is the item before the run with the clock that was ahead.
    ///
    /// # Errors
    /// The violation, if the repair is wrong.
    pub fn record_clock_repair(
        &mut self,
        now: DateTime<Utc>,
        today: NaiveDate,
        before: &Value,
        repaired: &Value,
    ) -> Result<(), String> {
        let key = |name| read_text_attribute(repaired, name).map(str::to_owned);
        let name =
            key("PK").zip(key("SK")).and_then(|key| subscription_of_item_key(&key)).ok_or("the item has no key")?;
        let longest_gap = self.rules.longest_gap();
        let expected = self.expected_subscriptions.get_mut(&name).ok_or("the subscription is not expected")?;
        let next = read_date_attribute(repaired, "NextPaymentDate");
        if let Some(open) = &mut expected.open {
            let claim =
                read_instant_attribute(repaired, "AttemptAt").zip(read_instant_attribute(repaired, "AttemptLease"));
            let (claimed_at, leased_until) = claim.ok_or("the repair has removed the attempt")?;
            if claimed_at > open.claimed_at + LOOK_UP_MARGIN {
                return Err(format!("a look-up misses payments from {} to {claimed_at}", open.claimed_at));
            }
            if leased_until > now {
                return Err(format!("the lease still ends at {leased_until}"));
            }
            if next != read_date_attribute(before, "NextPaymentDate") {
                return Err(format!("the repair of a lease has changed the next payment date to {next:?}"));
            }
            (open.claimed_at, open.leased_until) = (claimed_at, leased_until);
            return Ok(());
        }
        let next = next.ok_or("the repair has removed the next payment date")?;
        let tomorrow = today + Days::new(1);
        let possible = match expected.status {
            StoredStatus::PastDue => tomorrow..=today + Days::new(longest_gap),
            _ if expected.due > today => expected.due..=expected.due,
            _ => expected.due..=tomorrow,
        };
        if !possible.contains(&next) {
            return Err(format!("the repaired next payment date {next} should be in {possible:?}"));
        }
        expected.next_payment = Some(next);
        Ok(())
    }
}
