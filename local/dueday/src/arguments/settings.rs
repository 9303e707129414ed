//! Settings: what the functions on AWS read from their environment, as flags.

use std::path::PathBuf;

use axum::http::Uri;
use axum::http::uri::Authority;
use clap::Args;
use shared::config::{Config, ConfigError, Env};

use crate::Failure;

/// Settings: each flag has an environment variable, the one that the functions on AWS read.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub struct Settings {
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// The data folder
    #[arg(long, global = true, value_name = "FOLDER", default_value = ".dueday", env = "DUEDAY_DATA")]
    pub data: PathBuf,
    /// Work on this table on AWS instead of the local one
    #[arg(long, global = true, value_name = "NAME")]
    pub table: Option<String>,
    /// With --table: where DynamoDB answers, if not at AWS
    #[arg(long, global = true, value_name = "URL", env = "DUEDAY_DYNAMODB_ENDPOINT", hide_short_help = true)]
    pub endpoint: Option<String>,
    /// The billing time zone, an IANA name [default: UTC]
    #[arg(long, global = true, value_name = "ZONE", env = "DUEDAY_TIME_ZONE")]
    pub time_zone: Option<String>,
    /// Partitions of the indexes of a new table [default: 4]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_SHARDS", hide_short_help = true)]
    pub shards: Option<String>,
    /// Days from reminder to payment, 0 to 27 [default: 7]
    #[arg(long, global = true, value_name = "DAYS", env = "DUEDAY_REMINDER_LEAD_DAYS")]
    pub reminder_lead_days: Option<String>,
    /// Days from each soft decline to the next try [default: 1,2,2,2]
    #[arg(long, global = true, value_name = "GAPS", env = "DUEDAY_RETRY_GAPS", hide_short_help = true)]
    pub retry_gaps: Option<String>,
    /// What becomes of a subscription then: unpaid or cancelled [default: unpaid]
    #[arg(long, global = true, value_name = "STATUS", env = "DUEDAY_AFTER_LAST_RETRY", hide_short_help = true)]
    pub after_last_retry: Option<String>,
    /// Of several months that an outage has missed, charge each or only the latest [default: each]
    #[arg(long, global = true, value_name = "WHICH", env = "DUEDAY_CATCH_UP", hide_short_help = true)]
    pub catch_up: Option<String>,
    /// Days that receipts and records are kept [default: 190]
    #[arg(long, global = true, value_name = "DAYS", env = "DUEDAY_RECEIPT_DAYS", hide_short_help = true)]
    pub receipt_days: Option<String>,
    /// Minutes that a claimed attempt belongs to its worker [default: 20]
    #[arg(long, global = true, value_name = "MINUTES", env = "DUEDAY_LEASE_MINUTES", hide_short_help = true)]
    pub lease_minutes: Option<String>,
    /// Accounts worked on at the same time [default: 16]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_CONCURRENCY", hide_short_help = true)]
    pub concurrency: Option<String>,
    /// Rows read from an index at once [default: 200]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_PAGE_ROWS", hide_short_help = true)]
    pub page_rows: Option<String>,
    /// Refuse to begin a day of more charges than this
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_MAX_CHARGES", hide_short_help = true)]
    pub max_charges: Option<String>,
    /// Refuse to begin a day of higher sums than these, such as EUR=100000.00,JPY=5000000
    #[arg(long, global = true, value_name = "SUMS", env = "DUEDAY_MAX_SUMS", hide_short_help = true)]
    pub max_sums: Option<String>,
    /// Charge through the gateway at this URL, such as a `dueday gateway`, and not through the one inside
    #[arg(
        long,
        global = true,
        value_name = "URL",
        value_parser = gateway_url,
        env = "DUEDAY_GATEWAY_URL",
        hide_short_help = true
    )]
    pub gateway: Option<String>,
    /// A run stops after so many requests to the gateway in a row without an answer [default: 20]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_GATEWAY_FAILURES", hide_short_help = true)]
    pub gateway_failures: Option<String>,
    /// Charges per second [default: 25]
    #[arg(long, global = true, value_name = "N", env = "DUEDAY_GATEWAY_RATE", hide_short_help = true)]
    pub gateway_rate: Option<String>,
    /// The name that mails and receipts are signed with [default: Dueday]
    #[arg(long, global = true, value_name = "NAME", env = "DUEDAY_MERCHANT", hide_short_help = true)]
    pub merchant: Option<String>,
    /// The sender of mails
    #[arg(
        long,
        global = true,
        value_name = "SENDER",
        default_value = "Dueday <billing@example.com>",
        env = "DUEDAY_MAIL_FROM",
        hide_short_help = true
    )]
    pub mail_from: String,
}

