//! `dueday audit`: checks the invariants of all items in the table.

use std::collections::BTreeSet;

use audit::unfinished_runs;
use audit::{BrokenInvariant, Invariant, InvariantChecker, Reconciliation, Repair};
use clap::Args;
use days::DayReader;
use gateways::GatewayError;
use indicatif::ProgressBar;
use serde::Serialize;
use store::{Batch, Table, UpdateOutcome};

use super::endpoint_audit::audit_endpoints;
use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::Progress;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 3] = [Column::whole("invariant"), Column::text("item"), Column::text("problem")];

/// The arguments of `dueday audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
The invariants:
  readable             every item can be read
  month_accounted_for  every month since the first due date is paid, waived or owed
  paid_once            no month is paid twice
  stored_once          every subscription is stored once, and no payment has two
                       receipts in one account
  consistent           every attribute agrees with its key, and with the attributes
                       and records that determine it
  attempt_matches      an open attempt has the due date, the price and the number of
                       its subscription
  expiring             every payment record expires, and none exists long after that
  indexed              the payment index contains every subscription that will be
                       charged, and no stopped one
  shard_swept          every subscription is in a shard that the runs process
  dates_near           no date is too far in the future, and no payment is planned
                       before its due date or long after it
  runs_finished        a later run has finished every shard that a run left unfinished
  resolved             every payment without a receipt is resolved (`dueday findings`)
  encrypted            every signing secret of a webhook endpoint is encrypted
  owned                every record has its subscription, and every subscription its
                       account
  refunded             every receipt contains the sum of its refunds, and no refund is
                       pending for long
  disputed             payment methods with an open dispute are not charged, and all
                       others are

With --gateway-list:
  receipted            the receipts match the gateway's payments, for every customer
                       that a subscription, a receipt or an attempt names
  refunded             the refunds match the gateway's refunds
  disputed             the disputes match the gateway's disputes
  listed               the gateway lists the payments of every customer

With --fix, the command shows and makes the repairs of NextPaymentDate and NextReminderDate, if nothing else is wrong \
with the subscription. Audit again afterwards.

The command reads the whole table. It exits with 1 if an invariant is broken. Months whose records have expired are \
not checked.

Examples:
  dueday audit
  dueday audit --gateway-list
  dueday audit --fix
  dueday audit --table dueday --json")]
pub struct AuditArgs {
    /// Also compare receipts, refunds and disputes with the gateway's lists
    #[arg(long)]
    pub gateway_list: bool,
    /// Show the repairs of damaged dates of the indexes, and make them
    #[arg(long)]
    pub fix: bool,
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

#[derive(Serialize)]
struct AuditReport {
    accounts: u64,
    subscriptions: u64,
    broken: Vec<BrokenInvariant>,
    /// The repairs that `--fix` has made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<Repair>,
}

pub async fn audit(context: &Context, args: &AuditArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderPolicy::MustExist).await?;
    let judge = InvariantChecker {
        shards: open_table.settings.shards,
        today: context.today(),
        now: context.clock.now(),
        records_kept: open_table.table.receipt_retention(),
        retry_days: context.config.billing.policy.dunning.days(),
        lease: context.config.charging.lease,
        lead: context.config.billing.policy.lead,
    };
    let mut report = AuditReport { accounts: 0, subscriptions: 0, broken: Vec::new(), repairs: Vec::new() };
    let refused = |error: GatewayError| Failure::Refused(error.to_string());
    let mut reconciliation = None;
    if args.gateway_list {
        let gateway = open_table.gateway(context).await?;
        let (started, unlisted) =
            Reconciliation::begin(gateway, judge, open_table.settings.table_id).await.map_err(refused)?;
        report.broken.extend(unlisted);
        reconciliation = Some(started);
    }
    let progress = Progress::show(ProgressBar::new_spinner(), "{spinner} {msg}", |bar| bar.message());
    let mut partitions = open_table.table.partitions();
    while let Some(partition) = partitions.next().await? {
        report.accounts += 1;
        report.subscriptions += u64::try_from(partition.subscriptions.len()).unwrap_or(u64::MAX);
        report.broken.extend(judge.check(&partition));
        if let Some(reconciliation) = &mut reconciliation {
            report.broken.extend(reconciliation.compare(&partition).await.map_err(refused)?);
        }
        if args.fix {
            report.repairs.extend(judge.repairs(partition));
        }
        progress.set_message(format!("{} read", format_count(report.accounts, "account")));
    }
    report.broken.extend(audit_endpoints(context, &open_table, judge.now).await?);
    for batch in Batch::ALL {
        let (table, zone) = (&open_table.table, context.config.billing.zone);
        let mut reader = DayReader::new(table, batch, open_table.settings.shards, zone, judge.now);
        report.broken.extend(unfinished_runs(&mut reader, judge.today).await?);
    }
    drop(progress);
    report.broken.sort();
    repair(&open_table.table, args, &report.repairs).await?;
    context.print(&report, || text(&report))?;
    Ok(Exit::done_if(report.broken.is_empty()))
}

/// Shows `repairs`, asks for confirmation, and makes them. A subscription that has changed since it was read is not
/// changed.
async fn repair(table: &Table, args: &AuditArgs, repairs: &[Repair]) -> Result<(), Failure> {
    for repair in repairs {
        output::print_message(format!("repair of {}: {}", repair.key, repair.changes.join(", ")));
    }
    if repairs.is_empty() {
        return Ok(());
    }
    let count = format_count(u64::try_from(repairs.len()).unwrap_or(u64::MAX), "repair");
    args.confirmation.confirm(&format!("Make {count}?"))?;
    for repair in repairs {
        if let UpdateOutcome::Conflict(_) = table.update_subscription(&repair.stored, &repair.repaired).await? {
            output::print_message(format!("{} has changed meanwhile and was not repaired", repair.key));
        }
    }
    Ok(())
}

fn text(report: &AuditReport) -> String {
    let AuditReport { accounts, subscriptions, broken, repairs } = report;
    let read = format!("{} and {}", format_count(*accounts, "account"), format_count(*subscriptions, "subscription"));
    if broken.is_empty() {
        return format!("{read}: every invariant {}\n", output::green("holds"));
    }
    let rows = broken
        .iter()
        .map(|broken| vec![output::red(&broken.invariant.to_string()), broken.key.clone(), broken.what.clone()]);
    let findings = format_count(u64::try_from(broken.len()).unwrap_or(u64::MAX), "finding");
    let invariants: BTreeSet<Invariant> = broken.iter().map(|broken| broken.invariant).collect();
    let steps: String =
        invariants.iter().map(|invariant| format!("{invariant}: {}\n", invariant.next_step())).collect();
    let repaired = match repairs.len() {
        0 => String::new(),
        _ => format!(
            "{} repaired; audit again\n",
            format_count(u64::try_from(repairs.len()).unwrap_or(u64::MAX), "subscription")
        ),
    };
    format!("{}{read}: {findings}\n{repaired}\nNext steps\n{steps}", table(&COLUMNS, rows))
}
