//! Imports products, the products of SKUs, warehouses and initial stock from a CSV file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use billing::{ActionKind, Label, Sku};
use chrono::{DateTime, Utc};
use orders::{FillTarget, MAX_LINES, MAX_QUANTITY, OrderLine, PlaceId, Product, ProductId, Warehouse, WarehouseId};
use orders_desk::OrderDesk;
use orders_table::WriteOutcome;
use serde::Serialize;

use crate::commands::orders::csv_file::{self, CsvLine};
use crate::commands::orders::fulfilment::fill_waiting_orders::FillReport;
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The text after the help of `dueday orders import`.
pub const AFTER_HELP: &str = "\
The columns of the file: product,name,sku,quantity,warehouse,region,stock.

A line contains the quantity of a product in a SKU, its initial stock in a warehouse, or both. Existing products, \
warehouses and stock are not changed; add later deliveries with `dueday orders receive`. A \
line whose warehouse exists in another region is an error.

Example:
  product,name,sku,quantity,warehouse,region,stock
  beans,House Blend 1 kg,gold,1,ams,eu,500
  beans,House Blend 1 kg,,,nyc,na,200
  filter,Paper filters,gold,2,ams,eu,900";

/// The columns of the file. The columns `product` and `name` must not be blank.
const FILE_COLUMNS: [&str; 7] = ["product", "name", "sku", "quantity", "warehouse", "region", "stock"];

/// A line of the file.
#[derive(Debug)]
pub struct GoodsRow {
    product: ProductId,
    name: Label,
    /// A SKU that contains the product, and the quantity of the product in this SKU.
    sku_quantity: Option<(Sku, u32)>,
    /// The warehouse, its region, and the initial stock of the product in this warehouse.
    stock: Option<(WarehouseId, PlaceId, u64)>,
}

/// The numbers of items that the import created.
#[derive(Serialize)]
pub struct GoodsImportReport {
    products: u32,
    warehouses: u32,
    /// The number of SKUs in the file, whether they are new or not.
    skus: usize,
    /// The number of initial stocks that were set, each of one product in one warehouse.
    stocked: u32,
}

/// Parses all rows of the file `text`.
///
/// # Errors
/// If a row is invalid. The message states the line, the column and the allowed values.
pub fn parse_goods_rows(text: impl Read) -> Result<Vec<GoodsRow>, String> {
    csv_file::read_csv_lines(text, &FILE_COLUMNS, GoodsRow::parse_line)
}

impl GoodsRow {
    /// Parses a line of the file.
    fn parse_line(line: &CsvLine<'_>) -> Result<Self, String> {
        let sku_quantity = match (line.optional_cell("sku")?, line.optional_cell("quantity")?) {
            (None, None) => None,
            (Some(sku), Some(quantity)) if quantity > 0 => Some((sku, quantity)),
            _ => return Err("sku and quantity must be given together, and quantity must be 1 or more".to_owned()),
        };
        let stock =
            match (line.optional_cell("warehouse")?, line.optional_cell("region")?, line.optional_cell("stock")?) {
                (None, None, None) => None,
                (Some(_), Some(_), Some(stock)) if stock > MAX_QUANTITY => {
                    return Err(format!("stock must be at most {MAX_QUANTITY}, not {stock}"));
                }
                (Some(warehouse), Some(region), Some(stock)) => Some((warehouse, region, stock)),
                _ => return Err("warehouse, region and stock must be given together".to_owned()),
            };
        Ok(Self { product: line.required_cell("product")?, name: line.required_cell("name")?, sku_quantity, stock })
    }
}

/// Checks that each warehouse in `rows` has only one region in the file, and the same region in the table, and that the
/// region of a new warehouse exists.
async fn check_warehouses(desk: &OrderDesk, rows: &[GoodsRow]) -> Result<(), Failure> {
    let mut regions = BTreeMap::<&str, &PlaceId>::new();
    for (warehouse, region, _) in rows.iter().filter_map(|row| row.stock.as_ref()) {
        match regions.insert(warehouse.as_str(), region) {
            Some(earlier) if earlier != region => {
                return Err(Failure::Refused(format!(
                    "the warehouse {warehouse} has the region {earlier} in one line, but {region} in another"
                )));
            }
            Some(_) => continue,
            None => {}
        }
        match desk.table.get_warehouse(warehouse).await? {
            Some(stored) if stored.region != *region => {
                return Err(Failure::Refused(format!(
                    "the warehouse {warehouse} exists in the region {}, but the file has the region {region}; this \
                     command does not move warehouses",
                    stored.region
                )));
            }
            Some(_) => {}
            None => desk.check_region(region).await?,
        }
    }
    Ok(())
}

