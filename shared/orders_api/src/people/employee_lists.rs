//! Lists of employees, and of the customers and the orders of an employee. Only for operators.

use axum::Json;
use axum::extract::State;
use billing::Label;
use orders::DepartmentId;
use orders_table::{EmployeeList, OrderList, OrdersTable};
use rest::cursor::ListCursor;
use rest::list::ListView;
use rest::parameters::{CivilDate, PageQuery, PageSize, Path, Query};
use rest::{ConfidentialAccess, OperatorAccess, Problem, RequestTime};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::OrdersApi;
use crate::desk_problem::DeskProblem;
use crate::parameters::{EmployeePath, OrdersQuery};
use crate::people::employee_view::{EmployeeView, OrderOfRepresentativeView, RepresentedCustomer};
use crate::people::employees::employee_not_found;

/// The search condition for employees (exactly one of name, title, department and hire date), and the list page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EmployeesQuery {
    /// Employees with this name, ignoring case.
    #[serde(default)]
    #[param(value_type = Label, required = false)]
    name: Option<Label>,
    /// Employees with this job title, ignoring case.
    #[serde(default)]
    #[param(value_type = Label, required = false)]
    title: Option<Label>,
    /// Employees of this department.
    #[serde(default)]
    #[param(value_type = DepartmentId, required = false)]
    department: Option<DepartmentId>,
    /// Employees who were hired after this date and up to today (UTC). Needs the role admin.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    hired_after: Option<CivilDate>,
    /// The `next_cursor` of the previous list page; absent for the first list page.
    #[serde(default)]
    #[param(inline)]
    cursor: ListCursor,
    /// The maximum number of items in the list page.
    #[serde(default)]
    #[param(inline)]
    limit: PageSize,
}

/// Search for employees
///
/// Searches by exactly one of name, job title, department and hire date. Sorted by id, or by hire date if you search by
/// hire date.
#[utoipa::path(
    get,
    path = "/employees",
    operation_id = "list_employees",
    tag = "employees",
    params(EmployeesQuery),
    responses((status = 200, description = "A list page of employees", body = ListView<EmployeeView>))
)]
pub async fn list_employees(
    State(api): State<OrdersApi>,
    now: RequestTime,
    _: OperatorAccess,
    confidential_access: Result<ConfidentialAccess, Problem>,
    Query(query): Query<EmployeesQuery>,
) -> Result<Json<ListView<EmployeeView>>, DeskProblem> {
    let EmployeesQuery { name, title, department, hired_after, cursor, limit } = query;
    let list = match (&name, &title, &department, hired_after) {
        (Some(name), None, None, None) => EmployeeList::WithName(name.as_str()),
        (None, Some(title), None, None) => EmployeeList::WithTitle(title.as_str()),
        (None, None, Some(department), None) => EmployeeList::OfDepartment(department),
        (None, None, None, Some(CivilDate(after))) => {
            confidential_access?;
            EmployeeList::Hired { after, today: now.today }
        }
        _ => {
            let detail = "exactly one of name, title, department and hired_after must be given";
            return Err(Problem::refused_field("name", detail).into());
        }
    };
    let paging = cursor.paging(limit.0, |text| OrdersTable::cursor_of_employees(list, text))?;
    let page = api.desk.table.list_employees(list, &paging).await?;
    Ok(Json(ListView::from_page(page, EmployeeView::from)?))
}

/// List the customers of a representative
///
/// Sorted by account.
#[utoipa::path(
    get,
    path = "/employees/{employee}/customers",
    operation_id = "list_employee_customers",
    tag = "employees",
    params(EmployeePath, PageQuery),
    responses((status = 200, description = "A list page of customers", body = ListView<RepresentedCustomer>))
)]
pub async fn list_employee_customers(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<RepresentedCustomer>>, DeskProblem> {
    let paging = page.paging(|text| OrdersTable::cursor_of_customers(&employee, text))?;
    let page = api.desk.table.customers_of_representative(&employee, &paging).await?;
    if page.is_empty() && api.desk.table.get_employee(&employee).await?.is_none() {
        return Err(employee_not_found().into());
    }
    Ok(Json(ListView::from_page(page, |account| RepresentedCustomer { account })?))
}

/// List the orders that are credited to an employee
///
/// Sorted by the time of the payment, oldest first.
#[utoipa::path(
    get,
    path = "/employees/{employee}/orders",
    operation_id = "list_employee_orders",
    tag = "employees",
    params(EmployeePath, OrdersQuery),
    responses((status = 200, description = "A list page of orders", body = ListView<OrderOfRepresentativeView>))
)]
pub async fn list_employee_orders(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: OperatorAccess,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<OrderOfRepresentativeView>>, DeskProblem> {
    let (statuses, days, paging) = query.into_statuses_days_and_paging(OrderList::OfRepresentative(&employee))?;
    let page = api.desk.table.orders_of_representative(&employee, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.get_employee(&employee).await?.is_none() {
        return Err(employee_not_found().into());
    }
    Ok(Json(ListView::from_page(page, OrderOfRepresentativeView::from)?))
}
