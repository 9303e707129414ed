//! `dueday refund`: gives a payment back, or a part of it.

use api::RefundView;
use clap::Args;
use shared::billing::{AccountId, Money, ReceiptId, Refund, RefundRefusal, RefundStatus};
use shared::refunds::{RefundError, Refunds};
use ulid::Ulid;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday refund`.
#[derive(Debug, Args)]
#[command(after_help = "\
Receipts have their ids from `dueday receipts ACCOUNT --json`. A refund that was interrupted, or that is pending, is settled by the \
next one of the same receipt: it is looked up at the gateway first, and nothing is given back twice. Give --id to ask for the same \
refund again. It exits with 1 if the refund is pending or has failed.

With --table, give --gateway as it is deployed.

Examples:
  dueday refund acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold
  dueday refund acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold --amount 5.00")]
pub struct RefundArgs {
    /// The account
    pub account: AccountId,
    /// The receipt's id
    pub receipt: ReceiptId,
    /// How much, in the payment's currency, if not all that is left
    #[arg(long, value_name = "AMOUNT")]
    pub amount: Option<String>,
    /// The id of a refund that was asked for before
    #[arg(long, value_name = "ID")]
    pub id: Option<Ulid>,
}

pub async fn refund(context: &Context, args: &RefundArgs) -> Result<Exit, Failure> {
    let RefundArgs { account, receipt: id, .. } = args;
    let opened = Opened::open(context, Folder::Existing).await?;
    let receipt = opened.table.get_receipt(account, id, context.clock.now()).await?;
    let receipt = receipt.ok_or_else(|| Failure::Refused(RefundError::NoReceipt.to_string()))?;
    let minor = |text: &String| Money::parse(text, receipt.amount.currency()).map(Money::minor);
    let minor = args.amount.as_ref().map(minor).transpose();
    let minor = minor.map_err(|error| Failure::Refused(format!("--amount {error}")))?;
    let refunds = Refunds::new(opened.table.clone(), opened.gateway(context).await?, context.clock.clone());
    let refund = refunds.refund(account, id, args.id.unwrap_or_else(|| context.clock.ulid()), minor).await;
    let refund = refund.map_err(|error| match error {
        RefundError::Table(error) => error.into(),
        RefundError::Gateway(error) => Failure::Refused(format!("{error}. Ask again")),
        RefundError::Refused(RefundRefusal::NotLeft { left }) => Failure::Refused(format!(
            "--amount must be more than nothing and at most {left}, what is left of the payment"
        )),
        error => Failure::Refused(error.to_string()),
    })?;
    let is_done = refund.status == RefundStatus::Succeeded;
    let text = said(&refund);
    context.print(&RefundView::from(refund), || text)?;
    Ok(if is_done { Exit::Done } else { Exit::Attention })
}

fn said(refund: &Refund) -> String {
    let Refund { id, receipt, amount, status, .. } = refund;
    match status {
        RefundStatus::Succeeded => format!("{amount} of {receipt} is given back: refund {id}.\n"),
        RefundStatus::Pending => {
            format!("{amount} of {receipt} is on its way, or not known yet: ask again with --id {id}.\n")
        }
        RefundStatus::Failed => {
            format!("Nothing was given back: the gateway says {}.\n", refund.code.as_deref().unwrap_or("no more"))
        }
    }
}
