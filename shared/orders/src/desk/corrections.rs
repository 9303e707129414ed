//! Corrections of the data of employees.

use chrono::NaiveDate;

use super::super::table::{EmployeeDetails, WriteOutcome};
use super::super::{ConfidentialData, Employee, EmployeeCorrection, EmployeeId, JobRecord, all_days};
use super::employees::check_date;
use super::{DeskError, MAX_ATTEMPTS, OrderDesk};

impl OrderDesk {
    /// Corrects the name, the hire date, the salary and the first day of a later job of an employee. Changes nothing if the
    /// stored data are correct already.
    ///
    /// # Errors
    /// - The correct hire date is before 1970, or the correct first day of a later job is not after the first day of
    ///   the job before it.
    /// - The corrected day is in the future, is not before the first day of the next job, or is not before the day on
    ///   which the employee left or a planned change begins.
    /// - No later job begins on the recorded day.
    /// - The employee does not exist.
    /// - Other requests changed the employee at the same time.
    /// - The table cannot be used.
    /// - `precondition` returned an error for the stored employee.
    pub async fn correct_employee<E: From<DeskError>>(
        &self,
        id: &EmployeeId,
        correction: &EmployeeCorrection,
        precondition: impl Fn(&Employee) -> Result<(), E>,
    ) -> Result<Employee, E> {
        for _ in 0..MAX_ATTEMPTS {
            let details = self.table.employee_details(id).await.map_err(DeskError::from)?;
            let EmployeeDetails { employee: before, jobs, .. } =
                details.ok_or_else(|| DeskError::NoEmployee(id.clone()))?;
            precondition(&before)?;
            let stored = self.table.get_confidential_data(id).await.map_err(DeskError::from)?;
            let stored = stored.ok_or_else(|| DeskError::NoEmployee(id.clone()))?;
            let EmployeeCorrection { name, hired_on, salary, .. } = correction.clone();
            let after = Employee { name: name.unwrap_or_else(|| before.name.clone()), ..before.clone() };
            let corrected = ConfidentialData {
                employee: id.clone(),
                hired_on: hired_on.unwrap_or(stored.hired_on),
                salary: salary.unwrap_or(stored.salary),
            };
            let corrected_jobs = corrected_jobs(&before, &jobs, correction, self.today())?;
            if after == before && corrected == stored && corrected_jobs == jobs {
                return Ok(before);
            }
            let (employee, confidential) = ((&before, &after), (&stored, &corrected));
            let written = self.table.correct_employee(employee, confidential, (&jobs, &corrected_jobs)).await;
            if written.map_err(DeskError::from)? == WriteOutcome::Done {
                return Ok(self.existing_employee(id).await?);
            }
        }
        Err(DeskError::WriteConflict { item: format!("the employee {id}") }.into())
    }
}

/// Returns the job history `jobs` of `employee` after the correction of the first days of jobs. A job history is
/// sorted, current job first.
///
/// # Errors
/// - No later job begins on the recorded day.
/// - A corrected day is not between the first days of the job before and the job after.
/// - A corrected day is after `today`, or is not before the day on which the employee left or a planned change begins.
fn corrected_jobs(
    employee: &Employee,
    jobs: &[JobRecord],
    correction: &EmployeeCorrection,
    today: NaiveDate,
) -> Result<Vec<JobRecord>, DeskError> {
    let is_later_job = |day| jobs.iter().rev().skip(1).any(|job| job.from == day);
    let mut corrected = jobs.to_vec();
    if let Some(start) = &correction.job_start {
        match corrected.iter_mut().rev().skip(1).find(|job| job.from == start.recorded) {
            Some(job) => job.from = start.correct,
            // An earlier request has made this correction.
            None if is_later_job(start.correct) => {}
            None => return Err(DeskError::NoLaterJob(start.recorded)),
        }
    }
    if let (Some(first), Some(hired_on)) = (corrected.last_mut(), correction.hired_on) {
        first.from = hired_on;
    }
    let ends = [employee.left_on, employee.planned.as_ref().map(|planned| planned.from)];
    let mut latest = ends.into_iter().flatten().filter_map(|end| end.pred_opt()).fold(today, Ord::min);
    let mut earlier_jobs = corrected.iter().skip(1);
    for (before, after) in jobs.iter().zip(&corrected) {
        let job_before = earlier_jobs.next();
        if before.from != after.from {
            let earliest = job_before.and_then(|job| job.from.succ_opt()).unwrap_or(all_days().0);
            check_date(if job_before.is_some() { "job_start" } else { "hired_on" }, after.from, earliest, latest)?;
        }
        latest = after.from.pred_opt().unwrap_or(after.from);
    }
    Ok(corrected)
}
