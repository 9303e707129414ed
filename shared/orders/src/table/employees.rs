//! People: who they are, what they do and have done, and where.

use chrono::NaiveDate;

use super::super::{
    Assignment, Confidential, DepartmentId, Employee, EmployeeId, JobRecord, QuarterTotal, WarehouseId, all_days,
};
use super::index::{Partition, Wanted};
use super::items::{self, edge};
use super::pages::Part;
use super::writes::Written;
use super::{OrdersTable, keys};
use dynamo::{Entity as _, Item, Key, Page, Paging, TableError, key_of};

/// All that is known of an employee but what only few may read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmployeeDetails {
    pub employee: Employee,
    /// The present job first.
    pub jobs: Vec<JobRecord>,
    /// What their customers have ordered, the first quarter first.
    pub totals: Vec<QuarterTotal>,
}

/// The edges by which somebody with `assignment` is found.
fn edges(employee: &EmployeeId, assignment: &Assignment) -> Vec<Item> {
    let partition = keys::employee(employee);
    let to = |end: String| edge(partition.clone(), end, &partition);
    let mut edges =
        vec![to(keys::job_title(assignment.job_title.as_str())), to(keys::department(&assignment.department))];
    edges.extend(assignment.warehouse.as_ref().map(|warehouse| to(keys::warehouse(warehouse))));
    edges.extend(assignment.represents_customers.then(|| to(keys::REPRESENTATIVES.to_owned())));
    edges
}

fn job(employee: &EmployeeId, assignment: &Assignment, from: NaiveDate) -> JobRecord {
    let Assignment { job, job_title, department, .. } = assignment.clone();
    JobRecord { employee: employee.clone(), from, job, job_title, department }
}

