//! `dueday receipts`: an account's receipts, newest first.

use api::ReceiptView;
use billing::{AccountId, Receipt};
use clap::Args;

use super::found::{Found, LimitArgs, no_account};
use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::terminal::table::Column;
use crate::{Exit, Failure};

const COLUMNS: [Column; 7] = [
    Column::whole("due date"),
    Column::text("product"),
    Column::number("amount"),
    Column::whole(""),
    Column::whole("taken back"),
    Column::extra("paid at"),
    Column::extra("payment"),
];

/// `dueday receipts`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  dueday receipts acme")]
pub struct ReceiptsArgs {
    /// The account
    pub account: AccountId,
    #[command(flatten)]
    pub limit: LimitArgs,
}

pub async fn receipts(context: &Context, args: &ReceiptsArgs) -> Result<Exit, Failure> {
    let Opened { table, .. } = &Opened::open(context, Folder::Existing).await?;
    let (account, now) = (&args.account, context.clock.now());
    let found = Found::from(table.get_receipts_by_account(account, &args.limit.paging(), now).await?);
    if found.is_empty() && table.get_account(account).await?.is_none() {
        return Err(no_account(account));
    }
    found.show::<ReceiptView>(context, "receipt", &COLUMNS, row)
}

fn row(receipt: &Receipt) -> Vec<String> {
    vec![
        receipt.due_on.to_string(),
        receipt.product_name.as_str().to_owned(),
        receipt.amount.decimal(),
        receipt.amount.currency().to_string(),
        receipt.reversal.map(|reversal| reversal.at.format("%Y-%m-%d").to_string()).unwrap_or_default(),
        receipt.processed_at.format("%Y-%m-%d %H:%M").to_string(),
        receipt.payment.to_string(),
    ]
}
