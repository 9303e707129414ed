//! `/company/jobs` and `/company/departments`: the work of employees. Only for operators.

use ::orders::{Department, DepartmentId, Job, JobId, LocationId};
use axum::Json;
use axum::extract::State;
use billing::Label;
use rest::body::Body;
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{AdminAccess, Operator};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;

use super::list_entities;

/// The path parameter for a job.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct JobPath {
    /// The merchant's identifier of the job.
    job: JobId,
}

/// The data of a job to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutJob)]
pub struct JobFields {
    /// The title of the job.
    title: Label,
    /// Whether employees with this job are customer representatives, to whom the orders of their customers are
    /// credited.
    represents_customers: bool,
}

/// A kind of job in the company, such as "Account Manager". Several employees can have the same job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// The merchant's identifier of the job.
    id: JobId,
    /// The title of the job.
    title: Label,
    /// Whether employees with this job are customer representatives, to whom the orders of their customers are
    /// credited.
    represents_customers: bool,
}

impl From<Job> for JobView {
    fn from(Job { id, title, represents_customers }: Job) -> Self {
        Self { id, title, represents_customers }
    }
}

/// List the jobs
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/jobs",
    operation_id = "list_jobs",
    tag = "company",
    params(PageQuery),
    responses((status = 200, description = "A list page of jobs", body = ListView<JobView>))
)]
pub async fn list_jobs(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<JobView>>, DeskProblem> {
    list_entities::<Job, _>(&api, page).await
}

/// Create or change a job
///
/// Replaces the data of the job. Employees who have the job already keep its former title until their next
/// assignment.
#[utoipa::path(
    put,
    path = "/company/jobs/{job}",
    operation_id = "put_job",
    tag = "company",
    params(JobPath),
    request_body = JobFields,
    responses((status = 200, description = "The job has the requested data now", body = JobView))
)]
pub async fn put_job(
    DeskForCaller(desk): DeskForCaller,
    Path(JobPath { job: id }): Path<JobPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<JobFields>,
) -> Result<Json<JobView>, DeskProblem> {
    let JobFields { title, represents_customers } = body.value;
    let entity = Job { id, title, represents_customers };
    desk.put_entity(&entity).await?;
    Ok(Json(entity.into()))
}

/// The path parameter for a department.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct DepartmentPath {
    /// The merchant's identifier of the department.
    department: DepartmentId,
}

/// The data of a department to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutDepartment)]
pub struct DepartmentFields {
    /// The name of the department.
    name: Label,
    /// The merchant's identifier of the location where the department works.
    location: LocationId,
}

/// A department of the company, which works at one location.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Department)]
pub struct DepartmentView {
    /// The merchant's identifier of the department.
    id: DepartmentId,
    /// The name of the department.
    name: Label,
    /// The merchant's identifier of the location where the department works.
    location: LocationId,
}

impl From<Department> for DepartmentView {
    fn from(Department { id, name, location }: Department) -> Self {
        Self { id, name, location }
    }
}

/// List the departments
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/departments",
    operation_id = "list_departments",
    tag = "company",
    params(PageQuery),
    responses((status = 200, description = "A list page of departments", body = ListView<DepartmentView>))
)]
pub async fn list_departments(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<DepartmentView>>, DeskProblem> {
    list_entities::<Department, _>(&api, page).await
}

/// Create or change a department
///
/// Replaces the data of the department. The location of the department must exist.
#[utoipa::path(
    put,
    path = "/company/departments/{department}",
    operation_id = "put_department",
    tag = "company",
    params(DepartmentPath),
    request_body = DepartmentFields,
    responses((status = 200, description = "The department has the requested data now", body = DepartmentView))
)]
pub async fn put_department(
    DeskForCaller(desk): DeskForCaller,
    Path(DepartmentPath { department: id }): Path<DepartmentPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<DepartmentFields>,
) -> Result<Json<DepartmentView>, DeskProblem> {
    let DepartmentFields { name, location } = body.value;
    let entity = Department { id, name, location };
    desk.check_location(entity.location.as_str()).await?;
    desk.put_entity(&entity).await?;
    Ok(Json(entity.into()))
}
