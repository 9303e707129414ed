//! `dueday subscription`: changes, pauses, resumes, cancels, uncancels or retries a subscription, or corrects one of its
//! months.

use std::sync::Arc;

use api::SubscriptionView;
use billing::{
    ActionKind, AmountRules, ChangeRefusal, Currency, EmailAddress, Label, Money, NewAction, PaymentDay, Period,
    Policy, Settlement, Subscription, SubscriptionChanges, WaivedReason,
};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{ArgGroup, Args, Subcommand};
use store::{ChangeOutcome, ChangeRecords};

use crate::commands::find::subscriptions::subscription_table;
use crate::commands::subscription_args::SubscriptionSelector;
use crate::commands::value_parsers::parse_payment_day;
use crate::context::CommandContext;
use crate::machine::data_folder::FolderRequirement;
use crate::machine::open_table::OpenTable;
use crate::terminal::confirmation::ConfirmationArgs;
use crate::{Exit, Failure};

/// The arguments of `dueday subscription`.
#[derive(Debug, Args)]
#[command(after_help = "\
A subscription is named by its id, or by its external_id from an import. If the account has only one subscription, the \
account is enough.

Examples:
  dueday subscription change acme --price 14.99
  dueday subscription pause acme 4711
  dueday subscription cancel acme 01JZXCVBNM0123456789ABCDEF \\
      --at-period-end")]
pub struct SubscriptionArgs {
    #[command(subcommand)]
    pub action: SubscriptionAction,
}

/// The change of a subscription. Repeating a change has no further effect.
#[derive(Debug, Subcommand)]
pub enum SubscriptionAction {
    /// Change the price, the payment day, the product's name or the address for mails
    ///
    /// A new price or payment day applies from the first payment that has not fallen due. If a reminder has announced
    /// another amount or date, a new reminder is sent.
    Change(ChangeSubscriptionArgs),
    /// Stop the payments until the subscription is resumed; refused while a payment is owed or open
    Pause(SubscriptionSelector),
    /// Resume the payments; the last payment that fell due in the pause is charged or waived, as the policy says
    ///
    /// All earlier payments that fell due in the pause are waived. If the setting `resume` of the policy is `charge`, the
    /// default, the last of these payments is owed and is charged by the next run. If it is `wait`, the last payment is
    /// waived too, unless it is due today, and the first charge is on the next payment day.
    Resume(SubscriptionSelector),
    /// Cancel the subscription permanently
    Cancel {
        #[command(flatten)]
        selector: SubscriptionSelector,
        /// Cancel on the next due date, without charging that period, instead of now
        #[arg(long)]
        at_period_end: bool,
        #[command(flatten)]
        confirmation: ConfirmationArgs,
    },
    /// Undo a cancellation at period end
    Uncancel(SubscriptionSelector),
    /// Retry the owed payment at the next run with the same payment method, even if that method is disputed
    Retry(SubscriptionSelector),
    /// Correct the price of the owed month, if the gateway rejects it; refused while an attempt is open
    ///
    /// Later months with the same price get the corrected price, too. After a rejection, the next run charges it; a retry
    /// after a decline keeps its day, and an unpaid subscription needs `retry`.
    CorrectPrice {
        #[command(flatten)]
        selector: SubscriptionSelector,
        /// The price, in the currency of the subscription
        #[arg(long, value_name = "AMOUNT")]
        price: String,
        #[command(flatten)]
        reason: CorrectionReason,
    },
    /// Waive the earliest month that is neither paid nor waived: it is never charged
    Waive(MonthArgs),
    /// Record that the customer has paid the month in another way, such as in cash: it is never charged
    PaidElsewhere(MonthArgs),
}

/// The reason of a correction.
#[derive(Debug, Args)]
pub struct CorrectionReason {
    /// The reason for the correction, for the action log; do not write personal data into it
    #[arg(long, value_name = "TEXT")]
    reason: Label,
}

/// The arguments of a correction by which a month is not charged.
#[derive(Debug, Args)]
pub struct MonthArgs {
    #[command(flatten)]
    selector: SubscriptionSelector,
    /// The month, such as 2027-01
    #[arg(long, value_name = "MONTH")]
    month: Period,
    #[command(flatten)]
    reason: CorrectionReason,
    #[command(flatten)]
    confirmation: ConfirmationArgs,
}

/// The arguments of `dueday subscription change`. Values that are not given stay unchanged.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("changes").required(true).multiple(true)
    .args(["price", "payment_day", "product_name", "email", "account_email"])))]
