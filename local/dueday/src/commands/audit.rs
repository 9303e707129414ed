//! `dueday audit`: whether the whole table holds its invariants.

use audit::unfinished_runs;
use audit::{Broken, Judge, Reconciliation};
use clap::Args;
use days::DayReader;
use gateways::GatewayError;
use indicatif::ProgressBar;
use serde::Serialize;
use store::Batch;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::output::{self, count};
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

const COLUMNS: [Column; 3] = [Column::whole("invariant"), Column::text("item"), Column::text("what")];

/// `dueday audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
  readable             every item can be read
  month_accounted_for  every month since the first due date is paid, waived or owed
  paid_once            no month is paid twice
  indexed              what is to be charged is in the payment index, and what is stopped in none
  shard_swept          every shard is one that the runs walk
  dates_near           no date lies further ahead than it can, and no payment is
                       planned before its due date or long after it
  runs_finished        what a run has left, a later run has walked to its end
  resolved             every payment without a receipt is resolved (`dueday findings`)
  owned                every record has its subscription, and every subscription its account
  refunded             a receipt counts its refunds, and none is pending for long
  disputed             a disputed payment method is not charged, and any other is

With --gateway-list:
  receipted            receipts and the gateway's payments are the same, for every customer that a subscription, a receipt or an \
attempt names
  refunded             refunds and the gateway's refunds are the same
  disputed             disputes and the gateway's disputes are the same
  listed               the gateway lists the payments of every customer

Reads the whole table. Exits with 1 if anything is broken. Months whose records have expired are not judged.

Examples:
  dueday audit
  dueday audit --gateway-list
  dueday audit --table dueday --json")]
pub struct AuditArgs {
    /// Compare receipts, refunds and disputes with the gateway's lists
    #[arg(long)]
    pub gateway_list: bool,
}

#[derive(Serialize)]
struct Audited {
    accounts: u64,
    subscriptions: u64,
    broken: Vec<Broken>,
}

pub async fn audit(context: &Context, args: &AuditArgs) -> Result<Exit, Failure> {
    let opened = Opened::open(context, Folder::Existing).await?;
    let judge = Judge {
        shards: opened.settings.shards,
        today: context.today(),
        now: context.clock.now(),
        records_kept: opened.table.receipts_kept(),
        retry_days: context.config.billing.policy.dunning.days(),
        lease: context.config.charging.lease,
    };
    let mut audited = Audited { accounts: 0, subscriptions: 0, broken: Vec::new() };
    let refused = |error: GatewayError| Failure::Refused(error.to_string());
    let mut reconciliation = None;
    if args.gateway_list {
        let gateway = opened.gateway(context).await?;
        let (begun, unlisted) =
            Reconciliation::begin(gateway, judge, opened.settings.table_id).await.map_err(refused)?;
        audited.broken.extend(unlisted);
        reconciliation = Some(begun);
    }
    let bar = ProgressBar::new_spinner();
    let mut partitions = opened.table.partitions();
    while let Some(partition) = partitions.next().await? {
        audited.accounts += 1;
        audited.subscriptions += u64::try_from(partition.subscriptions.len()).unwrap_or(u64::MAX);
        audited.broken.extend(judge.judge(&partition));
        if let Some(reconciliation) = &mut reconciliation {
            audited.broken.extend(reconciliation.compare(&partition).await.map_err(refused)?);
        }
        bar.set_message(format!("{} read", count(audited.accounts, "account")));
        bar.tick();
    }
    for batch in Batch::ALL {
        let (table, zone) = (&opened.table, context.config.billing.zone);
        let mut reader = DayReader::new(table, batch, opened.settings.shards, zone, judge.now);
        audited.broken.extend(unfinished_runs(&mut reader, judge.today).await?);
    }
    bar.finish_and_clear();
    audited.broken.sort();
    context.print(&audited, || text(&audited))?;
    Ok(Exit::of(audited.broken.is_empty()))
}

fn text(audited: &Audited) -> String {
    let Audited { accounts, subscriptions, broken } = audited;
    let read = format!("{} and {}", count(*accounts, "account"), count(*subscriptions, "subscription"));
    if broken.is_empty() {
        return format!("{read}: every invariant {}\n", output::good("holds"));
    }
    let rows = broken
        .iter()
        .map(|broken| vec![output::bad(&broken.invariant.to_string()), broken.key.clone(), broken.what.clone()]);
    let findings = count(u64::try_from(broken.len()).unwrap_or(u64::MAX), "finding");
    format!("{}{read}: {findings}\n", table(&COLUMNS, rows))
}
