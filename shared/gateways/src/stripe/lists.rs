//! Reads lists from Stripe, one list page after the other ("Pagination" in Stripe's API reference). The objects of a
//! list are read as untyped JSON, so that an unexpected value in an object of another program does not make the list
//! unreadable.

use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_SIZE, RequestFailure, Stripe};
use crate::{GatewayError, ListPage, ListProgress, TimeRange};

/// A list page in Stripe's wire format.
#[derive(Debug, Deserialize)]
struct StripeListPage {
    data: Vec<Value>,
    has_more: bool,
}

impl Stripe {
    /// Returns all objects in the list at `path` that match `filter`, from all list pages, as one list page.
    pub(super) async fn list_all(
        &self,
        path: &str,
        filter: &[(&str, &str)],
    ) -> Result<ListPage<Value>, RequestFailure> {
        let mut all = Vec::new();
        let mut after = None::<String>;
        let mut progress = ListProgress::default();
        loop {
            let page = self.read_list_page(path, filter, after.as_deref()).await?;
            progress.record(&page).map_err(|error| RequestFailure::Unknown(error.to_string()))?;
            all.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(ListPage::last(all)),
            }
        }
    }

    /// Returns a list page of the objects in the list at `path` that were created in `range`: the first list page, or
    /// the list page after the object `after`. Stripe returns the field `expand` of each object in expanded form.
    pub(super) async fn list_range(
        &self,
        path: &str,
        range: &TimeRange,
        after: Option<&str>,
        expand: Option<&str>,
    ) -> Result<ListPage<Value>, GatewayError> {
        let (from, to) = (range.from.timestamp().to_string(), range.to.timestamp().to_string());
        let mut filter = vec![("created[gte]", from.as_str()), ("created[lt]", to.as_str())];
        filter.extend(expand.map(|field| ("expand[0]", field)));
        Ok(self.read_list_page(path, &filter, after).await?)
    }

    /// Returns a list page of the objects in the list at `path` that match `filter`: the first list page, or the list
    /// page after the object `after`. The id of its last object is the position after which the next list page begins.
    async fn read_list_page(
        &self,
        path: &str,
        filter: &[(&str, &str)],
        after: Option<&str>,
    ) -> Result<ListPage<Value>, RequestFailure> {
        let mut query = vec![("limit", PAGE_SIZE)];
        query.extend(filter);
        query.extend(after.map(|after| ("starting_after", after)));
        let page: StripeListPage = self.send(self.http.get(self.api_url(path)).query(&query)).await?;
        if !page.has_more {
            return Ok(ListPage::last(page.data));
        }
        match page.data.last().and_then(|last| last["id"].as_str()).map(str::to_owned) {
            Some(last) => Ok(ListPage::new(page.data, Some(last))),
            None => Err(RequestFailure::Unknown(format!(
                "the list {path} promises another list page, but its last object has no id"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use reqwest::StatusCode;
    use reqwest::header::HeaderMap;

    use super::super::{HttpResponse, StripeTransport};
    use super::*;
    use crate::{PaymentGateway as _, Refunds as _};

    /// A transport that responds to each request with one of these bodies, one after the other and then again.
    #[derive(Debug)]
    struct RepeatedPages {
        bodies: &'static [&'static str],
        requests: AtomicUsize,
    }

    #[async_trait]
    impl StripeTransport for RepeatedPages {
        fn http_client(&self) -> reqwest::Client {
            reqwest::Client::new()
        }

        async fn send(&self, _: reqwest::Request) -> Result<HttpResponse, String> {
            let number = self.requests.fetch_add(1, Ordering::Relaxed);
            let body = self.bodies[number % self.bodies.len()].as_bytes().to_vec();
            Ok(HttpResponse { status: StatusCode::OK, headers: HeaderMap::new(), body })
        }

        async fn wait(&self, _: Duration) {}
    }

    #[tokio::test]
    async fn list_that_never_ends_is_an_error_after_a_few_requests() {
        let bodies: [&[&str]; 4] = [
            &[r#"{"data": [], "has_more": true}"#],
            &[r#"{"data": [{"object": "refund"}], "has_more": true}"#],
            &[r#"{"data": [{"id": "1"}], "has_more": true}"#],
            &[r#"{"data": [{"id": "1"}], "has_more": true}"#, r#"{"data": [{"id": "2"}], "has_more": true}"#],
        ];
        for bodies in bodies {
            let pages = Arc::new(RepeatedPages { bodies, requests: AtomicUsize::default() });
            let stripe =
                Stripe::with_transport(pages.clone(), "sk_test_1", "http://stripe.invalid", Duration::from_secs(60));
            let (token, since) = ("cus_1".parse().unwrap(), chrono::DateTime::UNIX_EPOCH);
            assert!(stripe.payments_of_customer(&token, since).await.is_err(), "{bodies:?}");
            assert!(stripe.refunds_of_payment(&token).await.is_err(), "{bodies:?}");
            assert!(stripe.refunds_since(since).await.is_err(), "{bodies:?}");
            assert!(stripe.disputes_since(since).await.is_err(), "{bodies:?}");
            assert!(stripe.webhook_endpoints().await.is_err(), "{bodies:?}");
            assert!(pages.requests.load(Ordering::Relaxed) <= 15, "{pages:?}");
        }
    }
}
