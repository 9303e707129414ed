//! Hiring employees, and changing their assignments (job, department and warehouse).

use chrono::NaiveDate;

use super::super::table::WriteOutcome;
use super::super::{Assignment, Confidential, Employee, EmployeeId};
use super::{DeskError, MAX_RETRIES, OrderDesk};
use dynamo::Paging;

impl OrderDesk {
    /// Hires an employee. Returns `Refused` if an employee with this id exists.
    ///
    /// # Errors
    /// The warehouse of the assignment does not exist, or the table cannot be used.
    pub async fn hire(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &Confidential,
    ) -> Result<WriteOutcome, DeskError> {
        self.check_warehouse(Some(assignment)).await?;
        Ok(self.table.hire(employee, assignment, confidential).await?)
    }

    /// Returns an error if the warehouse of `assignment` does not exist.
    async fn check_warehouse(&self, assignment: Option<&Assignment>) -> Result<(), DeskError> {
        match assignment.and_then(|assignment| assignment.warehouse.as_ref()) {
            Some(id) if self.table.get_warehouse(id).await?.is_none() => Err(DeskError::NoWarehouse(id.clone())),
            _ => Ok(()),
        }
    }

    /// Gives an employee a new assignment from the day `from` on. If `assignment` is `None`, the employee leaves the
    /// company on that day. Changes nothing if the employee has this assignment already, or already leaves on that day.
    ///
    /// # Errors
    /// - The employee, or the warehouse of the assignment, does not exist.
    /// - The employee started the current job after `from`.
    /// - The employee still represents customers, but could not represent them in the new assignment.
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
        for _ in 0..MAX_RETRIES {
            let stored = self.table.get_employee(id).await.map_err(DeskError::from)?;
            let before = stored.ok_or_else(|| DeskError::NoEmployee(id.clone()))?;
            precondition(&before)?;
            if before.assignment.as_ref() == assignment && (assignment.is_some() || before.left_on == Some(from)) {
                return Ok(before);
            }
            self.check_warehouse(assignment).await?;
            let job = self.table.current_job(id).await.map_err(DeskError::from)?;
            if let Some(job) = job.filter(|job| job.from > from) {
                return Err(DeskError::BeforeCurrentJob { employee: id.clone(), since: job.from }.into());
            }
            if before.represents_customers() && assignment.is_none_or(|assignment| !assignment.represents_customers) {
                let customers =
                    self.table.customers_of_representative(id, &Paging::all()).await.map_err(DeskError::from)?;
                let customers = customers.into_items().map_err(DeskError::from)?;
                if let Some(example) = customers.first().cloned() {
                    let (employee, customers) = (id.clone(), customers.len());
                    return Err(DeskError::StillHasCustomers { employee, customers, example }.into());
                }
            }
            let written = self.table.reassign(&before, assignment, from).await.map_err(DeskError::from)?;
            if written == WriteOutcome::Done {
                let stored = self.table.get_employee(id).await.map_err(DeskError::from)?;
                return Ok(stored.ok_or_else(|| DeskError::NoEmployee(id.clone()))?);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") }.into())
    }
}
