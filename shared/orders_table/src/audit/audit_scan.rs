//! The scan of the whole table for the audit. It reads the numbers and records that the audit compares, and can also
//! check all items.
//!
//! A scan is not a snapshot: it can read some items of an entity before a transaction and others after it. So the scan
//! reads the partition of a faulty item again, and reports only the faults that it finds in both readings.

use chrono::{DateTime, Utc};

use crate::audit::partition_check::PartitionCheck;
use crate::items::{StockItem, StoredQuarterTotal, read_stock_item};
use crate::partition_queries::{ItemSelection, QueriedPartition};
use crate::stream::is_order_key;
use crate::{OrdersTable, keys};
use dynamo::{Entity as _, FaultyItem, Item, ItemFault, Items, Key, Scan, TableError, from_item, key_of_item};
use orders::{AuditedItem, Movement, Order, OrderMovement, Product};

/// The character between the partition key and the sort key in the text of a position in a scan. No key contains this
/// character.
const POSITION_SEPARATOR: char = '\n';

/// A scan of the table. It reads the table page by page, so that at most one page is in memory.
#[derive(Debug)]
pub struct AuditScan {
    table: OrdersTable,
    items: Items,
    /// The time at which all items are checked; `None` if they are not checked.
    checked_at: Option<DateTime<Utc>>,
    /// The check of the partition that the scan has not read to its end.
    open: Option<PartitionCheck>,
    /// The key of the item that the scan has read last.
    last: Option<Key>,
    /// The key of the last item of the partition that was checked last.
    position: Option<Key>,
    /// The number of buckets (partitions of GSI-2) in the settings; 0 if it was not read yet, and `u32::MAX` if it cannot
    /// be read.
    buckets: u32,
    faulty: Vec<FaultyItem>,
    items_read: u64,
}

