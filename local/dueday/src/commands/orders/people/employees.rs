//! Imports employees from a CSV file, and lists employees.

use std::fs::File;
use std::path::Path;

use billing::{ActionKind, Currency, Label, Money};
use chrono::NaiveDate;
use clap::Args;
use orders::{Assignment, ConfidentialData, DepartmentId, Employee, EmployeeId, WarehouseId};
use orders_desk::{DeskError, OrderDesk};
use orders_table::{EmployeeList, WriteOutcome};
use serde::Serialize;
use store::Paging;

use crate::commands::orders::csv_file::{self, CsvLine};
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::format_count;
use crate::terminal::table::{TableColumn, format_table};
use crate::{Exit, Failure};

/// The text after the help of `dueday orders people`.
pub const AFTER_HELP: &str = "\
The columns of the file: \
employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency,left_on.

A new employee is hired. An employee whose job, department or warehouse differs is reassigned from today on. An \
employee whose line has a date in left_on, today or in the past, leaves on that date. The name, the hire date and the salary of existing \
employees are not changed. New customers are distributed among the employees who represent customers.

Example:
  employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency
  ada,Ada Archer,am,Account Manager,true,sales,,2026-01-10,52000.00,EUR
  jun,Jun Potter,pk,Picker,false,logistics,ams,2026-02-01,31000.00,EUR";

/// The columns of the file of employees.
const FILE_COLUMNS: [&str; 11] = [
    "employee",
    "name",
    "job",
    "title",
    "represents_customers",
    "department",
    "warehouse",
    "hired_on",
    "salary",
    "currency",
    "left_on",
];
/// The columns of the table of employees.
const TABLE_COLUMNS: [TableColumn; 5] = [
    TableColumn::unwrapped("employee"),
    TableColumn::text("name"),
    TableColumn::text("title"),
    TableColumn::text("department"),
    TableColumn::unwrapped("warehouse"),
];

/// The filter of the list of employees. Exactly one of these options must be given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct EmployeesArgs {
    /// The employee's id
    pub employee: Option<EmployeeId>,
    /// Only employees with this name
    #[arg(long)]
    pub name: Option<String>,
    /// Only employees with this job title
    #[arg(long)]
    pub title: Option<String>,
    /// Only employees of this warehouse
    #[arg(long)]
    pub warehouse: Option<WarehouseId>,
    /// Only employees of this department
    #[arg(long)]
    pub department: Option<DepartmentId>,
}

/// A line of the file of employees.
struct ImportedEmployee {
    id: EmployeeId,
    name: Label,
    assignment: Assignment,
    hired_on: NaiveDate,
    salary: Money,
    left_on: Option<NaiveDate>,
}

/// The numbers of employees that the import hired, reassigned, or recorded as having left.
#[derive(Serialize)]
struct EmployeeImportReport {
    hired: u64,
    moved: u64,
    left: u64,
}

/// An employee, as printed with `--json`.
#[derive(Serialize)]
pub struct PrintedEmployee {
    employee: String,
    name: String,
    title: Option<String>,
    department: Option<String>,
    warehouse: Option<String>,
    left_on: Option<NaiveDate>,
}

/// Parses a line of the file of employees.
fn parse_imported_employee(line: &CsvLine<'_>) -> Result<ImportedEmployee, String> {
    let currency: Currency = line.required_cell("currency")?;
    let salary: String = line.required_cell("salary")?;
    let salary = Money::parse(&salary, currency).map_err(|error| format!("salary {salary:?}: {error}"))?;
    Ok(ImportedEmployee {
        id: line.required_cell("employee")?,
        name: line.required_cell("name")?,
        assignment: Assignment {
            job: line.required_cell("job")?,
            job_title: line.required_cell("title")?,
            represents_customers: line.optional_cell("represents_customers")?.unwrap_or(false),
            department: line.required_cell("department")?,
            warehouse: line.optional_cell("warehouse")?,
        },
        hired_on: line.required_date("hired_on")?,
        salary,
        left_on: line.optional_date("left_on")?,
    })
}

