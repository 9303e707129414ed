//! `dueday refund`: refunds a payment or a part of it.

use api::RefundView;
use billing::{ActionKind, Label, Money, Receipt, ReceiptNumber, Refund, RefundDemand, RefundRefusal, RefundStatus};
use clap::Args;
use gateway_objects::{RefundError, RefundRequester, refund_id_with_key, refund_id_without_key};
use ulid::Ulid;

use crate::commands::act::receipt_args::ReceiptSelector;
use crate::commands::value_parsers::parse_idempotency_key;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::{Exit, Failure};

/// The arguments of `dueday refund`.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
`dueday receipts ACCOUNT` shows the numbers of receipts.

Repeating an interrupted command is safe: the repeated command is the same refund, which is looked up at the gateway \
first. To refund the same amount of the same receipt a second time, give the second refund an --idempotency-key. After \
a failed refund, the same command is a new refund.

If the bank has reversed the payment, or an open dispute can still make it do so, the customer would get the money \
twice. The command then refuses the refund; with --although-disputed, it is made nevertheless, and the action log says so.

The outcome of a pending refund is not known yet. Its amount counts as refunded until the gateway reports the outcome. \
The command exits with 1 if the refund is pending or has failed.

With --table, also give --gateway with the deployed value.

Examples:
  dueday refund 202701-7KQ29M-4T3XWA --reason 'ticket 4711'
  dueday refund 202701-7KQ29M-4T3XWA --amount 5.00 --reason 'ticket 4711'
  dueday refund 202701-7KQ29M-4T3XWA --reason again --idempotency-key ticket-12"
)]
pub struct RefundArgs {
    #[command(flatten)]
    pub receipt: ReceiptSelector,
    /// The amount, in the payment's currency [default: the paid amount without the refunded, the reversed and the
    /// disputed amount]
    #[arg(long, value_name = "AMOUNT")]
    pub amount: Option<String>,
    /// A text that identifies this refund, such as a ticket number; the same text means the same refund
    #[arg(long, value_name = "KEY", value_parser = parse_idempotency_key)]
    pub idempotency_key: Option<String>,
    /// Refund the money even if the bank has reversed it, or may still reverse it because of an open dispute
    #[arg(long)]
    pub although_disputed: bool,
    /// Look up the existing refund with this id again
    #[arg(long, value_name = "ID", value_parser = parse_ulid, conflicts_with_all = ["amount", "although_disputed", "idempotency_key", "reason"])]
    pub id: Option<Ulid>,
    /// The reason for the refund, for the action log; do not write personal data into it
    #[arg(long, value_name = "TEXT", required_unless_present = "id")]
    pub reason: Option<Label>,
    #[command(flatten)]
    pub confirmation: ConfirmationArgs,
}

/// Parses the id of a refund.
fn parse_ulid(text: &str) -> Result<Ulid, String> {
    text.parse()
        .map_err(|_| "must be a ULID: 26 digits and capital letters, such as 01JZXCVBNM0123456789ABCDEF".to_owned())
}

