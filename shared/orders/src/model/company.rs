//! The merchant's company: its employees, jobs and departments, and the regions, countries and locations where it
//! works.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{DepartmentId, EmployeeId, JobId, LocationId, PlaceId, WarehouseId};
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

/// A change of the assignment of an employee that takes effect on a later day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedChange {
    /// The first day of the change.
    pub from: NaiveDate,
    /// The assignment from that day on; `None` if the employee leaves the company on that day.
    pub assignment: Option<Assignment>,
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
    /// The next change of the assignment; `None` if no change is planned.
    pub planned: Option<PlannedChange>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Employee {
    /// Returns the employee with `assignment` from the day `from` on; `None` means that the employee leaves the
    /// company. A planned change with a first day on or before `from` is removed. If the employee leaves, any planned
    /// change is removed.
    #[must_use]
    pub fn reassigned(&self, assignment: Option<Assignment>, from: NaiveDate) -> Self {
        let left_on = assignment.is_none().then_some(from);
        let planned = self.planned.clone().filter(|planned| assignment.is_some() && planned.from > from);
        Self { assignment, left_on, planned, ..self.clone() }
    }

    /// Returns the first day on which the employee no longer works for the company, past or planned; `None` if there is
    /// no such day.
    pub fn first_day_after_leaving(&self) -> Option<NaiveDate> {
        let planned = self.planned.as_ref().filter(|planned| planned.assignment.is_none());
        planned.map(|planned| planned.from).or(self.left_on)
    }

    /// Returns whether the employee is a customer representative.
    pub fn represents_customers(&self) -> bool {
        self.assignment.as_ref().is_some_and(|assignment| assignment.represents_customers)
    }

    /// Returns whether the employee can become the representative of a customer on the day `today`. The employee must
    /// be a customer representative. Also, no planned change whose first day is `today` or earlier may end this work.
    pub fn takes_customers_on(&self, today: NaiveDate) -> bool {
        let due = self.planned.as_ref().filter(|planned| planned.from <= today);
        let represents = |assignment: &Assignment| assignment.represents_customers;
        self.represents_customers() && due.is_none_or(|due| due.assignment.as_ref().is_some_and(represents))
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

/// A correction of the data of an employee. A field that is `None` is not corrected.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EmployeeCorrection {
    pub name: Option<Label>,
    /// The first day of employment, which is also the first day of the first job.
    pub hired_on: Option<NaiveDate>,
    /// The salary per year.
    pub salary: Option<Money>,
    /// The correct first day of a later job; `None` if no first day is corrected.
    pub job_start: Option<JobStartCorrection>,
}

/// A correction of the first day of a later job of an employee: a job that is not the first one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobStartCorrection {
    /// The first day of the job that the job history contains before the correction.
    pub recorded: NaiveDate,
    /// The correct first day of the job.
    pub correct: NaiveDate,
}
