//! `/employees`: the employees of the merchant. Only for operators.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use orders::{Assignment, ConfidentialData, Employee};
use orders_table::{EmployeeDetails, WriteOutcome};
use rest::body::{Body, EmptyObject, MinorUnits};
use rest::etag::{IfMatch, WithETag};
use rest::parameters::{CivilDate, NoParameters, Path, Query};
use rest::{AdminAccess, ConfidentialAccess, OperatorAccess, Problem, RequestTime};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::{DeskProblem, check_version};
use crate::fulfilment::order_view::QuarterTotalView;
use crate::parameters::EmployeePath;
use crate::people::employee_view::{
    AssignmentFields, ConfidentialView, EmployeeDetailsView, EmployeeFields, EmployeeView, JobRecordView,
};

/// Returns the problem response (404) for an employee who does not exist.
pub(crate) fn employee_not_found() -> Problem {
    Problem::not_found("there is no such employee")
}

/// Hire an employee
///
/// Needs the role admin. A repeated request changes nothing. If the employee is a customer
/// representative, some of the customers who are created later get this employee as their representative.
#[utoipa::path(
    put,
    path = "/employees/{employee}",
    operation_id = "hire_employee",
    tag = "employees",
    params(EmployeePath),
    request_body = EmployeeFields,
    responses(
        (status = 200, description = "The employee was already hired with the same details", body = EmployeeView,
            headers(("ETag" = String, description = "The version of the employee, in double quotes"))),
        (status = 201, description = "The employee is hired", body = EmployeeView,
            headers(("ETag" = String, description = "The version of the employee, in double quotes")))
    )
)]
pub async fn hire_employee(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    Path(EmployeePath { employee: id }): Path<EmployeePath>,
    _: ConfidentialAccess,
    _: Query<NoParameters>,
    body: Body<EmployeeFields>,
) -> Result<(StatusCode, WithETag<Json<EmployeeView>>), DeskProblem> {
    let EmployeeFields { name, assignment, hired_on: CivilDate(hired_on), salary: MinorUnits(salary), currency } =
        body.value;
    let salary = currency.price(salary).map_err(|error| Problem::invalid_field("salary", error))?;
    let confidential = ConfidentialData { employee: id.clone(), hired_on, salary };
    let assignment = Assignment::from(assignment);
    let new = Employee {
        id: id.clone(),
        name,
        assignment: Some(assignment.clone()),
        left_on: None,
        created_at: now.at,
        version: 1,
    };
    let table = &desk.table;
    if desk.hire_employee(&new, &assignment, &confidential).await? == WriteOutcome::Done {
        return Ok((StatusCode::CREATED, WithETag(1, Json(EmployeeView::from(new)))));
    }
    let stored = table.get_employee(&id).await?.ok_or_else(Problem::concurrent_change)?;
    let is_same = stored.name == new.name
        && stored.assignment == new.assignment
        && table.get_confidential_data(&id).await? == Some(confidential);
    match is_same {
        true => Ok((StatusCode::OK, WithETag(stored.version, Json(EmployeeView::from(stored))))),
        false => Err(Problem::conflict("an employee with this id was already hired with other details").into()),
    }
}

/// Get an employee
///
/// Returns the employee with the job history, and with the total amounts of the orders that are credited to the
/// employee. If you send the `ETag` of the response as `If-Match` with a later change, the change is refused if the
/// employee has changed in between.
#[utoipa::path(
    get,
    path = "/employees/{employee}",
    operation_id = "get_employee",
    tag = "employees",
    params(EmployeePath),
    responses((status = 200, description = "The employee", body = EmployeeDetailsView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn get_employee(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: OperatorAccess,
    confidential_access: Result<ConfidentialAccess, Problem>,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<EmployeeDetailsView>>, DeskProblem> {
    let details = api.desk.table.employee_details(&employee).await?.ok_or_else(employee_not_found)?;
    let EmployeeDetails { employee, jobs, totals } = details;
    let version = employee.version;
    let mut jobs: Vec<JobRecordView> = jobs.into_iter().map(JobRecordView::from).collect();
    if let (Some(first), Err(_)) = (jobs.last_mut(), confidential_access) {
        first.from = None;
    }
    let totals = totals.into_iter().map(QuarterTotalView::from).collect();
    Ok(WithETag(version, Json(EmployeeDetailsView { employee: employee.into(), jobs, totals })))
}

/// Change the assignment of an employee
///
/// The employee has the new assignment from today (UTC) on. If the employee has this assignment already, nothing changes.
/// An employee who still represents customers can only get a job that represents customers; otherwise the response is a
/// conflict (409). Hand over the customers first.
#[utoipa::path(
    put,
    path = "/employees/{employee}/assignment",
    operation_id = "assign_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = AssignmentFields,
    responses((status = 200, description = "The changed employee", body = EmployeeView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn assign_employee(
    DeskForCaller(desk): DeskForCaller,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AssignmentFields>,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let assignment = Assignment::from(body.value.assignment);
    let precondition = |employee: &Employee| check_version(&if_match, employee.version);
    let employee = desk.assign_employee(&employee, &assignment, precondition).await?;
    Ok(WithETag(employee.version, Json(EmployeeView::from(employee))))
}

/// End the employment of an employee
///
/// Today (UTC) is the first day on which the employee no longer works for the merchant. If the employee has left already,
/// nothing changes. If the employee still represents customers, the response is a conflict (409). Hand over the customers
/// first.
#[utoipa::path(
    post,
    path = "/employees/{employee}/leave",
    operation_id = "leave_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = EmptyObject,
    responses((status = 200, description = "The changed employee", body = EmployeeView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn end_employment(
    DeskForCaller(desk): DeskForCaller,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    if_match: IfMatch,
    _: Body<EmptyObject>,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let precondition = |employee: &Employee| check_version(&if_match, employee.version);
    let employee = desk.end_employment(&employee, desk.today(), precondition).await?;
    Ok(WithETag(employee.version, Json(EmployeeView::from(employee))))
}

/// Get the confidential data of an employee
///
/// Returns the hire date and the salary. Needs the role admin in addition to the operator's scope.
#[utoipa::path(
    get,
    path = "/employees/{employee}/confidential",
    operation_id = "get_confidential",
    tag = "employees",
    params(EmployeePath),
    responses((status = 200, description = "The confidential data", body = ConfidentialView))
)]
pub async fn get_confidential_data(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: ConfidentialAccess,
    _: Query<NoParameters>,
) -> Result<Json<ConfidentialView>, DeskProblem> {
    let stored = api.desk.table.get_confidential_data(&employee).await?.ok_or_else(employee_not_found)?;
    Ok(Json(stored.into()))
}
