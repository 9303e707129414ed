//! The path and query parameters that several routes of the order desk use.

use dynamo::Paging;
use orders::{DateRange, EmployeeId, OrderId, OrderStatus, ProductId, WarehouseId, range_of_all_days};
use orders_table::{OrderList, OrdersTable};
use rest::Problem;
use rest::cursor::ListCursor;
use rest::parameters::{CivilDate, PageSize, PathId};
use serde::Deserialize;
use strum::IntoEnumIterator as _;
use utoipa::IntoParams;

/// The path parameter for an order.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OrderPath {
    /// The identifier of the order.
    #[param(value_type = OrderId)]
    pub order: PathId<OrderId>,
}

/// The path parameter for a product.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct ProductPath {
    /// The merchant's identifier of the product.
    pub product: ProductId,
}

/// The path parameter for a warehouse.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct WarehousePath {
    /// The merchant's identifier of the warehouse.
    pub warehouse: WarehouseId,
}

/// The path parameter for an employee.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct EmployeePath {
    /// The merchant's identifier of the employee.
    pub employee: EmployeeId,
}

/// The query parameters of a list of orders: which orders, and which list page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OrdersQuery {
    /// Only orders in this status. Default: any status.
    #[serde(default)]
    #[param(value_type = OrderStatus, required = false)]
    status: Option<OrderStatus>,
    /// Only orders that were paid on this date or later (UTC).
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    from: Option<CivilDate>,
    /// Only orders that were paid on this date or earlier (UTC).
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    to: Option<CivilDate>,
    /// The `next_cursor` of the previous list page; absent for the first list page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The maximum number of items in the list page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
}

/// Returns the problem response (404) for an order that does not exist, or whose existence the caller must not know.
pub fn order_not_found() -> Problem {
    Problem::not_found("there is no such order")
}

impl OrdersQuery {
    /// Returns the requested statuses, the requested range of payment days, and the requested list page of `list`. If
    /// the request has no status, returns all statuses. If it has no first or last day, the range has no limit on this
    /// side.
    ///
    /// # Errors
    /// The problem response (422) if `to` is before `from`, or if the cursor does not belong to `list`.
    pub fn into_statuses_days_and_paging(
        self,
        list: OrderList<'_>,
    ) -> Result<(Vec<OrderStatus>, DateRange, Paging), Problem> {
        let (first, last) = range_of_all_days();
        let statuses = self.status.map_or_else(|| OrderStatus::iter().collect(), |status| vec![status]);
        if let (Some(CivilDate(from)), Some(CivilDate(to))) = (self.from, self.to)
            && from > to
        {
            return Err(Problem::refused_field("to", format!("must be {from} or later")));
        }
        let from = self.from.map_or(first, |CivilDate(date)| date);
        let to = self.to.map_or(last, |CivilDate(date)| date);
        let paging = self.cursor.paging(self.limit.0, |text| OrdersTable::cursor_of_orders(list, text))?;
        Ok((statuses, (from, to), paging))
    }
}
