//! The company: its people, and its places.

use chrono::{DateTime, NaiveDate, Utc};

use super::{DepartmentId, EmployeeId, JobId, LocationId, PlaceId, WarehouseId};
use billing::{Label, Money};

/// A region, by which warehouses are chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Region {
    pub id: PlaceId,
    pub name: Label,
}

/// A country.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Country {
    pub id: PlaceId,
    pub name: Label,
    pub region: PlaceId,
}

/// A place where people work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    pub id: LocationId,
    pub address: Label,
    /// Its country's name.
    pub country_name: Label,
}

/// A job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    pub id: JobId,
    pub title: Label,
    /// Whoever has it looks after customers, and is credited with their orders.
    pub represents_customers: bool,
}

/// A department.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Department {
    pub id: DepartmentId,
    pub name: Label,
    pub location: LocationId,
}

/// What somebody does, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    pub job: JobId,
    pub job_title: Label,
    pub represents_customers: bool,
    pub department: DepartmentId,
    pub warehouse: Option<WarehouseId>,
}

/// Somebody who works here, or has worked here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Employee {
    pub id: EmployeeId,
    pub name: Label,
    /// `None` once they have left.
    pub assignment: Option<Assignment>,
    pub left_on: Option<NaiveDate>,
    pub created_at: DateTime<Utc>,
    pub version: u64,
}

impl Employee {
    /// Whether they look after customers.
    pub fn represents_customers(&self) -> bool {
        self.assignment.as_ref().is_some_and(|assignment| assignment.represents_customers)
    }
}

/// A job that somebody has or had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobRecord {
    pub employee: EmployeeId,
    pub from: NaiveDate,
    pub job: JobId,
    pub job_title: Label,
    pub department: DepartmentId,
}

/// What only few may read of an employee.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Confidential {
    pub employee: EmployeeId,
    pub hired_on: NaiveDate,
    /// A year's.
    pub salary: Money,
}
