//! `dueday receipts`: lists an account's receipts, newest first.

use api::ReceiptView;
use billing::{AccountId, GatewayToken, Receipt};
use chrono_tz::Tz;
use clap::Args;
use store::Paging;

use crate::commands::list_output::{LimitArgs, ListOutput, account_not_found, start_search_progress};
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::local_time::format_minutes;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The columns of the table of receipts.
const COLUMNS: [TableColumn; 10] = [
    TableColumn::unwrapped("number"),
    TableColumn::unwrapped("due date"),
    TableColumn::text("product"),
    TableColumn::number("paid"),
    TableColumn::number("refunded"),
    TableColumn::number("reversed"),
    TableColumn::number("net"),
    TableColumn::unwrapped(""),
    TableColumn::unwrapped("paid at"),
    TableColumn::unwrapped("payment"),
];

/// Returns the table with one row for `receipt`.
pub fn receipt_table(receipt: &Receipt, zone: Tz) -> String {
    format_table(&COLUMNS, [receipt_row(receipt, zone)])
}

/// The arguments of `dueday receipts`.
#[derive(Debug, Args)]
#[command(after_help = "\
`dueday receipt show NUMBER` finds a receipt by its number. The column refunded includes pending refunds.

Examples:
  dueday receipts acme
  dueday receipts --payment pi_3QabcdefGHIJ")]
pub struct ReceiptsArgs {
    /// The account's id
    #[arg(required_unless_present = "payment")]
    pub account: Option<AccountId>,
    /// Only the receipt of the payment with this id at the gateway; without an account, reads the whole table
    #[arg(long, value_name = "ID")]
    pub payment: Option<GatewayToken>,
    #[command(flatten)]
    pub limit: LimitArgs,
}

/// Runs `dueday receipts`.
pub async fn run_receipts_command(context: &CommandContext, args: &ReceiptsArgs) -> Result<Exit, Failure> {
    let OpenTable { table: stored, .. } = &OpenTable::open(context, FolderRequirement::MustExist).await?;
    let (now, zone) = (context.clock.now(), stored.policy().zone);
    let is_searched = |receipt: &Receipt| args.payment.as_ref().is_none_or(|payment| receipt.payment == *payment);
    let mut list = ListOutput::new();
    match &args.account {
        Some(account) => {
            let paging = if args.payment.is_some() { Paging::all() } else { args.limit.paging() };
            list = ListOutput::from(stored.get_receipts_by_account(account, &paging, now).await?);
            list.items.retain(is_searched);
            if list.is_empty() && stored.get_account(account).await?.is_none() {
                return Err(account_not_found(account));
            }
        }
        None => {
            let progress = start_search_progress(true, "receipts");
            let each = |receipt| {
                progress.inc(1);
                list.push_if_selected(receipt, args.limit, is_searched)
            };
            stored.scan_receipts(now, each).await?;
        }
    }
    list.print::<ReceiptView>(context, "receipt", &COLUMNS, |receipt| receipt_row(receipt, zone))
}

/// Returns the cells of the table row of `receipt`. Its time is in the billing time zone `zone`.
fn receipt_row(receipt: &Receipt, zone: Tz) -> Vec<String> {
    let reversed = receipt.reversal.map(|reversal| reversal.amount.decimal());
    vec![
        receipt.number().to_string(),
        receipt.due_on.to_string(),
        receipt.product_name.as_str().to_owned(),
        receipt.amount.decimal(),
        if receipt.refunded.minor() > 0 { receipt.refunded.decimal() } else { String::new() },
        reversed.unwrap_or_default(),
        receipt.net_amount().decimal(),
        receipt.amount.currency().to_string(),
        format_minutes(receipt.processed_at, zone),
        receipt.payment.to_string(),
    ]
}
