//! Reading and writing of employees, their current assignment (job, department and warehouse) and their job history.

use chrono::NaiveDate;

use super::super::{
    Assignment, Confidential, DepartmentId, Employee, EmployeeId, JobRecord, QuarterTotal, WarehouseId, all_days,
};
use super::index::{Partition, Selection};
use super::items::{self, edge};
use super::pages::PartitionRange;
use super::write_transaction::WriteOutcome;
use super::{OrdersTable, keys};
use billing::{ActionKind, ItemChange};
use dynamo::{Entity as _, Item, Key, Page, Paging, TableError, key_of};

/// An employee with the job history and the quarter totals, but without the confidential data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmployeeDetails {
    pub employee: Employee,
    /// The job history, current job first.
    pub jobs: Vec<JobRecord>,
    /// The total amounts of the orders that are credited to the employee, oldest quarter first.
    pub totals: Vec<QuarterTotal>,
}

/// Returns the edges by which GSI-1 finds an employee: by job title, department and warehouse, and in the list of
/// representatives.
fn assignment_edges(employee: &EmployeeId, assignment: &Assignment) -> Vec<Item> {
    let partition = keys::key_of_employee(employee);
    let edge_to = |end: String| edge(partition.clone(), end, &partition);
    let mut edges = vec![
        edge_to(keys::key_of_job_title(assignment.job_title.as_str())),
        edge_to(keys::key_of_department(&assignment.department)),
    ];
    edges.extend(assignment.warehouse.as_ref().map(|warehouse| edge_to(keys::key_of_warehouse(warehouse))));
    edges.extend(assignment.represents_customers.then(|| edge_to(keys::REPRESENTATIVES.to_owned())));
    edges
}

fn new_job_record(employee: &EmployeeId, assignment: &Assignment, from: NaiveDate) -> JobRecord {
    let Assignment { job, job_title, department, .. } = assignment.clone();
    JobRecord { employee: employee.clone(), from, job, job_title, department }
}

/// Returns the entry of the action log for the change of an employee, without name and confidential data; `before` is
/// `None` if the employee is new.
fn change_of_employee(before: Option<&Employee>, after: &Employee) -> ItemChange {
    let (old, new) = (before.and_then(|before| before.assignment.as_ref()), after.assignment.as_ref());
    let warehouse = |assignment: &Assignment| assignment.warehouse.clone();
    ItemChange::new(&after.id, after.version)
        .field("job", old.map(|old| &old.job), new.map(|new| &new.job))
        .field("department", old.map(|old| &old.department), new.map(|new| &new.department))
        .field("warehouse", old.and_then(warehouse), new.and_then(warehouse))
        .field("left_on", before.and_then(|before| before.left_on), after.left_on)
}

impl OrdersTable {
    /// Creates an employee with the first assignment, its edges, the job history and the confidential data, in one
    /// transaction. Returns `Refused` if an employee with this id exists.
    pub async fn hire(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &Confidential,
    ) -> Result<WriteOutcome, TableError> {
        use chrono::Datelike as _;
        let (id, partition) = (&employee.id, keys::key_of_employee(&employee.id));
        let hired = Employee { assignment: Some(assignment.clone()), ..employee.clone() };
        let mut writes = self.transaction().create(hired.to_item());
        writes = writes.create(edge(partition.clone(), keys::key_of_employee_name(employee.name.as_str()), partition));
        writes = writes.create(items::job_record_item(&new_job_record(id, assignment, confidential.hired_on)));
        writes = writes.create(items::confidential_item(confidential, confidential.hired_on.year()));
        let writes = assignment_edges(id, assignment).into_iter().fold(writes, |writes, edge| writes.create(edge));
        writes.log(ActionKind::HireEmployee, || change_of_employee(None, &hired)).commit().await
    }

    /// Gives `employee` another assignment from the day `from` on; `None` means that the employee leaves the company.
    /// Changes the item, the edges and the job history of the employee in one transaction. Returns `Refused` if the
    /// stored employee changed since it was read.
    pub async fn reassign(
        &self,
        employee: &Employee,
        assignment: Option<&Assignment>,
        from: NaiveDate,
    ) -> Result<WriteOutcome, TableError> {
        let left_on = assignment.is_none().then_some(from);
        let after = Employee { assignment: assignment.cloned(), left_on, ..employee.clone() };
        let old = employee.assignment.as_ref().map(|old| assignment_edges(&employee.id, old)).unwrap_or_default();
        let new = assignment.map(|new| assignment_edges(&employee.id, new)).unwrap_or_default();
        let mut writes = self.transaction().change(employee, &after);
        for removed in old.iter().filter(|edge| !new.contains(edge)) {
            writes = writes.delete(key_of(removed));
        }
        for added in new.iter().filter(|edge| !old.contains(edge)) {
            writes = writes.create(added.clone());
        }
        if let Some(assignment) = assignment {
            // If the employee gets two new assignments from the same day on, the entry of the second replaces the entry
            // of the first.
            writes = writes.put(items::job_record_item(&new_job_record(&employee.id, assignment, from)));
        }
        let after = Employee { version: employee.version.saturating_add(1), ..after };
        writes.log(ActionKind::ChangeEmployee, || change_of_employee(Some(employee), &after)).commit().await
    }

