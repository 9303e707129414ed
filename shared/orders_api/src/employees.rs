//! `/employees`: who works here. For the operator.

use ::orders::{Assignment, Confidential, DepartmentId, Employee, EmployeeDetails, EmployeeId, OrdersTable, Written};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use billing::Label;
use chrono::NaiveDate;
use rest::body::{Body, MinorUnits};
use rest::caller::{Operator, ReadsConfidential};
use rest::cursor::ShownCursor;
use rest::etag::{IfMatch, WithETag};
use rest::list::ListView;
use rest::parameters::{CivilDate, Limit, NoParameters, PageQuery, Path, Query};
use rest::{Now, Problem};
use serde::Deserialize;
use utoipa::IntoParams;

use super::OrdersApi;
use super::employee_view::{
    AssignmentFields, ConfidentialView, CreditedView, CustomerOf, DetailsView, EmployeeFields, EmployeeView, JobView,
    LeavingFields,
};
use super::orders::TotalView;
use super::parameters::{EmployeePath, OrdersQuery};

/// Whom to list, by one of these, and which page of them.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EmployeesQuery {
    /// Of this name, however its letters are written.
    #[serde(default)]
    #[param(value_type = Label, required = false)]
    name: Option<Label>,
    /// Of this job title.
    #[serde(default)]
    #[param(value_type = Label, required = false)]
    title: Option<Label>,
    /// Of this department.
    #[serde(default)]
    #[param(value_type = DepartmentId, required = false)]
    department: Option<DepartmentId>,
    /// Hired after this date, and up to today. It takes the scope for what is confidential.
    #[serde(default)]
    #[param(value_type = NaiveDate, required = false)]
    hired_after: Option<CivilDate>,
    /// The `next_cursor` of an earlier page; absent for the first.
    #[serde(default)]
    #[param(inline)]
    cursor: ShownCursor,
    /// At most this many items.
    #[serde(default)]
    #[param(inline)]
    limit: Limit,
}

fn no_employee() -> Problem {
    Problem::not_found("there is no such employee")
}

/// Find employees
///
/// By name, job title, department or day of hiring: exactly one of them. In the order of their ids, or of those days.
#[utoipa::path(
    get,
    path = "/employees",
    operation_id = "list_employees",
    tag = "employees",
    params(EmployeesQuery),
    responses((status = 200, description = "A page of them", body = ListView<EmployeeView>))
)]
pub async fn list(
    State(api): State<OrdersApi>,
    now: Now,
    _: Operator,
    reads_confidential: Result<ReadsConfidential, Problem>,
    Query(query): Query<EmployeesQuery>,
) -> Result<Json<ListView<EmployeeView>>, Problem> {
    let cursor_of = match query.hired_after {
        Some(_) => OrdersTable::cursor_of_hired,
        None => OrdersTable::cursor_of_employees,
    };
    let (table, paging) = (&api.desk.table, query.cursor.paging(query.limit.0, cursor_of)?);
    let page = match (query.name, query.title, query.department, query.hired_after) {
        (Some(name), None, None, None) => table.employees_by_name(name.as_str(), &paging).await?,
        (None, Some(title), None, None) => table.employees_by_title(title.as_str(), &paging).await?,
        (None, None, Some(department), None) => table.employees_of_department(&department, &paging).await?,
        (None, None, None, Some(CivilDate(after))) => {
            reads_confidential?;
            table.hired_after(after, now.today, &paging).await?.map(|hired| hired.employee)
        }
        _ => {
            let one = "exactly one of name, title, department and hired_after must be given";
            return Err(Problem::refused("name", one));
        }
    };
    Ok(Json(ListView::of(table.read_each(page, OrdersTable::employee).await?, EmployeeView::from)?))
}

/// Hire somebody
///
/// It takes the scope for what is confidential. Told again it changes nothing. New customers are spread over those who represent customers.
#[utoipa::path(
    put,
    path = "/employees/{employee}",
    operation_id = "hire_employee",
    tag = "employees",
    params(EmployeePath),
    request_body = EmployeeFields,
    responses(
        (status = 200, description = "They were hired just so before", body = EmployeeView,
            headers(("ETag" = String, description = "Its version, in quotes"))),
        (status = 201, description = "They are hired", body = EmployeeView,
            headers(("ETag" = String, description = "Its version, in quotes")))
    )
)]
pub async fn hire(
    State(api): State<OrdersApi>,
    now: Now,
    Path(EmployeePath { employee: id }): Path<EmployeePath>,
    _: ReadsConfidential,
    _: Query<NoParameters>,
    body: Body<EmployeeFields>,
) -> Result<(StatusCode, WithETag<Json<EmployeeView>>), Problem> {
    let EmployeeFields { name, assignment, hired_on: CivilDate(hired_on), salary: MinorUnits(salary), currency } =
        body.value;
    let salary = currency.price(salary).map_err(|error| Problem::field("salary", error))?;
    let confidential = Confidential { employee: id.clone(), hired_on, salary };
    let assignment = Assignment::from(assignment);
    let new = Employee {
        id: id.clone(),
        name,
        assignment: Some(assignment.clone()),
        left_on: None,
        created_at: now.at,
        version: 1,
    };
    let table = &api.desk.table;
    if api.desk.hire(&new, &assignment, &confidential).await? == Written::Done {
        return Ok((StatusCode::CREATED, WithETag(1, Json(EmployeeView::from(new)))));
    }
    let stored = table.employee(&id).await?.ok_or_else(Problem::in_progress)?;
    let is_same = stored.name == new.name
        && stored.assignment == new.assignment
        && table.confidential(&id).await? == Some(confidential);
    match is_same {
        true => Ok((StatusCode::OK, WithETag(stored.version, Json(EmployeeView::from(stored))))),
        false => Err(Problem::conflict("there is an employee of this id, who was hired otherwise")),
    }
}

