//! The report of an import.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use billing::{MoneySums, Subscription};
use chrono::NaiveDate;
use indicatif::HumanCount;
use serde::Serialize;

use crate::commands::find::duplicates::{DuplicateGroup, duplicate_groups_text};
use crate::terminal::output::format_count;

/// The largest number of first payment dates that are printed individually. More dates are printed as a range.
const MAX_DATES_SHOWN: usize = 6;

/// The report of an import; for a dry run, the report that the import would have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ImportReport {
    /// The number of rows in the file.
    pub rows: u64,
    /// The number of created subscriptions.
    pub created: u64,
    /// The number of subscriptions that already existed with the same values.
    pub already_there: u64,
    /// The number of subscriptions that already existed with other values, and were not changed.
    pub differs: u64,
    /// The number of invalid rows.
    pub rejected: u64,
    /// The file with the rows that differ or were rejected.
    pub rejects: Option<PathBuf>,
    pub dry_run: bool,
    /// The sum of the monthly amounts of all created subscriptions, for each currency.
    pub sums: MoneySums,
    /// The number of created subscriptions by the date of their first payment.
    pub first_payments: BTreeMap<NaiveDate, u64>,
    /// In a dry run, the ids of the file that are probably the same as another id of the file or of the table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probable_duplicates: Vec<DuplicateGroup>,
}

impl ImportReport {
    /// Counts `subscription` as created.
    pub fn count_created(&mut self, subscription: &Subscription) {
        self.created += 1;
        self.sums.add(subscription.price);
        *self.first_payments.entry(subscription.due_on).or_default() += 1;
    }

    /// Returns whether the table contains all subscriptions of the file with the same values.
    pub fn is_complete(&self) -> bool {
        self.differs == 0 && self.rejected == 0
    }

    /// Returns a sentence about an import that a failure has ended: what was imported before, and how to continue.
    pub fn text_of_ended_import(&self) -> String {
        if self.dry_run {
            return format!("The dry run ended after {}", format_count(self.rows, "row"));
        }
        format!(
            "The import ended after {}: {} created, {} already existed; run it again to continue, no row is imported twice",
            format_count(self.rows, "row"),
            HumanCount(self.created),
            HumanCount(self.already_there)
        )
    }

    /// Formats the dates of the first payments with the number of subscriptions.
    fn first_payments_text(&self) -> String {
        let dates = &self.first_payments;
        match (dates.first_key_value(), dates.last_key_value()) {
            (Some((first, _)), Some((last, _))) if dates.len() > MAX_DATES_SHOWN => {
                format!("from {first} to {last}, on {}", format_count(dates.len() as u64, "day"))
            }
            _ => dates
                .iter()
                .map(|(date, many)| format!("{date} ({})", HumanCount(*many)))
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

impl fmt::Display for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (created, unchanged) =
            if self.dry_run { ("would be created", "would not be changed") } else { ("created", "were not changed") };
        writeln!(
            f,
            "{}: {} {created}, {} already exist, {} differ, {} rejected",
            format_count(self.rows, "row"),
            HumanCount(self.created),
            HumanCount(self.already_there),
            HumanCount(self.differs),
            HumanCount(self.rejected)
        )?;
        if self.created > 0 {
            writeln!(f, "  due each month    {}", self.sums)?;
            writeln!(f, "  first payments    {}", self.first_payments_text())?;
        }
        if self.differs > 0 {
            writeln!(f, "existing subscriptions with other values {unchanged}")?;
        }
        if let Some(path) = &self.rejects {
            let path = path.display();
            writeln!(f, "rows that were not imported are listed with line, field, value and reason in {path}")?;
        }
        if !self.probable_duplicates.is_empty() {
            write!(f, "{}", duplicate_groups_text(&self.probable_duplicates))?;
        }
        if self.dry_run {
            writeln!(f, "this was a dry run: nothing was written to the table")?;
        }
        Ok(())
    }
}
