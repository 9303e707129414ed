//! How the payment batch charges, as its environment says.

use std::num::NonZeroU32;
use std::str::FromStr;

use chrono::TimeDelta;

use billing::Ceilings;
use config::ReadBy::{Every, Payments};
use config::variables;
use config::{ConfigError, Env, Variable};

variables! {
    MAX_CHARGES = Variable::new(&[Payments], "DUEDAY_MAX_CHARGES", "N", "Refuse to begin a day of more charges than this")
        .within(0, u32::MAX).rare("max-charges");
    MAX_SUMS = Variable::new(&[Payments], "DUEDAY_MAX_SUMS", "SUMS",
        "Refuse to begin a day of higher sums than these, such as EUR=100000.00,JPY=5000000").rare("max-sums");
    MAX_PROCESSING_DAYS = Variable::new(&[Payments], "DUEDAY_MAX_PROCESSING_DAYS", "DAYS",
        "Days that a bank debit may be processing; after that the run reports it as failed")
        .within(1, 60).default("25").rare("max-processing-days");
    LEASE_MINUTES = Variable::new(&[Every], "DUEDAY_LEASE_MINUTES", "MINUTES",
        "Minutes that a claimed attempt belongs to its worker").within(10, 1_440).default("20").rare("lease-minutes");
    GATEWAY_FAILURES = Variable::new(&[Payments], "DUEDAY_GATEWAY_FAILURES", "N",
        "A run stops after so many requests to the gateway in a row without an answer")
        .within(1, 1_000).default("20").rare("gateway-failures");
    GATEWAY_RATE = Variable::new(&[Payments], "DUEDAY_GATEWAY_RATE", "N", "Requests per second to the gateway")
        .within(1, 10_000).default("25").rare("gateway-rate");
}

/// How charges are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargeConfig {
    /// `DUEDAY_LEASE_MINUTES`: how long a claimed attempt belongs to its worker.
    pub lease: TimeDelta,
    /// `DUEDAY_MAX_CHARGES`, `DUEDAY_MAX_SUMS`: a day of more is not begun.
    pub ceilings: Ceilings,
    /// `DUEDAY_MAX_PROCESSING_DAYS`: how long a bank debit may be processing before a run reports it as failed.
    pub max_processing: TimeDelta,
    /// `DUEDAY_GATEWAY_FAILURES`: a run stops after so many requests to the gateway in a row without an answer.
    pub gateway_failures: u32,
    /// `DUEDAY_GATEWAY_RATE`: requests per second; `None` is without limit.
    pub gateway_rate: Option<NonZeroU32>,
}

impl ChargeConfig {
    /// Reads it from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            lease: TimeDelta::minutes(env.number(&LEASE_MINUTES)?.into()),
            ceilings: Ceilings {
                charges: env.number_given(&MAX_CHARGES)?.map(u64::from),
                sums: env.read_given(&MAX_SUMS, FromStr::from_str)?.unwrap_or_default(),
            },
            max_processing: TimeDelta::days(env.number(&MAX_PROCESSING_DAYS)?.into()),
            gateway_failures: env.number(&GATEWAY_FAILURES)?,
            gateway_rate: NonZeroU32::new(env.number(&GATEWAY_RATE)?),
        })
    }
}
