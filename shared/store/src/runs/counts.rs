//! Row counts: the number of a run's rows for each outcome, which is stored in the run record. The batches define the
//! outcomes.

use std::fmt::{self, Debug};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::table::batch::Batch;

/// The number of a run's rows for each outcome, and the number `due` of all its rows. `due` is incremented when a row
/// is read from the index. The number of an outcome is incremented when the processing of a row ends. At the end of a
/// run, the numbers of all outcomes add up to `due`.
pub trait OutcomeCounts:
    Copy + Default + PartialEq + Eq + Debug + Serialize + AddAssign + Into<RunCounts> + Send + Sync + 'static
{
    /// The batch to which the rows belong.
    const BATCH: Batch;

    /// Returns the counter of the rows that were due.
    fn due(&mut self) -> &mut u64;
    /// Returns the counter of the rows whose processing failed.
    fn failed(&mut self) -> &mut u64;
    /// Returns the number of rows for each outcome, including `failed`, with the outcome's name.
    fn counts_by_name(&self) -> Vec<(&'static str, u64)>;

    /// Returns whether the numbers of all outcomes add up to `due`.
    fn adds_up(mut self) -> bool {
        *self.due() == self.counts_by_name().iter().map(|(_, count)| count).sum::<u64>()
    }
}

/// Declares the struct with the row counts of a batch.
macro_rules! counts {
    (
        $batch:ident,
        #[doc = $counts_doc:literal] $counts:ident,
        { $(#[doc = $doc:literal] $field:ident,)+ }
    ) => {
        #[doc = $counts_doc]
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        // Run records that older versions of Dueday wrote do not contain the counts that were added later.
        #[serde(default, deny_unknown_fields)]
        pub struct $counts {
            /// Rows that the index returned as due.
            pub due: u64,
            $(#[doc = $doc] pub $field: u64,)+
            /// Rows whose processing failed.
            pub failed: u64,
        }
        billing::openapi_schema!(
            $counts,
            stringify!($counts),
            schema_of_counts($counts_doc, &[$((stringify!($field), $doc)),+])
        );

        impl OutcomeCounts for $counts {
            const BATCH: Batch = Batch::$batch;

            fn due(&mut self) -> &mut u64 {
                &mut self.due
            }

            fn failed(&mut self) -> &mut u64 {
                &mut self.failed
            }

            fn counts_by_name(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($field), self.$field),)+ ("failed", self.failed)]
            }
        }

        impl AddAssign for $counts {
            fn add_assign(&mut self, other: Self) {
                self.due += other.due;
                $(self.$field += other.$field;)+
                self.failed += other.failed;
            }
        }

        impl From<$counts> for RunCounts {
            fn from(counts: $counts) -> Self {
                RunCounts::$batch(counts)
            }
        }
    };
}

counts!(
    Payments,
    /// The number of a payment run's rows for each outcome. `due` is the sum of all other numbers.
    PaymentCounts,
    {
        /// Payments that succeeded and have a receipt.
        paid,
        /// Payments that the gateway declined. A later run charges them again, except after a hard decline or the last attempt.
        declined,
        /// Charges that the gateway rejected without making a payment.
        rejected,
        /// Payments that the bank is processing.
        processing,
        /// Payment attempts with an unknown outcome.
        in_doubt,
        /// Payments that were not charged because their payment method is disputed. They are still owed.
        disputed,
        /// Rows for which nothing was charged, for example because the payment was no longer due.
        skipped,
    }
);

counts!(
    Reminders,
    /// The number of a reminder run's rows for each outcome. `due` is the sum of all other numbers.
    ReminderCounts,
    {
        /// Reminders that were sent, and marked as sent.
        sent,
        /// Reminders that were not sent, because the address accepts no mail, or an earlier mail was reported as spam.
        undeliverable,
        /// Reminders whose recipient did not accept them now. They stay due, and a later run sends them.
        delayed,
        /// Reminders that were not sent before the payment was due.
        missed,
        /// Reminders that another worker has claimed, and has not marked as sent yet.
        in_progress,
        /// Reminders that were not sent, because they were not needed any more.
        skipped,
    }
);

/// Returns the OpenAPI schema of the row counts of one batch: `due` and `failed`, which both batches have, and the
/// counts `of_batch`, each with its description. All counts are required properties. Later versions may add counts.
#[cfg(feature = "openapi")]
fn schema_of_counts(description: &str, of_batch: &[(&str, &str)]) -> utoipa::openapi::ObjectBuilder {
    use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

    let counts = [("due", "Rows that the index returned as due.")].into_iter();
    let counts = counts.chain(of_batch.iter().copied()).chain([("failed", "Rows whose processing failed.")]);
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(description.trim()));
    counts.fold(object, |object, (name, text)| {
        let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(text.trim()));
        let count = count.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
        object.property(name, count).required(name)
    })
}