    /// Returns an employee, or `None` if there is no employee with this id. Sends one strongly consistent GetItem
    /// request.
    pub async fn get_employee(&self, id: &EmployeeId) -> Result<Option<Employee>, TableError> {
        let item = self.0.get(keys::key_of_own_item(keys::key_of_employee(id))).await?;
        item.map(|item| Employee::from_item(&item)).transpose()
    }

    /// Returns an employee's details (access pattern 1), or `None` if there is no employee with this id. Sends one
    /// strongly consistent query with `PK = employee`.
    pub async fn employee_details(&self, id: &EmployeeId) -> Result<Option<EmployeeDetails>, TableError> {
        let partition = keys::key_of_employee(id);
        let (mut employee, mut jobs, mut totals) = (None, Vec::new(), Vec::new());
        for item in self.query_partition(partition.clone(), Selection::all_items()).await? {
            let Key { sk, .. } = key_of(&item);
            if sk == partition {
                employee = Some(Employee::from_item(&item)?);
            } else if sk.starts_with(keys::JOB_HISTORY) {
                jobs.insert(0, items::read_job_record(&item)?);
            } else if keys::parse_quarter(&sk).is_some() {
                totals.push(items::StoredTotal::from_item(&item)?.total);
            }
        }
        Ok(employee.map(|employee| EmployeeDetails { employee, jobs, totals }))
    }

    /// Returns the employees with this name, ignoring case (access pattern 2). Queries GSI-1 with `SK = name`.
    pub async fn employees_by_name(&self, name: &str, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees_with_edge_to(keys::key_of_employee_name(name), paging).await
    }

    /// Returns an employee's current job (access pattern 3): the newest entry of the job history. Queries the table
    /// with `PK = employee` and the `SK` prefix of the job history, in descending order and with a limit of 1.
    pub async fn current_job(&self, id: &EmployeeId) -> Result<Option<JobRecord>, TableError> {
        let newest =
            Selection { is_ascending: false, limit: Some(1), ..Selection::with_sort_key_prefix(keys::JOB_HISTORY) };
        let items = self.query_partition(keys::key_of_employee(id), newest).await?;
        items.first().map(items::read_job_record).transpose()
    }

    /// Returns the confidential data of the employees who were hired after the day `after` and up to `today`, sorted by
    /// hire date (access pattern 6). Queries GSI-1 with `SK = HR-CONFIDENTIAL#<year>` and `Data` between these days.
    /// Sends one query for each year, in parallel.
    pub async fn hired_after(
        &self,
        after: NaiveDate,
        today: NaiveDate,
        paging: &Paging,
    ) -> Result<Page<Confidential>, TableError> {
        // Start with 1970 at the earliest, since there is one query for each year.
        let (from, to) = (after.succ_opt().unwrap_or(after).max(all_days().0), today);
        let range_of_year = |year: i32| PartitionRange {
            partition: Partition::edges_to(keys::key_of_confidential_data(year)),
            name: year.to_string(),
            prefix: String::new(),
            bounds: (from.to_string(), to.to_string()),
        };
        let page = self.page_of_ranges(keys::hire_years(from, to).map(range_of_year).collect(), paging).await?;
        Ok(page.read(|item| items::read_confidential(&item)))
    }

    /// Returns the employees who work in a warehouse (access pattern 7). Queries GSI-1 with `SK = warehouse`.
    pub async fn employees_of_warehouse(
        &self,
        warehouse: &WarehouseId,
        paging: &Paging,
    ) -> Result<Page<EmployeeId>, TableError> {
        self.employees_with_edge_to(keys::key_of_warehouse(warehouse), paging).await
    }

    /// Returns the employees with this job title (access pattern 11). Queries GSI-1 with `SK = title`. `Data` must
    /// begin with the key prefix of employees, because the same partition also contains the edge from the job to its
    /// title.
    pub async fn employees_by_title(&self, title: &str, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees_with_edge_to(keys::key_of_job_title(title), paging).await
    }

    /// Returns the employees of a department. Queries GSI-1 with `SK = department`.
    pub async fn employees_of_department(
        &self,
        department: &DepartmentId,
        paging: &Paging,
    ) -> Result<Page<EmployeeId>, TableError> {
        self.employees_with_edge_to(keys::key_of_department(department), paging).await
    }

    /// Returns all customer representatives. Queries GSI-1 with `SK = REPRESENTATIVES`.
    pub async fn get_representatives(&self, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees_with_edge_to(keys::REPRESENTATIVES, paging).await
    }

    /// Returns the confidential data of an employee, or `None` if there is no employee with this id. Queries the table
    /// with `PK = employee` and the `SK` prefix `HR-CONFIDENTIAL`.
    pub async fn get_confidential_data(&self, id: &EmployeeId) -> Result<Option<Confidential>, TableError> {
        let items = self
            .query_partition(keys::key_of_employee(id), Selection::with_sort_key_prefix(keys::CONFIDENTIAL))
            .await?;
        items.first().map(items::read_confidential).transpose()
    }

    /// Returns a list page of the employees that have an edge to the entity or name with the key `end`, sorted by id.
    async fn employees_with_edge_to(
        &self,
        end: impl AsRef<str>,
        paging: &Paging,
    ) -> Result<Page<EmployeeId>, TableError> {
        let page = self.page_of_entities_with_edge_to(end, keys::EMPLOYEES, paging).await?;
        Ok(page.read(|item| items::employee_id_in(&item)))
    }
}
