//! Reads the current time from a response of DynamoDB. A batch run compares this time with its own machine's clock.

use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::interceptors::BeforeDeserializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use chrono::{DateTime, Utc};

use crate::keys;
use crate::table::payments_table::Table;
use dynamo::TableError;

/// An SDK interceptor that stores the time in the header `Date` of a response; `None` if there is no such header.
#[derive(Clone, Debug, Default)]
struct ResponseDate(Arc<Mutex<Option<DateTime<Utc>>>>);

impl Intercept for ResponseDate {
    fn name(&self) -> &'static str {
        "ResponseDate"
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
    /// Returns DynamoDB's current time, in whole seconds; `None` if its responses have no `Date` header, like the
    /// responses of the embedded engine. Sends one GetItem request.
    pub async fn server_time(&self) -> Result<Option<DateTime<Utc>>, TableError> {
        let date = ResponseDate::default();
        let get = self.client().get_item().table_name(self.name()).set_key(Some(keys::key_of_settings().attributes()));
        let response = get.customize().interceptor(date.clone()).send().await;
        response.map_err(|error| TableError::from_sdk_error("GetItem", error))?;
        let date = *date.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(date)
    }
}
