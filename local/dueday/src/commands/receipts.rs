//! `dueday receipts`: lists an account's receipts, newest first.

use api::ReceiptView;
use billing::{AccountId, Receipt};
use clap::Args;

use super::listed_items::{LimitArgs, ListedItems, account_not_found};
use crate::context::Context;
use crate::machine::data::FolderPolicy;
use crate::machine::open_table::OpenTable;
use crate::terminal::table::Column;
use crate::{Exit, Failure};

const COLUMNS: [Column; 10] = [
    Column::whole("number"),
    Column::whole("due date"),
    Column::text("product"),
    Column::number("paid"),
    Column::number("refunded"),
    Column::number("reversed"),
    Column::number("net"),
    Column::whole(""),
    Column::extra("paid at"),
    Column::extra("payment"),
];

/// The arguments of `dueday receipts`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dueday receipts acme")]
pub struct ReceiptsArgs {
    /// The account's id
    pub account: AccountId,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn receipts(context: &Context, args: &ReceiptsArgs) -> Result<Exit, Failure> {
    let OpenTable { table, .. } = &OpenTable::open(context, FolderPolicy::MustExist).await?;
    let (account, now) = (&args.account, context.clock.now());
    let list = ListedItems::from(table.get_receipts_by_account(account, &args.limit.paging(), now).await?);
    if list.is_empty() && table.get_account(account).await?.is_none() {
        return Err(account_not_found(account));
    }
    list.print::<ReceiptView>(context, "receipt", &COLUMNS, row)
}

fn row(receipt: &Receipt) -> Vec<String> {
    let reversed = receipt.reversal.map(|reversal| reversal.amount.decimal());
    vec![
        receipt.number().to_string(),
        receipt.due_on.to_string(),
        receipt.product_name.as_str().to_owned(),
        receipt.amount.decimal(),
        if receipt.refunded.minor() > 0 { receipt.refunded.decimal() } else { String::new() },
        reversed.unwrap_or_default(),
        receipt.net().decimal(),
        receipt.amount.currency().to_string(),
        receipt.processed_at.format("%Y-%m-%d %H:%M").to_string(),
        receipt.payment.to_string(),
    ]
}
