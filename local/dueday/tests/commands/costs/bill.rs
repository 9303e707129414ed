//! The AWS bill of a month. It contains the counts of one payment, times the payments of the month, times the prices;
//! and the costs of the stack that do not depend on the number of payments.

use billing::Policy;

use super::prices::Prices;
use super::stack::{Batching, Stack};
use super::workload::{Count, Counts};

/// The number of days in an average month.
const DAYS_PER_MONTH: f64 = 365.25 / 12.0;
/// The number of daily runs of each batch.
const RUNS_PER_DAY: f64 = 2.0;
/// The number of batches: the payment batch and the reminder batch.
const BATCHES: f64 = 2.0;
/// The number of runs of both batches in a month.
const RUNS_PER_MONTH: f64 = DAYS_PER_MONTH * RUNS_PER_DAY * BATCHES;
/// The number of payments per second, and of reminders per second, that a batch processes. This is Stripe's default
/// limit of requests in live mode.
const PAYMENTS_PER_SECOND: f64 = 100.0;
/// The memory of a function in gigabytes (`MemorySize` in the template).
const FUNCTION_GIGABYTES: f64 = 0.25;
/// How long an invocation of a batch starts new payments, in seconds. A walk (the processing of one shard) that takes
/// longer continues in a further invocation.
const WALK_SECONDS: f64 = 840.0;
const BYTES_PER_GIGABYTE: f64 = 1_073_741_824.0;
/// The number of shards of the stream of a new table with on-demand capacity.
const STREAM_SHARDS: f64 = 4.0;
/// How often Lambda reads a shard of the stream in a second, if Lambda does not wait for a full batch.
const STREAM_READS_PER_SECOND: f64 = 4.0;
/// The number of requests for messages that Lambda sends to a queue at the same time.
const QUEUE_POLLS: f64 = 5.0;
/// How long a request for messages waits for a message, in seconds.
const POLL_SECONDS: f64 = 20.0;
/// The largest number of messages in a request to a queue.
const MESSAGES_PER_REQUEST: f64 = 10.0;
/// The largest number of entries in a PutEvents request.
const ENTRIES_PER_REQUEST: f64 = 10.0;
/// The bytes of Lambda's own lines about an invocation (`platform.start`, `platform.report`) at the level INFO.
const PLATFORM_LINES_BYTES: f64 = 900.0;
/// The assumed duration of a request to DynamoDB, in seconds.
const TABLE_SECONDS: f64 = 0.005;
/// The assumed duration of a PutEvents request, in seconds.
const PUT_EVENTS_SECONDS: f64 = 0.02;
/// The assumed time for sending a mail, in seconds.
const MAIL_SECONDS: f64 = 0.1;
/// The assumed duration of an invocation that does almost nothing, in seconds.
const SHORT_INVOCATION_SECONDS: f64 = 0.1;
/// The number of secrets that the template does not create: the API key of Stripe, and the signing secret of Stripe's
/// webhooks.
const OTHER_SECRETS: f64 = 2.0;

/// The number of shards of a new table.
const SHARDS: f64 = 4.0;
/// The number of requests to the API for each payment, such as a request of the merchant's web page for the subscriptions of
/// a customer.
const API_REQUESTS_PER_PAYMENT: f64 = 1.0;
/// The duration of an invocation of the function `api`, in seconds.
const API_SECONDS: f64 = 0.05;
/// The read units of a request to the API.
const API_READS: f64 = 2.0;
/// The bytes of a line in the access log of the API.
const ACCESS_LOG_BYTES: f64 = 400.0;
/// How often a program of the merchant gets a token, in a month: a token is valid for an hour.
const TOKENS_PER_MONTH: f64 = DAYS_PER_MONTH * 24.0;