/// Converts a stored item into an item that the audit compares. Returns `None` if the audit does not compare such
/// items.
fn read_audited_item(item: &Item) -> Result<Option<AuditedItem>, TableError> {
    let Key { pk, sk } = key_of_item(item);
    let (is_movement, is_order) = (sk.starts_with(keys::MOVEMENT_PREFIX), pk.starts_with(keys::ORDER_PREFIX));
    Ok(Some(if is_order && is_movement {
        AuditedItem::Movement(OrderMovement::from_item(item)?.stock_changes())
    } else if is_order && sk.starts_with(keys::CUSTOMER_PREFIX) {
        AuditedItem::Order(Box::new(Order::from_item(item)?))
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && is_movement {
        AuditedItem::Movement(Movement::from_item(item)?.stock_changes())
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && sk.starts_with(keys::WAREHOUSE_PREFIX) {
        let (stock, StockItem { is_opened, .. }) = (read_stock_item(item)?, from_item(item)?);
        AuditedItem::Stock { product: stock.product, warehouse: stock.warehouse, pieces: stock.quantity, is_opened }
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && pk == sk {
        let product = Product::from_item(item)?;
        AuditedItem::TotalStock { product: product.id, pieces: product.total_stock }
    } else if pk.starts_with(keys::EMPLOYEE_PREFIX) && keys::parse_quarter(&sk).is_some() {
        AuditedItem::QuarterTotal(StoredQuarterTotal::from_item(item)?.total)
    } else {
        return Ok(None);
    }))
}

impl OrdersTable {
    /// Creates a scan of all items that the audit compares. `AuditScan::next_page` sends the strongly consistent Scan
    /// requests.
    pub fn scan_for_audit(&self) -> AuditScan {
        self.scan_for_audit_after(None)
    }

    /// Creates a scan like [`OrdersTable::scan_for_audit`], of the items after `position`, which
    /// [`AuditScan::position`] returned.
    pub(crate) fn scan_for_audit_after(&self, position: Option<&str>) -> AuditScan {
        let position = position.and_then(|text| Key::from_position(text, POSITION_SEPARATOR));
        AuditScan {
            table: self.clone(),
            items: self.dynamo.scan(Scan::all().after(position.clone())),
            checked_at: None,
            open: None,
            last: None,
            position,
            buckets: 0,
            faulty: Vec::new(),
            items_read: 0,
        }
    }
}

impl AuditScan {
    /// Returns the same scan, which also checks all items at the time `now`. [`AuditScan::take_faulty_items`] returns
    /// the faulty items.
    pub fn with_items_checked(self, now: DateTime<Utc>) -> Self {
        Self { checked_at: Some(now), ..self }
    }

    /// Returns the items of the next page that the audit compares, or their errors; `None` after the last page. Sends
    /// one Scan request. If the items are checked, also sends a Query request for each partition with a faulty item.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Result<AuditedItem, TableError>>>, TableError> {
        let Some(page) = self.items.read_page().await? else { return Ok(None) };
        self.items_read = self.items_read.saturating_add(u64::try_from(page.len()).unwrap_or(u64::MAX));
        if let Some(now) = self.checked_at {
            for item in &page {
                self.check_item(item, now).await?;
            }
            if self.is_at_end() {
                self.end_partition(now).await?;
            }
        }
        Ok(Some(page.iter().map(read_audited_item).filter_map(Result::transpose).collect()))
    }

    /// Returns the number of items that the scan has read.
    pub fn items_read(&self) -> u64 {
        self.items_read
    }

    /// Returns the faulty items of the partitions that were read to their end since the last call.
    pub fn take_faulty_items(&mut self) -> Vec<FaultyItem> {
        std::mem::take(&mut self.faulty)
    }

    /// Returns whether the last page was read.
    pub fn is_at_end(&self) -> bool {
        self.items.last_evaluated_key().is_none()
    }

    /// Returns the key of the partition that the scan has not read to its end; `None` if there is none.
    pub fn partition_being_read(&self) -> Option<&str> {
        self.open.as_ref().map(|open| open.pk.as_str())
    }

    /// Returns the position after the partition that was read to its end last; `None` if there is none.
    pub fn position(&self) -> Option<String> {
        self.position.clone().map(|key| key.to_position(POSITION_SEPARATOR))
    }

    /// Checks `item` at the time `now`.
    async fn check_item(&mut self, item: &Item, now: DateTime<Utc>) -> Result<(), TableError> {
        let key = key_of_item(item);
        if self.partition_being_read().is_some_and(|open| open != key.pk) {
            self.end_partition(now).await?;
        }
        self.open.get_or_insert_with(|| PartitionCheck::new(key.pk.clone(), now)).add(item);
        if is_order_key(&key)
            && let Ok(order) = Order::from_item(item)
        {
            self.check_bucket(&key, order.bucket).await?;
        }
        self.last = Some(key);
        Ok(())
    }

    /// Checks that the order with the key `key`, which is in `bucket`, is in a bucket (partition of GSI-2) that the lists
    /// of all orders contain. Reads the number of buckets again if the bucket is not one of the known buckets.
    async fn check_bucket(&mut self, key: &Key, bucket: u32) -> Result<(), TableError> {
        if bucket < self.buckets {
            return Ok(());
        }
        self.buckets = match self.table.stored_buckets().await {
            Ok(Some(buckets)) => buckets.count(),
            Ok(None) => {
                let (key, what) = (keys::key_of_settings(), "it does not exist, although there are orders".to_owned());
                self.faulty.push(FaultyItem { key, fault: ItemFault::Relation, what });
                u32::MAX
            }
            // If the settings cannot be read, that is a fault of its own.
            Err(TableError::Unreadable { .. }) => u32::MAX,
            Err(error) => return Err(error),
        };
        if bucket >= self.buckets {
            let what = format!("unexpected: Bucket. No list contains it, because there are {} buckets", self.buckets);
            self.faulty.push(FaultyItem { key: key.clone(), fault: ItemFault::Altered, what });
        }
        Ok(())
    }

    /// Ends the check of the open partition. If it has faulty items, reads the partition again, and adds the faults that
    /// are found again.
    async fn end_partition(&mut self, now: DateTime<Utc>) -> Result<(), TableError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        self.position.clone_from(&self.last);
        let mut again = PartitionCheck::new(open.pk.clone(), now);
        let faulty = open.finish();
        if !faulty.is_empty() {
            let mut items = self.table.query(&QueriedPartition::of_table(again.pk.clone()), ItemSelection::all_items());
            while let Some(item) = items.next().await? {
                again.add(&item);
            }
            let again = again.finish();
            self.faulty.extend(faulty.into_iter().filter(|faulty| again.contains(faulty)));
        }
        Ok(())
    }
}