impl OrdersTable {
    /// Hires somebody; `Refused` if there is an employee of that id. Own item, edges, job history and what is confidential, in
    /// one transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn hire(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &Confidential,
    ) -> Result<Written, TableError> {
        use chrono::Datelike as _;
        let (id, partition) = (&employee.id, keys::employee(&employee.id));
        let hired = Employee { assignment: Some(assignment.clone()), ..employee.clone() };
        let mut writes = self.writes().create(hired.to_item());
        writes = writes.create(edge(partition.clone(), keys::employee_name(employee.name.as_str()), partition));
        writes = writes.create(items::job_record(&job(id, assignment, confidential.hired_on)));
        writes = writes.create(items::confidential(confidential, confidential.hired_on.year()));
        edges(id, assignment).into_iter().fold(writes, |writes, edge| writes.create(edge)).commit().await
    }

    /// Gives `employee` another assignment from `from` on, or none, if they leave. Own item, edges and job history, in one
    /// transaction.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reassign(
        &self,
        employee: &Employee,
        assignment: Option<&Assignment>,
        from: NaiveDate,
    ) -> Result<Written, TableError> {
        let left_on = assignment.is_none().then_some(from);
        let after = Employee { assignment: assignment.cloned(), left_on, ..employee.clone() };
        let old = employee.assignment.as_ref().map(|old| edges(&employee.id, old)).unwrap_or_default();
        let new = assignment.map(|new| edges(&employee.id, new)).unwrap_or_default();
        let mut writes = self.writes().change(employee, &after);
        for gone in old.iter().filter(|edge| !new.contains(edge)) {
            writes = writes.delete(key_of(gone));
        }
        for added in new.iter().filter(|edge| !old.contains(edge)) {
            writes = writes.create(added.clone());
        }
        if let Some(assignment) = assignment {
            // Two changes on one day are one: the later.
            writes = writes.put(items::job_record(&job(&employee.id, assignment, from)));
        }
        writes.commit().await
    }

    /// An employee. GetItem, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employee(&self, id: &EmployeeId) -> Result<Option<Employee>, TableError> {
        let item = self.0.get(keys::own(keys::employee(id))).await?;
        item.map(|item| Employee::from_item(&item)).transpose()
    }

    /// Pattern 1: an employee's details. Query `PK = employee`, strongly consistent.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employee_details(&self, id: &EmployeeId) -> Result<Option<EmployeeDetails>, TableError> {
        let partition = keys::employee(id);
        let (mut employee, mut jobs, mut totals) = (None, Vec::new(), Vec::new());
        for item in self.in_partition(partition.clone(), Wanted::all()).await? {
            let Key { sk, .. } = key_of(&item);
            if sk == partition {
                employee = Some(Employee::from_item(&item)?);
            } else if sk.starts_with(keys::JOB_HISTORY) {
                jobs.insert(0, items::read_job_record(&item)?);
            } else if keys::quarter_of(&sk).is_some() {
                totals.push(items::StoredTotal::from_item(&item)?.total);
            }
        }
        Ok(employee.map(|employee| EmployeeDetails { employee, jobs, totals }))
    }

    /// Pattern 2: the employees of a name, however its letters are written. GSI-1, `SK = name`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employees_by_name(&self, name: &str, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees(keys::employee_name(name), paging).await
    }

    /// Pattern 3: an employee's present job. Query `PK = employee`, `SK` begins with the job history's prefix, the newest first,
    /// one.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn current_job(&self, id: &EmployeeId) -> Result<Option<JobRecord>, TableError> {
        let newest = Wanted { is_forward: false, limit: Some(1), ..Wanted::beginning_with(keys::JOB_HISTORY) };
        let items = self.in_partition(keys::employee(id), newest).await?;
        items.first().map(items::read_job_record).transpose()
    }

    /// Pattern 6: who was hired after `after` and up to `today`, with what is confidential of them, by day. GSI-1,
    /// `SK = HR-CONFIDENTIAL` of a year, `Data` after that day: one query for each year that is touched, in parallel.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn hired_after(
        &self,
        after: NaiveDate,
        today: NaiveDate,
        paging: &Paging,
    ) -> Result<Page<Confidential>, TableError> {
        // Nobody was hired before the days that orders know: each year is a query.
        let (from, to) = (after.succ_opt().unwrap_or(after).max(all_days().0), today);
        let part = |year| Part {
            partition: Partition::leading_to(keys::confidential(year)),
            prefix: String::new(),
            range: (from.to_string(), to.to_string()),
        };
        let page = self.page(keys::years(from, to).map(part).collect(), paging).await?;
        Ok(page.read(|item| items::read_confidential(&item)))
    }

    /// Pattern 7: the employees of a warehouse. GSI-1, `SK = warehouse`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employees_of_warehouse(
        &self,
        warehouse: &WarehouseId,
        paging: &Paging,
    ) -> Result<Page<EmployeeId>, TableError> {
        self.employees(keys::warehouse(warehouse), paging).await
    }

    /// Pattern 11: the employees of a job title. GSI-1, `SK = title`, `Data` begins with the employees' prefix: the job itself
    /// leads to the same partition.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employees_by_title(&self, title: &str, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees(keys::job_title(title), paging).await
    }

    /// The employees of a department. GSI-1, `SK = department`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn employees_of_department(
        &self,
        department: &DepartmentId,
        paging: &Paging,
    ) -> Result<Page<EmployeeId>, TableError> {
        self.employees(keys::department(department), paging).await
    }

    /// Everybody who looks after customers. GSI-1, `SK = REPRESENTATIVES`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn representatives(&self, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        self.employees(keys::REPRESENTATIVES, paging).await
    }

    /// What only few may read of an employee. Query `PK = employee`, `SK` begins with `HR-CONFIDENTIAL`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn confidential(&self, id: &EmployeeId) -> Result<Option<Confidential>, TableError> {
        let items = self.in_partition(keys::employee(id), Wanted::beginning_with(keys::CONFIDENTIAL)).await?;
        items.first().map(items::read_confidential).transpose()
    }

    async fn employees(&self, end: impl AsRef<str>, paging: &Paging) -> Result<Page<EmployeeId>, TableError> {
        let page = self.page_of_entities(end, keys::EMPLOYEES, paging).await?;
        Ok(page.read(|item| items::employee_of(&item)))
    }
}