#[group(skip)]
pub struct ChangeSubscriptionArgs {
    #[command(flatten)]
    selector: SubscriptionSelector,
    /// The new price, in the currency of the subscription
    #[arg(long, value_name = "AMOUNT")]
    price: Option<String>,
    /// The new day of the month, from 1 to 31, or last
    #[arg(long, value_name = "DAY", value_parser = parse_payment_day)]
    payment_day: Option<PaymentDay>,
    /// The new name of the product, for mails and receipts
    #[arg(long, value_name = "NAME")]
    product_name: Option<Label>,
    /// Send the mails of this subscription to this address
    #[arg(long, value_name = "ADDRESS", conflicts_with = "account_email")]
    email: Option<EmailAddress>,
    /// Send the mails of this subscription to the address of the account again
    #[arg(long)]
    account_email: bool,
    /// The reason for the change, for the action log; do not write personal data into it
    #[arg(long, value_name = "TEXT")]
    reason: Option<Label>,
}

impl ChangeSubscriptionArgs {
    /// Returns the changes of a subscription with prices in `currency`. `rules` are the amounts that the gateway can
    /// charge.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the price is not an amount in `currency`, or the gateway can never charge it.
    fn requested_changes(&self, currency: Currency, rules: &AmountRules) -> Result<SubscriptionChanges, Failure> {
        let amount = self.price.as_ref().map(|text| parse_new_price(text, currency, rules));
        Ok(SubscriptionChanges {
            amount: amount.transpose()?,
            payment_day: self.payment_day,
            product_name: self.product_name.clone(),
            email: if self.account_email { Some(None) } else { self.email.clone().map(Some) },
            ..SubscriptionChanges::default()
        })
    }
}

/// Parses `text`, the option `--price`, as an amount in `currency` that the gateway can charge according to `rules`.
/// Returns the amount in minor units.
///
/// # Errors
/// [`Failure::Refused`] if `text` is not an amount in `currency`, or the gateway can never charge it.
fn parse_new_price(text: &str, currency: Currency, rules: &AmountRules) -> Result<i64, Failure> {
    let refused = |error: String| Failure::Refused(format!("invalid value '{text}' for --price: {error}"));
    let price = Money::parse(text, currency).and_then(|money| currency.price(money.minor()));
    let price = price.map_err(|error| refused(error.to_string()))?;
    rules.check_amount(price).map_err(|refusal| refused(refusal.to_string()))?;
    Ok(price.minor())
}

impl SubscriptionAction {
    /// Returns the arguments that identify the subscription.
    fn selector(&self) -> &SubscriptionSelector {
        match self {
            Self::Change(ChangeSubscriptionArgs { selector, .. })
            | Self::Pause(selector)
            | Self::Resume(selector)
            | Self::Cancel { selector, .. }
            | Self::Uncancel(selector)
            | Self::Retry(selector)
            | Self::CorrectPrice { selector, .. } => selector,
            Self::Waive(args) | Self::PaidElsewhere(args) => &args.selector,
        }
    }
}

impl SubscriptionAction {
    /// Creates the entry of the action log for this change.
    fn new_log_entry(&self, context: &CommandContext) -> NewAction {
        let (kind, reason) = match self {
            Self::Change(args) => (ActionKind::ChangeSubscription, args.reason.as_ref()),
            Self::Pause(_) => (ActionKind::PauseSubscription, None),
            Self::Resume(_) => (ActionKind::ResumeSubscription, None),
            Self::Cancel { .. } => (ActionKind::CancelSubscription, None),
            Self::Uncancel(_) => (ActionKind::UncancelSubscription, None),
            Self::Retry(_) => (ActionKind::RetrySubscription, None),
            Self::CorrectPrice { reason, .. } => (ActionKind::CorrectPrice, Some(&reason.reason)),
            Self::Waive(args) => (ActionKind::WaiveMonth, Some(&args.reason.reason)),
            Self::PaidElsewhere(args) => (ActionKind::RecordPaidElsewhere, Some(&args.reason.reason)),
        };
        context.new_log_entry(kind, reason)
    }

    /// Asks for confirmation if the change of `subscription` cannot be undone.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the answer is not yes.
    fn confirm(&self, subscription: &Subscription) -> Result<(), Failure> {
        let Subscription { account, id, product_name, .. } = subscription;
        let product = product_name.as_str();
        match self {
            Self::Cancel { at_period_end: false, confirmation, .. } => {
                confirmation.confirm(&format!("Cancel the subscription {id} ({product}) of {account} now?"))
            }
            Self::Waive(args) => {
                let question = format!("Waive {} of the subscription {id} ({product}) of {account}?", args.month);
                args.confirmation.confirm(&question)
            }
            Self::PaidElsewhere(args) => {
                let month = args.month;
                let question = format!(
                    "Record that {month} of the subscription {id} ({product}) of {account} was paid in another way?"
                );
                args.confirmation.confirm(&question)
            }
            _ => Ok(()),
        }
    }

