//! What the people of the company do.

use chrono::NaiveDate;

use super::super::table::Written;
use super::super::{Assignment, Confidential, Employee, EmployeeId};
use super::{DeskError, MAX_RETRIES, OrderDesk};
use dynamo::Paging;

impl OrderDesk {
    /// Hires somebody; `Refused` if there is an employee of that id.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn hire(
        &self,
        employee: &Employee,
        assignment: &Assignment,
        confidential: &Confidential,
    ) -> Result<Written, DeskError> {
        self.check_warehouse(Some(assignment)).await?;
        Ok(self.table.hire(employee, assignment, confidential).await?)
    }

    async fn check_warehouse(&self, assignment: Option<&Assignment>) -> Result<(), DeskError> {
        match assignment.and_then(|assignment| assignment.warehouse.as_ref()) {
            Some(id) if self.table.warehouse(id).await?.is_none() => Err(DeskError::NoWarehouse(id.clone())),
            _ => Ok(()),
        }
    }

    /// Gives an employee another assignment from `from` on, or none, if they leave. Who looks after customers does so until
    /// these are handed over.
    ///
    /// # Errors
    /// [`DeskError`], or why the employee is not as `wanted`.
    pub async fn assign<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        assignment: Option<&Assignment>,
        from: NaiveDate,
        wanted: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        for _ in 0..MAX_RETRIES {
            let stored = self.table.employee(id).await.map_err(DeskError::from)?;
            let before = stored.ok_or_else(|| DeskError::NoEmployee(id.clone()))?;
            wanted(&before)?;
            if before.assignment.as_ref() == assignment && (assignment.is_some() || before.left_on == Some(from)) {
                return Ok(before);
            }
            self.check_warehouse(assignment).await?;
            let job = self.table.current_job(id).await.map_err(DeskError::from)?;
            if let Some(job) = job.filter(|job| job.from > from) {
                return Err(DeskError::BeforeJob { employee: id.clone(), began: job.from }.into());
            }
            if before.represents_customers() && assignment.is_none_or(|assignment| !assignment.represents_customers) {
                let customers = self.table.customers_of(id, &Paging::all()).await.map_err(DeskError::from)?;
                let customers = customers.into_items().map_err(DeskError::from)?;
                if let Some(one) = customers.first().cloned() {
                    let (employee, customers) = (id.clone(), customers.len());
                    return Err(DeskError::StillRepresents { employee, customers, one }.into());
                }
            }
            let written = self.table.reassign(&before, assignment, from).await.map_err(DeskError::from)?;
            if written == Written::Done {
                let stored = self.table.employee(id).await.map_err(DeskError::from)?;
                return Ok(stored.ok_or_else(|| DeskError::NoEmployee(id.clone()))?);
            }
        }
        Err(DeskError::Contended { what: format!("the employee {id}") }.into())
    }
}
