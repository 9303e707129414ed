//! `dueday audit`: checks the invariants of all items in the table, and stores the result. `dueday audit list` and
//! `dueday audit show` show stored audits.

mod stored_audits;

use std::collections::BTreeSet;

use audit::{
    AuditRecorder, BrokenInvariant, Invariant, InvariantChecker, Reconciliation, SubscriptionRepair, check_other_items,
    check_prices,
};
use billing::{ActionKind, AmountRules, AuditRecord, NewAction};
use clap::{Args, Subcommand};
use gateways::GatewayError;
use indicatif::ProgressBar;
use serde::Serialize;
use store::{AccountPartition, Table, UpdateOutcome};
use ulid::Ulid;

use crate::commands::every_day::endpoint_audit::audit_endpoints;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The maximum number of repairs that the command makes.
const MAX_REPAIRS: usize = 1_000;

/// The columns of the table of violations.
const COLUMNS: [TableColumn; 3] =
    [TableColumn::unwrapped("invariant"), TableColumn::text("item"), TableColumn::text("problem")];

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
                       before its due date or long after it; no lease ends too late
  recorded_in_past     no payment, receipt, reminder or change has a time in the
                       future, and no month is paid long before it is due
  chargeable           the gateway can charge every price of a subscription that is
                       not cancelled
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

In the audits of the function on AWS, if there is an order desk:
  ordered              every receipt for a SKU with products has an order
  paid                 every order has a receipt of its payment
  stock                every stock is the sum of its movements
  total_stock          the total stock of a product is the sum over the warehouses
  quarter_total        the total of a representative is the sum of the orders
  compared             these numbers could be compared (`dueday orders audit`)
  related              every item by which an index finds an entity agrees with the
                       entity's own item, and none is missing

With --fix, the command shows and makes the repairs of NextPaymentDate and NextReminderDate, and of the leases and dates \
that a clock that was ahead wrote, if nothing else is wrong with the subscription. Audit again afterwards.

The command reads the whole table. It exits with 1 if an invariant is broken. Months whose records have expired are \
not checked. The audit and its violations are stored for 90 days, and the event audit.completed is published at its end. \
An interrupted audit continues with --resume.

Examples:
  dueday audit
  dueday audit list
  dueday audit --resume
  dueday audit --gateway-list
  dueday audit --fix
  dueday audit --table TABLE --json")]
#[command(args_conflicts_with_subcommands = true)]
pub struct AuditArgs {
    #[command(subcommand)]
    pub command: Option<AuditCommand>,
    /// Continue the latest audit, which was interrupted
    #[arg(long, conflicts_with = "gateway_list")]
    pub resume: bool,
    /// Also compare receipts, refunds and disputes with the gateway's lists
    #[arg(long)]
    pub gateway_list: bool,
    /// Show the repairs of damaged dates of the indexes and of leases that end too late, and make them
    #[arg(long)]
    pub fix: bool,
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

/// The commands for stored audits.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the audits of the last 90 days, the newest first
    List(stored_audits::ListAuditsArgs),
    /// Show a stored audit and its violations
    Show(stored_audits::ShowAuditArgs),
}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct AuditReport {
    /// The id of the stored audit.
    audit: Ulid,
    accounts: u64,
    subscriptions: u64,
    /// The number of all violations.
    violations: u64,
    /// The first violations, sorted: at most [`MAX_SHOWN_VIOLATIONS`].
    broken: Vec<BrokenInvariant>,
    /// The repairs that `--fix` has made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    repairs: Vec<SubscriptionRepair>,
}

