//! Lists orders, shows a single order, changes the status of orders, and ranks the representatives.

use billing::{Currency, Label};
use chrono_tz::Tz;
use orders::{Order, OrderId, OrderLine, OrderStatus, OrderStep, Parcel, Quarter, ShippingAddress, range_of_all_days};
use orders_desk::{DeskError, OrderDesk};
use orders_table::CreditedOrder;
use serde::Serialize;
use store::Paging;
use strum::IntoEnumIterator as _;

use crate::commands::list_output::shown_count_text;
use crate::commands::orders::fulfilment::fill_waiting_orders::FillReport;
use crate::commands::orders::{ListOrdersArgs, OrderIds};
use crate::context::CommandContext;
use crate::terminal::local_time::format_minutes;
use crate::terminal::output;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of orders.
const COLUMNS: [TableColumn; 7] = [
    TableColumn::unwrapped("order"),
    TableColumn::unwrapped("customer"),
    TableColumn::unwrapped("status"),
    TableColumn::text("waits for"),
    TableColumn::unwrapped("warehouse"),
    TableColumn::unwrapped("placed"),
    TableColumn::number("paid"),
];
/// The columns of the ranking of representatives.
const RANKING_COLUMNS: [TableColumn; 3] =
    [TableColumn::number("rank"), TableColumn::unwrapped("representative"), TableColumn::number("ordered")];

/// An order, as printed with `--json`.
#[derive(Serialize)]
pub struct PrintedOrder {
    order: String,
    customer: String,
    representative: Option<String>,
    status: OrderStatus,
    /// The order that a follow-up order follows, and the reason. `None` for a main order. Also `None` in the list of a
    /// representative's orders, which does not contain this value.
    #[serde(skip_serializing_if = "Option::is_none")]
    follows: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The number of follow-up orders. `None` if the order has no follow-up orders. Also `None` in the list of a
    /// representative's orders, which does not contain this number.
    #[serde(skip_serializing_if = "Option::is_none")]
    follow_ups: Option<u8>,
    waits_for: Option<String>,
    warehouse: Option<String>,
    placed_at: chrono::DateTime<chrono::Utc>,
    amount: i64,
    /// The refunded part of the amount. `None` if nothing was refunded. Also `None` in the list of a representative's
    /// orders, which does not contain this amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded_amount: Option<i64>,
    currency: String,
    /// The address and the shipment. `None` if the order has no address or no shipment. Also `None` in the list of a
    /// representative's orders, which does not contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<ShippingAddress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shipped_at: Option<chrono::DateTime<chrono::Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    carrier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_number: Option<String>,
    /// True if the returned products were not added to the stock again, otherwise `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    written_off: Option<bool>,
    /// The products and their quantities; `None` in a list of orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<Vec<OrderLineView>>,
}

/// A product of an order, and its quantity.
#[derive(Serialize)]
struct OrderLineView {
    product: String,
    quantity: u32,
}

/// The rank of a representative, as printed with `--json`.
#[derive(Serialize)]
struct RankView {
    rank: usize,
    representative: String,
    amount: i64,
    currency: String,
}

impl From<&Order> for PrintedOrder {
    fn from(order: &Order) -> Self {
        Self {
            order: order.id.to_string(),
            customer: order.customer.to_string(),
            representative: order.representative.as_ref().map(ToString::to_string),
            status: order.status,
            follows: order.follow_up.map(|follow_up| follow_up.follows.to_string()),
            reason: order.follow_up.map(|follow_up| follow_up.reason.to_string()),
            follow_ups: Some(order.follow_ups).filter(|count| *count != 0),
            waits_for: order.waits_for.map(|reason| reason.to_string()),
            warehouse: order.warehouse.as_ref().map(ToString::to_string),
            placed_at: order.placed_at,
            amount: order.total.minor(),
            refunded_amount: Some(order.refunded.minor()).filter(|minor| *minor != 0),
            currency: order.total.currency().to_string(),
            address: order.address.clone(),
            shipped_at: order.shipment.as_ref().map(|shipment| shipment.shipped_at),
            carrier: parcel_text(order, |parcel| parcel.carrier.as_ref()),
            tracking_number: parcel_text(order, |parcel| parcel.tracking_number.as_ref()),
            written_off: order.is_written_off.then_some(true),
            lines: None,
        }
    }
}

/// Returns the carrier or the tracking number of the parcel of an order, as `part` selects; `None` if the order is not
/// shipped or has no such text.
fn parcel_text(order: &Order, part: fn(&Parcel) -> Option<&Label>) -> Option<String> {
    order.shipment.as_ref().and_then(|shipment| part(&shipment.parcel)).map(|label| label.as_str().to_owned())
}

