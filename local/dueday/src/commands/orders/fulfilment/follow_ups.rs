//! Creates follow-up orders: splits orders, and replaces shipped products.

use billing::Label;
use chrono::{DateTime, Utc};
use clap::Args;
use dynamo::{IDEMPOTENCY_RETENTION, IdempotencyKeyReuse, IdempotentRequest, StoredResponse};
use orders::{Order, OrderId, OrderLine};
use orders_desk::{CreatedFollowUp, DeskError, FollowUpOutcome, OrderDesk, ReplacementRequest};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::commands::orders::fulfilment::fill_waiting_orders::FillReport;
use crate::commands::orders::fulfilment::list::PrintedOrder;
use crate::commands::orders::parse_order_line;
use crate::commands::value_parsers::parse_idempotency_key;
use crate::context::CommandContext;
use crate::{Exit, Failure};

/// The text after the help of `dueday orders split`.
pub const SPLIT_COMMAND_AFTER_HELP: &str = "\
Without --keep, the order keeps the products that one warehouse has in stock; this is for an order that waits for stock. The \
other products get an order of their own, whose id is the id of the order with a part number, such as .2.

Examples:
  dueday orders split 2027-01-31.01JZXCVBNM0123456789ABCDEF
  dueday orders split 2027-01-31.01JZXCVBNM0123456789ABCDEF --keep beans=2 --keep cups=1";

/// The text after the help of `dueday orders replace`.
pub const REPLACE_COMMAND_AFTER_HELP: &str = "\
The replacement is another order with the amount 0. It is filled or waits like a new order. Each call creates a replacement. Use \
--idempotency-key if you may have to repeat the command: for 48 hours, a repeated command with the same key sends nothing again.

Examples:
  dueday orders replace 2027-01-31.01JZXCVBNM0123456789ABCDEF --reason 'parcel lost' --line beans=1
  dueday orders replace 2027-01-31.01JZXCVBNM0123456789ABCDEF --reason 'parcel lost' --idempotency-key ticket-4711";

/// The arguments of `dueday orders split`.
#[derive(Debug, Args)]
pub struct SplitArgs {
    order: OrderId,
    /// A product that the order keeps, and its quantity, such as beans=2 [default: what one warehouse has in stock]
    #[arg(long, value_name = "PRODUCT=N", value_parser = parse_order_line)]
    keep: Vec<OrderLine>,
}

/// The arguments of `dueday orders replace`.
#[derive(Debug, Args)]
pub struct ReplaceArgs {
    order: OrderId,
    /// Why the products are sent again; the action log contains it
    #[arg(long)]
    reason: Label,
    /// A product to send again, and its quantity, such as beans=2 [default: all products of the order]
    #[arg(long = "line", value_name = "PRODUCT=N", value_parser = parse_order_line)]
    lines: Vec<OrderLine>,
    /// A text that identifies this replacement, such as a ticket number; the same text means the same replacement
    #[arg(long, value_name = "KEY", value_parser = parse_idempotency_key)]
    idempotency_key: Option<String>,
}

/// The output of the commands `split` and `replace` with `--json`: the order, and its new follow-up order.
#[derive(Serialize)]
struct FollowUpView {
    order: PrintedOrder,
    follow_up: PrintedOrder,
}

/// Splits an order, and fills waiting orders.
pub async fn split_order(context: &CommandContext, desk: &OrderDesk, args: &SplitArgs) -> Result<Exit, Failure> {
    let keep = Some(args.keep.as_slice()).filter(|keep| !keep.is_empty());
    let outcome = desk.split_order(args.order, keep, None, |_| String::new(), |_| Ok::<_, DeskError>(())).await?;
    fill_orders_and_print_follow_up(context, desk, args.order, outcome).await
}

