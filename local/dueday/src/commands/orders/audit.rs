//! `dueday orders audit`: checks all items of the orders table, and compares the stock with its movements, the quarter
//! totals with the orders, and the orders with the receipts of their payments.

use std::collections::BTreeMap;
use std::ops::Range;

use audit::{Invariant, MAX_ORDER_DELAY, OrderDifference, OrderSummary, compare_orders_with_receipts};
use chrono::{DateTime, Utc};
use clap::Args;
use indicatif::ProgressBar;
use orders_table::{OrdersAudit, OrdersAuditReport, OrdersTable, write_opening_movements};
use serde::Serialize;
use store::{ItemFault, TableError};

use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::{self, format_count};
use crate::terminal::progress::ProgressDisplay;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders audit`.
pub const AFTER_HELP: &str = "\
The checks:
  readable       every item can be read
  consistent     every attribute agrees with its key, and with the attributes
                 that determine it
  related        every item by which an index finds an entity agrees with the
                 entity's own item, and none is missing
  expiring       only the saved responses to requests expire, and all of them do
  stock          the stock of a product in a warehouse is the sum of its movements
  total_stock    the total stock of a product is the sum of its stock in all warehouses
  quarter_total  the quarter total of a representative is the sum of the orders that count
  paid           every order has a receipt of its payment, unless the receipt has expired
  ordered        every receipt for a SKU with products has an order

The command reads both tables. It verifies each difference with another scan, so a change during the audit is no \
difference. It exits with 1 if there is a difference, or if a number changed during each scan.

Earlier versions recorded no movements, so the stock from before is not compared with movements. Write its opening \
movements once with --open, after all parts of the system have the new version. The stock does not change.

Examples:
  dueday orders audit
  dueday orders audit --open
  dueday orders audit --json";

/// The columns of the table of differences.
const COLUMNS: [TableColumn; 4] = [
    TableColumn::unwrapped("check"),
    TableColumn::text("item"),
    TableColumn::text("expected"),
    TableColumn::text("found"),
];

/// The arguments of `dueday orders audit`.
#[derive(Debug, Args)]
pub struct AuditOrdersArgs {
    /// Write an opening movement for each stock that has none: a stock that an earlier version stored without movements
    #[arg(long)]
    open: bool,
}

/// The output of the command with `--json`.
#[derive(Debug, Serialize)]
struct OrdersAuditView {
    /// The number of items of the orders table.
    items: u64,
    orders: u64,
    /// The number of receipts for SKUs whose payments need an order.
    receipts: u64,
    differences: Vec<OrderDifference>,
    /// The numbers (stocks or totals) that changed during each scan, so that they could not be compared.
    changed: Vec<String>,
    /// False if the table on AWS has no orders, so that no payment was required to have one.
    payments_compared: bool,
    /// The number of stocks without an opening movement, which records the stock from before the first movement.
    without_opening: usize,
    /// The number of opening movements that `--open` has written.
    #[serde(skip_serializing_if = "Option::is_none")]
    opened: Option<u64>,
}

pub async fn audit_orders(
    context: &CommandContext,
    orders: &OrdersTable,
    open_table: &OpenTable,
    args: &AuditOrdersArgs,
) -> Result<Exit, Failure> {
    let progress = ProgressDisplay::show(ProgressBar::new_spinner(), "{spinner} {msg}", |bar| bar.message());
    let verifying = || progress.set_message("verifying differences with another scan");
    let now = context.clock.now();
    let mut audit = OrdersAudit::begin(orders).with_items_checked(now);
    let mut recent = OrderSummary::new(now, open_table.table.receipt_retention());
    while let Some(page) = audit.next_orders().await? {
        page.iter().for_each(|order| recent.add(order));
        progress.set_message(format!("{} read", format_count(audit.items(), "item")));
    }
    let OrdersAuditReport { items, differences, unverified, unopened, faulty } = audit.finish(verifying).await?;
    let mut all: Vec<OrderDifference> = differences.iter().map(OrderDifference::from).collect();
    // An unreadable item of the orders table may be a movement. An opening movement that is computed without this
    // movement would be wrong, so no opening movements are written.
    let is_readable = faulty.iter().all(|faulty| faulty.fault != ItemFault::Unreadable);
    all.extend(faulty.iter().map(OrderDifference::from));
    let ordered = time_range_with_orders(context, orders, open_table, &recent, now).await?;
    let on_receipts = |read| progress.set_message(format!("{} compared", format_count(read, "receipt")));
    let paid = compare_orders_with_receipts(&open_table.table, orders, &recent, now, ordered, on_receipts).await?;
    all.extend(paid.differences);
    all.sort();
    all.dedup();
    let opened = match args.open {
        true if is_readable => {
            let opening = || progress.set_message("computing the opening movements");
            Some(write_opening_movements(orders, context.clock.as_ref(), &unopened, opening).await?)
        }
        true => Some(0),
        false => None,
    };
    drop(progress);
    let report = OrdersAuditView {
        items,
        orders: recent.orders(),
        receipts: paid.receipts,
        differences: all,
        payments_compared: context.options.table().is_none() || recent.orders() > 0,
        changed: unverified.iter().map(ToString::to_string).collect(),
        without_opening: unopened.len().saturating_sub(usize::try_from(opened.unwrap_or_default()).unwrap_or_default()),
        opened,
    };
    context.print(&report, || orders_audit_text(&report))?;
    let is_opened = !args.open || report.without_opening == 0;
    Ok(Exit::done_if(report.differences.is_empty() && report.changed.is_empty() && is_opened))
}

/// Returns the time range in which every payment must have an order. `recent` are the orders of the table.
async fn time_range_with_orders(
    context: &CommandContext,
    orders: &OrdersTable,
    open_table: &OpenTable,
    recent: &OrderSummary,
    now: DateTime<Utc>,
) -> Result<Range<DateTime<Utc>>, Failure> {
    Ok(match context.options.table() {
        // On AWS, a merchant may have turned on the order desk later. Payments before the first order do not need an
        // order.
        Some(_) => {
            let first = recent.first_paid_at().unwrap_or(now);
            let from = match orders.ordered_from().await {
                // The settings cannot be read, which is a difference. Then no payment is required to have an order.
                Err(TableError::Unreadable { .. }) => now,
                from => from?.map_or(first, |from| from.max(first)),
            };
            from..now - MAX_ORDER_DELAY
        }
        // In the local system, the order desk is always on, so each payment needs an order. This process has placed the
        // orders of all payments, unless another process serves the table: that process may not have placed the newest
        // orders yet.
        None if open_table.is_served_by_another_process() => DateTime::<Utc>::MIN_UTC..now - MAX_ORDER_DELAY,
        None => DateTime::<Utc>::MIN_UTC..now,
    })
}

/// Returns the report as text.
fn orders_audit_text(report: &OrdersAuditView) -> String {
    let OrdersAuditView { items, orders, receipts, differences, changed, payments_compared, without_opening, opened } =
        report;
    let read =
        [format_count(*items, "item"), format_count(*orders, "order"), format_count(*receipts, "receipt")].join(", ");
    let mut by_check = BTreeMap::<Invariant, u64>::new();
    for difference in differences {
        let count = by_check.entry(difference.check).or_default();
        *count = count.saturating_add(1);
    }
    let mut lines = String::new();
    if !differences.is_empty() {
        let rows = differences.iter().map(|difference| {
            let OrderDifference { check, item, expected, found } = difference;
            vec![output::red_text(&check.to_string()), item.clone(), expected.clone(), found.clone()]
        });
        lines += &format!("{}\n", format_table(&COLUMNS, rows));
    }
    let counts: Vec<String> = by_check.iter().map(|(check, count)| format!("{check} {count}")).collect();
    lines += &match differences.len() {
        0 => format!("{read}: {}\n", output::green_text("no differences")),
        some => format!("{read}: {} ({})\n", format_count(some as u64, "difference"), counts.join(", ")),
    };
    for number in changed {
        lines += &format!("not compared, because it changed during each scan: {number}\n");
    }
    if !payments_compared {
        lines += "there is no order yet, so no payment was required to have an order\n";
    }
    if let Some(opened) = opened {
        lines += &format!("{} written\n", format_count(*opened, "opening movement"));
    }
    if *without_opening > 0 && differences.iter().any(|difference| difference.check == Invariant::Readable) {
        lines += "opening movements are written only when every item of the table can be read\n";
    } else if *without_opening > 0 {
        let count = format_count(*without_opening as u64, "stock");
        lines += &format!("{count} without an opening movement: write them with `dueday orders audit --open`\n");
    }
    if !by_check.is_empty() {
        lines += "\nNext steps\n";
        by_check.keys().for_each(|check| lines += &format!("{check}: {}\n", check.next_step()));
    }
    lines
}
