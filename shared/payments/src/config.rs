//! The configuration of the payment batch, from environment variables.

use std::num::NonZeroU32;
use std::str::FromStr;

use chrono::TimeDelta;

use billing::Ceilings;
use config::ReadBy::{Every, Payments};
use config::variables;
use config::{ConfigError, Env, Variable};

variables! {
    MAX_CHARGES = Variable::new(&[Payments], "DUEDAY_MAX_CHARGES", "N",
        "The highest number of charges per day; a run that would exceed it does not start")
        .in_range(0, u32::MAX).rare_flag("max-charges");
    MAX_SUMS = Variable::new(&[Payments], "DUEDAY_MAX_SUMS", "SUMS",
        "The highest sums of charges per day, such as EUR=100000.00,JPY=5000000; a run that would exceed them does not start")
        .rare_flag("max-sums");
    MAX_PROCESSING_DAYS = Variable::new(&[Payments], "DUEDAY_MAX_PROCESSING_DAYS", "DAYS",
        "Days for which the bank may process a debit; after that, runs report its row as failed")
        .in_range(1, 60).default("25").rare_flag("max-processing-days");
    LEASE_MINUTES = Variable::new(&[Every], "DUEDAY_LEASE_MINUTES", "MINUTES",
        "Minutes for which a worker leases an attempt that it has claimed")
        .in_range(10, 1_440).default("20").rare_flag("lease-minutes");
    GATEWAY_FAILURES = Variable::new(&[Payments], "DUEDAY_GATEWAY_FAILURES", "N",
        "A run stops after this many consecutive requests to the gateway without a usable response")
        .in_range(1, 1_000).default("20").rare_flag("gateway-failures");
    GATEWAY_RATE = Variable::new(&[Payments], "DUEDAY_GATEWAY_RATE", "N",
        "The highest number of requests per second to the gateway")
        .in_range(1, 10_000).default("25").rare_flag("gateway-rate");
}

/// The configuration of the payment batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChargeConfig {
    /// `DUEDAY_LEASE_MINUTES`: how long a worker leases an attempt that it has claimed.
    pub lease: TimeDelta,
    /// `DUEDAY_MAX_CHARGES`, `DUEDAY_MAX_SUMS`: the daily limits on the number and the total amount of charges. A run
    /// that would exceed a limit does not start.
    pub ceilings: Ceilings,
    /// `DUEDAY_MAX_PROCESSING_DAYS`: how long the bank may process a debit before a run reports its row as failed.
    pub max_processing: TimeDelta,
    /// `DUEDAY_GATEWAY_FAILURES`: a run stops after this many consecutive requests to the gateway without a usable
    /// response.
    pub gateway_failures: u32,
    /// `DUEDAY_GATEWAY_RATE`: the highest number of requests per second to the gateway; `None` for no limit.
    pub gateway_rate: Option<NonZeroU32>,
}

impl ChargeConfig {
    /// Reads the configuration from `env`.
    ///
    /// # Errors
    /// [`ConfigError`] for the first variable with an invalid value; its message contains the allowed values.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        Ok(Self {
            lease: TimeDelta::minutes(env.number(&LEASE_MINUTES)?.into()),
            ceilings: Ceilings {
                charges: env.optional_number(&MAX_CHARGES)?.map(u64::from),
                sums: env.read_optional(&MAX_SUMS, FromStr::from_str)?.unwrap_or_default(),
            },
            max_processing: TimeDelta::days(env.number(&MAX_PROCESSING_DAYS)?.into()),
            gateway_failures: env.number(&GATEWAY_FAILURES)?,
            gateway_rate: NonZeroU32::new(env.number(&GATEWAY_RATE)?),
        })
    }
}