impl PrintedOrder {
    /// Creates the view of an order that is credited to the representative `to`.
    fn from_credited_order(order: &CreditedOrder, to: &str) -> Self {
        Self {
            order: order.order.to_string(),
            customer: order.customer.to_string(),
            representative: Some(to.to_owned()),
            status: order.status,
            follows: None,
            reason: None,
            follow_ups: None,
            waits_for: None,
            warehouse: None,
            placed_at: order.placed_at,
            amount: order.total.minor(),
            refunded_amount: Some(order.refunded.minor()).filter(|minor| *minor != 0),
            currency: order.total.currency().to_string(),
            address: None,
            shipped_at: None,
            carrier: None,
            tracking_number: None,
            written_off: None,
            lines: None,
        }
    }

    /// Returns the cells of the order's table row.
    fn table_cells(&self, zone: Tz) -> Vec<String> {
        let currency: Option<Currency> = self.currency.parse().ok();
        let paid = currency.map(|currency| billing::Money::new(self.amount, currency).to_string());
        vec![
            self.order.clone(),
            self.customer.clone(),
            self.status.to_string(),
            self.waits_for.clone().unwrap_or_default(),
            self.warehouse.clone().unwrap_or_default(),
            format_minutes(self.placed_at, zone),
            paid.unwrap_or_default(),
        ]
    }
}

/// Lists the orders that `args` select. Its days and times are those of the billing time zone `zone`.
pub async fn list_orders(
    context: &CommandContext,
    desk: &OrderDesk,
    zone: Tz,
    args: &ListOrdersArgs,
) -> Result<Exit, Failure> {
    let (first, last) = range_of_all_days();
    let days = (args.from.unwrap_or(first), args.to.unwrap_or(last));
    if days.0 > days.1 {
        return Err(Failure::Refused(format!("--from {} is after --to {}", days.0, days.1)));
    }
    // The requested days are in the billing time zone, but the index contains UTC days. So the query covers one more
    // day at each end, and the orders of other days are filtered out below.
    let requested_days = days;
    let days = (days.0.pred_opt().unwrap_or(days.0), days.1.succ_opt().unwrap_or(days.1));
    let statuses = if args.status.is_empty() { OrderStatus::iter().collect() } else { args.status.clone() };
    let (mut found, all) = (Vec::<PrintedOrder>::new(), Paging::all());
    if let Some(representative) = &args.representative {
        let orders = desk.table.orders_of_representative(representative, &statuses, days, &all).await?.into_items()?;
        found.extend(orders.iter().map(|order| PrintedOrder::from_credited_order(order, representative.as_str())));
    } else if let Some(customer) = &args.customer {
        let orders = desk.table.orders_of_customer(customer, &statuses, days, &all).await?.into_items()?;
        found.extend(orders.iter().map(PrintedOrder::from));
    } else {
        let orders = desk.table.orders_of_all_customers(&statuses, days, desk.buckets(), &all).await?.into_items()?;
        found.extend(orders.iter().map(PrintedOrder::from));
    }
    found.retain(|order| {
        let day = order.placed_at.with_timezone(&zone).date_naive();
        (requested_days.0..=requested_days.1).contains(&day)
    });
    let has_more = found.len() > args.limit.max_items();
    found.truncate(args.limit.max_items());
    context.print(&found, || match found.len() {
        0 => "no orders were found\n".to_owned(),
        some => {
            let rows = found.iter().map(|order| order.table_cells(zone));
            format!("{}\n{}", format_table(&COLUMNS, rows), shown_count_text(some, "order", has_more))
        }
    })?;
    Ok(Exit::Done)
}

/// Shows one order with its lines, and its times in the billing time zone `zone`.
pub async fn show_order(context: &CommandContext, desk: &OrderDesk, zone: Tz, id: OrderId) -> Result<Exit, Failure> {
    let Some((order, lines)) = desk.table.get_order(id).await? else {
        return Err(Failure::Refused(format!("there is no order {id}")));
    };
    let lines: Vec<_> =
        lines.iter().map(|line| OrderLineView { product: line.product.to_string(), quantity: line.quantity }).collect();
    let view = PrintedOrder { lines: Some(lines), ..PrintedOrder::from(&order) };
    context.print(&view, || {
        let lines = view.lines.iter().flatten().map(|line| format!("{:>6} x {}\n", line.quantity, line.product));
        let address = view.address.as_ref().map(|address| format!("ship to {}\n", address_line(address)));
        let shipped = view.shipped_at.map(|at| {
            let parcel: Vec<&str> =
                [&view.carrier, &view.tracking_number].into_iter().flatten().map(String::as_str).collect();
            let at = format_minutes(at, zone);
            format!("shipped at {at}{}{}\n", if parcel.is_empty() { "" } else { ": " }, parcel.join(" "))
        });
        let refunded = view.refunded_amount.map(|_| format!("refunded: {}\n", order.refunded));
        let written_off = view.written_off.map(|_| "the returned products were not sellable\n".to_owned());
        let follow_up = order.follow_up.map(|of| format!("{} of the order {}\n", of.reason, of.follows));
        let follow_ups = view.follow_ups.map(|_| {
            let ids: Vec<String> = order.follow_up_ids().map(|id| id.to_string()).collect();
            format!("follow-up orders: {}\n", ids.join(", "))
        });
        let further =
            [follow_up, address, shipped, refunded, written_off, follow_ups].into_iter().flatten().collect::<String>();
        format!("{}\n{}{further}", format_table(&COLUMNS, [view.table_cells(zone)]), lines.collect::<String>())
    })?;
    Ok(Exit::Done)
}

