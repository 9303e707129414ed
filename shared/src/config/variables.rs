//! The environment variables, each declared once. The functions read them, the command makes flags of them, and the
//! template is held against them.

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub name: &'static str,
    /// The functions that read it.
    pub read_by: &'static [ReadBy],
    /// What its value is called in help, such as `DAYS`.
    pub value: &'static str,
    pub help: &'static str,
    /// The least and the largest number that is allowed.
    pub range: Option<(u32, u32)>,
    pub default: Option<&'static str>,
    /// The command's flag for it.
    pub flag: Option<Flag>,
}

/// A function that reads variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadBy {
    Every,
    Api,
    Reminders,
    Payments,
    Events,
    Deliver,
    Orders,
    OrdersApi,
    Notices,
    Webhooks,
}

/// A flag of the command, without its dashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// Shown by `-h` and by `--help`.
    Common(&'static str),
    /// Shown by `--help` alone.
    Rare(&'static str),
}

impl Variable {
    const fn new(read_by: &'static [ReadBy], name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self { name, read_by, value, help, range: None, default: None, flag: None }
    }

    const fn common(self, flag: &'static str) -> Self {
        Self { flag: Some(Flag::Common(flag)), ..self }
    }

    const fn rare(self, flag: &'static str) -> Self {
        Self { flag: Some(Flag::Rare(flag)), ..self }
    }

    const fn default(self, text: &'static str) -> Self {
        Self { default: Some(text), ..self }
    }

    const fn within(self, least: u32, largest: u32) -> Self {
        Self { range: Some((least, largest)), ..self }
    }
}

macro_rules! variables {
    ($($constant:ident = $variable:expr;)+) => {
        $(pub const $constant: Variable = $variable;)+

        /// All of them, in the order in which help shows them.
        pub const VARIABLES: &[Variable] = &[$($constant),+];
    };
}

use ReadBy::{Api, Deliver, Events, Every, Notices, Orders, OrdersApi, Payments, Reminders, Webhooks};

/// Stripe's secret or restricted key. No flag has it, and nothing shows it.
pub const STRIPE_SECRET_KEY: Variable =
    Variable::new(&[], "STRIPE_SECRET_KEY", "KEY", "the secret or restricted key of your Stripe account");
/// The signing secret of our webhook endpoint at Stripe. No flag has it, and nothing shows it.
pub const STRIPE_WEBHOOK_SECRET: Variable =
    Variable::new(&[], "STRIPE_WEBHOOK_SECRET", "SECRET", "the signing secret of your webhook endpoint at Stripe");
/// Another server that speaks as Stripe does.
pub const STRIPE_API_BASE: Variable =
    Variable::new(&[], "STRIPE_API_BASE", "URL", "Where Stripe answers").default(crate::gateway::STRIPE_API_BASE);

variables! {
    TABLE = Variable::new(&[Every], "DUEDAY_TABLE", "NAME", "Work on this table on AWS instead of the local one")
        .default("dueday").common("table");
    ENDPOINT = Variable::new(&[Every], "DUEDAY_DYNAMODB_ENDPOINT", "URL", "Where DynamoDB answers, if not at AWS")
        .rare("endpoint");
    TIME_ZONE = Variable::new(&[Every], "DUEDAY_TIME_ZONE", "ZONE", "The billing time zone, an IANA name")
        .default("UTC").common("time-zone");
    SHARDS = Variable::new(&[Every], "DUEDAY_SHARDS", "N", "Partitions of the indexes of a new table")
        .within(1, 1_000).default("4").rare("shards");
    REMINDER_LEAD_DAYS = Variable::new(&[Every], "DUEDAY_REMINDER_LEAD_DAYS", "DAYS", "Days from reminder to payment")
        .within(0, crate::billing::LeadDays::MAX).default("7").common("reminder-lead-days");
    RETRY_GAPS = Variable::new(&[Every], "DUEDAY_RETRY_GAPS", "GAPS", "Days from each soft decline to the next try")
        .default("1,2,2,2").rare("retry-gaps");
    AFTER_LAST_RETRY = Variable::new(&[Every], "DUEDAY_AFTER_LAST_RETRY", "STATUS",
        "What a subscription becomes after the last retry: unpaid or cancelled").default("unpaid").rare("after-last-retry");
    CATCH_UP = Variable::new(&[Every], "DUEDAY_CATCH_UP", "WHICH",
        "Of several months that an outage has missed, charge each or only the latest").default("each").rare("catch-up");
    RESUME = Variable::new(&[Every], "DUEDAY_RESUME", "WHICH",
        "On resuming, charge the last payment that fell due in the pause, or wait for the next")
        .default("charge").rare("resume");
    AFTER_WON_DISPUTE = Variable::new(&[Every], "DUEDAY_AFTER_WON_DISPUTE", "WHICH",
        "After a won dispute, waive the periods that fell due during it, or charge them").default("waive").rare("after-won-dispute");
    RECEIPT_DAYS = Variable::new(&[Every], "DUEDAY_RECEIPT_DAYS", "DAYS", "Days that receipts and records are kept")
        .within(1, 3_650).default("190").rare("receipt-days");
    MERCHANT = Variable::new(&[Every], "DUEDAY_MERCHANT", "NAME", "The name that mails and receipts are signed with")
        .default("Dueday").rare("merchant");
    MERCHANT_ADDRESS = Variable::new(&[Every], "DUEDAY_MERCHANT_ADDRESS", "ADDRESS",
        "The merchant's postal address, in one line, as mails and receipts say it").rare("merchant-address");
    MERCHANT_TAX_ID = Variable::new(&[Every], "DUEDAY_MERCHANT_TAX_ID", "ID",
        "The merchant's tax id, as mails and receipts say it").rare("merchant-tax-id");
    MERCHANT_LOGO = Variable::new(&[Every], "DUEDAY_MERCHANT_LOGO", "URL", "The merchant's logo, for mails and receipts")
        .rare("merchant-logo");
    SUPPORT_EMAIL = Variable::new(&[Every], "DUEDAY_SUPPORT_EMAIL", "ADDRESS", "Whom customers ask")
        .rare("support-email");
    REPLY_TO = Variable::new(&[Every], "DUEDAY_REPLY_TO", "ADDRESS", "Where answers to mails go, if not to their sender")
        .rare("reply-to");
    ACCOUNT_URL = Variable::new(&[Every], "DUEDAY_ACCOUNT_URL", "URL",
        "The merchant's page on which customers look after their subscriptions").rare("account-url");
    LEASE_MINUTES = Variable::new(&[Every], "DUEDAY_LEASE_MINUTES", "MINUTES",
        "Minutes that a claimed attempt belongs to its worker").within(10, 1_440).default("20").rare("lease-minutes");
    CONCURRENCY = Variable::new(&[Every], "DUEDAY_CONCURRENCY", "N", "Accounts worked on at the same time")
        .within(1, 1_000).default("16").rare("concurrency");
    PAGE_ROWS = Variable::new(&[Every], "DUEDAY_PAGE_ROWS", "N", "Rows read from an index at once")
        .within(1, 1_000).default("200").rare("page-rows");
    MAX_CHARGES = Variable::new(&[Payments], "DUEDAY_MAX_CHARGES", "N", "Refuse to begin a day of more charges than this")
        .within(0, u32::MAX).rare("max-charges");
    MAX_SUMS = Variable::new(&[Payments], "DUEDAY_MAX_SUMS", "SUMS",
        "Refuse to begin a day of higher sums than these, such as EUR=100000.00,JPY=5000000").rare("max-sums");
    MAX_PROCESSING_DAYS = Variable::new(&[Payments], "DUEDAY_MAX_PROCESSING_DAYS", "DAYS",
        "Days that a bank debit may be processing; after that the run reports it as failed")
        .within(1, 60).default("25").rare("max-processing-days");
    GATEWAY = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_GATEWAY", "GATEWAY",
        "The payment gateway: stripe, or the URL of one, such as http://127.0.0.1:7879").rare("gateway");
    STRIPE_SECRET = Variable::new(&[Api, Payments, Webhooks], "DUEDAY_STRIPE_SECRET", "SECRET",
        "The secret in AWS Secrets Manager that is Stripe's secret or restricted key, by its name or ARN");
    STRIPE_WEBHOOK_SECRET_NAME = Variable::new(&[Webhooks], "DUEDAY_STRIPE_WEBHOOK_SECRET", "SECRET",
        "The secret in AWS Secrets Manager that is the signing secret of the webhook endpoint at Stripe, by its name or ARN");
    GATEWAY_FAILURES = Variable::new(&[Payments], "DUEDAY_GATEWAY_FAILURES", "N",
        "A run stops after so many requests to the gateway in a row without an answer")
        .within(1, 1_000).default("20").rare("gateway-failures");
    GATEWAY_RATE = Variable::new(&[Payments], "DUEDAY_GATEWAY_RATE", "N", "Requests per second to the gateway")
        .within(1, 10_000).default("25").rare("gateway-rate");
    MAIL_URL = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_URL", "URL",
        "How mails leave: ses: by Amazon SES, smtps://USER:PASSWORD@HOST:465, or outbox:FOLDER");
    MAIL_FROM = Variable::new(&[Reminders, Notices], "DUEDAY_MAIL_FROM", "SENDER",
        "The sender of mails, such as Shop <billing@example.com>").rare("mail-from");
    EVENT_BUS = Variable::new(&[Events], "DUEDAY_EVENT_BUS", "BUS", "The EventBridge bus that events are put on");
    DELIVERY_QUEUE = Variable::new(&[Api, Deliver], "DUEDAY_DELIVERY_QUEUE", "URL", "The SQS queue that deliveries wait in");
    ORDERS_TABLE = Variable::new(&[Orders, OrdersApi], "DUEDAY_ORDERS_TABLE", "NAME", "The table of the order desk")
        .default("dueday-orders");
    ORDER_BUCKETS = Variable::new(&[Orders, OrdersApi], "DUEDAY_ORDER_BUCKETS", "N",
        "Partitions of the index over all orders of a new table").within(1, 1_000).default("4");
    OPERATOR_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_OPERATOR_SCOPE", "SCOPE", "A token with this scope is an operator's")
        .default("dueday/operator");
    CONFIDENTIAL_SCOPE = Variable::new(&[Api, OrdersApi], "DUEDAY_CONFIDENTIAL_SCOPE", "SCOPE",
        "An operator's token that has this scope, too, may read what employees earn and when they were hired")
        .default("dueday/confidential");
    ACCOUNT_CLAIM = Variable::new(&[Api, OrdersApi], "DUEDAY_ACCOUNT_CLAIM", "CLAIM",
        "Any other token is of the account that this claim names").default("sub");
}
