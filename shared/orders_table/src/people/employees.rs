//! Reading and writing of employees, their current assignment (job, department and warehouse) and their job history.

use chrono::NaiveDate;
use futures::future::join_all;

use crate::items;
use crate::items::new_relation_item;
use crate::list_pages::{PartitionRange, check_cursor_list, parse_cursor};
use crate::partition_queries::{ItemSelection, QueriedPartition};
use crate::write_transaction::{WriteOutcome, WriteTransaction};
use crate::{OrdersTable, keys};
use billing::{ActionKind, ItemChange};
use dynamo::{Cursor, Entity as _, Item, Key, Page, Paging, TableError, key_of_item};
use orders::{
    Assignment, ConfidentialData, DepartmentId, Employee, EmployeeId, JobRecord, QuarterTotal, WarehouseId,
    range_of_all_days,
};

/// An employee with the job history and the quarter totals, but without the confidential data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmployeeDetails {
    pub employee: Employee,
    /// The job history, current job first.
    pub jobs: Vec<JobRecord>,
    /// The total amounts of the orders that are credited to the employee, oldest quarter first.
    pub totals: Vec<QuarterTotal>,
}

/// A list of employees. It is sorted by id, except for [`EmployeeList::Hired`].
#[derive(Clone, Copy, Debug)]
pub enum EmployeeList<'a> {
    /// The employees with this name, ignoring case (access pattern 2).
    WithName(&'a str),
    /// The employees with this job title, ignoring case (access pattern 11).
    WithTitle(&'a str),
    /// The employees of a department.
    OfDepartment(&'a DepartmentId),
    /// The employees who work in a warehouse (access pattern 7).
    OfWarehouse(&'a WarehouseId),
    /// The employees who were hired after the day `after` and up to `today`, sorted by hire date (access pattern 6).
    Hired { after: NaiveDate, today: NaiveDate },
}

impl EmployeeList<'_> {
    /// Returns the key of the list, which the cursors of the list contain. Unless the list is sorted by hire date, this
    /// is the key of the entity or of the name by which GSI-1 finds the employees.
    fn key(self) -> String {
        match self {
            Self::WithName(name) => keys::key_of_employee_name(name),
            Self::WithTitle(title) => keys::key_of_job_title(title),
            Self::OfDepartment(id) => keys::key_of_department(id),
            Self::OfWarehouse(id) => keys::key_of_warehouse(id),
            Self::Hired { .. } => "HIRED".to_owned(),
        }
    }

    /// Returns the part of a partition of GSI-1 that contains the employees of the list. `Data` must begin with the key
    /// prefix of employees, because the partition of a title, a department or a warehouse also contains items of other
    /// entities. The partition for the list by hire date contains only employees.
    fn range(self) -> PartitionRange {
        let Self::Hired { after, today } = self else {
            return PartitionRange::of_entities(QueriedPartition::relations_to(self.key()), keys::EMPLOYEE_PREFIX);
        };
        let (from, to) = (after.succ_opt().unwrap_or(after).max(range_of_all_days().0), today);
        PartitionRange {
            partition: QueriedPartition::relations_to(keys::CONFIDENTIAL),
            name: String::new(),
            prefix: String::new(),
            bounds: (from.to_string(), to.to_string()),
        }
    }
}

/// Returns the items by which GSI-1 finds an employee: by name, job title, department and warehouse, and in the list of
/// representatives.
pub(crate) fn relations_of_employee(employee: &Employee) -> Vec<Item> {
    let partition = keys::key_of_employee(&employee.id);
    let mut relations = vec![items::employee_relation(employee, keys::key_of_employee_name(employee.name.as_str()))];
    if let Some(assignment) = &employee.assignment {
        relations.push(items::employee_relation(employee, keys::key_of_job_title(assignment.job_title.as_str())));
        relations.push(items::employee_relation(employee, keys::key_of_department(&assignment.department)));
        relations.extend(
            assignment.warehouse.as_ref().map(|id| items::employee_relation(employee, keys::key_of_warehouse(id))),
        );
        let list = || new_relation_item(partition.clone(), keys::REPRESENTATIVES, partition);
        relations.extend(assignment.represents_customers.then(list));
    }
    relations
}

/// Returns the entry of the job history for an assignment that begins on the day `from`.
fn new_job_record(employee: &EmployeeId, assignment: &Assignment, from: NaiveDate) -> JobRecord {
    let Assignment { job, job_title, department, .. } = assignment.clone();
    JobRecord { employee: employee.clone(), from, job, job_title, department }
}

/// Returns the entry of the action log for the change of an employee, without name and confidential data; `before` is
/// `None` if the employee is new.
fn employee_action_entry(before: Option<&Employee>, after: &Employee) -> ItemChange {
    let (old, new) = (before.and_then(|before| before.assignment.as_ref()), after.assignment.as_ref());
    let warehouse = |assignment: &Assignment| assignment.warehouse.clone();
    ItemChange::new(&after.id, after.version)
        .field("job", old.map(|old| &old.job), new.map(|new| &new.job))
        .field("department", old.map(|old| &old.department), new.map(|new| &new.department))
        .field("warehouse", old.and_then(warehouse), new.and_then(warehouse))
        .field("left_on", before.and_then(|before| before.left_on), after.left_on)
}

impl OrdersTable {
    /// Parses a cursor of the list `list` of employees. Returns `None` if `text` is not a cursor of this list.
    pub fn cursor_of_employees(list: EmployeeList<'_>, text: String) -> Option<Cursor> {
        match list {
            EmployeeList::Hired { .. } => {
                check_cursor_list(&list.key(), &text)?;
                parse_cursor(text, keys::EMPLOYEE_PREFIX, |data, _| billing::parse_date(data).is_ok())
            }
            _ => Self::cursor_of_list(&list.key(), keys::EMPLOYEE_PREFIX, text),
        }
    }

    /// Creates an employee with the first assignment. The transaction also writes the items by which GSI-1 finds the
    /// employee, the first entry of the job history, and the confidential data. Returns `Refused` if an employee with
    /// this id exists.
    pub async fn hire_employee(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &ConfidentialData,
    ) -> Result<WriteOutcome, TableError> {
        let hired = Employee { assignment: Some(assignment.clone()), ..employee.clone() };
        let mut writes = self.transaction().create(hired.to_item());
        writes = writes.create(items::job_record_item(&new_job_record(&hired.id, assignment, confidential.hired_on)));
        writes = writes.create(items::confidential_item(&hired, confidential));
        let writes = relations_of_employee(&hired).into_iter().fold(writes, WriteTransaction::create);
        writes.add_action_entry(ActionKind::HireEmployee, || employee_action_entry(None, &hired)).commit().await
    }

    /// Gives `employee` another assignment from the day `from` on; `None` means that the employee leaves the company.
    /// Changes all items of the employee and the job history in one transaction. Returns `Refused` if the stored
    /// employee changed since it was read.
    pub async fn reassign_employee(
        &self,
        employee: &Employee,
        assignment: Option<&Assignment>,
        from: NaiveDate,
    ) -> Result<WriteOutcome, TableError> {
        let after = employee.reassigned(assignment.cloned(), from);
        let mut writes = self.change_of_employee(employee, &after).await?;
        if let Some(assignment) = assignment {
            // If the employee gets two new assignments from the same day on, the job history keeps only the second: its
            // entry replaces the entry of the first.
            writes = writes.put(items::job_record_item(&new_job_record(&employee.id, assignment, from)));
        }
        let after = Employee { version: employee.version.saturating_add(1), ..after };
        writes
            .add_action_entry(ActionKind::ChangeEmployee, || employee_action_entry(Some(employee), &after))
            .commit()
            .await
    }

    /// Writes the confidential data of `employee` under their present key, if an earlier version of Dueday wrote them
    /// under another key. Returns `Refused` if the stored employee changed since it was read. Sends one query. If the
    /// key changes, also sends a second query and a transaction.
    pub async fn renew_confidential_data(&self, employee: &Employee) -> Result<WriteOutcome, TableError> {
        let partition = keys::key_of_employee(&employee.id);
        let stored = self.query_partition(partition, ItemSelection::with_sort_key_prefix(keys::CONFIDENTIAL)).await?;
        match stored.first() {
            Some(item) if key_of_item(item).sk != keys::CONFIDENTIAL => {
                self.change_of_employee(employee, employee).await?.commit().await
            }
            _ => Ok(WriteOutcome::Done),
        }
    }

    /// Returns a transaction that changes an employee from `before` to `after`. The transaction also changes the other
    /// items that contain a copy of the employee: those by which GSI-1 finds the employee, and the item with the
    /// confidential data. If an earlier version of Dueday stored the confidential data under another key, that item is
    /// deleted. Sends one query.
    async fn change_of_employee(
        &self,
        before: &Employee,
        after: &Employee,
    ) -> Result<WriteTransaction<'_>, TableError> {
        let confidential = self.get_confidential_data(&before.id).await?;
        let after = Employee { version: before.version.saturating_add(1), ..after.clone() };
        let (old, new) = (relations_of_employee(before), relations_of_employee(&after));
        let mut writes = self.transaction().change(before, &after);
        for removed in old.iter().map(key_of_item).filter(|old| new.iter().all(|new| key_of_item(new) != *old)) {
            writes = writes.delete_if_present(removed);
        }
        if let Some(confidential) = &confidential {
            writes = writes.delete_if_present(items::earlier_key_of_confidential_item(confidential));
        }
        let confidential = confidential.map(|same| items::confidential_item(&after, &same));
        Ok(new.into_iter().chain(confidential).fold(writes, WriteTransaction::put))
    }

    /// Returns an employee, or `None` if there is no employee with this id. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_employee(&self, id: &EmployeeId) -> Result<Option<Employee>, TableError> {
        let item = self.dynamo.get(keys::key_of_own_item(keys::key_of_employee(id))).await?;
        item.map(|item| Employee::from_item(&item)).transpose()
    }

    /// Returns an employee's details (access pattern 1), or `None` if there is no employee with this id. Sends one
    /// strongly consistent query with `PK = employee`.
    pub async fn employee_details(&self, id: &EmployeeId) -> Result<Option<EmployeeDetails>, TableError> {
        let partition = keys::key_of_employee(id);
        let (mut employee, mut jobs, mut totals) = (None, Vec::new(), Vec::new());
        for item in self.query_partition(partition.clone(), ItemSelection::all_items()).await? {
            let Key { sk, .. } = key_of_item(&item);
            if sk == partition {
                employee = Some(Employee::from_item(&item)?);
            } else if sk.starts_with(keys::JOB_HISTORY_PREFIX) {
                jobs.insert(0, items::read_job_record(&item)?);
            } else if keys::parse_quarter(&sk).is_some() {
                totals.push(items::StoredQuarterTotal::from_item(&item)?.total);
            }
        }
        Ok(employee.map(|employee| EmployeeDetails { employee, jobs, totals }))
    }

    /// Returns an employee's current job (access pattern 3): the newest entry of the job history that
    /// does not start after `today`. Queries the table with `PK = employee` and a range of `SK` in the job history, in
    /// descending order and with a limit of 1.
    pub async fn current_job(&self, id: &EmployeeId, today: NaiveDate) -> Result<Option<JobRecord>, TableError> {
        let until_today = (keys::JOB_HISTORY_PREFIX.to_owned(), keys::key_of_job_record(today));
        let newest =
            ItemSelection { is_ascending: false, limit: Some(1), ..ItemSelection::with_sort_key_between(until_today) };
        let items = self.query_partition(keys::key_of_employee(id), newest).await?;
        items.first().map(items::read_job_record).transpose()
    }

    /// Returns all customer representatives. Queries the partition `REPRESENTATIVES` of GSI-1.
    pub async fn get_representatives(&self, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        let page = self.page_of_entities_related_to(keys::REPRESENTATIVES, keys::EMPLOYEE_PREFIX, paging).await?;
        Ok(page.read(|item| items::employee_id_in(&item)))
    }

    /// Refuses to use a table with a planned change of an employee, which an earlier version of Dueday stored and this
    /// version would never make. Queries the partition `PLANNED-CHANGES` of GSI-1 for one item.
    ///
    /// # Errors
    /// [`TableError::Unreadable`] if a planned change is stored. The error names the employee and the remedy.
    pub async fn refuse_planned_changes(&self) -> Result<(), TableError> {
        let first = ItemSelection { limit: Some(1), ..ItemSelection::all_items() };
        match self.query_relations_to(keys::PLANNED_CHANGES, first).await?.first() {
            None => Ok(()),
            Some(planned) => Err(items::planned_change_error(keys::key_of_own_item(key_of_item(planned).pk))),
        }
    }

    /// Returns the confidential data of an employee, or `None` if there is no employee with this id. Queries the table
    /// with `PK = employee` and the `SK` prefix `HR-CONFIDENTIAL`.
    pub async fn get_confidential_data(&self, id: &EmployeeId) -> Result<Option<ConfidentialData>, TableError> {
        let items = self
            .query_partition(keys::key_of_employee(id), ItemSelection::with_sort_key_prefix(keys::CONFIDENTIAL))
            .await?;
        items.first().map(items::read_confidential).transpose()
    }

    /// Returns a list page of the list `list` of employees. Sends a query of GSI-1.
    pub async fn list_employees(&self, list: EmployeeList<'_>, paging: &Paging) -> Result<Page<Employee>, TableError> {
        let page = self.page_of_ranges(&list.key(), vec![list.range()], paging).await?;
        self.read_employee_relations(page).await
    }

    /// Reads the employees from the items of a list page, which contain all their attributes. If an earlier version of
    /// Dueday wrote such an item without attributes, sends a GetItem request for this employee. Otherwise sends no
    /// request.
    async fn read_employee_relations(&self, page: Page<Item>) -> Result<Page<Employee>, TableError> {
        let read = async |relation: &Item| match items::read_employee_relation(relation)? {
            Some(employee) => Ok(Some(employee)),
            None => self.get_employee(&items::employee_id_in(relation)?).await,
        };
        let mut employees = Page { items: Vec::new(), unreadable: page.unreadable, next: page.next };
        for employee in join_all(page.items.iter().map(read)).await {
            match employee {
                Ok(employee) => employees.items.extend(employee),
                Err(error @ TableError::Unreadable { .. }) => employees.unreadable.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(employees)
    }
}
