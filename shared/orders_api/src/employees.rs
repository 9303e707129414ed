//! `/employees`: the employees of the merchant. Only for operators.

use ::orders::{
    Assignment, ConfidentialData, Employee, EmployeeCorrection, EmployeeDetails, EmployeeId, JobStartCorrection,
    OrderDesk, WriteOutcome,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use chrono::NaiveDate;
use rest::body::{Body, MinorUnits};
use rest::etag::{IfMatch, WithETag};
use rest::parameters::{CivilDate, NoParameters, Path, Query};
use rest::{AdminAccess, ConfidentialAccess, Operator, Problem, RequestTime};

use super::OrdersApi;
use super::desk_for_caller::DeskForCaller;
use super::desk_problem::{DeskProblem, check_version};
use super::employee_view::{
    AssignmentFields, ConfidentialView, CorrectionFields, EmployeeDetailsView, EmployeeFields, EmployeeView, JobView,
    LeavingFields,
};
use super::order_view::QuarterTotalView;
use super::parameters::EmployeePath;

/// Returns the problem response (404) for an employee who does not exist.
pub(super) fn employee_not_found() -> Problem {
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
        planned: None,
        created_at: now.at,
        version: 1,
    };
    let table = &desk.table;
    if desk.hire(&new, &assignment, &confidential).await? == WriteOutcome::Done {
        return Ok((StatusCode::CREATED, WithETag(1, Json(EmployeeView::from(new)))));
    }
    let stored = table.get_employee(&id).await?.ok_or_else(Problem::in_progress)?;
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
pub async fn read(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: Operator,
    confidential_access: Result<ConfidentialAccess, Problem>,
    _: Query<NoParameters>,
) -> Result<WithETag<Json<EmployeeDetailsView>>, DeskProblem> {
    let details = api.desk.table.employee_details(&employee).await?.ok_or_else(employee_not_found)?;
    let EmployeeDetails { employee, jobs, totals } = details;
    let version = employee.version;
    let mut jobs: Vec<JobView> = jobs.into_iter().map(JobView::from).collect();
    if let (Some(first), Err(_)) = (jobs.last_mut(), confidential_access) {
        first.from = None;
    }
    let totals = totals.into_iter().map(QuarterTotalView::from).collect();
    Ok(WithETag(version, Json(EmployeeDetailsView { employee: employee.into(), jobs, totals })))
}

/// Change the assignment of an employee
///
/// If the employee has this assignment already, nothing changes. If the first day is in the future, the change is
/// planned, and the current assignment does not change before that day. A day before today needs the role
/// admin, because the response can show the hire date. An employee who still represents customers can only
/// get a job that represents customers; otherwise the response is a conflict (409). Hand over the customers first.
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
    now: RequestTime,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    (_, confidential_access): (AdminAccess, Result<ConfidentialAccess, Problem>),
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<AssignmentFields>,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let from = body.value.from.map_or(now.today, NaiveDate::from);
    check_past_day(from, &now, confidential_access)?;
    let assignment = Some(Assignment::from(body.value.assignment));
    change_assignment(&desk, &employee, assignment.as_ref(), from, &if_match).await
}