/// A URL of a host and perhaps a port and a path. It is shown to whoever asks, and must carry no user and password.
fn gateway_url(text: &str) -> Result<String, String> {
    let is_address = |authority: &Authority| match authority.port_u16() {
        Some(port) => authority.as_str() == format!("{}:{port}", authority.host()),
        None => authority.as_str() == authority.host(),
    };
    let is_url = text.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some_and(is_address)
            && uri.query().is_none()
    });
    let url = text.trim_end_matches('/');
    if is_url { Ok(url.to_owned()) } else { Err("must be a URL like http://127.0.0.1:7879".to_owned()) }
}

impl Settings {
    /// That `command` is not asked to work on AWS.
    ///
    /// # Errors
    /// [`Failure::LocalOnly`].
    pub fn local_only(&self, command: &'static str) -> Result<(), Failure> {
        if self.table.is_some() { Err(Failure::LocalOnly { command }) } else { Ok(()) }
    }

    /// That a command which writes to a table on AWS is told what the functions there were deployed with: dates depend
    /// on it.
    ///
    /// # Errors
    /// [`Failure::Refused`].
    pub fn deployed_as_told(&self) -> Result<(), Failure> {
        if self.table.is_some() && (self.time_zone.is_none() || self.reminder_lead_days.is_none()) {
            let needed = "with --table, give --time-zone and --reminder-lead-days as they are deployed \
                          (the parameters TimeZone and ReminderLeadDays of the stack)";
            return Err(Failure::Refused(needed.to_owned()));
        }
        Ok(())
    }

    /// The settings as the functions read them: through the same variables, by the same rules.
    pub fn config(&self) -> Result<Config, ConfigError> {
        Config::read(Env(&|name| {
            match name {
                "DUEDAY_TABLE" => &self.table,
                "DUEDAY_DYNAMODB_ENDPOINT" => &self.endpoint,
                "DUEDAY_TIME_ZONE" => &self.time_zone,
                "DUEDAY_SHARDS" => &self.shards,
                "DUEDAY_REMINDER_LEAD_DAYS" => &self.reminder_lead_days,
                "DUEDAY_RETRY_GAPS" => &self.retry_gaps,
                "DUEDAY_AFTER_LAST_RETRY" => &self.after_last_retry,
                "DUEDAY_MERCHANT" => &self.merchant,
                "DUEDAY_CATCH_UP" => &self.catch_up,
                "DUEDAY_RECEIPT_DAYS" => &self.receipt_days,
                "DUEDAY_LEASE_MINUTES" => &self.lease_minutes,
                "DUEDAY_CONCURRENCY" => &self.concurrency,
                "DUEDAY_PAGE_ROWS" => &self.page_rows,
                "DUEDAY_MAX_CHARGES" => &self.max_charges,
                "DUEDAY_MAX_SUMS" => &self.max_sums,
                "DUEDAY_GATEWAY_FAILURES" => &self.gateway_failures,
                "DUEDAY_GATEWAY_RATE" => &self.gateway_rate,
                _ => &None,
            }
            .clone()
        }))
    }
}
