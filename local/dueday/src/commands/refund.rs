//! `dueday refund`: gives a payment back, or a part of it.

use api::RefundView;
use billing::{AccountId, Money, ReceiptId, Refund, RefundRefusal, RefundStatus};
use clap::Args;
use settling::{RefundError, Refunds, id_with_key, id_without_key};
use ulid::Ulid;

use crate::context::Context;
use crate::machine::data::Folder;
use crate::machine::opened::Opened;
use crate::{Exit, Failure};

/// `dueday refund`.
#[derive(Debug, Args)]
#[command(after_help = "\
Receipts have their ids from `dueday receipts ACCOUNT --json`.

The same command is the same refund: repeat a command that was interrupted, and nothing is refunded twice. The refund is looked up at \
the gateway first. To refund the same amount of the same receipt a second time, name the second refund with --idempotency-key. After a \
refund that has failed, the same command is a new refund.

A pending refund may have been made. It counts against what is left of the payment until the gateway says what has become of it. The \
command exits with 1 if the refund is pending or has failed.

With --table, give --gateway as it is deployed.

Examples:
  dueday refund acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold
  dueday refund acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold --amount 5.00
  dueday refund acme 2027-01-31.01JZXCVBNM0123456789ABCDEF.gold --amount 5.00 --idempotency-key ticket-4711")]
pub struct RefundArgs {
    /// The account
    pub account: AccountId,
    /// The receipt's id
    pub receipt: ReceiptId,
    /// How much, in the payment's currency, if not all that is left
    #[arg(long, value_name = "AMOUNT")]
    pub amount: Option<String>,
    /// A text that names this refund, such as the number of a ticket: the same text is the same refund
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub idempotency_key: Option<String>,
    /// Look up the refund with this id again, which was asked for before
    #[arg(long, value_name = "ID", conflicts_with_all = ["amount", "idempotency_key"])]
    pub id: Option<Ulid>,
}

/// Reads an idempotency key, by the rule of the API.
fn key(text: &str) -> Result<String, String> {
    let is_visible = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_valid = is_visible && (1..=255).contains(&text.len());
    is_valid.then(|| text.to_owned()).ok_or_else(|| "must be 1 to 255 visible ASCII characters".to_owned())
}

pub async fn refund(context: &Context, args: &RefundArgs) -> Result<Exit, Failure> {
    let RefundArgs { account, receipt: id, .. } = args;
    let opened = Opened::open(context, Folder::Existing).await?;
    let refunds = Refunds::new(opened.table.clone(), opened.gateway(context).await?, context.clock.clone());
    let (refund, is_repeated) = match args.id {
        Some(refund) => (refunds.refund_again(account, id, refund).await.map_err(refused)?, false),
        None => {
            let minor = minor(context, args, &opened).await?;
            let stored = opened.table.get_refunds_by_receipt(account, id).await?;
            let named = match &args.idempotency_key {
                Some(key) => id_with_key(account, id, key),
                None => id_without_key(account, id, minor, &stored),
            };
            let refund = refunds.refund(account, id, named, minor).await.map_err(refused)?;
            let is_repeated = stored.iter().any(|before| before.id == named && before.status != RefundStatus::Failed);
            (refund, is_repeated)
        }
    };
    let is_done = refund.status == RefundStatus::Succeeded;
    let text = text(context, &refund, is_repeated);
    context.print(&RefundView::from(refund), || text)?;
    Ok(if is_done { Exit::Done } else { Exit::Attention })
}

/// Returns the amount that is asked for in minor units, in the currency of the receipt.
async fn minor(context: &Context, args: &RefundArgs, opened: &Opened) -> Result<Option<i64>, Failure> {
    let receipt = opened.table.get_receipt(&args.account, &args.receipt, context.clock.now()).await?;
    let receipt = receipt.ok_or_else(|| Failure::Refused(RefundError::NoReceipt.to_string()))?;
    let parsed = |text: &String| Money::parse(text, receipt.amount.currency()).map(Money::minor);
    let minor = args.amount.as_ref().map(parsed).transpose();
    minor.map_err(|error| Failure::Refused(format!("--amount {error}")))
}

fn refused(error: RefundError) -> Failure {
    match error {
        RefundError::Table(error) => error.into(),
        RefundError::Gateway(error) => Failure::Refused(format!("{error}. Repeat the same command")),
        RefundError::Refused(RefundRefusal::NotLeft { left }) => Failure::Refused(format!(
            "--amount must be more than nothing and at most {left}, what is left of the payment"
        )),
        RefundError::OtherRefund { .. } => Failure::Refused(
            "--idempotency-key names a refund that was asked for with another amount; use another key".to_owned(),
        ),
        error => Failure::Refused(error.to_string()),
    }
}

fn text(context: &Context, refund: &Refund, is_repeated: bool) -> String {
    let Refund { id, account, receipt, amount, status, .. } = refund;
    let again = || context.hint(&format!("refund {account} {receipt} --id {id}"));
    match status {
        RefundStatus::Succeeded if is_repeated => format!(
            "{amount} of {receipt} was refunded before: refund {id} of {}. Nothing more was refunded; to refund the same amount once \
             more, name the new refund with --idempotency-key.\n",
            refund.created_at.format("%Y-%m-%d %H:%M UTC")
        ),
        RefundStatus::Succeeded => format!("{amount} of {receipt} is refunded: refund {id}.\n"),
        RefundStatus::Pending => format!(
            "The refund {id} of {amount} of {receipt} is pending: the gateway has not finished it, or its outcome is unknown. Look it \
             up again with `{}`.\n",
            again()
        ),
        RefundStatus::Failed => {
            format!("Nothing was refunded: the gateway's code is {}.\n", refund.code.as_deref().unwrap_or("unknown"))
        }
    }
}
