//! What paths and queries name.

use ::orders::{Days, EmployeeId, OrderId, OrderStatus, OrdersTable, ProductId, WarehouseId, all_days};
use dynamo::Paging;
use rest::Problem;
use rest::cursor::ShownCursor;
use rest::parameters::{CivilDate, Limit, PathId};
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use utoipa::IntoParams;

/// An order.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OrderPath {
    /// The order.
    #[param(value_type = OrderId)]
    pub order: PathId<OrderId>,
}

/// A product.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ProductPath {
    /// The product.
    pub product: ProductId,
}

/// A warehouse.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct WarehousePath {
    /// The warehouse.
    pub warehouse: WarehouseId,
}

/// An employee.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EmployeePath {
    /// The employee.
    pub employee: EmployeeId,
}

/// Which orders, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OrdersQuery {
    /// In this status; in any if absent.
    #[serde(default)]
    #[param(value_type = OrderStatus, required = false)]
    status: Option<OrderStatus>,
    /// Paid on this date or later, in UTC.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    from: Option<CivilDate>,
    /// Paid on this date or earlier, in UTC.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    to: Option<CivilDate>,
    /// The `next_cursor` of an earlier page; absent for the first.
    #[serde(default)]
    #[param(inline)]
    cursor: ShownCursor,
    /// At most this many items.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

/// 404: no such order, or none the caller may see.
pub fn no_order() -> Problem {
    Problem::not_found("there is no such order")
}

impl OrdersQuery {
    /// Statuses, days, and the page.
    ///
    /// # Errors
    /// 422 if the days end before they begin, or for the cursor of another list.
    pub fn read(self) -> Result<(Vec<OrderStatus>, Days, Paging), Problem> {
        let (first, last) = all_days();
        let statuses = self.status.map_or_else(|| OrderStatus::iter().collect(), |status| vec![status]);
        if let (Some(CivilDate(from)), Some(CivilDate(to))) = (self.from, self.to)
            && from > to
        {
            return Err(Problem::refused("to", format!("must be {from} or later")));
        }
        let from = self.from.map_or(first, |CivilDate(date)| date);
        let to = self.to.map_or(last, |CivilDate(date)| date);
        let paging = self.cursor.paging(self.limit.0, OrdersTable::cursor_of_orders)?;
        Ok((statuses, (from, to), paging))
    }
}