    /// Returns the changed attributes of a subscription with prices in `currency`.
    ///
    /// # Errors
    /// [`Failure::Refused`] if the price is not an amount in `currency`, or the gateway can never charge it.
    async fn requested_changes(
        &self,
        currency: Currency,
        open_table: &OpenTable,
        context: &CommandContext,
    ) -> Result<SubscriptionChanges, Failure> {
        match self {
            Self::Change(args) => {
                // Only a new price depends on the gateway.
                let has_price = args.price.is_some();
                let rules = if has_price { open_table.amount_rules(context).await } else { AmountRules::none() };
                args.requested_changes(currency, &rules)
            }
            Self::CorrectPrice { price, .. } => {
                let rules = open_table.amount_rules(context).await;
                let amount = Some(parse_new_price(price, currency, &rules)?);
                Ok(SubscriptionChanges { amount, ..SubscriptionChanges::default() })
            }
            _ => Ok(SubscriptionChanges::default()),
        }
    }

    /// Returns the result of the change of the subscription `stored`.
    ///
    /// # Errors
    /// [`ChangeRefusal`] if the change is not allowed in the current state of the subscription.
    fn compute_change(&self, stored: &Subscription, inputs: &ChangeInputs) -> Result<Settlement, ChangeRefusal> {
        let ChangeInputs { changes, policy, .. } = inputs;
        let (lead, later_findings) = (policy.lead, inputs.later_findings);
        let (today, now) = (inputs.today, inputs.now);
        match self {
            Self::Change(_) => stored.apply_changes(changes, lead, today).map(Settlement::from),
            Self::Pause(_) => stored.pause(today).map(Settlement::from),
            Self::Resume(_) => stored.resume(policy.on_resume, lead, today, now),
            Self::Cancel { at_period_end: true, .. } => stored.cancel_at_period_end(today).map(Settlement::from),
            Self::Cancel { .. } => Ok(stored.cancel(today, now)),
            Self::Uncancel(_) => stored.uncancel(lead, today).map(Settlement::from),
            Self::Retry(_) => stored.retry_owed_payment(true, today, now).map(Settlement::from),
            Self::CorrectPrice { .. } => {
                stored.correct_price(changes.amount.unwrap_or_default(), today).map(Settlement::from)
            }
            Self::Waive(args) => {
                stored.waive_month(args.month, WaivedReason::Merchant, later_findings, lead, today, now)
            }
            Self::PaidElsewhere(args) => {
                stored.waive_month(args.month, WaivedReason::PaidElsewhere, later_findings, lead, today, now)
            }
        }
    }
}

/// The values from which the change of a subscription is computed.
struct ChangeInputs {
    /// The changed attributes, for `change` and `correct-price`.
    changes: SubscriptionChanges,
    policy: Arc<Policy>,
    /// The number of open findings about later months than the corrected month, for `waive` and `paid-elsewhere`.
    later_findings: u32,
    today: NaiveDate,
    now: DateTime<Utc>,
}

/// Runs `dueday subscription`.
pub async fn run_subscription_command(context: &CommandContext, args: &SubscriptionArgs) -> Result<Exit, Failure> {
    let open_table = OpenTable::open(context, FolderRequirement::MustExist).await?;
    let named = args.action.selector().find_subscription(&open_table.table).await?;
    let (account, id) = (&named.account, named.id);
    args.action.confirm(&named)?;
    let changes = args.action.requested_changes(named.price.currency(), &open_table, context).await?;
    let (policy, today) = (open_table.table.policy(), context.today(&open_table.table));
    let now = context.clock.now();
    let later_findings = match &args.action {
        SubscriptionAction::Waive(args) | SubscriptionAction::PaidElsewhere(args) => {
            open_table.table.count_findings_after(account, id, args.month).await?
        }
        _ => 0,
    };
    let inputs = ChangeInputs { changes, policy, later_findings, today, now };
    let change = |stored: &Subscription| args.action.compute_change(stored, &inputs);
    let action = args.action.new_log_entry(context);
    let records = ChangeRecords { request: None, action: Some(&action) };
    match open_table.table.change_subscription(account, id, records, |_| String::new(), change).await? {
        ChangeOutcome::Applied(written) => {
            let text = subscription_text(&written);
            context.print(&SubscriptionView::from(*written), || text)?;
            open_table.mention_unpublished_changes(context)?;
            Ok(Exit::Done)
        }
        ChangeOutcome::Refused(refusal) => Err(Failure::Refused(refusal.to_string())),
        ChangeOutcome::Missing | ChangeOutcome::Replayed(_) => {
            Err(Failure::Refused(format!("there is no subscription {id} in the account {account}")))
        }
    }
}

fn subscription_text(written: &Subscription) -> String {
    let open = written.attempt.as_ref().map(|open| {
        format!("a payment of {} due on {} is still open; the runs settle it first\n", open.amount, open.due_on)
    });
    subscription_table(written) + &open.unwrap_or_default()
}