/// End the employment of an employee
///
/// A day before today needs the role admin, because the response can show the hire date. If the employee still
/// represents customers, the response is a conflict (409). Hand over the customers first.
#[utoipa::path(
    post,
    path = "/employees/{employee}/leave",
    operation_id = "leave_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = LeavingFields,
    responses((status = 200, description = "The changed employee", body = EmployeeView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn end_employment(
    DeskForCaller(desk): DeskForCaller,
    now: RequestTime,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    (_, confidential_access): (AdminAccess, Result<ConfidentialAccess, Problem>),
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<LeavingFields>,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let on = match body.value.on {
        Some(CivilDate(date)) => {
            check_past_day(date, &now, confidential_access)?;
            date
        }
        // Without a date in the request, keep the stored date of an employee who has left or whose leaving is planned,
        // so that a repeated request changes nothing.
        None => {
            let stored = desk.table.get_employee(&employee).await?;
            stored.and_then(|employee| employee.first_day_after_leaving()).unwrap_or(now.today)
        }
    };
    change_assignment(&desk, &employee, None, on, &if_match).await
}

/// Returns a problem if `day` is before today and the caller has no access to confidential data. A change before the
/// first day of employment is refused. So without this check, a caller who tries past days one after the other could
/// find the hire date.
fn check_past_day(
    day: NaiveDate,
    now: &RequestTime,
    confidential_access: Result<ConfidentialAccess, Problem>,
) -> Result<(), Problem> {
    if day < now.today {
        confidential_access?;
    }
    Ok(())
}

/// Gives the employee the new `assignment` from the day `from` on. If `assignment` is `None`, the employee leaves on
/// this day. Changes nothing and returns a problem if the stored version of the employee does not match `if_match`.
async fn change_assignment(
    desk: &OrderDesk,
    employee: &EmployeeId,
    assignment: Option<&Assignment>,
    from: NaiveDate,
    if_match: &IfMatch,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let precondition = |employee: &Employee| check_version(if_match, employee.version);
    let employee = desk.assign(employee, assignment, from, precondition).await?;
    Ok(WithETag(employee.version, Json(EmployeeView::from(employee))))
}

/// Remove the planned change of an employee
///
/// The current assignment does not change. If no change is planned, nothing changes.
#[utoipa::path(
    delete,
    path = "/employees/{employee}/planned-change",
    operation_id = "remove_planned_change",
    tag = "employees",
    params(EmployeePath, IfMatch),
    responses((status = 200, description = "The employee without a planned change", body = EmployeeView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn remove_planned_change(
    DeskForCaller(desk): DeskForCaller,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    if_match: IfMatch,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let precondition = |employee: &Employee| check_version(&if_match, employee.version);
    let employee = desk.remove_planned_change(&employee, precondition).await?;
    Ok(WithETag(employee.version, Json(EmployeeView::from(employee))))
}

/// Correct the data of an employee
///
/// Corrects the name, the hire date, the salary, and the first day of a later job. All fields except the name need the
/// role admin: the range of possible days in an error response can
/// show the hire date. The first job starts on the corrected hire date.
#[utoipa::path(
    patch,
    path = "/employees/{employee}",
    operation_id = "correct_employee",
    tag = "employees",
    params(EmployeePath, IfMatch),
    request_body = CorrectionFields,
    responses((status = 200, description = "The corrected employee", body = EmployeeView,
        headers(("ETag" = String, description = "The version of the employee, in double quotes"))))
)]
pub async fn correct(
    DeskForCaller(desk): DeskForCaller,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: AdminAccess,
    confidential_access: Result<ConfidentialAccess, Problem>,
    _: Query<NoParameters>,
    if_match: IfMatch,
    body: Body<CorrectionFields>,
) -> Result<WithETag<Json<EmployeeView>>, DeskProblem> {
    let CorrectionFields { name, hired_on, salary, currency, job_start } = body.value;
    if hired_on.is_some() || salary.is_some() || currency.is_some() || job_start.is_some() {
        confidential_access?;
    }
    let salary = match (salary, currency) {
        (None, None) => None,
        (Some(MinorUnits(salary)), Some(currency)) => {
            Some(currency.price(salary).map_err(|error| Problem::invalid_field("salary", error))?)
        }
        (Some(_), None) => return Err(Problem::refused_field("currency", "must be given together with salary").into()),
        (None, Some(_)) => return Err(Problem::refused_field("salary", "must be given together with currency").into()),
    };
    let job_start =
        job_start.map(|start| JobStartCorrection { recorded: start.recorded.into(), correct: start.correct.into() });
    let correction = EmployeeCorrection { name, hired_on: hired_on.map(NaiveDate::from), salary, job_start };
    let precondition = |employee: &Employee| check_version(&if_match, employee.version);
    let employee = desk.correct_employee(&employee, &correction, precondition).await?;
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
pub async fn read_confidential(
    State(api): State<OrdersApi>,
    Path(EmployeePath { employee }): Path<EmployeePath>,
    _: ConfidentialAccess,
    _: Query<NoParameters>,
) -> Result<Json<ConfidentialView>, DeskProblem> {
    let stored = api.desk.table.get_confidential_data(&employee).await?.ok_or_else(employee_not_found)?;
    Ok(Json(stored.into()))
}
