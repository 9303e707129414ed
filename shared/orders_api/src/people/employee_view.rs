//! The JSON form of employees in requests and responses.

use billing::{AccountId, Currency, Label};
use chrono::{DateTime, NaiveDate, Utc};
use orders::{
    Assignment, ConfidentialData, DepartmentId, Employee, EmployeeId, JobId, JobRecord, OrderId, OrderStatus,
    WarehouseId,
};
use orders_table::CreditedOrder;
use rest::body::MinorUnits;
use rest::parameters::CivilDate;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::fulfilment::order_view::QuarterTotalView;

/// The assignment of an employee: job, department and warehouse.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Assignment)]
pub struct AssignmentView {
    /// The merchant's identifier of the job.
    pub(crate) job: JobId,
    /// The title of the job.
    pub(crate) job_title: Label,
    /// Whether the employee is a customer representative. Default: false.
    #[serde(default)]
    pub(crate) represents_customers: bool,
    /// The merchant's identifier of the department.
    pub(crate) department: DepartmentId,
    /// The warehouse in which the employee works; null if the employee works in no warehouse.
    #[serde(default)]
    pub(crate) warehouse: Option<WarehouseId>,
}

/// The data of an employee to hire.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HireEmployee)]
pub struct EmployeeFields {
    /// The name of the employee.
    pub(crate) name: Label,
    /// The first assignment (job, department and warehouse) of the employee.
    pub(crate) assignment: AssignmentView,
    /// The first day of employment.
    #[schema(value_type = NaiveDate)]
    pub(crate) hired_on: CivilDate,
    /// The salary per year, in minor units of the currency.
    pub(crate) salary: MinorUnits,
    /// The currency of the salary.
    pub(crate) currency: Currency,
}

/// The request to give an employee a new assignment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutAssignment)]
pub struct AssignmentFields {
    /// The assignment from today (UTC) on.
    pub(crate) assignment: AssignmentView,
}

/// A current or former employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Employee)]
pub struct EmployeeView {
    /// The merchant's identifier of the employee.
    pub(crate) id: EmployeeId,
    /// The name of the employee.
    pub(crate) name: Label,
    /// The current assignment; null if the employee left.
    pub(crate) assignment: Option<AssignmentView>,
    /// The first day on which the employee no longer works for the merchant; null for a current employee.
    pub(crate) left_on: Option<NaiveDate>,
}

/// An employee with the job history, and with the total amounts of the orders that are credited to the employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmployeeDetails)]
pub struct EmployeeDetailsView {
    #[serde(flatten)]
    #[schema(inline)]
    pub(crate) employee: EmployeeView,
    /// The job history, current job first.
    pub(crate) jobs: Vec<JobRecordView>,
    /// The total amounts of the orders that are credited to the employee, oldest quarter first.
    pub(crate) totals: Vec<QuarterTotalView>,
}

/// An entry of the job history of an employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobRecord)]
pub struct JobRecordView {
    /// The merchant's identifier of the job.
    pub(crate) job: JobId,
    /// The title of the job.
    pub(crate) job_title: Label,
    /// The merchant's identifier of the department.
    pub(crate) department: DepartmentId,
    /// The first day in this job. For the first job this day is the hire date, which is confidential: it is null if the
    /// operator does not have the role admin.
    pub(crate) from: Option<NaiveDate>,
}

/// The confidential data of an employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Confidential)]
pub struct ConfidentialView {
    /// The merchant's identifier of the employee.
    pub(crate) employee: EmployeeId,
    /// The first day of employment.
    pub(crate) hired_on: NaiveDate,
    /// The salary per year, in minor units of the currency.
    pub(crate) salary: MinorUnits,
    /// The currency of the salary.
    pub(crate) currency: Currency,
}

/// A customer who is represented by a given employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CustomerOfRepresentative)]
pub struct RepresentedCustomer {
    /// The identifier of the account.
    pub(crate) account: AccountId,
}

/// An order that is credited to an employee.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OrderOfRepresentative)]
pub struct OrderOfRepresentativeView {
    /// The identifier of the order.
    pub(crate) id: OrderId,
    /// The account that paid.
    pub(crate) customer: AccountId,
    /// The status of the order.
    pub(crate) status: OrderStatus,
    /// The amount of the payment, in minor units of the currency; 0 for a follow-up order.
    #[schema(minimum = 0, maximum = 999_999_999_999_i64)]
    pub(crate) amount: i64,
    /// The currency of the amount.
    pub(crate) currency: Currency,
    /// The part of the amount that was refunded, in minor units of the currency. The quarter total does not contain it.
    #[schema(minimum = 0)]
    pub(crate) refunded_amount: i64,
    /// When the payment was made.
    pub(crate) placed_at: DateTime<Utc>,
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

impl From<JobRecord> for JobRecordView {
    fn from(JobRecord { job, job_title, department, from, .. }: JobRecord) -> Self {
        Self { job, job_title, department, from: Some(from) }
    }
}

impl From<ConfidentialData> for ConfidentialView {
    fn from(ConfidentialData { employee, hired_on, salary }: ConfidentialData) -> Self {
        Self { employee, hired_on, salary: salary.into(), currency: salary.currency() }
    }
}

impl From<CreditedOrder> for OrderOfRepresentativeView {
    fn from(CreditedOrder { order, customer, status, placed_at, total, refunded }: CreditedOrder) -> Self {
        let (amount, refunded_amount, currency) = (total.minor(), refunded.minor(), total.currency());
        Self { id: order, customer, status, amount, refunded_amount, currency, placed_at }
    }
}
