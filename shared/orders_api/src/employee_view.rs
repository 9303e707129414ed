//! Employees as they are shown, and as they are sent.

use ::orders::{
    Assignment, Confidential, CreditedOrder, DepartmentId, Employee, EmployeeId, JobId, JobRecord, OrderId,
    OrderStatus, WarehouseId,
};
use billing::{AccountId, Currency, Label};
use chrono::{DateTime, NaiveDate, Utc};
use rest::body::MinorUnits;
use rest::parameters::CivilDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::orders::TotalView;

/// What somebody does, and where.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Assignment)]
pub struct AssignmentView {
    /// The job.
    pub(super) job: JobId,
    /// What the job is called.
    pub(super) job_title: Label,
    /// Whether customers are looked after in it.
    #[serde(default)]
    pub(super) represents_customers: bool,
    /// The department.
    pub(super) department: DepartmentId,
    /// The warehouse; null for who works in none.
    #[serde(default)]
    pub(super) warehouse: Option<WarehouseId>,
}

/// Who is to be hired.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HireEmployee)]
pub struct EmployeeFields {
    /// Their name.
    pub(super) name: Label,
    /// What they do.
    pub(super) assignment: AssignmentView,
    /// From when on.
    #[schema(value_type = NaiveDate)]
    pub(super) hired_on: CivilDate,
    /// A year's, in minor units.
    pub(super) salary: MinorUnits,
    /// The currency of the salary.
    pub(super) currency: Currency,
}

/// Another assignment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutAssignment)]
pub struct AssignmentFields {
    /// What they are to do.
    pub(super) assignment: AssignmentView,
    /// From when on; from today if absent.
    #[serde(default)]
    #[schema(value_type = Option<NaiveDate>)]
    pub(super) from: Option<CivilDate>,
}

/// When somebody leaves.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeaveEmployee)]
pub struct LeavingFields {
    /// The first day on which they are not here; today if absent.
    #[serde(default)]
    #[schema(value_type = Option<NaiveDate>)]
    pub(super) on: Option<CivilDate>,
}

/// Somebody who works here, or has worked here.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Employee)]
pub struct EmployeeView {
    /// The merchant's identifier of them.
    pub(super) id: EmployeeId,
    /// Their name.
    pub(super) name: Label,
    /// What they do; null once they have left.
    pub(super) assignment: Option<AssignmentView>,
    /// When they left.
    pub(super) left_on: Option<NaiveDate>,
}

/// Somebody, with what they did and have sold.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmployeeDetails)]
pub struct DetailsView {
    #[serde(flatten)]
    #[schema(inline)]
    pub(super) employee: EmployeeView,
    /// The present job first.
    pub(super) jobs: Vec<JobView>,
    /// What their customers have ordered, the first quarter first.
    pub(super) totals: Vec<TotalView>,
}

/// A job that somebody has or had.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobRecord)]
pub struct JobView {
    /// The job.
    pub(super) job: JobId,
    /// What it is called.
    pub(super) job_title: Label,
    /// The department.
    pub(super) department: DepartmentId,
    /// From when on; null of their first job without the scope for what is confidential, as that is when they were hired.
    pub(super) from: Option<NaiveDate>,
}

/// What only few may read of an employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Confidential)]
pub struct ConfidentialView {
    /// The employee.
    pub(super) employee: EmployeeId,
    /// When they were hired.
    pub(super) hired_on: NaiveDate,
    /// A year's, in minor units.
    pub(super) salary: MinorUnits,
    /// The currency of the salary.
    pub(super) currency: Currency,
}

/// A customer that somebody looks after.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomerOfRepresentative)]
pub struct CustomerOf {
    /// The account.
    pub(super) account: AccountId,
}

/// An order that somebody is credited with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderOfRepresentative)]
pub struct CreditedView {
    /// The order.
    pub(super) id: OrderId,
    /// The account that paid.
    pub(super) customer: AccountId,
    /// How it stands.
    pub(super) status: OrderStatus,
    /// What was paid for it, in minor units.
    pub(super) amount: MinorUnits,
    /// The currency of the amount.
    pub(super) currency: Currency,
    /// When it was paid.
    pub(super) placed_at: DateTime<Utc>,
}

impl From<Assignment> for AssignmentView {
    fn from(assignment: Assignment) -> Self {
        let Assignment { job, job_title, represents_customers, department, warehouse } = assignment;
        Self { job, job_title, represents_customers, department, warehouse }
    }
}

impl From<AssignmentView> for Assignment {
    fn from(assignment: AssignmentView) -> Self {
        let AssignmentView { job, job_title, represents_customers, department, warehouse } = assignment;
        Self { job, job_title, represents_customers, department, warehouse }
    }
}

impl From<Employee> for EmployeeView {
    fn from(Employee { id, name, assignment, left_on, .. }: Employee) -> Self {
        Self { id, name, assignment: assignment.map(AssignmentView::from), left_on }
    }
}

impl From<JobRecord> for JobView {
    fn from(JobRecord { job, job_title, department, from, .. }: JobRecord) -> Self {
        Self { job, job_title, department, from: Some(from) }
    }
}

impl From<Confidential> for ConfidentialView {
    fn from(Confidential { employee, hired_on, salary }: Confidential) -> Self {
        Self { employee, hired_on, salary: salary.into(), currency: salary.currency() }
    }
}

impl From<CreditedOrder> for CreditedView {
    fn from(CreditedOrder { order, customer, status, placed_at, total }: CreditedOrder) -> Self {
        Self { id: order, customer, status, amount: total.into(), currency: total.currency(), placed_at }
    }
}