/// Read an employee
///
/// With their jobs, and what their customers have ordered. Their `ETag` is what `If-Match` takes.
#[utoipa::path(
    get,
    path = "/employees/{employee}",
    operation_id = "get_employee",
    tag = "employees",
    params(EmployeePath),
    responses((status = 200, description = "The employee", body = DetailsView,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn read(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    reads_confidential: Result<ReadsConfidential, Problem>,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<DetailsView>>, Problem> {
    let details = api.desk.table.employee_details(&employee).await?.ok_or_else(no_employee)?;
    let EmployeeDetails { employee, jobs, totals } = details;
    let version = employee.version;
    let mut jobs: Vec<JobView> = jobs.into_iter().map(JobView::from).collect();
    if let (Some(first), Err(_)) = (jobs.last_mut(), reads_confidential) {
        first.from = None;
    }
    let totals = totals.into_iter().map(TotalView::from).collect();
    Ok(WithETag(version, Json(DetailsView { employee: employee.into(), jobs, totals })))
}

/// Give an employee another assignment
///
/// Who looks after customers does so until these are handed over. One that they have already is not begun anew.
#[utoipa::path(
    put,
    path = "/employees/{employee}/assignment",
    operation_id = "assign_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = AssignmentFields,
    responses((status = 200, description = "The employee as they are now", body = EmployeeView,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn assign(
    State(api): State<OrdersApi>,
    now: Now,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AssignmentFields>,
) -> Result<WithETag<Json<EmployeeView>>, Problem> {
    let from = body.value.from.map_or(now.today, NaiveDate::from);
    let assignment = Some(Assignment::from(body.value.assignment));
    api.assigned(&employee, assignment.as_ref(), from, &if_match).await
}

/// Note that an employee leaves
///
/// Who looks after customers does so until these are handed over.
#[utoipa::path(
    post,
    path = "/employees/{employee}/leave",
    operation_id = "leave_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = LeavingFields,
    responses((status = 200, description = "The employee as they are now", body = EmployeeView,
        headers(("ETag" = String, description = "Its version, in quotes"))))
)]
pub async fn leave(
    State(api): State<OrdersApi>,
    now: Now,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<LeavingFields>,
) -> Result<WithETag<Json<EmployeeView>>, Problem> {
    let on = match body.value.on {
        Some(CivilDate(date)) => date,
        // Told again, it is when it was.
        None => {
            let left_on = api.desk.table.employee(&employee).await?.and_then(|employee| employee.left_on);
            left_on.unwrap_or(now.today)
        }
    };
    api.assigned(&employee, None, on, &if_match).await
}

impl OrdersApi {
    async fn assigned(
        &self,
        employee: &EmployeeId,
        assignment: Option<&Assignment>,
        from: NaiveDate,
        if_match: &IfMatch,
    ) -> Result<WithETag<Json<EmployeeView>>, Problem> {
        let wanted = |employee: &Employee| if_match.allows(employee.version);
        let employee = self.desk.assign(employee, assignment, from, wanted).await?;
        Ok(WithETag(employee.version, Json(EmployeeView::from(employee))))
    }
}

/// Read what only few may
///
/// When an employee was hired, and what they earn. It takes a scope of its own beside the operator's.
#[utoipa::path(
    get,
    path = "/employees/{employee}/confidential",
    operation_id = "get_confidential",
    tag = "employees",
    params(EmployeePath),
    responses((status = 200, description = "What is confidential", body = ConfidentialView))
)]
pub async fn confidential(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: ReadsConfidential,
    _: Query<NoParameters>,
) -> Result<Json<ConfidentialView>, Problem> {
    let stored = api.desk.table.confidential(&employee).await?.ok_or_else(no_employee)?;
    Ok(Json(stored.into()))
}

/// List an employee's customers
///
/// Those whom they look after, in the order of their ids.
#[utoipa::path(
    get,
    path = "/employees/{employee}/customers",
    operation_id = "list_employee_customers",
    tag = "employees",
    params(EmployeePath, PageQuery),
    responses((status = 200, description = "A page of them", body = ListView<CustomerOf>))
)]
pub async fn customers(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<CustomerOf>>, Problem> {
    let paging = page.paging(OrdersTable::cursor_of_customers)?;
    let page = api.desk.table.customers_of(&employee, &paging).await?;
    if page.is_empty() && api.desk.table.employee(&employee).await?.is_none() {
        return Err(no_employee());
    }
    Ok(Json(ListView::of(page, |account| CustomerOf { account })?))
}

/// List the orders that an employee is credited with
///
/// The oldest first.
#[utoipa::path(
    get,
    path = "/employees/{employee}/orders",
    operation_id = "list_employee_orders",
    tag = "employees",
    params(EmployeePath, OrdersQuery),
    responses((status = 200, description = "A page of them", body = ListView<CreditedView>))
)]
pub async fn orders(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    Query(query): Query<OrdersQuery>,
) -> Result<Json<ListView<CreditedView>>, Problem> {
    let (statuses, days, paging) = query.read()?;
    let page = api.desk.table.orders_of_representative(&employee, &statuses, days, &paging).await?;
    if page.is_empty() && api.desk.table.employee(&employee).await?.is_none() {
        return Err(no_employee());
    }
    Ok(Json(ListView::of(page, CreditedView::from)?))
}
