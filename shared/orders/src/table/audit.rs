//! Reading of the whole table for the audit. Also writes the opening movements: the movements with which the stock from
//! before movements were recorded becomes the sum of its movements.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::super::{AuditedItem, AuditedNumber, Movement, Order, OrderId, OrderMovement, Product};
use super::items::{self, IS_OPENED, MOVEMENTS, STOCK, StockItem, StoredTotal, number};
use super::partition_queries::Selection;
use super::write_transaction::WriteOutcome;
use super::{OrdersTable, keys};
use billing::{AccountId, Money};
use dynamo::{Entity as _, Item, Items, Key, Scan, TableError, from_item, key_of};

/// A scan of the items that the audit compares. It reads the table page by page, so that at most one page is in memory.
#[derive(Debug)]
pub struct AuditScan(Items);

/// A scan of the orders in the table, page by page.
#[derive(Debug)]
pub struct OrdersScan(AuditScan);

/// The character between the partition key and the sort key in the text of a position in a scan. No key contains this
/// character.
const POSITION_SEPARATOR: char = '\n';

/// A value that changes with each write of an audited number, even if the number is the same afterwards. By comparing
/// two revisions, the audit notices that a number was written during a scan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NumberRevision(Vec<u64>);

/// The stock of a product in a warehouse from before movements were recorded. It has no opening movement yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnopenedStock {
    /// The number of pieces.
    pub pieces: u64,
    /// The number of recorded movements.
    pub movements: u64,
}

