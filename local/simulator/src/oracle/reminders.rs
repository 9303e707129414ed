//! Checks the writes and the mails of the reminder batch.

use chrono::{DateTime, NaiveDate, Utc};
use mail::Mail;
use serde_json::Value;

use super::Oracle;
use super::expected_subscription::{ExpectedSubscription, ReminderClaim};
use crate::json::{read_instant_attribute, read_text_attribute};
use crate::schedule::ActorId;
use crate::stored_items::StoredStatus::Active;

/// Returns the expected subscription after a write of the reminder batch.
///
/// # Errors
/// The violation, if the write is not allowed.
pub fn predict_after_reminder_write(
    id: ActorId,
    local_now: DateTime<Utc>,
    today: NaiveDate,
    expected: ExpectedSubscription,
    before: Option<&Value>,
    after: &Value,
) -> Result<ExpectedSubscription, String> {
    let holder_of =
        |item: Option<&Value>| item.and_then(|item| read_text_attribute(item, "ReminderBy").map(str::to_owned));
    let mut next = expected;
    match (holder_of(before), holder_of(Some(after))) {
        (holder_before, Some(holder)) if holder_before.as_ref() != Some(&holder) => {
            let leased_until = read_instant_attribute(after, "ReminderLease").ok_or("a reminder claim has no lease")?;
            next.claim_reminder(id, local_now, today, leased_until)?;
        }
        (Some(_), None) => next.finish_reminder(id, today)?,
        _ => return Err("the reminder batch wrote an unexpected change".to_owned()),
    }
    Ok(next)
}

impl ExpectedSubscription {
    /// Returns the due date and the amount that a reminder on `today` must state; `None` if no reminder may be sent.
    fn due_reminder(&self, today: NaiveDate) -> Option<(NaiveDate, i64)> {
        let will_be_paid =
            self.status == Active && self.open.is_none() && !self.ends_on_due_date() && today <= self.due;
        will_be_paid.then(|| (self.due, self.price_in(crate::calendar::month_of(self.due))))
    }

    /// Returns the current reminder claim, and the superseded claims, whose holders may still send a mail.
    fn reminder_claims(&self) -> impl Iterator<Item = &ReminderClaim> {
        self.reminder_claim.iter().chain(&self.superseded_reminder_claims)
    }

    /// Like [`Self::reminder_claims`], with mutable claims.
    fn reminder_claims_mut(&mut self) -> impl Iterator<Item = &mut ReminderClaim> {
        self.reminder_claim.iter_mut().chain(&mut self.superseded_reminder_claims)
    }

    /// Records the claim of the next reminder by actor `id`. Returns the violation if the claim is not allowed.
    fn claim_reminder(
        &mut self,
        id: ActorId,
        local_now: DateTime<Utc>,
        today: NaiveDate,
        leased_until: DateTime<Utc>,
    ) -> Result<(), String> {
        if self.next_reminder.is_none_or(|on| on > today) {
            return Err(format!(
                "a reminder was claimed on {today}, but the next reminder date is {:?}",
                self.next_reminder
            ));
        }
        if let Some(claim) = self.reminder_claim.as_ref().filter(|claim| claim.leased_until > local_now) {
            return Err(format!(
                "a reminder was claimed at {local_now}, but another claim has a lease until {}",
                claim.leased_until
            ));
        }
        let due_and_amount = self.due_reminder(today);
        self.superseded_reminder_claims.extend(self.reminder_claim.take());
        self.reminder_claim = Some(ReminderClaim { holder: id, leased_until, due_and_amount, is_sent: false });
        Ok(())
    }

    /// Records that actor `id` marked its claimed reminder as done. Returns the violation if this is not allowed.
    fn finish_reminder(&mut self, id: ActorId, today: NaiveDate) -> Result<(), String> {
        let Some(claim) = self.reminder_claim.take().filter(|claim| claim.holder == id) else {
            return Err("an actor without the reminder claim marked the reminder as done".to_owned());
        };
        if claim.is_sent != claim.due_and_amount.is_some() {
            return Err(format!("a reminder was marked as done, but its mail was not sent as claimed: {claim:?}"));
        }
        let is_due = self.next_reminder.is_some_and(|on| on <= today);
        let owed = self.due_reminder(today);
        // If the due date or the amount changed after the claim, the customer gets another reminder.
        if is_due && (owed.is_none() || owed == claim.due_and_amount) {
            self.next_reminder = None;
        }
        Ok(())
    }
}

impl Oracle {
    /// Checks a mail that actor `id` sent: the mail must be the reminder that the actor has claimed.
    pub fn record_sent_mail(&mut self, id: ActorId, now: DateTime<Utc>, mail: &Mail) {
        self.counts.mails += 1;
        let reminder_text = ReminderText::parse(&mail.text);
        let has_claim = |expected: &&mut ExpectedSubscription| {
            expected.reminder_claims().any(|claim| claim.holder == id && !claim.is_sent)
                && reminder_text.as_ref().is_some_and(|reminder_text| reminder_text.product == expected.product)
                && mail.to.as_str().starts_with(&expected.name.0)
        };
        let claimed = self.expected_subscriptions.values_mut().find(has_claim);
        let violation = match (claimed, &reminder_text) {
            (Some(expected), Some(reminder_text)) => {
                let amount = parse_amount_in_minor_units(&reminder_text.amount, &expected.currency);
                let claim = expected.reminder_claims_mut().find(|claim| claim.holder == id && !claim.is_sent);
                let reminder = claim.and_then(|claim| {
                    claim.is_sent = true;
                    claim.due_and_amount
                });
                let is_right = reminder.is_some() && reminder == amount.map(|amount| (reminder_text.due, amount));
                let subscription = expected.name.clone();
                (!is_right).then(|| {
                    (subscription, format!("the reminder states {reminder_text:?}, but should state {reminder:?}"))
                })
            }
            _ => {
                // The simulated accounts have mail addresses such as ACCOUNT@example.com, so the mail address shows the
                // account.
                let account = mail.to.as_str().split('@').next().unwrap_or_default();
                let subscription = (account.to_owned(), mail.subject.clone());
                Some((subscription, "an actor without a matching reminder claim sent a mail".to_owned()))
            }
        };
        if let Some((subscription, reason)) = violation {
            self.report_violation(now, &subscription, reason);
        }
    }
}

/// The contents of a reminder mail.
#[derive(Debug)]
struct ReminderText {
    product: String,
    amount: String,
    due: NaiveDate,
}

impl ReminderText {
    /// Reads the text of a reminder mail; `None` if a line is missing.
    fn parse(text: &str) -> Option<Self> {
        let line = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
        let due = NaiveDate::parse_from_str(line("Due date")?, "%A, %B %d, %Y").ok()?;
        Some(Self { product: line("Product")?.to_owned(), amount: line("Amount")?.to_owned(), due })
    }
}

/// Converts an amount such as `€1,012.99` to minor units; `None` if its format does not match `currency`.
fn parse_amount_in_minor_units(amount: &str, currency: &str) -> Option<i64> {
    let (sign, decimals) = match currency {
        "EUR" => ("€", 2),
        "USD" => ("$", 2),
        "GBP" => ("£", 2),
        "JPY" => ("¥", 0),
        "KWD" => ("KWD\u{a0}", 3),
        _ => return None,
    };
    let number = amount.strip_prefix(sign)?.replace(',', "");
    let decimals_present = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    (decimals_present == decimals).then(|| number.replace('.', "").parse().ok())?
}
