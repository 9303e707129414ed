//! The time, as the table's answers tell it: by which a wrong clock is found out.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use chrono::{DateTime, Utc};

use super::{Table, TableError, keys};

/// Reads the `Date` of an answer.
#[derive(Clone, Debug, Default)]
struct DateOfAnswer(Arc<Mutex<Option<DateTime<Utc>>>>);

impl Intercept for DateOfAnswer {
    fn name(&self) -> &'static str {
        "DateOfAnswer"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok()).map(|date| date.to_utc());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = date;
        Ok(())
    }
}

impl Table {
    /// The time, as the table tells it, to the second; `None` where answers have no date, as on an engine in this process.
    /// GetItem.
    ///
    /// # Errors
    /// [`TableError::Request`].
    pub async fn time(&self) -> Result<Option<DateTime<Utc>>, TableError> {
        let date = DateOfAnswer::default();
        let get = self.client().get_item().table_name(self.name()).set_key(Some(keys::settings().attributes()));
        let asked = get.customize().interceptor(date.clone()).send().await;
        asked.map_err(|error| TableError::request("GetItem", error))?;
        let date = *date.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(date)
    }
}
