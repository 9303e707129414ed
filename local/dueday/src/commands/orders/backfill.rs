//! `dueday orders backfill`: places the orders of months that were paid before their SKU had products.

use std::collections::{BTreeMap, BTreeSet};

use billing::{ActionKind, Receipt, Sku};
use chrono::NaiveDate;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::ProgressBar;
use orders::{OrderDesk, OrderId, OrderStatus, PaidPeriod, PlaceOutcome};
use serde::Serialize;
use store::Table;

use super::filling::FillReport;
use crate::commands::values::parse_date;
use crate::context::Context;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::Progress;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

pub const AFTER_HELP: &str = "\
Use this command after you have defined the products of a SKU whose months are already paid. It reads all receipts, and \
places the order of each paid month of the SKU that has none, oldest payment first. A month that was refunded in full or \
reversed by the bank, and a month of an erased account, gets no order. Repeating the command changes nothing.

Examples:
  dueday orders backfill gold --dry-run
  dueday orders backfill gold silver --from 2027-01-01";

const COLUMNS: [Column; 5] = [
    Column::text("sku"),
    Column::number("orders"),
    Column::number("customers"),
    Column::whole("first payment"),
    Column::whole("last payment"),
];

/// How many receipts are compared with the orders in one request.
const RECEIPTS_PER_REQUEST: usize = 100;

/// The arguments of `dueday orders backfill`.
#[derive(Debug, Args)]
pub struct BackfillArgs {
    /// The SKUs whose paid months get orders
    #[arg(value_name = "SKU", required = true)]
    skus: Vec<Sku>,
    /// Only months that were paid on this day or later
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    from: Option<NaiveDate>,
    /// Only months that were paid on this day or earlier
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    to: Option<NaiveDate>,
    /// Show what would be ordered, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
}

/// The months of a SKU that have no order.
#[derive(Serialize)]
struct MissingMonths {
    sku: Sku,
    orders: usize,
    customers: usize,
    first_paid_on: NaiveDate,
    last_paid_on: NaiveDate,
}

#[derive(Serialize)]
struct BackfillReport {
    missing: Vec<MissingMonths>,
    /// The number of placed orders by status; absent with `--dry-run`.
    placed: Option<BTreeMap<String, u64>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    fill: Option<FillReport>,
}

pub async fn backfill(
    context: &Context,
    desk: &OrderDesk,
    open_table: &OpenTable,
    args: &BackfillArgs,
) -> Result<Exit, Failure> {
    for sku in &args.skus {
        if desk.table.lines_of_sku(sku).await?.is_empty() {
            return Err(Failure::Refused(format!(
                "the SKU {sku} has no products: define them first with `{}`",
                context.command_line("orders import FILE")
            )));
        }
    }
    let months = missing_months(context, desk, &open_table.table, args).await?;
    let mut report = BackfillReport { missing: summary(context, &months), placed: None, fill: None };
    if args.dry_run || months.is_empty() {
        context.print(&report, || text(&report))?;
        return Ok(Exit::Done);
    }
    if !context.options.json {
        output::print_message(text(&report).trim_end());
    }
    args.confirmation.confirm(&format!("Place {}?", format_count(months.len() as u64, "order")))?;
    let action = context.action(ActionKind::BackfillOrders, None);
    // An interrupted job keeps this entry, without its counts.
    open_table.table.put_action(&action.on_job([])).await?;
    let placed = place_all(desk, &months).await?;
    let counts = [("placed", placed.values().sum::<u64>())];
    open_table.table.put_action(&action.on_job(counts)).await?;
    let fill = FillReport::fill_waiting_orders(context, desk).await;
    let exit = fill.exit();
    let by_status = placed.iter().map(|(status, count)| format!("{count} {status}")).collect::<Vec<_>>().join(", ");
    let shown = format!("{} placed: {by_status}\n", format_count(counts[0].1, "order"));
    report.placed = Some(placed);
    report.fill = Some(fill);
    context.print(&report, || shown)?;
    Ok(exit)
}