/// Runs `dueday refund`.
pub async fn run_refund_command(context: &CommandContext, args: &RefundArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let receipt = args.receipt.find_receipt(&open_table.table, context.clock.now()).await?;
    let (account, id) = (&receipt.account, &receipt.id());
    let failure = |error| refund_failure(args, error);
    let refunds =
        RefundRequester::new(open_table.table.clone(), open_table.gateway(context).await?, context.clock.clone());
    let (refund, is_repeated) = match args.id {
        Some(refund) => (refunds.refund_again(account, id, refund).await.map_err(failure)?, false),
        None => {
            let has_daily_limit = context.options.role.has_refund_limit();
            if has_daily_limit && args.although_disputed {
                let role = context.options.role;
                return Err(Failure::Refused(format!("--although-disputed needs the role admin, not {role}")));
            }
            let requested_amount = requested_amount(args, &receipt)?;
            let amount = requested_amount.map(|minor| Money::new(minor, receipt.amount.currency()).to_string());
            let amount = amount.unwrap_or_else(|| "everything that was not refunded yet".to_owned());
            let paid = format!("of the {} that {account} paid for {}", receipt.amount, receipt.product_name.as_str());
            args.confirmation.confirm(&format!("Refund {amount} {paid} (receipt {})?", receipt.number()))?;
            let stored = open_table.table.get_refunds_by_receipt(account, id).await?;
            let refund_id = match &args.idempotency_key {
                Some(key) => refund_id_with_key(account, id, key),
                None => refund_id_without_key(account, id, requested_amount, &stored),
            };
            let action = context.new_log_entry(ActionKind::CreateRefund, args.reason.as_ref());
            let demand =
                RefundDemand { minor: requested_amount, although_disputed: args.although_disputed, has_daily_limit };
            let refund = refunds.refund(account, id, refund_id, demand, Some(&action)).await;
            let refund = refund.map_err(failure)?;
            let is_repeated =
                stored.iter().any(|before| before.id == refund_id && before.status != RefundStatus::Failed);
            (refund, is_repeated)
        }
    };
    let is_done = refund.status == RefundStatus::Succeeded;
    let text = refund_text(context, &refund, is_repeated);
    context.print(&RefundView::from(refund), || text)?;
    open_table.mention_unpublished_changes(context)?;
    Ok(if is_done { Exit::Done } else { Exit::Attention })
}

/// Returns the requested amount in minor units of the receipt's currency; `None` for the whole refundable amount.
fn requested_amount(args: &RefundArgs, receipt: &Receipt) -> Result<Option<i64>, Failure> {
    let parsed = |text: &String| Money::parse(text, receipt.amount.currency()).map(Money::minor);
    let requested_amount = args.amount.as_ref().map(parsed).transpose();
    let text = args.amount.as_deref().unwrap_or_default();
    requested_amount.map_err(|error| Failure::Refused(format!("invalid value '{text}' for --amount: {error}")))
}

/// Returns the failure of the command if the refund failed with `error`.
fn refund_failure(args: &RefundArgs, error: RefundError) -> Failure {
    match error {
        RefundError::Table(error) => error.into(),
        RefundError::Gateway(error) => Failure::Refused(format!("{error}. Repeat the same command")),
        RefundError::Refused(RefundRefusal::InvalidAmount { remaining }) => Failure::Refused(format!(
            "invalid value '{}' for --amount: must be greater than zero and at most {remaining}, the remaining amount of \
             the payment",
            args.amount.as_deref().unwrap_or_default()
        )),
        RefundError::Refused(RefundRefusal::Disputed { .. }) => {
            Failure::Refused(format!("{error}. To refund more nevertheless, add --although-disputed"))
        }
        RefundError::AmountMismatch { .. } => {
            Failure::Refused("--idempotency-key belongs to a refund with another amount; use another key".to_owned())
        }
        error => Failure::Refused(error.to_string()),
    }
}

fn refund_text(context: &CommandContext, refund: &Refund, is_repeated: bool) -> String {
    let Refund { id, account, amount, status, .. } = refund;
    let receipt = ReceiptNumber::new(account, refund.receipt.subscription, refund.receipt.due_on);
    let look_up_command = || context.command_line(&format!("refund {account} {receipt} --id {id}"));
    match status {
        RefundStatus::Succeeded if is_repeated => format!(
            "{amount} of {receipt} was already refunded: refund {id} of {}. This command refunded nothing more. To \
             refund the same amount again, give the new refund an --idempotency-key.\n",
            refund.created_at.format("%Y-%m-%d %H:%M UTC")
        ),
        RefundStatus::Succeeded => format!("{amount} of {receipt} was refunded: refund {id}.\n"),
        RefundStatus::Pending => format!(
            "The refund {id} of {amount} of {receipt} is pending: the gateway has not finished it, or its outcome is \
             unknown. Look it up again with `{}`.\n",
            look_up_command()
        ),
        RefundStatus::Failed => {
            format!("Nothing was refunded: the gateway's code is {}.\n", refund.code.as_deref().unwrap_or("unknown"))
        }
    }
}
