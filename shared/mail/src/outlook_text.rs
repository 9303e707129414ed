//! The texts about what happens next to a subscription: a row for each planned payment, and a sentence if nothing is
//! charged for now.

use chrono::NaiveDate;

use super::language::Language;
use billing::{ChargeHold, Money, OnResume, PaymentReason, PlannedPayment, SubscriptionOutlook};

/// The values of a text about one payment. `None` if a text does not contain the value.
#[derive(Default)]
pub struct PaymentValues {
    pub amount: Option<String>,
    /// The date of the charge.
    pub date: Option<String>,
    /// The due date.
    pub due: Option<String>,
}

/// The texts about an [`SubscriptionOutlook`] in one language. `render` renders a template with values.
pub struct OutlookText<'a, Render> {
    pub outlook: &'a SubscriptionOutlook,
    pub language: &'a Language,
    pub render: Render,
}

impl<Render: Fn(&str, PaymentValues) -> String> OutlookText<'_, Render> {
    /// Returns the label and the value of a row for each planned payment.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let texts = self.language.texts;
        let labels = &texts.labels;
        let is_due = |payment: &&PlannedPayment| payment.reason == PaymentReason::Due;
        let next = self.outlook.payments.iter().find(is_due);
        let label = |payment: &PlannedPayment| match payment.reason {
            PaymentReason::InProgress => &labels.payment_in_progress,
            PaymentReason::Retry | PaymentReason::Overdue => &labels.outstanding_payment,
            PaymentReason::Due if Some(payment) == next => &labels.next_payment,
            PaymentReason::Due => &labels.following_payment,
        };
        self.outlook.payments.iter().map(|payment| (label(payment).as_str(), self.payment_text(payment))).collect()
    }

    /// Returns the next payment, or else the sentence about the reason why nothing is charged. `separator` is between the
    /// label and the value of the payment.
    pub fn summary(&self, separator: &str) -> Option<String> {
        let next = self.rows().into_iter().next();
        next.map(|(label, value)| format!("{label}{separator}{value}")).or_else(|| self.hold_or_later_months_sentence())
    }

    /// Returns the sentence about the reason why nothing is charged, or about the months after the planned payments;
    /// `None` if the subscription has ended, or if it ends after the planned payments.
    pub fn hold_or_later_months_sentence(&self) -> Option<String> {
        let texts = &self.language.texts.outlook;
        let outlook = self.outlook;
        if outlook.is_complete && outlook.payments.is_empty() && outlook.hold != Some(ChargeHold::Cancelled) {
            return Some(self.payment_sentence(&texts.none, None));
        }
        let Some(hold) = outlook.hold else {
            let continues = outlook.ends_on.is_none() && !outlook.payments.is_empty();
            return continues.then(|| self.payment_sentence(&texts.continues, None));
        };
        match hold {
            ChargeHold::Cancelled => None,
            ChargeHold::Disputed => Some(self.payment_sentence(&texts.disputed, None)),
            ChargeHold::OpenFinding => Some(self.payment_sentence(&texts.open_finding, None)),
            ChargeHold::Unpaid => {
                let owed = outlook.owed?;
                Some(self.payment_sentence(&texts.unpaid, Some((owed.due_on, owed.amount))))
            }
            ChargeHold::Paused { on_resume } => {
                let text = match on_resume {
                    OnResume::Charge => &texts.paused,
                    OnResume::Wait => &texts.paused_wait,
                };
                Some(self.payment_sentence(text, outlook.if_resumed.map(|payment| (payment.due_on, payment.amount))))
            }
        }
    }

    /// Renders a sentence with the amount of `payment`, and with its due date if that has not passed, or if the payment is
    /// owed.
    fn payment_sentence(&self, text: &str, payment: Option<(NaiveDate, Money)>) -> String {
        let amount = payment.map(|(_, amount)| self.language.format_amount(amount));
        let is_due_stated = |due_on| due_on >= self.outlook.today || self.outlook.owed.is_some();
        let due = payment.map(|(due_on, _)| due_on).filter(|due_on| is_due_stated(*due_on));
        let due = due.map(|due_on| self.language.format_month_and_day(due_on));
        (self.render)(text, PaymentValues { amount, due, date: None })
    }

    /// Returns the amount and the date of a planned payment, and its due date if that has passed.
    fn payment_text(&self, payment: &PlannedPayment) -> String {
        let (language, texts) = (self.language, &self.language.texts.outlook);
        let is_late = payment.reason != PaymentReason::Due;
        let values = PaymentValues {
            amount: Some(language.format_amount(payment.amount)),
            date: Some(language.format_date(payment.latest_on)),
            due: is_late.then(|| language.format_month_and_day(payment.due_on)),
        };
        let text = match payment.reason {
            PaymentReason::InProgress => &texts.in_progress,
            _ if payment.latest_on > payment.payment_on => &texts.payment_soon,
            _ => &texts.payment,
        };
        (self.render)(text, values)
    }
}
