//! The revisions of audited numbers, the orders of receipts, and the opening movements: the movements with which the stock
//! from before movements were recorded becomes the sum of its movements.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use crate::items::{IS_OPENED, MOVEMENTS, STOCK, StockItem, number_attribute};
use crate::partition_queries::ItemSelection;
use crate::write_transaction::WriteOutcome;
use crate::{OrdersTable, keys};
use billing::AccountId;
use dynamo::{Entity as _, Item, Key, TableError, from_item};
use orders::{AuditedNumber, Movement, Order, OrderId};

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

impl OrdersTable {
    /// Returns the revision of the audited number `number`, which changes with each write, so that the audit notices a
    /// change during the scan. Sends one strongly consistent request.
    pub async fn revision_of_number(&self, number: &AuditedNumber) -> Result<NumberRevision, TableError> {
        let of_stock = |item: &Item| {
            let StockItem { stock, movements, .. } = from_item(item)?;
            Ok([movements, stock])
        };
        match number {
            AuditedNumber::Stock { product, warehouse } => {
                let key = self.stock_keys(product, warehouse).in_warehouse;
                let item = self.dynamo.get(key).await?;
                Ok(NumberRevision(item.iter().map(of_stock).collect::<Result<Vec<_>, TableError>>()?.concat()))
            }
            AuditedNumber::TotalStock { product } => {
                let stocks = ItemSelection::with_sort_key_prefix(keys::WAREHOUSE_PREFIX);
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
    pub async fn stock_without_opening(&self, number: &AuditedNumber) -> Result<Option<UnopenedStock>, TableError> {
        let AuditedNumber::Stock { product, warehouse } = number else { return Ok(None) };
        let key = self.stock_keys(product, warehouse).in_warehouse;
        let stock = self.dynamo.get(key).await?.map(|item| from_item::<StockItem>(&item)).transpose()?;
        let stock = stock.filter(|stock| !stock.is_opened);
        Ok(stock.map(|StockItem { stock, movements, .. }| UnopenedStock { pieces: stock, movements }))
    }

    /// Writes the opening movement of the stock `before`, without a change of the stock. From then on the stock is the sum
    /// of its movements. Returns `Refused` if the stock changed since it was read, or if it already has an opening movement.
    /// Sends one TransactWriteItems request.
    pub async fn write_opening_movement(
        &self,
        opening: &Movement,
        before: &UnopenedStock,
    ) -> Result<WriteOutcome, TableError> {
        let key = self.stock_keys(&opening.product, &opening.warehouse).in_warehouse;
        let mut values = HashMap::from([
            (":before".to_owned(), number_attribute(before.pieces)),
            (":true".to_owned(), AttributeValue::Bool(true)),
            (":one".to_owned(), number_attribute(1)),
        ]);
        let same_movements = match before.movements {
            0 => format!("attribute_not_exists(#{MOVEMENTS})"),
            movements => {
                values.insert(":movements".to_owned(), number_attribute(movements));
                format!("#{MOVEMENTS} = :movements")
            }
        };
        let condition = format!("#{STOCK} = :before AND attribute_not_exists(#{IS_OPENED}) AND {same_movements}");
        let expression = format!("SET #{IS_OPENED} = :true ADD #{MOVEMENTS} :one");
        self.transaction().create(opening.to_item()).update(key, &expression, &condition, values).commit().await
    }

    /// Returns each of `orders`. Each order is given together with its customer. Returns `None` for an order that does
    /// not exist, and an error for an order that cannot be read. Sends one strongly consistent BatchGetItem request for
    /// each 100 orders.
    pub async fn get_orders(
        &self,
        orders: &[(OrderId, AccountId)],
    ) -> Result<Vec<Option<Result<Order, TableError>>>, TableError> {
        let key = |(order, customer): &(OrderId, AccountId)| {
            keys::key_of_relation(keys::key_of_order(*order), keys::key_of_customer(customer))
        };
        let keys: Vec<Key> = orders.iter().map(key).collect();
        let read = |item: Item| Order::from_item(&item);
        Ok(self.dynamo.get_all(&keys).await?.into_iter().map(|item| item.map(read)).collect())
    }
}
