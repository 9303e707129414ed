//! `dueday orders backfill`: places the orders of months that were paid before their SKU had products.

use std::collections::{BTreeMap, BTreeSet};

use audit::{is_account_erased, order_id_of_receipt};
use billing::{ActionKind, Policy, Receipt, ReceiptId, RefundStatus, Sku};
use chrono::NaiveDate;
use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use indicatif::ProgressBar;
use orders::{OrderId, OrderStatus, PaidPeriod, RefundEvent};
use orders_desk::{OrderDesk, PlaceOutcome};
use serde::Serialize;
use store::Table;

use crate::commands::orders::fulfilment::fill_waiting_orders::FillReport;
use crate::commands::value_parsers::parse_date;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders backfill`.
pub const AFTER_HELP: &str = "\
Use this command after you have defined the products of a SKU whose months are already paid. It reads all receipts, and \
places the order of each paid month of the SKU that has none, oldest payment first. A month that was refunded in full or \
reversed by the bank, and a month of an erased account, gets no order. Repeating the command changes nothing.

Examples:
  dueday orders backfill gold --dry-run
  dueday orders backfill gold silver --from 2027-01-01";

/// The columns of the table of paid months without an order.
const COLUMNS: [TableColumn; 5] = [
    TableColumn::unwrapped("sku"),
    TableColumn::number("orders"),
    TableColumn::number("customers"),
    TableColumn::unwrapped("first payment"),
    TableColumn::unwrapped("last payment"),
];

/// The number of receipts that are compared with the orders in one request.
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

/// The paid months of a SKU that have no order.
#[derive(Serialize)]
struct MissingMonths {
    sku: Sku,
    orders: usize,
    customers: usize,
    first_paid_on: NaiveDate,
    last_paid_on: NaiveDate,
}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct BackfillReport {
    missing: Vec<MissingMonths>,
    /// The number of selected months that get no order: they were refunded in full or reversed, or the account was erased.
    left_out: u64,
    /// The number of placed orders by status; absent with `--dry-run`.
    placed: Option<BTreeMap<String, u64>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    fill: Option<FillReport>,
}

pub async fn backfill_orders(
    context: &CommandContext,
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
    let found = find_missing_months(context, desk, &open_table.table, args).await?;
    let months = &found.months;
    let mut report = BackfillReport {
        missing: summarize_by_sku(&open_table.table.policy(), months),
        left_out: found.left_out,
        placed: None,
        fill: None,
    };
    if args.dry_run || months.is_empty() {
        context.print(&report, || backfill_text(&report))?;
        return Ok(Exit::Done);
    }
    if !context.options.json {
        output::print_message(backfill_text(&report).trim_end());
    }
    args.confirmation.confirm(&format!("Place {}?", format_count(months.len() as u64, "order")))?;
    let action = context.new_log_entry(ActionKind::BackfillOrders, None);
    // The action log gets an entry without counts before the work, so that the log also contains an interrupted
    // backfill.
    open_table.table.put_action(&action.on_job([])).await?;
    // This command places the orders of earlier payments only for the selected SKUs, so the other earlier payments may
    // have no orders. Audits now require orders only for payments after this time.
    desk.table.set_ordered_from(context.clock.now()).await?;
    let placed = place_missing_orders(desk, &open_table.table, months).await?;
    let counts = [("placed", placed.values().sum::<u64>())];
    open_table.table.put_action(&action.on_job(counts)).await?;
    let fill = FillReport::fill_waiting_orders(context, desk).await;
    let is_complete = counts[0].1 == months.len() as u64;
    let exit = if fill.exit() == Exit::Done { Exit::done_if(is_complete) } else { fill.exit() };
    let by_status = placed.iter().map(|(status, count)| format!("{count} {status}")).collect::<Vec<_>>().join(", ");
    let mut shown = format!("{} placed: {by_status}\n", format_count(counts[0].1, "order"));
    if !is_complete {
        shown += &format!(
            "{} are not placed: another process placed them, their SKU lost its products, or their account is \
            being erased\n",
            format_count(months.len() as u64 - counts[0].1, "order")
        );
    }
    report.placed = Some(placed);
    report.fill = Some(fill);
    context.print(&report, || shown)?;
    Ok(exit)
}

/// Places the orders of `months`. Before each order, records the successful refunds of the order's payment, because the
/// order desk may not have received the events of these refunds. Returns the number of placed orders by status.
async fn place_missing_orders(
    desk: &OrderDesk,
    payments: &Table,
    months: &[PaidPeriod],
) -> Result<BTreeMap<String, u64>, Failure> {
    let bar = ProgressBar::new(months.len() as u64);
    let progress =
        ProgressDisplay::show(bar, "{bar:30} {pos} of {len} orders", |bar| format!("{} orders placed", bar.position()));
    let mut placed = BTreeMap::new();
    for month in months {
        progress.inc(1);
        if is_account_erased(payments, &month.account).await? {
            continue;
        }
        let OrderId { due_on, subscription, .. } = month.order;
        let receipt = ReceiptId { due_on, subscription, sku: month.sku.clone() };
        for refund in payments.get_refunds_by_receipt(&month.account, &receipt).await? {
            if refund.status == RefundStatus::Succeeded {
                let (order, account) = (month.order, month.account.clone());
                let (refund, amount) = (refund.id.to_string(), refund.amount);
                desk.record_refund(&RefundEvent { order, account, refund, amount, has_failed: false }).await?;
            }
        }
        if let PlaceOutcome::Placed(status) = desk.place_order(month).await? {
            let count: &mut u64 = placed.entry(OrderStatus::to_string(&status)).or_default();
            *count = count.saturating_add(1);
        }
    }
    Ok(placed)
}

/// The paid months that the arguments select and that have no order.
struct FoundMonths {
    /// The months whose orders can be placed, oldest payment first.
    months: Vec<PaidPeriod>,
    /// The number of the months whose orders are not placed: they were refunded in full or reversed, or the account was
    /// erased.
    left_out: u64,
}

/// Returns the paid months that `args` selects and that have no order.
async fn find_missing_months(
    context: &CommandContext,
    desk: &OrderDesk,
    payments: &Table,
    args: &BackfillArgs,
) -> Result<FoundMonths, Failure> {
    let is_selected = |receipt: &Receipt| {
        let paid_on = payments.policy().date_at(receipt.processed_at);
        args.skus.contains(&receipt.sku)
            && args.from.is_none_or(|from| from <= paid_on)
            && args.to.is_none_or(|to| paid_on <= to)
    };
    let progress = ProgressDisplay::of_read_items("receipts");
    let receipts = payments.all_receipts(context.clock.now()).inspect(|_| progress.inc(1));
    let mut receipts = std::pin::pin!(
        receipts.try_filter(|receipt| std::future::ready(is_selected(receipt))).try_chunks(RECEIPTS_PER_REQUEST)
    );
    let (mut months, mut left_out) = (Vec::new(), 0_u64);
    while let Some(chunk) = receipts.next().await {
        let chunk = chunk.map_err(|error| error.1)?;
        let ids: Vec<_> = chunk.iter().map(|receipt| (order_id_of_receipt(receipt), receipt.account.clone())).collect();
        let orders = desk.table.get_orders(&ids).await?;
        for (receipt, _) in chunk.iter().zip(orders).filter(|(_, order)| order.is_none()) {
            match receipt.net_amount().minor() > 0 && !is_account_erased(payments, &receipt.account).await? {
                true => months.push(paid_period(receipt)),
                false => left_out = left_out.saturating_add(1),
            }
        }
    }
    months.sort_by_key(|month| (month.paid_at, month.order));
    Ok(FoundMonths { months, left_out })
}

/// Returns the paid period that `receipt` proves.
fn paid_period(receipt: &Receipt) -> PaidPeriod {
    PaidPeriod {
        order: order_id_of_receipt(receipt),
        account: receipt.account.clone(),
        sku: receipt.sku.clone(),
        amount: receipt.amount,
        paid_at: receipt.processed_at,
    }
}

/// Returns for each SKU the number of paid months without an order, and the days of the first and the last payment in the
/// billing time zone of `policy`.
/// `months` must be sorted by the time of payment.
fn summarize_by_sku(policy: &Policy, months: &[PaidPeriod]) -> Vec<MissingMonths> {
    let mut by_sku = BTreeMap::<&Sku, Vec<&PaidPeriod>>::new();
    for month in months {
        by_sku.entry(&month.sku).or_default().push(month);
    }
    let day = |month: &PaidPeriod| policy.date_at(month.paid_at);
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

fn backfill_text(report: &BackfillReport) -> String {
    let left_out = match report.left_out {
        0 => String::new(),
        count => format!(
            "{} without an order left out: refunded in full, reversed, or of an erased account\n",
            format_count(count, "month")
        ),
    };
    if report.missing.is_empty() {
        return format!("no order is missing in the selected months\n{left_out}");
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
    format_table(&COLUMNS, report.missing.iter().map(row)) + &left_out
}
