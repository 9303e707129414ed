//! `dueday orders correct`: corrects the data of an employee.

use billing::{Currency, Label, Money};
use chrono::NaiveDate;
use clap::{ArgAction, ArgGroup, Args};
use orders::{EmployeeCorrection, EmployeeId, JobRecord, JobStartCorrection, OrderDesk};
use serde::Serialize;

use super::people::EmployeeView;
use crate::commands::value_parsers::parse_date;
use crate::context::Context;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders correct`.
pub const AFTER_HELP: &str = "\
The first job of an employee begins on the hire date. --job-start corrects the first day of a later job: give the day in the \
job history, and the correct day between the first days of the job before and the job after it. To replace a wrong job, change \
the line of the employee in the file of `dueday orders people`.

Examples:
  dueday orders correct ada --name 'Ada Archer' --hired-on 2026-01-12
  dueday orders correct ada --salary 53000.00 --currency EUR
  dueday orders correct ada --job-start 2027-02-01 2027-02-15";

/// The columns of the table of an employee's jobs.
const COLUMNS: [Column; 3] = [Column::whole("first day"), Column::text("title"), Column::text("department")];

/// The arguments of `dueday orders correct`.
#[derive(Debug, Args)]
#[command(group(
    ArgGroup::new("correction").required(true).multiple(true).args(["name", "hired_on", "salary", "job_start"])
))]
pub struct CorrectArgs {
    /// The id of the employee
    employee: EmployeeId,
    /// The correct name
    #[arg(long)]
    name: Option<Label>,
    /// The correct hire date, on which the first job begins
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    hired_on: Option<NaiveDate>,
    /// The correct salary per year, such as 53000.00
    #[arg(long, value_name = "AMOUNT", requires = "currency")]
    salary: Option<String>,
    /// The currency of the salary
    #[arg(long, value_name = "CODE", requires = "salary")]
    currency: Option<Currency>,
    /// The first day of a later job in the job history, and the correct first day
    #[arg(long, num_args = 2, action = ArgAction::Set)]
    #[arg(value_names = ["RECORDED", "CORRECT"], value_parser = parse_date)]
    job_start: Option<Vec<NaiveDate>>,
}

/// The output of the command with `--json`.
#[derive(Serialize)]
struct CorrectedView {
    #[serde(flatten)]
    employee: EmployeeView,
    /// The job history, current job first.
    jobs: Vec<JobView>,
}

/// A job in the job history of an employee.
#[derive(Serialize)]
struct JobView {
    from: NaiveDate,
    title: String,
    department: String,
}

impl From<&JobRecord> for JobView {
    fn from(JobRecord { from, job_title, department, .. }: &JobRecord) -> Self {
        Self { from: *from, title: job_title.as_str().to_owned(), department: department.to_string() }
    }
}

pub async fn correct(context: &Context, desk: &OrderDesk, args: &CorrectArgs) -> Result<Exit, Failure> {
    let CorrectArgs { employee: id, name, hired_on, salary, currency, job_start } = args;
    let salary = salary.as_ref().zip(*currency).map(|(salary, currency)| {
        Money::parse(salary, currency).map_err(|error| Failure::Refused(format!("--salary {salary}: {error}")))
    });
    let job_start = match job_start.as_deref() {
        Some([recorded, correct]) => Some(JobStartCorrection { recorded: *recorded, correct: *correct }),
        _ => None,
    };
    let correction =
        EmployeeCorrection { name: name.clone(), hired_on: *hired_on, salary: salary.transpose()?, job_start };
    desk.correct_employee(id, &correction, |_| Ok::<_, orders::DeskError>(())).await?;
    let details = desk.table.employee_details(id).await?;
    let details = details.ok_or_else(|| Failure::Refused(format!("there is no employee {id}")))?;
    let jobs = details.jobs.iter().map(JobView::from).collect();
    let view = CorrectedView { employee: EmployeeView::from_employee(&details.employee), jobs };
    context.print(&view, || {
        let rows = view.jobs.iter().map(|job| vec![job.from.to_string(), job.title.clone(), job.department.clone()]);
        format!("the data of {id} are correct now; the job history:\n{}\n", table(&COLUMNS, rows))
    })?;
    Ok(Exit::Done)
}