/// Runs `dueday orders people`: imports the file at `path`.
pub async fn import_employees(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    path: &Path,
) -> Result<Exit, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| invalid_file(error.to_string()))?;
    let people = csv_file::read_csv_lines(file, &FILE_COLUMNS, parse_imported_employee).map_err(invalid_file)?;
    let action = context.new_log_entry(ActionKind::ImportPeople, None);
    // The action log gets an entry without counts before the work, so that the log also contains an interrupted import.
    open_table.table.put_action(&action.on_job([])).await?;
    let mut imported = EmployeeImportReport { hired: 0, moved: 0, left: 0 };
    for ImportedEmployee { id, name, assignment, hired_on, salary, left_on } in people {
        let confidential = ConfidentialData { employee: id.clone(), hired_on, salary };
        let new = Employee {
            id: id.clone(),
            name,
            assignment: None,
            left_on: None,
            created_at: context.clock.now(),
            version: 1,
        };
        imported.hired += u64::from(desk.hire_employee(&new, &assignment, &confidential).await? == WriteOutcome::Done);
        let Some(employee) = desk.table.get_employee(&id).await? else {
            return Err(Failure::Refused(format!("the employee {id} could not be hired: import the file again")));
        };
        let new_assignment = if left_on.is_none() { Some(&assignment) } else { None };
        if employee.assignment.as_ref() == new_assignment {
            // If another request changes the employee at the same time, that request also renews the confidential data.
            // So a write conflict is ignored here.
            desk.table.renew_confidential_data(&employee).await?;
            continue;
        }
        let before = employee.version;
        let changed = match left_on {
            None => desk.assign_employee(&id, &assignment, |_| Ok(())).await,
            Some(left_on) => desk.end_employment(&id, left_on, |_| Ok(())).await,
        };
        let after = match changed {
            Err(DeskError::StillHasCustomers { customers, example, .. }) => {
                return Err(Failure::Refused(format!(
                    "{id} still represents {}: hand them over first, for example {example} with `{}`",
                    format_count(customers as u64, "customer"),
                    context.command_line(&format!("orders hand-over {example} EMPLOYEE"))
                )));
            }
            done => done?,
        };
        match left_on {
            _ if after.version == before => {}
            None => imported.moved += 1,
            Some(_) => imported.left += 1,
        }
    }
    let counts = [("hired", imported.hired), ("moved", imported.moved), ("left", imported.left)];
    open_table.table.put_action(&action.on_job(counts)).await?;
    context.print(&imported, || {
        let EmployeeImportReport { hired, moved, left } = imported;
        format!("{hired} hired, {moved} reassigned, {left} left\n")
    })?;
    Ok(Exit::Done)
}

/// Shows the employees that `args` select.
pub async fn show_employees(context: &CommandContext, desk: &OrderDesk, args: &EmployeesArgs) -> Result<Exit, Failure> {
    let all = Paging::all();
    let found = if let Some(name) = &args.name {
        desk.table.list_employees(EmployeeList::WithName(name), &all).await?.into_items()?
    } else if let Some(title) = &args.title {
        desk.table.list_employees(EmployeeList::WithTitle(title), &all).await?.into_items()?
    } else if let Some(warehouse) = &args.warehouse {
        desk.table.list_employees(EmployeeList::OfWarehouse(warehouse), &all).await?.into_items()?
    } else if let Some(department) = &args.department {
        desk.table.list_employees(EmployeeList::OfDepartment(department), &all).await?.into_items()?
    } else {
        // Clap requires one of the filters. Without another filter, the filter is the employee's id.
        let mut found = Vec::new();
        if let Some(id) = &args.employee {
            let employee = desk.table.get_employee(id).await?;
            found.push(employee.ok_or_else(|| Failure::Refused(format!("there is no employee {id}")))?);
        }
        found
    };
    let found: Vec<PrintedEmployee> = found.iter().map(PrintedEmployee::from_employee).collect();
    context.print(&found, || match found.len() {
        0 => "no employees were found\n".to_owned(),
        some => {
            format!(
                "{}\n{}\n",
                format_table(&TABLE_COLUMNS, found.iter().map(PrintedEmployee::table_cells)),
                format_count(some as u64, "employee")
            )
        }
    })?;
    Ok(Exit::Done)
}

impl PrintedEmployee {
    /// Creates the view of `employee`.
    pub fn from_employee(employee: &Employee) -> Self {
        let assignment = employee.assignment.as_ref();
        Self {
            employee: employee.id.to_string(),
            name: employee.name.as_str().to_owned(),
            title: assignment.map(|assignment| assignment.job_title.as_str().to_owned()),
            department: assignment.map(|assignment| assignment.department.to_string()),
            warehouse: assignment.and_then(|assignment| assignment.warehouse.as_ref()).map(ToString::to_string),
            left_on: employee.left_on,
        }
    }

    /// Returns the cells of the employee's table row.
    fn table_cells(&self) -> Vec<String> {
        let left = self.left_on.map(|on| format!("left {on}"));
        vec![
            self.employee.clone(),
            self.name.clone(),
            self.title.clone().or(left).unwrap_or_default(),
            self.department.clone().unwrap_or_default(),
            self.warehouse.clone().unwrap_or_default(),
        ]
    }
}