/// Imports `rows`. Existing products, warehouses and stock are not changed, but the products of the SKUs in `rows` are
/// replaced. Creates fill tasks for all products in `rows`, so that waiting orders get the new stock.
pub async fn import_goods_rows(
    desk: &OrderDesk,
    rows: Vec<GoodsRow>,
    now: DateTime<Utc>,
) -> Result<GoodsImportReport, Failure> {
    let mut skus = BTreeMap::<Sku, Vec<OrderLine>>::new();
    for row in &rows {
        if let Some((sku, quantity)) = &row.sku_quantity {
            let (lines, line) = (skus.entry(sku.clone()).or_default(), (&row.product, *quantity));
            match lines.iter().find(|earlier| earlier.product == row.product) {
                None => lines.push(OrderLine { product: row.product.clone(), quantity: *quantity }),
                Some(earlier) if (&earlier.product, earlier.quantity) == line => {}
                Some(earlier) => {
                    let reason = format!(
                        "the SKU {sku} contains {} x {} in one line, but {quantity} in another",
                        earlier.quantity, line.0
                    );
                    return Err(Failure::Refused(reason));
                }
            }
        }
    }
    if let Some((sku, _)) = skus.iter().find(|(_, lines)| lines.len() > MAX_LINES) {
        return Err(Failure::Refused(format!("the SKU {sku} has more than {MAX_LINES} products")));
    }
    check_warehouses(desk, &rows).await?;
    let mut imported = GoodsImportReport { products: 0, warehouses: 0, skus: skus.len(), stocked: 0 };
    let is_new = |written: WriteOutcome| u32::from(written == WriteOutcome::Done);
    let change = || desk.clock().ulid();
    let imported_products: BTreeSet<ProductId> = rows.iter().map(|row| row.product.clone()).collect();
    for row in rows {
        let (id, name) = (row.product.clone(), row.name);
        let product = Product { id, name, total_stock: 0, created_at: now, version: 1 };
        imported.products += is_new(desk.table.create_product(&product).await?);
        if let Some((id, region, stock)) = row.stock {
            let name = id
                .as_str()
                .parse()
                .map_err(|_| Failure::Refused(format!("{id} is not a valid name of a warehouse")))?;
            let warehouse = Warehouse { id: id.clone(), name, region, version: 1 };
            imported.warehouses += is_new(desk.table.create_warehouse(&warehouse).await?);
            imported.stocked += is_new(desk.set_initial_stock(&row.product, &id, stock).await?);
        }
    }
    for (sku, lines) in &skus {
        desk.set_lines_of_sku(sku, lines).await?;
    }
    for product in imported_products {
        desk.table.request_fill(&FillTarget::Product(product), change()).await?;
    }
    Ok(imported)
}

/// Runs `dueday orders import`: imports the products, warehouses, initial stocks and SKUs in the file at `path`.
pub async fn import_goods(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    path: &Path,
) -> Result<Exit, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let rows =
        parse_goods_rows(File::open(path).map_err(|error| invalid_file(error.to_string()))?).map_err(invalid_file)?;
    let action = context.new_log_entry(ActionKind::ImportGoods, None);
    // The action log gets an entry without counts before the work, so that the log also contains an interrupted import.
    open_table.table.put_action(&action.on_job([])).await?;
    let imported = import_goods_rows(desk, rows, context.clock.now()).await?;
    let counts = [("products", imported.products), ("warehouses", imported.warehouses), ("stocks", imported.stocked)];
    open_table.table.put_action(&action.on_job(counts.map(|(name, count)| (name, count.into())))).await?;
    let report = FillReport::fill_waiting_orders(context, desk).await;
    context.print(&imported, || {
        let GoodsImportReport { products, warehouses, skus, stocked } = &imported;
        let (products, warehouses) =
            (format_count((*products).into(), "product"), format_count((*warehouses).into(), "warehouse"));
        format!(
            "new: {products}, {warehouses}, {}; {} with products; {}\n",
            format_count((*stocked).into(), "initial stock"),
            format_count(*skus as u64, "SKU"),
            report.text(),
        )
    })?;
    Ok(report.exit())
}
