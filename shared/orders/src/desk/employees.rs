//! Hiring employees, and changing their assignments (job, department and warehouse).

use chrono::{Days, NaiveDate};

use super::super::table::WriteOutcome;
use super::super::{Assignment, ConfidentialData, Employee, EmployeeId, PlannedChange, all_days};
use super::{DeskError, MAX_ATTEMPTS, OrderDesk};
use dynamo::Paging;

/// The largest number of days in the future on which a planned change of an assignment can begin.
const MAX_DAYS_AHEAD: u64 = 366;

/// Returns an error if `date` is not in the range from `earliest` to `latest`. `field` is the name of the request field
/// that contains the date.
pub(super) fn check_date(
    field: &'static str,
    date: NaiveDate,
    earliest: NaiveDate,
    latest: NaiveDate,
) -> Result<(), DeskError> {
    match (earliest..=latest).contains(&date) {
        true => Ok(()),
        false => Err(DeskError::DateOutOfRange { field, earliest, latest }),
    }
}

impl OrderDesk {
    /// Hires an employee. Returns `Refused` if an employee with this id exists.
    ///
    /// # Errors
    /// - The hire date is before 1970 or in the future.
    /// - The job, the department or the warehouse of the assignment does not exist.
    /// - The table cannot be used.
    pub async fn hire(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &ConfidentialData,
    ) -> Result<WriteOutcome, DeskError> {
        check_date("hired_on", confidential.hired_on, all_days().0, self.today())?;
        self.check_assignment(Some(assignment)).await?;
        Ok(self.table.hire(employee, assignment, confidential).await?)
    }

    /// Returns today's date in UTC. A change of an assignment without a date takes effect on this day. If the desk has a
    /// requester, this is the date of the request, even if midnight passes while the request is processed.
    pub fn today(&self) -> NaiveDate {
        self.table.requested_at().unwrap_or_else(|| self.clock.now()).date_naive()
    }

    /// Gives an employee a new assignment from the day `from` on. If `assignment` is `None`, the employee leaves the
    /// company on that day. If `from` is in the future, the change is only planned, and replaces an earlier planned
    /// change of the employee; [`OrderDesk::apply_due_changes`] makes the change on its day. Changes nothing if the
    /// employee already has this assignment or this planned change, or already leaves on that day.
    ///
    /// # Errors
    /// - `from` is before 1970, or more than 366 days in the future.
    /// - The employee does not exist, or the job, the department or the warehouse of the assignment does not exist.
    /// - The employee still represents customers, but could not represent them in the new assignment. This is not
    ///   checked for a change that is planned.
    /// - The employee started the current job after `from`.
    /// - Other requests changed the employee at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored employee.
    pub async fn assign<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        assignment: Option<&Assignment>,
        from: NaiveDate,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        let today = self.today();
        let latest = today.checked_add_days(Days::new(MAX_DAYS_AHEAD)).unwrap_or(today);
        check_date(if assignment.is_some() { "from" } else { "on" }, from, all_days().0, latest)?;
        for _ in 0..MAX_ATTEMPTS {
            let before = self.existing_employee(id).await?;
            precondition(&before)?;
            let planned = (from > today).then(|| PlannedChange { from, assignment: assignment.cloned() });
            let is_unchanged = match &planned {
                Some(_) => before.planned == planned,
                None => {
                    before.assignment.as_ref() == assignment && (assignment.is_some() || before.left_on == Some(from))
                }
            };
            if is_unchanged {
                return Ok(before);
            }
            self.check_assignment(assignment).await?;
            let written = match planned {
                Some(_) => self.table.plan_change(&before, planned).await.map_err(DeskError::from)?,
                None => {
                    // The first day of the current job can be the hire date, which is confidential, and this check
                    // shows whether it is after `from`. So this check is the last one: a caller who tries several days
                    // to find the hire date makes the change with the first day that is allowed.
                    self.check_customers(&before, assignment).await?;
                    let job = self.table.current_job(id, today).await.map_err(DeskError::from)?;
                    if job.is_some_and(|job| job.from > from) {
                        return Err(DeskError::BeforeCurrentJob(id.clone()).into());
                    }
                    self.table.reassign(&before, assignment, from).await.map_err(DeskError::from)?
                }
            };
            if written == WriteOutcome::Done {
                return Ok(self.existing_employee(id).await?);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") }.into())
    }

    /// Returns the stored employee, or [`DeskError::NoEmployee`] if there is none.
    pub(super) async fn existing_employee(&self, id: &EmployeeId) -> Result<Employee, DeskError> {
        self.table.get_employee(id).await?.ok_or_else(|| DeskError::NoEmployee(id.clone()))
    }

    /// Returns an error if `employee` represents customers, but could not represent them with the new `assignment`.
    async fn check_customers(&self, employee: &Employee, assignment: Option<&Assignment>) -> Result<(), DeskError> {
        if !employee.represents_customers() || assignment.is_some_and(|assignment| assignment.represents_customers) {
            return Ok(());
        }
        let customers = self.table.customers_of_representative(&employee.id, &Paging::all()).await?.into_items()?;
        match customers.first().cloned() {
            None => Ok(()),
            Some(example) => {
                let (employee, customers) = (employee.id.clone(), customers.len());
                Err(DeskError::StillHasCustomers { employee, customers, example })
            }
        }
    }

    /// Removes the planned change of an employee. Changes nothing if no change is planned.
    ///
    /// # Errors
    /// The employee does not exist, other requests changed the employee at the same time, the table cannot be used, or
    /// `precondition` returned an error for the stored employee.
    pub async fn remove_planned_change<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.existing_employee(id).await?;
            precondition(&before)?;
            if before.planned.is_none() {
                return Ok(before);
            }
            if self.table.plan_change(&before, None).await.map_err(DeskError::from)? == WriteOutcome::Done {
                return Ok(self.existing_employee(id).await?);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") }.into())
    }

    /// Makes the planned changes of employees whose first day is today or earlier. Returns the number of changes that
    /// failed; 1 if the changes cannot be listed. If a change fails, the error is logged, and the other changes are
    /// still made. A later call tries the failed changes again. A schedule must call this method regularly.
    pub async fn apply_due_changes(&self) -> u32 {
        let due = match self.table.employees_with_due_changes(self.today()).await {
            Ok(due) => due,
            Err(error) => {
                tracing::error!(%error, error_type = "Table", "failed to list the employees with a planned change");
                return 1;
            }
        };
        let mut failed = 0;
        for employee in due {
            if let Err(error) = self.apply_due_change(&employee).await {
                tracing::error!(%employee, %error, error_type = error.error_type(), "failed to make the planned change of an employee");
                failed += 1;
            }
        }
        failed
    }

    /// Makes the planned change of an employee. Changes nothing if no planned change is due any more.
    async fn apply_due_change(&self, id: &EmployeeId) -> Result<(), DeskError> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.existing_employee(id).await?;
            // The index that listed this employee may be stale: the planned change may already be made, replaced or
            // removed.
            let Some(due) = before.planned.clone().filter(|planned| planned.from <= self.today()) else {
                return Ok(());
            };
            self.check_customers(&before, due.assignment.as_ref()).await?;
            if self.table.reassign(&before, due.assignment.as_ref(), due.from).await? == WriteOutcome::Done {
                return Ok(());
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") })
    }
}