/// Runs `dueday audit`.
pub async fn run_audit_command(context: &CommandContext, args: &AuditArgs) -> Result<Exit, Failure> {
    match &args.command {
        Some(AuditCommand::List(list)) => return stored_audits::list_stored_audits(context, list).await,
        Some(AuditCommand::Show(show)) => return stored_audits::show_stored_audit(context, show).await,
        None => {}
    }
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let mut audit = AuditInProgress::begin(context, &open_table, args).await?;
    let progress = ProgressDisplay::show(ProgressBar::new_spinner(), "{spinner} {msg}", |bar| bar.message());
    let possible_repairs = audit.check_items(&progress).await?;
    let AuditInProgress { table, checker, mut recorder, .. } = audit;
    let mut broken = audit_endpoints(context, &open_table, checker.now).await?;
    broken.extend(checker.check_runs(table).await?);
    recorder.add_violations(broken).await?;
    drop(progress);
    let (ended, mut shown) = recorder.end(context.clock.now()).await?;
    shown.sort();
    let repairable: BTreeSet<String> = possible_repairs.iter().map(|repair| repair.key.clone()).collect();
    let repairs = if args.fix { possible_repairs } else { Vec::new() };
    let report = AuditReport {
        audit: ended.id,
        accounts: ended.accounts,
        subscriptions: ended.subscriptions,
        violations: ended.violation_count(),
        broken: shown,
        repairs,
    };
    make_repairs(table, args, &report.repairs, &context.new_log_entry(ActionKind::FixAudit, None)).await?;
    context.print(&report, || audit_text(&report, ended.violations.keys(), &repairable))?;
    Ok(Exit::done_if(report.violations == 0))
}

/// An audit that has begun: its checks, and the recorder of their results.
struct AuditInProgress<'a> {
    table: &'a Table,
    checker: InvariantChecker,
    /// The amounts that the gateway can charge, with which prices are compared.
    rules: AmountRules,
    /// The comparison with the gateway's lists; `None` if the audit does not compare them.
    reconciliation: Option<Reconciliation>,
    recorder: AuditRecorder<'a>,
}

impl<'a> AuditInProgress<'a> {
    /// Begins a new audit, or continues the latest audit, which was interrupted.
    ///
    /// # Errors
    /// [`Failure::Refused`] if no audit was interrupted, or if the gateway's lists are to be compared and the gateway
    /// is not available.
    async fn begin(context: &CommandContext, open_table: &'a OpenTable, args: &AuditArgs) -> Result<Self, Failure> {
        let table = &open_table.table;
        let now = context.clock.now();
        let checker = InvariantChecker::new(table, &open_table.settings, now);
        let stored = if args.resume { Some(stored_audits::interrupted_audit(table, now).await?) } else { None };
        let mut reconciliation = None;
        let mut rules = open_table.known_amount_rules(context);
        let mut unlisted = Vec::new();
        if args.gateway_list || stored.as_ref().is_some_and(|stored| stored.has_gateway_lists) {
            let gateway = open_table.gateway(context).await?;
            let (started, missing) =
                Reconciliation::begin(gateway, checker, open_table.settings.table_id).await.map_err(gateway_failure)?;
            (reconciliation, unlisted) = (Some(started), missing);
            rules = open_table.amount_rules(context).await;
        }
        let recorder = match stored {
            // The interrupted audit has recorded at its start which lists the gateway does not offer, so these lists
            // are not recorded again.
            Some(stored) => AuditRecorder::resume(table, stored),
            None => {
                let audit = AuditRecord::new(context.clock.ulid(), args.gateway_list, now);
                let mut recorder = AuditRecorder::begin(table, audit).await?;
                recorder.add_violations(unlisted).await?;
                recorder
            }
        };
        Ok(Self { table, checker, rules, reconciliation, recorder })
    }

    /// Checks all items that the audit has not checked yet, and records the violations. Returns the possible repairs of
    /// the first damaged subscriptions.
    async fn check_items(&mut self, progress: &ProgressDisplay) -> Result<Vec<SubscriptionRepair>, Failure> {
        let partitions = self.table.account_partitions_after(self.recorder.audit().position.clone());
        let mut partitions = partitions.with_other_items_checked(self.checker.now);
        let mut possible_repairs = Vec::new();
        loop {
            let next = partitions.next().await?;
            let mut broken = check_other_items(self.table, partitions.take_checked_items()).await?;
            let Some(partition) = next else {
                self.recorder.add_at_end(broken);
                return Ok(possible_repairs);
            };
            broken.extend(self.check_account(&partition).await?);
            let is_damaged = !broken.is_empty();
            self.recorder.add_account(&partition, broken, partitions.position()).await?;
            if is_damaged && possible_repairs.len() < MAX_REPAIRS {
                possible_repairs.extend(self.checker.find_repairs(partition));
            }
            progress.set_message(format!("{} read", format_count(self.recorder.audit().accounts, "account")));
        }
    }

