//! The whole table, for those who check or copy it.

use super::{Item, Table, TableError};

impl Table {
    /// Every item. Scan, all pages, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn scan(&self) -> Result<Vec<Item>, TableError> {
        let pages = self.client.scan().table_name(&self.name).consistent_read(true).into_paginator().items().send();
        pages.collect::<Result<Vec<Item>, _>>().await.map_err(|error| TableError::request("Scan", error))
    }
}