/// Converts a stored item into an item that the audit compares. Returns `None` if the audit does not compare such
/// items.
fn read_audited(item: &Item) -> Result<Option<AuditedItem>, TableError> {
    let Key { pk, sk } = key_of(item);
    let (is_movement, is_order) = (sk.starts_with(keys::MOVEMENT_PREFIX), pk.starts_with(keys::ORDER_PREFIX));
    Ok(Some(if is_order && is_movement {
        AuditedItem::Movement(OrderMovement::from_item(item)?.stock_changes())
    } else if is_order && sk.starts_with(keys::CUSTOMER_PREFIX) {
        AuditedItem::Order(Box::new(Order::from_item(item)?))
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && is_movement {
        AuditedItem::Movement(Movement::from_item(item)?.stock_changes())
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && sk.starts_with(keys::WAREHOUSE_PREFIX) {
        let (stock, StockItem { is_opened, .. }) = (items::read_stock(item)?, from_item(item)?);
        AuditedItem::Stock { product: stock.product, warehouse: stock.warehouse, pieces: stock.quantity, is_opened }
    } else if pk.starts_with(keys::PRODUCT_PREFIX) && pk == sk {
        let product = Product::from_item(item)?;
        AuditedItem::TotalStock { product: product.id, pieces: product.total_stock }
    } else if pk.starts_with(keys::EMPLOYEE_PREFIX) && keys::parse_quarter(&sk).is_some() {
        AuditedItem::QuarterTotal(StoredTotal::from_item(item)?.total)
    } else {
        return Ok(None);
    }))
}

impl AuditScan {
    /// Returns the items of the next page that the audit compares, or their errors; `None` after the last page. Sends
    /// one Scan request.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Result<AuditedItem, TableError>>>, TableError> {
        let page = self.0.page().await?;
        Ok(page.map(|items| items.iter().map(read_audited).filter_map(Result::transpose).collect()))
    }
}

impl OrdersScan {
    /// Returns the orders of the next page, and the error of each audited item that cannot be read, whether it is an order or
    /// another item; `None` after the last page. Sends one Scan request.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Result<Order, TableError>>>, TableError> {
        let Some(items) = self.0.next_page().await? else { return Ok(None) };
        let orders = items.into_iter().filter_map(|item| match item {
            Ok(AuditedItem::Order(order)) => Some(Ok(*order)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(Some(orders.collect()))
    }

    /// Returns the position after the page that was read last, from which [`OrdersTable::orders_after`] continues;
    /// `None` before the first page and after the last page.
    pub fn position(&self) -> Option<String> {
        self.0.0.last_evaluated_key().map(|key| key_of(key).to_position(POSITION_SEPARATOR))
    }
}

impl OrdersTable {
    /// Creates a scan of all items that the audit compares. `AuditScan::next_page` sends the strongly consistent Scan
    /// requests.
    pub fn scan_for_audit(&self) -> AuditScan {
        AuditScan(self.dynamo.scan(Scan::all()))
    }

    /// Creates a scan of the orders after `position`, which [`OrdersScan::position`] returned; of all orders if
    /// `position` is `None`. The orders are in the sequence in which DynamoDB scans the table.
    /// [`OrdersScan::next_page`] sends the strongly consistent Scan requests.
    pub fn orders_after(&self, position: Option<&str>) -> OrdersScan {
        let after = position.and_then(|text| Key::from_position(text, POSITION_SEPARATOR));
        OrdersScan(AuditScan(self.dynamo.scan(Scan::all().after(after))))
    }

    /// Returns the revision of the audited number `number`, which changes with each write, so that the audit notices a
    /// change during the scan. Sends one strongly consistent request.
    pub async fn revision_of(&self, number: &AuditedNumber) -> Result<NumberRevision, TableError> {
        let of_stock = |item: &Item| {
            let StockItem { stock, movements, .. } = from_item(item)?;
            Ok([movements, stock])
        };
        match number {
            AuditedNumber::Stock { product, warehouse } => {
                let (_, key) = self.stock_keys(product, warehouse);
                let item = self.dynamo.get(key).await?;
                Ok(NumberRevision(item.iter().map(of_stock).collect::<Result<Vec<_>, TableError>>()?.concat()))
            }
            AuditedNumber::TotalStock { product } => {
                let stocks = Selection::with_sort_key_prefix(keys::WAREHOUSE_PREFIX);
                let stocks = self.query_partition(keys::key_of_product(product), stocks).await?;
                Ok(NumberRevision(stocks.iter().map(of_stock).collect::<Result<Vec<_>, TableError>>()?.concat()))
            }
            AuditedNumber::QuarterTotal { representative, quarter, currency } => {
                let total = self.stored_total(representative, *quarter, *currency).await?;
                Ok(NumberRevision(total.iter().map(|stored| stored.total.version).collect()))
            }
        }
    }

    /// Returns the stock `number` if movements were not recorded yet when it was stored, and if it has no opening
    /// movement yet. Otherwise returns `None`. Sends one strongly consistent GetItem request.
    pub async fn unopened_stock(&self, number: &AuditedNumber) -> Result<Option<UnopenedStock>, TableError> {
        let AuditedNumber::Stock { product, warehouse } = number else { return Ok(None) };
        let (_, key) = self.stock_keys(product, warehouse);
        let stock = self.dynamo.get(key).await?.map(|item| from_item::<StockItem>(&item)).transpose()?;
        let stock = stock.filter(|stock| !stock.is_opened);
        Ok(stock.map(|StockItem { stock, movements, .. }| UnopenedStock { pieces: stock, movements }))
    }

    /// Writes the opening movement of the stock `before`, without a change of the stock. From then on the stock is the sum
    /// of its movements. Returns `Refused` if the stock changed since it was read, or if it already has an opening movement.
    /// Sends one TransactWriteItems request.
    pub async fn open_stock(&self, opening: &Movement, before: &UnopenedStock) -> Result<WriteOutcome, TableError> {
        let (_, key) = self.stock_keys(&opening.product, &opening.warehouse);
        let mut values = HashMap::from([
            (":before".to_owned(), number(before.pieces)),
            (":true".to_owned(), AttributeValue::Bool(true)),
            (":one".to_owned(), number(1)),
        ]);
        let same_movements = match before.movements {
            0 => format!("attribute_not_exists(#{MOVEMENTS})"),
            movements => {
                values.insert(":movements".to_owned(), number(movements));
                format!("#{MOVEMENTS} = :movements")
            }
        };
        let condition = format!("#{STOCK} = :before AND attribute_not_exists(#{IS_OPENED}) AND {same_movements}");
        let expression = format!("SET #{IS_OPENED} = :true ADD #{MOVEMENTS} :one");
        self.transaction().create(opening.to_item()).update(key, &expression, &condition, values).commit().await
    }

    /// Returns the amount of the payment of each of `orders`. Each order is given together with its customer. The
    /// amount is `None` for an order that does not exist, and an error for an order that cannot be read. Sends one
    /// strongly consistent BatchGetItem request for each 100 orders.
    pub async fn totals_of_orders(
        &self,
        orders: &[(OrderId, AccountId)],
    ) -> Result<Vec<Option<Result<Money, TableError>>>, TableError> {
        let key = |(order, customer): &(OrderId, AccountId)| {
            keys::key_of_relation(keys::key_of_order(*order), keys::key_of_customer(customer))
        };
        let keys: Vec<Key> = orders.iter().map(key).collect();
        let total = |item: Item| Order::from_item(&item).map(|order| order.total);
        Ok(self.dynamo.get_all(&keys).await?.into_iter().map(|item| item.map(total)).collect())
    }
}
