//! The counts of a run's rows by outcome, as run records store them. The outcomes themselves are in the batches.

use std::fmt::{self, Debug};
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Batch;

/// Rows by outcome. `due` is counted from the index, the others when the work on a row ends: they add up to `due`.
pub trait Counts:
    Copy + Default + PartialEq + Eq + Debug + Serialize + AddAssign + Into<RunCounts> + Send + Sync + 'static
{
    /// The batch whose rows these are.
    const BATCH: Batch;

    /// Rows that were due.
    fn due(&mut self) -> &mut u64;
    /// Rows that could not be done with.
    fn failed(&mut self) -> &mut u64;
    /// Each count but `due`, with its name.
    fn named(&self) -> Vec<(&'static str, u64)>;

    /// Whether every row due is accounted for.
    fn adds_up(mut self) -> bool {
        *self.due() == self.named().iter().map(|(_, count)| count).sum::<u64>()
    }
}

/// Declares the counts of a batch's rows.
macro_rules! counts {
    (
        $batch:ident,
        #[doc = $counts_doc:literal] $counts:ident,
        { $(#[doc = $doc:literal] $field:ident,)+ }
    ) => {
        #[doc = $counts_doc]
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
        // One that was added later is absent of older records.
        #[serde(default, deny_unknown_fields)]
        pub struct $counts {
            /// Rows that the index showed.
            pub due: u64,
            $(#[doc = $doc] pub $field: u64,)+
            /// Rows that could not be done with.
            pub failed: u64,
        }
        billing::openapi_schema!(
            $counts,
            stringify!($counts),
            schema_of_counts($counts_doc, &[$((stringify!($field), $doc)),+])
        );

        impl Counts for $counts {
            const BATCH: Batch = Batch::$batch;

            fn due(&mut self) -> &mut u64 {
                &mut self.due
            }

            fn failed(&mut self) -> &mut u64 {
                &mut self.failed
            }

            fn named(&self) -> Vec<(&'static str, u64)> {
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
    /// What became of the payments that a run saw: `due` is the sum of the others.
    PaymentCounts,
    {
        /// Charged, and receipted.
        paid,
        /// The gateway declined it; it is tried again, or was the last try.
        declined,
        /// The gateway refused the request and made nothing.
        rejected,
        /// Under way at the bank.
        processing,
        /// Begun, and what came of it is not known.
        in_doubt,
        /// Owed, and not charged: its payment method is disputed.
        disputed,
        /// There was nothing to charge after all.
        skipped,
    }
);

counts!(
    Reminders,
    /// What became of the reminders that a run saw: `due` is the sum of the others.
    ReminderCounts,
    {
        /// Sent, and marked.
        sent,
        /// The account's address takes no mail.
        undeliverable,
        /// It could not be sent before its payment was due.
        missed,
        /// Another worker has claimed it and has not marked it as sent.
        in_progress,
        /// There was nothing to say after all.
        skipped,
    }
);

/// The schema of counts: those that all batches have, and `own`. All are always there, and more may come.
#[cfg(feature = "openapi")]
fn schema_of_counts(description: &str, own: &[(&str, &str)]) -> utoipa::openapi::ObjectBuilder {
    use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};

    let counts = [("due", "Rows that the index showed.")].into_iter();
    let counts = counts.chain(own.iter().copied()).chain([("failed", "Rows that could not be done with.")]);
    let object = ObjectBuilder::new().schema_type(Type::Object).description(Some(description.trim()));
    counts.fold(object, |object, (name, text)| {
        let count = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).description(Some(text.trim()));
        let count = count.format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)));
        object.property(name, count).required(name)
    })
}

/// The counts of a run, by its batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum RunCounts {
    Payments(PaymentCounts),
    Reminders(ReminderCounts),
}

impl RunCounts {
    /// No rows of `batch`.
    pub fn none(batch: Batch) -> Self {
        match batch {
            Batch::Payments => PaymentCounts::default().into(),
            Batch::Reminders => ReminderCounts::default().into(),
        }
    }

    /// The sum of both. Counts of another batch add nothing.
    pub fn plus(mut self, other: Self) -> Self {
        match (&mut self, other) {
            (Self::Payments(sum), Self::Payments(more)) => *sum += more,
            (Self::Reminders(sum), Self::Reminders(more)) => *sum += more,
            _ => {}
        }
        self
    }

    /// Rows that were due.
    pub fn due(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.due,
            Self::Reminders(counts) => counts.due,
        }
    }

    /// Each count but `due`, with its name.
    pub fn named(&self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Payments(counts) => counts.named(),
            Self::Reminders(counts) => counts.named(),
        }
    }

    /// Whether every row due is accounted for.
    pub fn adds_up(&self) -> bool {
        match self {
            Self::Payments(counts) => counts.adds_up(),
            Self::Reminders(counts) => counts.adds_up(),
        }
    }

    /// The payments that were left in doubt or at the bank, and the rows that failed.
    pub fn unsettled(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt + counts.processing + counts.failed,
            Self::Reminders(counts) => counts.in_progress + counts.failed,
        }
    }
}

impl RunCounts {
    /// Rows that failed, are in doubt or are under another worker's lease: a run must come back to them.
    pub fn left_behind(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt + counts.failed,
            Self::Reminders(counts) => counts.in_progress + counts.failed,
        }
    }

    /// Payments with an unknown outcome.
    pub fn in_doubt(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.in_doubt,
            Self::Reminders(_) => 0,
        }
    }

    /// Payments that the gateway refused to make.
    pub fn rejected(&self) -> u64 {
        match self {
            Self::Payments(counts) => counts.rejected,
            Self::Reminders(_) => 0,
        }
    }
}

/// In words: what was due, and each count that is not zero.
impl fmt::Display for RunCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} due", self.due())?;
        let counted = self.named().into_iter().filter(|(_, count)| *count > 0);
        counted.into_iter().try_for_each(|(name, count)| write!(f, ", {count} {}", name.replace('_', " ")))
    }
}
