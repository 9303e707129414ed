//! Employees, and what their customers have ordered.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::super::{OrdersTable, keys};
use super::{data, id, pk, row};
use crate::{
    Assignment, Confidential, DepartmentId, Employee, EmployeeId, JobId, JobRecord, QuarterTotal, WarehouseId,
};
use billing::{Currency, Label, Money};
use dynamo::{Instant, Item, Key, TableError, Versioned, from_item, key_of};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TotalItem {
    total: i64,
    currency: Currency,
    version: u64,
}

/// The total of an employee, under the key of its quarter and bucket.
pub(in crate::table) fn total(total: &QuarterTotal, key: Key) -> Item {
    let (minor, currency) = (total.total.minor(), total.total.currency());
    row(key, Some(keys::amount_data(minor)), &TotalItem { total: minor, currency, version: total.version })
}

pub(in crate::table) fn read_total(item: &Item) -> Result<QuarterTotal, TableError> {
    let TotalItem { total, currency, version } = from_item(item)?;
    let quarter = keys::quarter_of(&key_of(item).sk);
    let quarter = quarter.ok_or_else(|| TableError::unreadable(key_of(item), "its key names no quarter"))?;
    Ok(QuarterTotal {
        representative: pk(item, keys::EMPLOYEES)?,
        quarter,
        total: Money::new(total, currency),
        version,
    })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AssignmentItem {
    job: JobId,
    job_title: Label,
    represents_customers: bool,
    department: DepartmentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    warehouse: Option<WarehouseId>,
}

#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EmployeeItem {
    name: Label,
    assignment: Option<AssignmentItem>,
    left_date: Option<NaiveDate>,
    created_date: Instant,
    version: u64,
}

impl Versioned<OrdersTable> for Employee {
    fn key(&self) -> Key {
        keys::own(keys::employee(&self.id))
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn at_version(self, version: u64) -> Self {
        Self { version, ..self }
    }

    fn to_item(&self) -> Item {
        let assignment = self.assignment.clone().map(|assignment| {
            let Assignment { job, job_title, represents_customers, department, warehouse } = assignment;
            AssignmentItem { job, job_title, represents_customers, department, warehouse }
        });
        let item = EmployeeItem {
            name: self.name.clone(),
            assignment,
            left_date: self.left_on,
            created_date: Instant(self.created_at),
            version: self.version,
        };
        row(self.key(), None, &item)
    }

    fn from_item(item: &Item) -> Result<Self, TableError> {
        let EmployeeItem { name, assignment, left_date, created_date, version } = from_item(item)?;
        let assignment = assignment.map(|assignment| {
            let AssignmentItem { job, job_title, represents_customers, department, warehouse } = assignment;
            Assignment { job, job_title, represents_customers, department, warehouse }
        });
        let id = pk(item, keys::EMPLOYEES)?;
        Ok(Self { id, name, assignment, left_on: left_date, created_at: created_date.0, version })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct JobRecordItem {
    job: JobId,
    job_title: Label,
    department: DepartmentId,
}

pub(in crate::table) fn job_record(record: &JobRecord) -> Item {
    let JobRecord { employee, from, job, job_title, department } = record.clone();
    let key = keys::edge(keys::employee(&employee), keys::job_record(from));
    row(key, None, &JobRecordItem { job, job_title, department })
}

pub(in crate::table) fn read_job_record(item: &Item) -> Result<JobRecord, TableError> {
    let JobRecordItem { job, job_title, department } = from_item(item)?;
    let from = id(item, &key_of(item).sk, keys::JOB_HISTORY)?;
    Ok(JobRecord { employee: pk(item, keys::EMPLOYEES)?, from, job, job_title, department })
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfidentialItem {
    salary: i64,
    currency: Currency,
}

pub(in crate::table) fn confidential(confidential: &Confidential, year: i32) -> Item {
    let Confidential { employee, hired_on, salary } = confidential;
    let key = keys::edge(keys::employee(employee), keys::confidential(year));
    let item = ConfidentialItem { salary: salary.minor(), currency: salary.currency() };
    row(key, Some(hired_on.to_string()), &item)
}

pub(in crate::table) fn read_confidential(item: &Item) -> Result<Confidential, TableError> {
    let ConfidentialItem { salary, currency } = from_item(item)?;
    let hired_on = id(item, data(item)?, "")?;
    Ok(Confidential { employee: pk(item, keys::EMPLOYEES)?, hired_on, salary: Money::new(salary, currency) })
}

/// The employee that an edge leads from.
pub(in crate::table) fn employee_of(item: &Item) -> Result<EmployeeId, TableError> {
    pk(item, keys::EMPLOYEES)
}