/// Returns an address in one line.
pub fn address_line(address: &ShippingAddress) -> String {
    let ShippingAddress { name, street, line2, postal_code, city, state, country, region: _, phone } = address;
    let [line2, state] = [line2, state].map(|label| label.as_ref().map(|label| label.as_str()));
    let city = format!("{} {}", postal_code.as_str(), city.as_str());
    let phone = phone.as_ref().map(|phone| phone.as_str());
    let parts = [Some(name.as_str()), Some(street.as_str()), line2, Some(&city), state, Some(country.as_str()), phone];
    Vec::from_iter(parts.into_iter().flatten()).join(", ")
}

/// Changes the status of each order to `next`. If an order cannot be changed, prints a message and continues. If orders
/// were cancelled or returned, fills waiting orders.
pub async fn change_order_status(
    context: &CommandContext,
    desk: &OrderDesk,
    ids: &OrderIds,
    next: OrderStatus,
) -> Result<Exit, Failure> {
    change_status_of_each_order(context, desk, ids.orders.iter().map(|id| (*id, next.into()))).await
}

/// Changes the products of an order that is not picked yet, and fills waiting orders.
pub async fn change_order_lines(
    context: &CommandContext,
    desk: &OrderDesk,
    id: OrderId,
    lines: &[OrderLine],
) -> Result<Exit, Failure> {
    let order = desk.change_lines(id, lines, |_| Ok::<_, DeskError>(())).await?;
    let report = FillReport::fill_waiting_orders(context, desk).await;
    // Filling waiting orders may have changed this order, so it is read again.
    let order = desk.table.get_order(id).await?.map_or(order, |(order, _)| order);
    let view = PrintedOrder::from(&order);
    context.print(&view, || {
        let products = order.lines.iter().map(|line| format!("{} x {}", line.quantity, line.product));
        format!("the order {id} has {}; {}\n", products.collect::<Vec<_>>().join(", "), report.text())
    })?;
    Ok(report.exit())
}

/// Changes the status of each order. A step contains the next status, and the details of the change. If an order cannot
/// be changed, prints a message and continues. If orders were cancelled or returned, fills waiting orders.
pub async fn change_status_of_each_order(
    context: &CommandContext,
    desk: &OrderDesk,
    steps: impl IntoIterator<Item = (OrderId, OrderStep)>,
) -> Result<Exit, Failure> {
    let (mut moved, mut is_complete) = (Vec::new(), true);
    for (id, step) in steps {
        match desk.advance_order(id, step).await {
            Ok(order) => moved.push(PrintedOrder::from(&order)),
            Err(error) => {
                is_complete = false;
                output::print_message(format!("{id}: {error}"));
            }
        }
    }
    let restores_stock =
        moved.iter().any(|order| matches!(order.status, OrderStatus::Cancelled | OrderStatus::Returned));
    let report = if restores_stock { Some(FillReport::fill_waiting_orders(context, desk).await) } else { None };
    context.print(&moved, || {
        let filled = report.iter().map(|report| format!("{}\n", report.text()));
        moved.iter().map(|order| format!("{} is {}\n", order.order, order.status)).chain(filled).collect()
    })?;
    let exit = report.map_or(Exit::Done, |report| report.exit());
    Ok(if exit == Exit::Done { Exit::done_if(is_complete) } else { exit })
}

/// Ranks the representatives by the orders of their customers in a quarter.
pub async fn rank_representatives(
    context: &CommandContext,
    desk: &OrderDesk,
    quarter: Quarter,
    currency: Currency,
) -> Result<Exit, Failure> {
    let ranking = desk.table.get_ranking(quarter, currency).await?;
    let ranked: Vec<RankView> = ranking
        .iter()
        .zip(1..)
        .map(|(total, rank)| RankView {
            rank,
            representative: total.representative.to_string(),
            amount: total.total.minor(),
            currency: currency.to_string(),
        })
        .collect();
    context.print(&ranked, || {
        let cells = |(total, view): (&orders::QuarterTotal, &RankView)| {
            vec![view.rank.to_string(), view.representative.clone(), total.total.to_string()]
        };
        match ranked.len() {
            0 => format!("no representative is credited with orders in {currency} in {quarter}\n"),
            _ => format_table(&RANKING_COLUMNS, ranking.iter().zip(&ranked).map(cells)),
        }
    })?;
    Ok(Exit::Done)
}