/// Places the orders of `months`. Returns the number of orders by status.
async fn place_all(desk: &OrderDesk, months: &[PaidPeriod]) -> Result<BTreeMap<String, u64>, Failure> {
    let bar = ProgressBar::new(months.len() as u64);
    let progress =
        Progress::show(bar, "{bar:30} {pos} of {len} orders", |bar| format!("{} orders placed", bar.position()));
    let mut placed = BTreeMap::new();
    for month in months {
        if let PlaceOutcome::Placed(status) = desk.place(month).await? {
            let count: &mut u64 = placed.entry(OrderStatus::to_string(&status)).or_default();
            *count = count.saturating_add(1);
        }
        progress.inc(1);
    }
    Ok(placed)
}

/// Returns the paid months that `args` selects and that have no order, oldest payment first.
async fn missing_months(
    context: &Context,
    desk: &OrderDesk,
    payments: &Table,
    args: &BackfillArgs,
) -> Result<Vec<PaidPeriod>, Failure> {
    let zone = context.config.billing.zone;
    let is_selected = |receipt: &Receipt| {
        let paid_on = receipt.processed_at.with_timezone(&zone).date_naive();
        args.skus.contains(&receipt.sku)
            && args.from.is_none_or(|from| from <= paid_on)
            && args.to.is_none_or(|to| paid_on <= to)
            && receipt.net().minor() > 0
    };
    let progress = Progress::of_reading("receipts");
    let receipts = payments.all_receipts(context.clock.now()).inspect(|_| progress.inc(1));
    let mut receipts = std::pin::pin!(
        receipts.try_filter(|receipt| std::future::ready(is_selected(receipt))).try_chunks(RECEIPTS_PER_REQUEST)
    );
    let mut missing = Vec::new();
    while let Some(chunk) = receipts.next().await {
        let chunk = chunk.map_err(|error| error.1)?;
        let months: Vec<PaidPeriod> = chunk.iter().map(paid_period).collect();
        let ids: Vec<_> = months.iter().map(|month| (month.order, month.account.clone())).collect();
        for (month, has_order) in months.into_iter().zip(desk.table.have_orders(&ids).await?) {
            if !has_order && payments.get_account(&month.account).await?.is_some() {
                missing.push(month);
            }
        }
    }
    missing.sort_by_key(|month| (month.paid_at, month.order));
    Ok(missing)
}

fn paid_period(receipt: &Receipt) -> PaidPeriod {
    PaidPeriod {
        order: OrderId { due_on: receipt.due_on, subscription: receipt.subscription },
        account: receipt.account.clone(),
        sku: receipt.sku.clone(),
        amount: receipt.amount,
        paid_at: receipt.processed_at,
    }
}

/// Returns the counts of each SKU. `months` is sorted by payment.
fn summary(context: &Context, months: &[PaidPeriod]) -> Vec<MissingMonths> {
    let mut by_sku = BTreeMap::<&Sku, Vec<&PaidPeriod>>::new();
    for month in months {
        by_sku.entry(&month.sku).or_default().push(month);
    }
    let day = |month: &PaidPeriod| month.paid_at.with_timezone(&context.config.billing.zone).date_naive();
    let counts = by_sku.into_iter().filter_map(|(sku, months)| {
        let (first, last) = (months.first()?, months.last()?);
        let customers: BTreeSet<_> = months.iter().map(|month| &month.account).collect();
        Some(MissingMonths {
            sku: sku.clone(),
            orders: months.len(),
            customers: customers.len(),
            first_paid_on: day(first),
            last_paid_on: day(last),
        })
    });
    counts.collect()
}

fn text(report: &BackfillReport) -> String {
    if report.missing.is_empty() {
        return "each paid month has an order\n".to_owned();
    }
    let row = |missing: &MissingMonths| {
        vec![
            missing.sku.to_string(),
            missing.orders.to_string(),
            missing.customers.to_string(),
            missing.first_paid_on.to_string(),
            missing.last_paid_on.to_string(),
        ]
    };
    table(&COLUMNS, report.missing.iter().map(row))
}
