//! The configuration of the runs of both batches, from environment variables.

use config::ReadingFunction::{Payments, Reminders};
use config::variables;
use config::{ConfigError, Env, EnvVariable};

variables! {
    CONCURRENCY = EnvVariable::new(&[Reminders, Payments], "DUEDAY_CONCURRENCY", "N", "Accounts that a run processes at the same time")
        .in_range(1, 1_000).default("16").rare_flag("concurrency");
    PAGE_ROWS = EnvVariable::new(&[Reminders, Payments], "DUEDAY_PAGE_ROWS", "N", "Rows read from an index with one request")
        .in_range(1, 1_000).default("200").rare_flag("page-rows");
}

/// The limits of the runs of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunLimits {
    /// `DUEDAY_CONCURRENCY`: the number of accounts that are processed at the same time.
    pub concurrency: usize,
    /// `DUEDAY_PAGE_ROWS`: the number of rows that one request reads from an index.
    pub page_rows: i32,
}

impl RunLimits {
    /// Reads the limits from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], with the name and the allowed values of the first invalid variable.
    pub fn read(env: Env<'_>) -> Result<Self, ConfigError> {
        let concurrency = usize::try_from(env.number(&CONCURRENCY)?).unwrap_or(1);
        let page_rows = i32::try_from(env.number(&PAGE_ROWS)?).unwrap_or(i32::MAX);
        Ok(Self { concurrency, page_rows })
    }
}
