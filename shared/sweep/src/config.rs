//! How a sweep goes about its work, as its environment says.

use chrono_tz::Tz;

use config::ReadBy::Every;
use config::variables;
use config::{ConfigError, Env, Variable};

variables! {
    CONCURRENCY = Variable::new(&[Every], "DUEDAY_CONCURRENCY", "N", "Accounts worked on at the same time")
        .within(1, 1_000).default("16").rare("concurrency");
    PAGE_ROWS = Variable::new(&[Every], "DUEDAY_PAGE_ROWS", "N", "Rows read from an index at once")
        .within(1, 1_000).default("200").rare("page-rows");
}

/// How a sweep goes about its work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// `DUEDAY_CONCURRENCY`: accounts worked on at the same time.
    pub concurrency: usize,
    /// `DUEDAY_PAGE_ROWS`: rows read at once.
    pub page_rows: i32,
    /// The billing time zone, whose date is today.
    pub zone: Tz,
}

impl Limits {
    /// Reads them from `env`.
    ///
    /// # Errors
    /// [`ConfigError`], naming the first variable that is wrong and what is allowed.
    pub fn read(env: Env<'_>, zone: Tz) -> Result<Self, ConfigError> {
        let concurrency = usize::try_from(env.number(&CONCURRENCY)?).unwrap_or(1);
        let page_rows = i32::try_from(env.number(&PAGE_ROWS)?).unwrap_or(i32::MAX);
        Ok(Self { concurrency, page_rows, zone })
    }
}
