//! Stripe's lists, read to their end ("Pagination" in Stripe's API reference).

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Failed, PAGE_ITEMS, Stripe};
use billing::GatewayToken;

/// An object of a list.
pub(super) trait Listed: DeserializeOwned {
    fn id(&self) -> &GatewayToken;
}

#[derive(Debug, Deserialize)]
struct ListPage<T> {
    data: Vec<T>,
    has_more: bool,
}

impl Stripe {
    /// Lists all objects at `path` that `filter` allows, on as many list pages as there are.
    pub(super) async fn list_all<T: Listed>(&self, path: &str, filter: (&str, &str)) -> Result<Vec<T>, Failed> {
        let (mut all, mut after) = (Vec::new(), None::<GatewayToken>);
        loop {
            let mut query = vec![filter, ("limit", PAGE_ITEMS)];
            query.extend(after.as_ref().map(|after| ("starting_after", after.as_str())));
            let page: ListPage<T> = self.send(self.http.get(self.at(path)).query(&query)).await?;
            let last = page.data.last().map(|last| last.id().clone());
            all.extend(page.data);
            match last {
                Some(last) if page.has_more => after = Some(last),
                _ => return Ok(all),
            }
        }
    }
}
