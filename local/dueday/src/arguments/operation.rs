//! What an operator asks and decides: why, whether all was walked, what became of a payment, whether to charge at all.

use chrono::NaiveDate;
use clap::{Args, ValueEnum};
use shared::billing::GatewayToken;

use super::{Batch, Which};

/// `dueday why`.
#[derive(Debug, Args)]
#[command(after_help = "\
Told from the records alone, which are kept for as long as receipts are, and by how the subscription is now.

Exits with 0 when the records explain it, 1 when somebody must look: a payment is open, or owed because the shard was not
walked or the run held back, or for a reason that is not recorded; 2 when there is no such subscription.

Examples:
  dueday why acme 01JZXCVBNM0123456789ABCDEF
  dueday why acme 01JZXCVBNM0123456789ABCDEF --date 2027-01-31 --json
With --table, give --time-zone as it is deployed: it says on which date a payment was made.")]
pub struct Why {
    #[command(flatten)]
    pub which: Which,
    /// The day; today if absent, any day ahead as a forecast
    #[arg(long, value_name = "DATE")]
    pub date: Option<NaiveDate>,
}

/// `dueday resolve`.
#[derive(Debug, Args)]
#[command(after_help = "\
For a payment that was begun and that the gateway can tell nothing of: look it up in the gateway's own records first.
Charged, it is receipted; not charged, it is tried again tomorrow.

Examples:
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --charged pi_3QK8
  dueday resolve acme 01JZXCVBNM0123456789ABCDEF --not-charged
With --table, give --time-zone and --reminder-lead-days as they are deployed.")]
pub struct Resolve {
    #[command(flatten)]
    pub which: Which,
    #[command(flatten)]
    pub known: KnownOutcome,
}

/// What is known of it.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct KnownOutcome {
    /// It was charged: the gateway's identifier of the payment
    #[arg(long, value_name = "PAYMENT")]
    pub charged: Option<GatewayToken>,
    /// It was not charged, and never will be
    #[arg(long)]
    pub not_charged: bool,
}

/// `dueday runs`.
#[derive(Debug, Args)]
#[command(after_help = "\
complete     a chain of runs leads from the shard's start to its end
open         a run has begun and not ended: it goes on, or was cut off
missing      no run has begun
gap          a run went on from where none had ended
unfinished   no run came to the end: it stopped, or ran out of time

Exits with 1 unless every shard is complete and its counts add up.

Example:
  dueday runs --date 2027-01-31 --table dueday")]
pub struct Runs {
    /// The day; today if absent
    #[arg(long, value_name = "DATE")]
    pub date: Option<NaiveDate>,
    /// One of the batches; both if absent
    pub batch: Option<Batch>,
}

/// `dueday charging`.
#[derive(Debug, Args)]
#[command(after_help = "\
Off, runs claim and charge nothing more from their next page on. What the gateway knows of payments that were begun is
still looked up and settled; what is due stays due.

Examples:
  dueday charging off --table dueday
  dueday charging on --table dueday")]
pub struct Charging {
    /// on or off; says which it is if absent
    pub switch: Option<Switch>,
}

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Switch {
    On,
    Off,
}