/// The minimum number of accounts that the audit checks in a night. The bill assumes one subscription for each account.
const MIN_ACCOUNTS_PER_NIGHT: f64 = 30_000.0;
/// The bytes that one strongly consistent read unit reads in a scan.
const BYTES_PER_READ_UNIT: f64 = 4_096.0;

/// The average price of a subscription, in dollars, for the comparison with Stripe Billing.
pub const AVERAGE_DOLLARS: f64 = 20.0;

/// One line of the bill, in dollars for a month.
#[derive(Clone, Debug)]
pub struct Line {
    pub service: &'static str,
    /// The cost that grows with the number of payments.
    pub by_payments: f64,
    /// The cost that does not grow with the number of payments.
    pub fixed: f64,
}

/// The bill of a month.
pub struct Bill {
    pub lines: Vec<Line>,
    /// The cost of the stored items in the table and in the backups of the table.
    pub storage: f64,
    /// The cost of the nightly reads of the stored items, for the comparison with the gateway and for the audit.
    pub checks: f64,
    /// The cost of the mails that Amazon SES sends.
    pub mails: f64,
    /// The cost of a user pool that issues tokens to one program.
    pub user_pool: f64,
    /// The price of Stripe Billing for the same payments, at twenty dollars each.
    pub stripe_billing: f64,
    /// The number of invocations of the function `events`.
    pub events_invocations: f64,
    /// The number of invocations of the functions that process the queues.
    pub queue_invocations: f64,
    /// The number of requests to the queues, without the requests that return no message.
    pub queue_requests: f64,
}

impl Bill {
    /// Returns the sum of the costs that grow with the number of payments, without mails, storage and nightly checks.
    pub fn by_payments(&self) -> f64 {
        self.lines.iter().map(|line| line.by_payments).sum()
    }

    /// Returns the sum of the costs that do not grow with the number of payments.
    pub fn fixed(&self) -> f64 {
        self.lines.iter().map(|line| line.fixed).sum()
    }

    /// Returns the whole bill without the mails.
    pub fn without_mails(&self) -> f64 {
        self.by_payments() + self.fixed() + self.storage + self.checks
    }
}

/// Returns the number of records in an average batch of the stream, if one record arrives for each payment or reminder.
fn records_per_batch(stream: Batching) -> f64 {
    let seconds = if stream.window_seconds > 0.0 { stream.window_seconds } else { 1.0 / STREAM_READS_PER_SECOND };
    (PAYMENTS_PER_SECOND * seconds / (STREAM_SHARDS * stream.parallel)).clamp(1.0, stream.size)
}

/// Returns the number of messages in an average batch of a queue. Without a batching window, a request can return a
/// single message.
fn messages_per_batch(queue: Batching) -> f64 {
    (PAYMENTS_PER_SECOND * queue.window_seconds / QUEUE_POLLS).clamp(1.0, queue.size)
}

