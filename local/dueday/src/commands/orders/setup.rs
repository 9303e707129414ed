//! Products, what SKUs are made of, warehouses and opening stock, from a CSV file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use billing::{Label, Sku};
use chrono::{DateTime, Utc};
use orders::{
    MAX_LINES, MAX_QUANTITY, OrderDesk, OrderLine, PlaceId, Product, ProductId, Warehouse, WarehouseId, Written,
    all_days,
};
use serde::Serialize;

use super::csv_file::{self, Line};
use crate::context::Context;
use crate::terminal::output::count;
use crate::{Exit, Failure};

pub const AFTER_HELP: &str = "\
The file's columns: product,name,sku,quantity,warehouse,region,stock. A line says that so many of a product belong to a SKU, \
and that so many lie in a warehouse. Either part may be left blank, or left out. Products and warehouses that are there stay as they are, \
and so does stock: what arrives later is `dueday orders receive`.

Example:
  product,name,sku,quantity,warehouse,region,stock
  beans,House Blend 1 kg,gold,1,ams,eu,500
  beans,House Blend 1 kg,,,nyc,na,200
  filter,Paper filters,gold,2,ams,eu,900";

/// The columns of a file; the first two must be there.
const COLUMNS: [&str; 7] = ["product", "name", "sku", "quantity", "warehouse", "region", "stock"];

/// A line of a file.
#[derive(Debug)]
pub struct Row {
    product: ProductId,
    name: Label,
    of_sku: Option<(Sku, u32)>,
    place: Option<(WarehouseId, PlaceId, u64)>,
}

/// What was new.
#[derive(Serialize)]
pub struct Imported {
    products: u32,
    warehouses: u32,
    skus: usize,
    stocked: u32,
}

/// The rows of a file's text, if all of them are right.
///
/// # Errors
/// The line, the column and what is allowed.
pub fn parse(text: impl Read) -> Result<Vec<Row>, String> {
    csv_file::lines(text, &COLUMNS, Row::read)
}

impl Row {
    fn read(line: &Line<'_>) -> Result<Self, String> {
        let of_sku = match (line.cell("sku")?, line.cell("quantity")?) {
            (None, None) => None,
            (Some(sku), Some(quantity)) if quantity > 0 => Some((sku, quantity)),
            _ => return Err("a sku needs its quantity, 1 or more, and a quantity its sku".to_owned()),
        };
        let place = match (line.cell("warehouse")?, line.cell("region")?, line.cell("stock")?) {
            (None, None, None) => None,
            (Some(_), Some(_), Some(stock)) if stock > MAX_QUANTITY => {
                return Err(format!("stock must be at most {MAX_QUANTITY}, not {stock}"));
            }
            (Some(warehouse), Some(region), Some(stock)) => Some((warehouse, region, stock)),
            _ => return Err("warehouse, region and stock must be given together".to_owned()),
        };
        Ok(Self { product: line.needed("product")?, name: line.needed("name")?, of_sku, place })
    }
}

/// Brings in `rows`; what is there stays as it is.
pub async fn apply(desk: &OrderDesk, rows: Vec<Row>, now: DateTime<Utc>) -> Result<Imported, Failure> {
    let mut skus = BTreeMap::<Sku, Vec<OrderLine>>::new();
    for row in &rows {
        if let Some((sku, quantity)) = &row.of_sku {
            let (lines, line) = (skus.entry(sku.clone()).or_default(), (&row.product, *quantity));
            match lines.iter().find(|known| known.product == row.product) {
                None => lines.push(OrderLine { product: row.product.clone(), quantity: *quantity }),
                Some(known) if (&known.product, known.quantity) == line => {}
                Some(known) => {
                    let reason =
                        format!("{sku} has {} of {} in one line and {quantity} in another", known.quantity, line.0);
                    return Err(Failure::Refused(reason));
                }
            }
        }
    }
    if let Some((sku, _)) = skus.iter().find(|(_, lines)| lines.len() > MAX_LINES) {
        return Err(Failure::Refused(format!("{sku} has more than {MAX_LINES} products")));
    }
    let mut imported = Imported { products: 0, warehouses: 0, skus: skus.len(), stocked: 0 };
    let is_new = |written: Written| u32::from(written == Written::Done);
    for row in rows {
        let (id, name) = (row.product.clone(), row.name);
        let product = Product { id, name, total_stock: 0, created_at: now, version: 1 };
        imported.products += is_new(desk.table.create_product(&product).await?);
        if let Some((id, region, stock)) = row.place {
            let name = id.as_str().parse().map_err(|_| Failure::Refused(format!("{id} is no name")))?;
            let warehouse = Warehouse { id: id.clone(), name, region, version: 1 };
            imported.warehouses += is_new(desk.table.create_warehouse(&warehouse).await?);
            imported.stocked += is_new(desk.table.open_stock(&row.product, &id, stock).await?);
        }
    }
    for (sku, lines) in &skus {
        desk.set_lines(sku, lines).await?;
    }
    Ok(imported)
}

pub async fn import(context: &Context, desk: &OrderDesk, path: &Path) -> Result<Exit, Failure> {
    let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
    let rows = parse(File::open(path).map_err(|error| wrong(error.to_string()))?).map_err(wrong)?;
    let imported = apply(desk, rows, context.clock.now()).await?;
    let waiting = desk.fill_waiting(all_days(), DateTime::<Utc>::MAX_UTC).await;
    context.print(&imported, || {
        let Imported { products, warehouses, skus, stocked } = &imported;
        let (products, warehouses) = (count((*products).into(), "product"), count((*warehouses).into(), "warehouse"));
        format!(
            "new: {products}, {warehouses}, stock in {}; {} made of products; {} filled that waited\n",
            count((*stocked).into(), "place"),
            count(*skus as u64, "SKU"),
            count(waiting.filled.into(), "order"),
        )
    })?;
    Ok(Exit::of(waiting.failed == 0))
}