    /// Returns the violations of the account of `partition`.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the gateway's lists are compared, and the gateway is not available any more.
    async fn check_account(&mut self, partition: &AccountPartition) -> Result<Vec<BrokenInvariant>, Failure> {
        let mut broken = self.checker.check_account(partition);
        broken.extend(check_prices(partition, &self.rules));
        if let Some(reconciliation) = &mut self.reconciliation {
            broken.extend(reconciliation.compare_account(partition).await.map_err(gateway_failure)?);
        }
        Ok(broken)
    }
}

/// Returns the failure of the command because of an `error` of the gateway.
fn gateway_failure(error: GatewayError) -> Failure {
    Failure::Refused(error.to_string())
}

/// Shows `repairs`, asks for confirmation, and makes the repairs. Skips subscriptions that have changed since the audit
/// read them.
async fn make_repairs(
    table: &Table,
    args: &AuditArgs,
    repairs: &[SubscriptionRepair],
    action: &NewAction,
) -> Result<(), Failure> {
    for repair in repairs {
        output::print_message(format!("repair of {}: {}", repair.key, repair.changes.join(", ")));
    }
    if repairs.is_empty() {
        return Ok(());
    }
    let count = format_count(u64::try_from(repairs.len()).unwrap_or(u64::MAX), "repair");
    args.confirmation.confirm(&format!("Make {count}?"))?;
    // If the command is interrupted, the action log keeps this entry, which contains no count.
    table.put_action(&action.on_job([])).await?;
    let mut repaired = 0_u64;
    for repair in repairs {
        match table.update_subscription(&repair.stored, &repair.repaired).await? {
            UpdateOutcome::Applied(_) => repaired = repaired.saturating_add(1),
            UpdateOutcome::Conflict(_) => {
                output::print_message(format!("{} has changed meanwhile and was not repaired", repair.key));
            }
        }
    }
    Ok(table.put_action(&action.on_job([("repaired", repaired)])).await?)
}

/// Returns the report as text. `violated` are the names of the violated invariants, and `repairable` the keys of the
/// subscriptions that `--fix` can repair.
fn audit_text<'a>(
    report: &AuditReport,
    violated: impl Iterator<Item = &'a String>,
    repairable: &BTreeSet<String>,
) -> String {
    let AuditReport { audit, accounts, subscriptions, violations, broken, repairs } = report;
    let read = format!("{} and {}", format_count(*accounts, "account"), format_count(*subscriptions, "subscription"));
    if *violations == 0 {
        return format!("{read}: every invariant {}\n", output::green_text("holds"));
    }
    let rows = broken
        .iter()
        .map(|broken| vec![output::red_text(&broken.invariant.to_string()), broken.key.clone(), broken.what.clone()]);
    let rest = match u64::try_from(broken.len()) {
        Ok(shown) if shown < *violations => format!(
            "{shown} of {} are shown; see the stored ones with `dueday audit show {audit}`\n",
            format_count(*violations, "violation")
        ),
        _ => String::new(),
    };
    let count = format_count(*violations, "violation");
    let invariants: BTreeSet<Invariant> = violated.filter_map(|name| name.parse().ok()).collect();
    let steps: String = invariants
        .iter()
        .map(|invariant| format!("{invariant}: {}\n", advice_for_violations(*invariant, report, repairable)))
        .collect();
    let repaired = match repairs.len() {
        0 => String::new(),
        _ => format!(
            "{} repaired; audit again\n",
            format_count(u64::try_from(repairs.len()).unwrap_or(u64::MAX), "subscription")
        ),
    };
    format!("{}{rest}{read}: {count}\n{repaired}\nNext steps\n{steps}", format_table(&COLUMNS, rows))
}

/// Returns what a person does about the violations of `invariant`: if `--fix` can repair all of them, nothing is
/// corrected by hand.
fn advice_for_violations(invariant: Invariant, report: &AuditReport, repairable: &BTreeSet<String>) -> &'static str {
    let mut violations = report.broken.iter().filter(|broken| broken.invariant == invariant).peekable();
    match violations.peek().is_some() && violations.all(|broken| repairable.contains(&broken.key)) {
        true => "Repair it with `dueday audit --fix`, and audit again.",
        false => invariant.next_step(),
    }
}