/// Returns the bill of a month with `payments` payments, each with a reminder. `one` contains the counts of one
/// payment, and `idle` contains the counts of a run of both batches without payments.
pub fn bill(stack: &Stack, prices: &Prices, one: &Counts, idle: &Counts, payments: f64) -> Bill {
    let each = |count: Count| one.get(&count).copied().unwrap_or(0.0);
    let all = |count: Count| payments * each(count);
    let line = |service, by_payments, fixed| Line { service, by_payments, fixed };
    let at_once = SHARDS.min(stack.parameter("ShardsAtOnce"));
    let gigabyte_seconds = |seconds: f64| prices.dollars("gigabyte_second", seconds * FUNCTION_GIGABYTES);

    let units = |counts: &Counts| {
        let sum = |names: &[Count]| names.iter().filter_map(|name| counts.get(name)).sum::<f64>();
        let writes = sum(&[Count::ReminderWrites, Count::PaymentWrites, Count::NoticeWrites]);
        let reads = sum(&[Count::ReminderReads, Count::PaymentReads, Count::NoticeReads]);
        prices.dollars("write_unit", writes) + prices.dollars("read_unit", reads)
    };
    let heartbeats = if stack.has("HeartbeatSchedule") { DAYS_PER_MONTH * 24.0 * 4.0 } else { 0.0 };
    let nightly = if stack.has("ReconcileFunction") { DAYS_PER_MONTH * 8.0 } else { 0.0 };
    let files = if stack.has("EventsKept") { DAYS_PER_MONTH * 288.0 } else { 0.0 };
    let api_requests = payments * API_REQUESTS_PER_PAYMENT;
    // Each minute, the function `deliver` reads the settings and the webhook endpoints, and sends the deliveries that are due.
    let due_deliveries = if stack.has("DeliverFunction") { DAYS_PER_MONTH * 24.0 * 60.0 } else { 0.0 };
    let table_fixed = RUNS_PER_MONTH / BATCHES * units(idle)
        + prices.dollars("write_unit", heartbeats)
        + prices.dollars("read_unit", 2.0 * due_deliveries);

    // A walk processes the rows of one shard. All concurrent walks share the rate limit of the gateway, and run
    // until the end of the batch. So the billed time is the duration of the batch times the number of concurrent walks,
    // for each of the two batches.
    let walk_seconds = BATCHES * payments / PAYMENTS_PER_SECOND * at_once;
    let walk_invocations = walk_seconds / WALK_SECONDS;
    let run_invocations = RUNS_PER_MONTH * (2.0 + SHARDS);
    let transitions = RUNS_PER_MONTH * (10.0 + SHARDS * 4.0);

    let stream = stack.batching("EventsFunction", "Stream");
    let events_invocations = all(Count::PassedRecords) / records_per_batch(stream);
    let events_per_record =
        if events_invocations > 0.0 { each(Count::Events) / each(Count::PassedRecords) } else { 0.0 };
    let events_per_batch = records_per_batch(stream) * events_per_record;
    let put_requests = events_invocations * (events_per_batch / ENTRIES_PER_REQUEST).ceil();
    let events_seconds = put_requests * PUT_EVENTS_SECONDS + events_invocations * TABLE_SECONDS;

    // Each invocation reads whether there is a webhook endpoint.
    let endpoint_reads = prices.dollars("read_unit", events_invocations);
    let api_reads = prices.dollars("read_unit", api_requests * API_READS);

    let queues = [("DeliverFunction", Count::DeliveryMessages), ("NoticesFunction", Count::NoticeMessages)];
    let queue_invocations: f64 = queues
        .iter()
        .map(|(function, count)| all(*count) / messages_per_batch(stack.batching(function, "Queue")))
        .sum();
    let queue_requests: f64 = queues
        .iter()
        .map(|(function, count)| {
            let per_request = messages_per_batch(stack.batching(function, "Queue")).min(MESSAGES_PER_REQUEST);
            // One request sends one message. One request receives, or deletes, several messages.
            all(*count) * (1.0 + 2.0 / per_request)
        })
        .sum();
    let notice_seconds = all(Count::NoticeRequests) * TABLE_SECONDS + all(Count::NoticeMessages) * MAIL_SECONDS;
    let delivery_seconds = all(Count::DeliveryMessages) * TABLE_SECONDS;
    let idle_polls = stack.polled_queues() as f64 * QUEUE_POLLS * DAYS_PER_MONTH * 86_400.0 / POLL_SECONDS;

    let invocations = walk_invocations + events_invocations + queue_invocations + api_requests;
    let fixed_invocations = run_invocations + heartbeats + due_deliveries + nightly;
    let api_seconds = api_requests * API_SECONDS;
    let seconds = walk_seconds + events_seconds + notice_seconds + delivery_seconds + api_seconds;
    let platform_bytes = if stack.logs_each_invocation() { PLATFORM_LINES_BYTES } else { 0.0 };
    let log_gigabytes = |bytes: f64| bytes / BYTES_PER_GIGABYTE;
    let count = |kind: &str| stack.resources(kind).len() as f64;
    let run_metrics = stack.run_metrics() as f64;

    let lines = vec![
        line("DynamoDB: writes and reads", payments * units(one) + endpoint_reads + api_reads, table_fixed),
        line(
            "Lambda",
            prices.dollars("invocation", invocations) + gigabyte_seconds(seconds),
            prices.dollars("invocation", fixed_invocations)
                + gigabyte_seconds(fixed_invocations * SHORT_INVOCATION_SECONDS),
        ),
        line(
            "Step Functions",
            prices.dollars("transition", walk_invocations * 2.0),
            prices.dollars("transition", transitions),
        ),
        line("API Gateway", prices.dollars("api_request", api_requests), 0.0),
        line(
            "EventBridge",
            prices.dollars("event", all(Count::Events)),
            prices.dollars("event", heartbeats)
                + prices.dollars("schedule", heartbeats + due_deliveries + RUNS_PER_MONTH + nightly),
        ),
        line(
            "SQS",
            prices.dollars("queue_request", queue_requests),
            prices.dollars("queue_request", idle_polls + heartbeats),
        ),
        line(
            "Firehose and S3: the archive",
            prices.dollars("archived_gigabyte", all(Count::ArchivedBytes) / BYTES_PER_GIGABYTE),
            prices.dollars("file", files),
        ),
        line(
            "CloudWatch: logs",
            prices.dollars(
                "log_gigabyte",
                log_gigabytes(all(Count::LogBytes) + invocations * platform_bytes + api_requests * ACCESS_LOG_BYTES),
            ),
            prices.dollars(
                "log_gigabyte",
                log_gigabytes(
                    RUNS_PER_MONTH / BATCHES * idle.get(&Count::LogBytes).copied().unwrap_or(0.0)
                        + fixed_invocations * platform_bytes,
                ),
            ),
        ),
        line(
            "CloudWatch: alarms, metrics and the dashboard",
            0.0,
            prices.dollars("alarm_metric", stack.alarm_metrics() as f64)
                + prices.dollars("custom_metric", run_metrics * 2.0 / 24.0)
                + prices.dollars("dashboard", count("AWS::CloudWatch::Dashboard")),
        ),
        line("Secrets Manager", 0.0, prices.dollars("secret", count("AWS::SecretsManager::Secret") + OTHER_SECRETS)),
    ];
    let expiring_months = f64::from(Policy::default().receipt_days) / DAYS_PER_MONTH;
    let bytes = all(Count::SubscriptionBytes) + expiring_months * all(Count::RecordBytes);
    let gigabytes = bytes / BYTES_PER_GIGABYTE;
    // The comparison with the gateway reads the whole table every night, with eventually consistent reads, which cost
    // half. The audit reads all accounts of a small table every night, and all accounts of a large table once in 24
    // nights.
    let audits = DAYS_PER_MONTH * (MIN_ACCOUNTS_PER_NIGHT / payments).clamp(1.0 / 24.0, 1.0);
    let comparisons = if stack.has("ReconcileFunction") { DAYS_PER_MONTH * 0.5 } else { 0.0 };
    let audits = if stack.has("AuditFunction") { audits } else { 0.0 };
    let scanned_units = bytes / BYTES_PER_READ_UNIT * (comparisons + audits);
    Bill {
        lines,
        storage: prices.dollars("table_gigabyte", gigabytes) + prices.dollars("backup_gigabyte", gigabytes),
        checks: prices.dollars("read_unit", scanned_units),
        mails: prices.dollars("mail", all(Count::Mails)),
        user_pool: prices.dollars("app_client", 1.0) + prices.dollars("token_request", TOKENS_PER_MONTH),
        stripe_billing: prices.dollars("stripe_billing", payments * AVERAGE_DOLLARS),
        events_invocations,
        queue_invocations,
        queue_requests,
    }
}