/// The row counts of a run of the payment batch or of the reminder batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RunCounts {
    Payments(PaymentCounts),
    Reminders(ReminderCounts),
}

impl RunCounts {
    /// Returns the counts of a run of `batch` that had no rows: all are zero.
    pub fn none(batch: Batch) -> Self {
        match batch {
            Batch::Payments => PaymentCounts::default().into(),
            Batch::Reminders => ReminderCounts::default().into(),
        }
    }

    /// Returns these counts plus the counts `other`. If `other` belongs to another batch, it is ignored.
    pub fn combined_with(mut self, other: Self) -> Self {
        match (&mut self, other) {
            (Self::Payments(sum), Self::Payments(more)) => *sum += more,
            (Self::Reminders(sum), Self::Reminders(more)) => *sum += more,
            _ => {}
        }
        self
    }

    /// Returns the batch to which the rows belong.
    pub fn batch(&self) -> Batch {
        match self {
            Self::Payments(_) => Batch::Payments,
            Self::Reminders(_) => Batch::Reminders,
        }
    }

    /// Returns the number of rows that were due.
    pub fn due(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.due,
            Self::Reminders(counts) => counts.due,
        }
    }

    /// Returns the number of rows for each outcome, including `failed`, with the outcome's name.
    pub fn counts_by_name(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Payments(counts) => counts.counts_by_name(),
            Self::Reminders(counts) => counts.counts_by_name(),
        }
    }

    /// Returns whether the numbers of all outcomes add up to `due`.
    pub fn adds_up(&self) -> bool {
        match self {
            Self::Payments(counts) => counts.adds_up(),
            Self::Reminders(counts) => counts.adds_up(),
        }
    }

    /// Returns the number of rows without a final outcome: payments in doubt or being processed by the bank, reminders
    /// in progress, and failed rows.
    pub fn rows_without_final_outcome(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt + counts.processing + counts.failed,
            Self::Reminders(counts) => counts.in_progress + counts.failed,
        }
    }

    /// Returns the number of rows that a later run must process again: failed rows, payments in doubt, and reminders
    /// under another worker's lease.
    pub fn unfinished(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt + counts.failed,
            Self::Reminders(counts) => counts.in_progress + counts.failed,
        }
    }

    /// Returns the number of payments with an unknown outcome. A reminder run has none.
    pub fn in_doubt(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt,
            Self::Reminders(_) => 0,
        }
    }

    /// Returns the number of payments that the gateway rejected. A person must find the cause. A reminder run has none.
    pub fn rejected(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.rejected,
            Self::Reminders(_) => 0,
        }
    }
}

/// Writes the number of rows that were due, and the number of every outcome that is not zero, such as `3 due, 2 paid, 1
/// in doubt`.
impl fmt::Display for RunCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} due", self.due())?;
        let non_zero = self.counts_by_name().into_iter().filter(|(_, count)| *count > 0);
        non_zero.into_iter().try_for_each(|(name, count)| write!(f, ", {count} {}", name.replace('_', " ")))
    }
}
