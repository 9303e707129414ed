//! Reads lists from Stripe, one list page after the other ("Pagination" in Stripe's API reference).

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{PAGE_SIZE, RequestFailure, Stripe};
use crate::{ListPage as RangePage, TimeRange};
use billing::GatewayToken;

/// An object in one of Stripe's lists. The id of the last object of a list page is the position after which the next
/// list page begins.
pub(super) trait ListedObject: DeserializeOwned {
    /// Returns the id of the object.
    fn id(&self) -> &GatewayToken;
}

/// A list page in Stripe's wire format.
#[derive(Debug, Deserialize)]
struct ListPage<T> {
    data: Vec<T>,
    has_more: bool,
}

impl Stripe {
    /// Returns all objects in the list at `path` that match `filter`, from all list pages.
    pub(super) async fn list_all<T: ListedObject>(
        &self,
        path: &str,
        filter: Option<(&str, &str)>,
    ) -> Result<Vec<T>, RequestFailure> {
        let (mut all, mut after) = (Vec::new(), None::<GatewayToken>);
        loop {
            let mut query = vec![("limit", PAGE_SIZE)];
            query.extend(filter);
            query.extend(after.as_ref().map(|after| ("starting_after", after.as_str())));
            let page: ListPage<T> = self.send(self.http.get(self.api_url(path)).query(&query)).await?;
            let last = page.data.last().map(|last| last.id().clone());
            all.extend(page.data);
            match last {
                Some(last) if page.has_more => after = Some(last),
                _ => return Ok(all),
            }
        }
    }

    /// Returns a list page of the objects in the list at `path` that were created in `range`: the first list page, or
    /// the list page after the object `after`. Stripe returns the field `expand` of each object in expanded form.
    pub(super) async fn list_range<T: ListedObject>(
        &self,
        path: &str,
        range: &TimeRange,
        after: Option<&str>,
        expand: Option<&str>,
    ) -> Result<RangePage<T>, RequestFailure> {
        let (from, to) = (range.from.timestamp().to_string(), range.to.timestamp().to_string());
        let mut query = vec![("limit", PAGE_SIZE), ("created[gte]", &from), ("created[lt]", &to)];
        query.extend(expand.map(|field| ("expand[0]", field)));
        query.extend(after.map(|after| ("starting_after", after)));
        let page: ListPage<T> = self.send(self.http.get(self.api_url(path)).query(&query)).await?;
        let next = page.data.last().filter(|_| page.has_more).map(|last| last.id().to_string());
        Ok(RangePage { items: page.data, next })
    }
}
