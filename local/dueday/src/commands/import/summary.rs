//! What an import came to.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use billing::{Subscription, Sums};
use chrono::NaiveDate;
use indicatif::HumanCount;
use serde::Serialize;

use crate::terminal::output::count;

/// More dates are told by the first and the last.
const MAX_DATES_SHOWN: usize = 6;

/// What an import came to; of a dry run, what it would come to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Imported {
    pub rows: u64,
    /// Put in.
    pub created: u64,
    /// Were there already as the file has them.
    pub already_there: u64,
    /// Were there already with other values, and are left as they are.
    pub differs: u64,
    pub rejected: u64,
    /// Where the rows are listed that differ or are rejected.
    pub rejects: Option<PathBuf>,
    pub dry_run: bool,
    /// What all that are created pay in a month.
    pub sums: Sums,
    /// How many of those created pay first on which date.
    pub first_payments: BTreeMap<NaiveDate, u64>,
}

impl Imported {
    /// Counts `subscription` as created.
    pub fn create(&mut self, subscription: &Subscription) {
        self.created += 1;
        self.sums.add(subscription.price);
        *self.first_payments.entry(subscription.due_on).or_default() += 1;
    }

    /// Whether the table holds all that the file does.
    pub fn is_all_in(&self) -> bool {
        self.differs == 0 && self.rejected == 0
    }

    fn dates(&self) -> String {
        let dates = &self.first_payments;
        match (dates.first_key_value(), dates.last_key_value()) {
            (Some((first, _)), Some((last, _))) if dates.len() > MAX_DATES_SHOWN => {
                format!("from {first} to {last}, on {}", count(dates.len() as u64, "day"))
            }
            _ => dates
                .iter()
                .map(|(date, many)| format!("{date} ({})", HumanCount(*many)))
                .collect::<Vec<_>>()
                .join(", "),
        }
    }
}

impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (created, would) = if self.dry_run { ("would be created", "would be ") } else { ("created", "") };
        writeln!(
            f,
            "{}: {} {created}, {} already there, {} different, {} rejected",
            count(self.rows, "row"),
            HumanCount(self.created),
            HumanCount(self.already_there),
            HumanCount(self.differs),
            HumanCount(self.rejected)
        )?;
        if self.created > 0 {
            writeln!(f, "  due each month    {}", self.sums)?;
            writeln!(f, "  first payments    {}", self.dates())?;
        }
        if self.differs > 0 {
            writeln!(f, "what is different {would}left as it is in the table")?;
        }
        if let Some(path) = &self.rejects {
            writeln!(f, "what was not imported is listed with line, field, value and reason in {}", path.display())?;
        }
        if self.dry_run {
            writeln!(f, "this was a dry run: nothing was written to the table")?;
        }
        Ok(())
    }
}