/// Sends products of a shipped order again, and fills waiting orders.
pub async fn replace_products(context: &CommandContext, desk: &OrderDesk, args: &ReplaceArgs) -> Result<Exit, Failure> {
    let lines = Some(args.lines.clone()).filter(|lines| !lines.is_empty());
    let replacement = ReplacementRequest { lines, reason: args.reason.clone() };
    let request = args.idempotency_key.as_ref().map(|key| replacement_request_with_key(args, key, context.clock.now()));
    let to_json = |created: &CreatedFollowUp| json!(created.follow_up.id.to_string()).to_string();
    match desk.create_replacement(args.order, &replacement, request.as_ref(), to_json).await? {
        FollowUpOutcome::Replayed(IdempotencyKeyReuse::SameRequest(stored)) => {
            print_existing_replacement(context, desk, args, &stored).await
        }
        FollowUpOutcome::Replayed(IdempotencyKeyReuse::KeyReused) => Err(Failure::Refused(
            "--idempotency-key belongs to a replacement of other products or for another reason; use another key"
                .to_owned(),
        )),
        created @ FollowUpOutcome::Created(_) => {
            fill_orders_and_print_follow_up(context, desk, args.order, created).await
        }
    }
}

/// Returns the idempotency record of a replacement with the idempotency key `key`. The hash of the key contains the
/// order, so the same key can be used for another order.
fn replacement_request_with_key(args: &ReplaceArgs, key: &str, now: DateTime<Utc>) -> IdempotentRequest {
    let ReplaceArgs { order, reason, lines, .. } = args;
    let mut lines: Vec<String> = lines.iter().map(|line| format!("{}={}", line.product, line.quantity)).collect();
    lines.sort();
    IdempotentRequest {
        made_at: now,
        key_hash: format!("{:x}", Sha256::digest(format!("replace-{order}-{key}"))),
        request_hash: format!("{:x}", Sha256::digest(json!([lines, reason]).to_string())),
        response: StoredResponse::default(),
        expires_at: now + IDEMPOTENCY_RETENTION,
    }
}

/// Prints the order and the replacement order that an earlier command with the same idempotency key created. `stored`
/// contains the id of the replacement order.
async fn print_existing_replacement(
    context: &CommandContext,
    desk: &OrderDesk,
    args: &ReplaceArgs,
    stored: &StoredResponse,
) -> Result<Exit, Failure> {
    let id: Option<String> = serde_json::from_str(&stored.json).ok();
    let id: OrderId = id.and_then(|id| id.parse().ok()).ok_or(DeskError::NoOrder(args.order))?;
    let order = async |id| Ok::<_, Failure>(desk.table.get_order(id).await?.ok_or(DeskError::NoOrder(id))?.0);
    let (order, follow_up) = (order(args.order).await?, order(id).await?);
    let view = FollowUpView { order: PrintedOrder::from(&order), follow_up: PrintedOrder::from(&follow_up) };
    context.print(&view, || {
        format!(
            "the products were already sent again with the order {id}, which is {}. This command sent nothing again. To \
             send them once more, use another --idempotency-key\n",
            follow_up.status
        )
    })?;
    Ok(Exit::Done)
}

/// Fills waiting orders, and prints the two orders.
async fn fill_orders_and_print_follow_up(
    context: &CommandContext,
    desk: &OrderDesk,
    id: OrderId,
    outcome: FollowUpOutcome,
) -> Result<Exit, Failure> {
    let FollowUpOutcome::Created(created) = outcome else {
        // This case does not occur: `split` sends no idempotency key, and `replace` calls this function only with a new
        // follow-up order.
        return Err(DeskError::WriteConflict { item: format!("the order {id}") }.into());
    };
    let report = FillReport::fill_waiting_orders(context, desk).await;
    // Filling may have changed both orders, so they are read again.
    let CreatedFollowUp { order, follow_up } = *created;
    let [order, follow_up] = [reload_order(desk, order).await?, reload_order(desk, follow_up).await?];
    let view = FollowUpView { order: PrintedOrder::from(&order), follow_up: PrintedOrder::from(&follow_up) };
    context.print(&view, || {
        let line = |order: &Order| {
            let products: Vec<String> =
                order.lines.iter().map(|line| format!("{} x {}", line.quantity, line.product)).collect();
            format!("the order {} is {} and has {}\n", order.id, order.status, products.join(", "))
        };
        format!("{}{}{}\n", line(&order), line(&follow_up), report.text())
    })?;
    Ok(report.exit())
}

/// Returns the stored order with the id of `order`; `order` itself if no such order is stored any more.
async fn reload_order(desk: &OrderDesk, order: Order) -> Result<Order, Failure> {
    Ok(desk.table.get_order(order.id).await?.map_or(order, |(order, _)| order))
}
