//! The merchant's company: its employees, jobs and departments, and the regions, countries and locations where it
//! works.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{DepartmentId, EmployeeId, JobId, LocationId, PlaceId, WarehouseId};
use billing::{Label, Money};

/// A region of the world. An order is shipped from a warehouse in the region of the customer, if possible.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Region {
    pub id: PlaceId,
    pub name: Label,
}

/// A country, which belongs to one region.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Country {
    pub id: PlaceId,
    pub name: Label,
    pub region: PlaceId,
}

/// A place of work, such as an office.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Location {
    pub id: LocationId,
    pub address: Label,
    /// The name of the country of the location.
    pub country_name: Label,
}

/// A kind of job in the company, such as "Account Manager". Several employees can have the same job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Job {
    pub id: JobId,
    pub title: Label,
    /// Whether employees with this job are customer representatives: they look after customers, and the orders of these
    /// customers are credited to them.
    pub represents_customers: bool,
}

/// A department of the company, which works at one location.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Department {
    pub id: DepartmentId,
    pub name: Label,
    pub location: LocationId,
}

/// A kind of entity to which an address, an employee, a warehouse or another entity of the company refers by its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReferenceKind {
    Region,
    Country,
    Location,
    Job,
    Department,
}

impl ReferenceKind {
    /// Returns the name of the kind, which is also the name of the field that refers to such an entity in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Country => "country",
            Self::Location => "location",
            Self::Job => "job",
            Self::Department => "department",
        }
    }

    /// Returns the plural of the name, which is also a part of the paths of the HTTP API, such as `/company/jobs`.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Region => "regions",
            Self::Country => "countries",
            Self::Location => "locations",
            Self::Job => "jobs",
            Self::Department => "departments",
        }
    }
}

/// The current work of an employee: job, department and warehouse.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    pub job: JobId,
    pub job_title: Label,
    /// Whether the employee is a customer representative.
    pub represents_customers: bool,
    pub department: DepartmentId,
    /// The warehouse in which the employee works; `None` if the employee does not work in a warehouse.
    pub warehouse: Option<WarehouseId>,
}

/// A current or former employee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Employee {
    pub id: EmployeeId,
    pub name: Label,
    /// The current assignment; `None` if the employee left the company.
    pub assignment: Option<Assignment>,
    /// The first day on which the employee no longer works for the company; `None` for a current employee.
    pub left_on: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Employee {
    /// Returns the employee with `assignment` from the day `from` on; `None` means that the employee leaves the
    /// company.
    #[must_use]
    pub fn reassigned(&self, assignment: Option<Assignment>, from: NaiveDate) -> Self {
        let left_on = assignment.is_none().then_some(from);
        Self { assignment, left_on, ..self.clone() }
    }

    /// Returns whether the employee is a customer representative.
    pub fn represents_customers(&self) -> bool {
        self.assignment.as_ref().is_some_and(|assignment| assignment.represents_customers)
    }
}

/// An entry of the job history of an employee: the job that the employee started on the date `from`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRecord {
    pub employee: EmployeeId,
    pub from: NaiveDate,
    pub job: JobId,
    pub job_title: Label,
    pub department: DepartmentId,
}

/// The confidential data of an employee: hire date and salary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfidentialData {
    pub employee: EmployeeId,
    /// The first day of employment.
    pub hired_on: NaiveDate,
    /// The salary per year.
    pub salary: Money,
}
