//! Hiring employees, and changing their assignments (job, department and warehouse).

use chrono::NaiveDate;

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use dynamo::Paging;
use orders::{Assignment, ConfidentialData, Employee, EmployeeId, range_of_all_days};
use orders_table::WriteOutcome;

impl OrderDesk {
    /// Hires an employee. Returns `Refused` if an employee with this id exists.
    ///
    /// # Errors
    /// - The hire date is before 1970 or in the future.
    /// - The job, the department or the warehouse of the assignment does not exist.
    /// - The table cannot be used.
    pub async fn hire_employee(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &ConfidentialData,
    ) -> Result<WriteOutcome, DeskError> {
        self.check_date("hired_on", confidential.hired_on)?;
        self.check_assignment(Some(assignment)).await?;
        Ok(self.table.hire_employee(employee, assignment, confidential).await?)
    }

    /// Returns today's date in UTC. If the desk has a requester, this is the date of the request, even if midnight passes
    /// while the request is processed.
    pub fn today(&self) -> NaiveDate {
        self.table.requested_at().unwrap_or_else(|| self.clock.now()).date_naive()
    }

    /// Returns an error if `date` is before 1970 or in the future. `field` is the name of the request field that contains
    /// the date.
    fn check_date(&self, field: &'static str, date: NaiveDate) -> Result<(), DeskError> {
        let (earliest, latest) = (range_of_all_days().0, self.today());
        match (earliest..=latest).contains(&date) {
            true => Ok(()),
            false => Err(DeskError::DateOutOfRange { field, earliest, latest }),
        }
    }

    /// Gives an employee a new assignment from today on. Changes nothing if the employee already has this assignment.
    ///
    /// # Errors
    /// - The employee does not exist, or the job, the department or the warehouse of the assignment does not exist.
    /// - The employee still represents customers, but could not represent them in the new assignment.
    /// - Other requests changed the employee at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored employee.
    pub async fn assign_employee<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        assignment: &Assignment,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        self.reassign_employee(id, Some(assignment), self.today(), precondition).await
    }

    /// Ends the work of an employee: `on` is the first day on which the employee no longer works for the company.
    /// Changes nothing if the employee has left already.
    ///
    /// # Errors
    /// - `on` is before 1970, in the future, or before the first day of the current job.
    /// - The employee does not exist, or still represents customers.
    /// - Other requests changed the employee at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored employee.
    pub async fn end_employment<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        on: NaiveDate,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        self.check_date("left_on", on)?;
        self.reassign_employee(id, None, on, precondition).await
    }

    /// Gives an employee the new `assignment` from the day `from` on; `None` means that the employee leaves.
    async fn reassign_employee<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        assignment: Option<&Assignment>,
        from: NaiveDate,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        for _ in 0..MAX_ATTEMPTS {
            let before = self.existing_employee(id).await?;
            precondition(&before)?;
            if before.assignment.as_ref() == assignment {
                return Ok(before);
            }
            self.check_assignment(assignment).await?;
            self.check_customers(&before, assignment).await?;
            if from < self.today() {
                let job = self.table.current_job(id, self.today()).await.map_err(DeskError::from)?;
                if job.is_some_and(|job| job.from > from) {
                    return Err(DeskError::BeforeCurrentJob(id.clone()).into());
                }
            }
            let written = self.table.reassign_employee(&before, assignment, from).await.map_err(DeskError::from)?;
            if written == WriteOutcome::Done {
                return Ok(self.existing_employee(id).await?);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") }.into())
    }

    /// Returns the stored employee, or [`DeskError::NoEmployee`] if there is none.
    async fn existing_employee(&self, id: &EmployeeId) -> Result<Employee, DeskError> {
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
}
