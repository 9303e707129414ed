//! The stored items of employees, of their job history and confidential data, and of the quarter totals of
//! representatives.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::items::{DATA, data_attribute, id_in_partition_key, id_in_sort_key, new_item, parse_id};
use crate::{OrdersTable, keys};
use billing::{Currency, Label, Money};
use dynamo::{Entity, Instant, Item, Key, TableError, VersionedEntity, from_item, key_of_item, to_item};
use orders::{
    Assignment, ConfidentialData, DepartmentId, Employee, EmployeeId, JobId, JobRecord, QuarterTotal, WarehouseId,
};

/// The attributes of the item of a quarter total.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct QuarterTotalItem {
    total: i64,
    currency: Currency,
    version: u64,
}

/// A quarter total together with the key of its item. The key contains the index of the bucket (one of the partitions
/// of GSI-1) in which the total is. This module does not know the bucket, so the caller gives the key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StoredQuarterTotal {
    pub total: QuarterTotal,
    pub key: Key,
}

impl Entity<OrdersTable> for StoredQuarterTotal {
    type Attributes = QuarterTotalItem;

    fn key(&self) -> Key {
        self.key.clone()
    }

    fn attributes(&self) -> QuarterTotalItem {
        let QuarterTotal { total, version, .. } = &self.total;
        QuarterTotalItem { total: total.minor(), currency: total.currency(), version: *version }
    }

    fn read(key: Key, QuarterTotalItem { total, currency, version }: QuarterTotalItem) -> Result<Self, TableError> {
        let quarter = keys::parse_quarter(&key.sk);
        let quarter = quarter.ok_or_else(|| TableError::unreadable(key.clone(), "the sort key has no quarter"))?;
        let (representative, total) = (id_in_partition_key(&key, keys::EMPLOYEE_PREFIX)?, Money::new(total, currency));
        Ok(Self { total: QuarterTotal { representative, quarter, total, version }, key })
    }

    /// Returns the amount as text, so that GSI-1 sorts the totals by amount.
    fn index_key(&self) -> Option<(&'static str, String)> {
        Some((DATA, keys::amount_data(self.total.total.minor())))
    }
}

impl VersionedEntity<OrdersTable> for StoredQuarterTotal {
    fn version(&self) -> u64 {
        self.total.version
    }

    fn with_version(mut self, version: u64) -> Self {
        self.total.version = version;
        self
    }
}

/// The assignment of an employee, as a map in an item.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct AssignmentItem {
    job: JobId,
    job_title: Label,
    represents_customers: bool,
    department: DepartmentId,
    #[serde(skip_serializing_if = "Option::is_none")]
    warehouse: Option<WarehouseId>,
}

/// The planned change of the assignment of an employee, which only an earlier version of Dueday stored. Its content is
/// not read.
#[derive(Deserialize)]
struct PlannedChange {}

/// Returns the error for the employee with the key `key`, whose stored item contains a planned change. Only an earlier
/// version of Dueday wrote planned changes.
pub(crate) fn planned_change_error(key: Key) -> TableError {
    TableError::unreadable(
        key,
        "the employee has a planned change of the assignment, which this version of Dueday does not make; return to the \
         earlier version, remove the planned change with DELETE /employees/{employee}/planned-change, and upgrade again",
    )
}

/// The attributes of the item of an employee. The relations by which employees are listed contain the same attributes.
#[skip_serializing_none]
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct EmployeeItem {
    name: Label,
    assignment: Option<AssignmentItem>,
    left_date: Option<NaiveDate>,
    /// Only an earlier version of Dueday wrote it. An item with it is refused.
    #[serde(skip_serializing)]
    planned: Option<PlannedChange>,
    created_date: Instant,
    version: u64,
}

dynamo::attributes!(EmployeeItem { CREATED_DATE = created_date, });

impl From<Assignment> for AssignmentItem {
    fn from(assignment: Assignment) -> Self {
        let Assignment { job, job_title, represents_customers, department, warehouse } = assignment;
        Self { job, job_title, represents_customers, department, warehouse }
    }
}

impl From<AssignmentItem> for Assignment {
    fn from(assignment: AssignmentItem) -> Self {
        let AssignmentItem { job, job_title, represents_customers, department, warehouse } = assignment;
        Self { job, job_title, represents_customers, department, warehouse }
    }
}

impl Entity<OrdersTable> for Employee {
    type Attributes = EmployeeItem;

    fn key(&self) -> Key {
        keys::key_of_own_item(keys::key_of_employee(&self.id))
    }

    fn attributes(&self) -> EmployeeItem {
        EmployeeItem {
            name: self.name.clone(),
            assignment: self.assignment.clone().map(AssignmentItem::from),
            left_date: self.left_on,
            planned: None,
            created_date: Instant(self.created_at),
            version: self.version,
        }
    }

    fn read(key: Key, read: EmployeeItem) -> Result<Self, TableError> {
        let EmployeeItem { name, assignment, left_date, planned, created_date, version } = read;
        let assignment = assignment.map(Assignment::from);
        if planned.is_some() {
            return Err(planned_change_error(key));
        }
        let id = id_in_partition_key(&key, keys::EMPLOYEE_PREFIX)?;
        Ok(Self { id, name, assignment, left_on: left_date, created_at: created_date.0, version })
    }
}

/// The attributes of the item of one entry of a job history.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct JobRecordItem {
    job: JobId,
    job_title: Label,
    department: DepartmentId,
}

/// Returns the item of an entry of the job history of an employee.
pub(crate) fn job_record_item(record: &JobRecord) -> Item {
    let JobRecord { employee, from, job, job_title, department } = record.clone();
    let key = keys::key_of_relation(keys::key_of_employee(&employee), keys::key_of_job_record(from));
    new_item(key, None, &JobRecordItem { job, job_title, department })
}

/// Reads an entry of the job history of an employee from its item.
pub(crate) fn read_job_record(item: &Item) -> Result<JobRecord, TableError> {
    let JobRecordItem { job, job_title, department } = from_item(item)?;
    let from = id_in_sort_key(&key_of_item(item), keys::JOB_HISTORY_PREFIX)?;
    Ok(JobRecord {
        employee: id_in_partition_key(&key_of_item(item), keys::EMPLOYEE_PREFIX)?,
        from,
        job,
        job_title,
        department,
    })
}

/// The attributes of the item with the confidential data of an employee; `Data` contains the hire date.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfidentialItem {
    salary: i64,
    currency: Currency,
}

/// Returns the key under which earlier versions of Dueday stored the confidential data of an employee.
pub(crate) fn earlier_key_of_confidential_item(confidential: &ConfidentialData) -> Key {
    let sk = keys::earlier_key_of_confidential_data(confidential.hired_on);
    keys::key_of_relation(keys::key_of_employee(&confidential.employee), sk)
}

/// Returns the item with the confidential data of `employee`. This item also contains all attributes of the employee, so
/// that the list of employees by hire date needs no other item of the employee.
pub(crate) fn confidential_item(employee: &Employee, confidential: &ConfidentialData) -> Item {
    let ConfidentialData { hired_on, salary, .. } = confidential;
    let item = ConfidentialItem { salary: salary.minor(), currency: salary.currency() };
    let key = keys::key_of_relation(keys::key_of_employee(&confidential.employee), keys::CONFIDENTIAL);
    let mut item = new_item(key, Some(hired_on.to_string()), &item);
    item.extend(to_item(&employee.attributes()));
    item
}

/// Returns the relation from `employee` to the entity or list with the key `end`: an item that contains all attributes
/// of the employee, so that a list of employees reads only its relations.
pub(crate) fn employee_relation(employee: &Employee, end: String) -> Item {
    let partition = keys::key_of_employee(&employee.id);
    new_item(keys::key_of_relation(partition.clone(), end), Some(partition), &employee.attributes())
}

/// Returns the employee from `item`, a relation that contains all attributes of the employee. Returns `None` if the
/// relation has no attributes, because an earlier version of Dueday wrote it.
pub(crate) fn read_employee_relation(item: &Item) -> Result<Option<Employee>, TableError> {
    item.contains_key(CREATED_DATE).then(|| Employee::from_item(item)).transpose()
}

/// Returns the item that this program would store instead of `stored`, the item with the confidential data of `employee`.
/// Earlier versions of Dueday stored it under another key, and without the attributes of the employee.
pub(crate) fn expected_confidential_item(employee: &Employee, stored: &Item) -> Result<Item, TableError> {
    let confidential = read_confidential(stored)?;
    let (mut expected, earlier) =
        (confidential_item(employee, &confidential), earlier_key_of_confidential_item(&confidential));
    if key_of_item(stored) == earlier {
        expected.extend(earlier.attributes());
    }
    if !stored.contains_key(CREATED_DATE) {
        let of_employee = to_item(&employee.attributes());
        expected.retain(|name, _| !of_employee.contains_key(name));
    }
    Ok(expected)
}

/// Reads the confidential data of an employee: the salary from the attributes, and the hire date from `Data`.
pub(crate) fn read_confidential(item: &Item) -> Result<ConfidentialData, TableError> {
    let ConfidentialItem { salary, currency } = from_item(item)?;
    let hired_on = parse_id(&key_of_item(item), data_attribute(item)?, "")?;
    Ok(ConfidentialData {
        employee: id_in_partition_key(&key_of_item(item), keys::EMPLOYEE_PREFIX)?,
        hired_on,
        salary: Money::new(salary, currency),
    })
}

/// Returns the id of the employee from the partition key of `item`, which is a relation: an item that links the employee
/// to another entity.
pub(crate) fn employee_id_in(item: &Item) -> Result<EmployeeId, TableError> {
    id_in_partition_key(&key_of_item(item), keys::EMPLOYEE_PREFIX)
}
