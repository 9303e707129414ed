//! Who works here: hired, moved to other work, leaving; and found.

use std::fs::File;
use std::path::Path;

use billing::{Currency, Label, Money};
use chrono::NaiveDate;
use clap::Args;
use orders::{
    Assignment, Confidential, DepartmentId, DeskError, Employee, EmployeeDetails, EmployeeId, OrderDesk, WarehouseId,
    Written,
};
use serde::Serialize;
use store::Paging;

use super::csv_file::{self, Line};
use crate::context::Context;
use crate::terminal::output::count;
use crate::terminal::table::{Column, table};
use crate::{Exit, Failure};

pub const AFTER_HELP: &str = "\
The file's columns: employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency,left_on. Whoever \
is new is hired; whose job, department or warehouse is another one is moved to it from today on; whose line has a day of \
leaving leaves on it. Name, day of hiring and salary stay as they were when somebody was hired. New customers are spread over those who represent customers.

Example:
  employee,name,job,title,represents_customers,department,warehouse,hired_on,salary,currency
  ada,Ada Archer,am,Account Manager,true,sales,,2026-01-10,52000.00,EUR
  jun,Jun Potter,pk,Picker,false,logistics,ams,2026-02-01,31000.00,EUR";

const COLUMNS: [&str; 11] = [
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
const SHOWN: [Column; 5] = [
    Column::text("employee"),
    Column::text("name"),
    Column::text("title"),
    Column::text("department"),
    Column::text("warehouse"),
];

/// Whom to show: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct EmployeesArgs {
    /// This one
    pub employee: Option<EmployeeId>,
    /// Of this name
    #[arg(long)]
    pub name: Option<String>,
    /// Of this job title
    #[arg(long)]
    pub title: Option<String>,
    /// Of this warehouse
    #[arg(long)]
    pub warehouse: Option<WarehouseId>,
    /// Of this department
    #[arg(long)]
    pub department: Option<DepartmentId>,
}

struct Person {
    id: EmployeeId,
    name: Label,
    assignment: Assignment,
    hired_on: NaiveDate,
    salary: Money,
    left_on: Option<NaiveDate>,
}

#[derive(Serialize)]
struct Imported {
    hired: u64,
    moved: u64,
    left: u64,
}

#[derive(Serialize)]
struct EmployeeView {
    employee: String,
    name: String,
    title: Option<String>,
    department: Option<String>,
    warehouse: Option<String>,
    left_on: Option<NaiveDate>,
}

fn person(line: &Line<'_>) -> Result<Person, String> {
    let currency: Currency = line.needed("currency")?;
    let salary: String = line.needed("salary")?;
    let salary = Money::parse(&salary, currency).map_err(|error| format!("salary {salary:?}: {error}"))?;
    Ok(Person {
        id: line.needed("employee")?,
        name: line.needed("name")?,
        assignment: Assignment {
            job: line.needed("job")?,
            job_title: line.needed("title")?,
            represents_customers: line.cell("represents_customers")?.unwrap_or(false),
            department: line.needed("department")?,
            warehouse: line.cell("warehouse")?,
        },
        hired_on: line.needed("hired_on")?,
        salary,
        left_on: line.cell("left_on")?,
    })
}

pub async fn import(context: &Context, desk: &OrderDesk, path: &Path) -> Result<Exit, Failure> {
    let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let people = csv_file::lines(file, &COLUMNS, person).map_err(wrong)?;
    let mut imported = Imported { hired: 0, moved: 0, left: 0 };
    for Person { id, name, assignment, hired_on, salary, left_on } in people {
        let confidential = Confidential { employee: id.clone(), hired_on, salary };
        let new = Employee {
            id: id.clone(),
            name,
            assignment: None,
            left_on: None,
            created_at: context.clock.now(),
            version: 1,
        };
        imported.hired += u64::from(desk.hire(&new, &assignment, &confidential).await? == Written::Done);
        let Some(employee) = desk.table.employee(&id).await? else {
            return Err(Failure::Refused(format!("{id} could not be hired: import it again")));
        };
        let (wanted, from) = match left_on {
            None => (Some(&assignment), context.today()),
            Some(left_on) => (None, left_on),
        };
        if employee.assignment.as_ref() == wanted {
            continue;
        }
        match desk.assign(&id, wanted, from, |_| Ok(())).await {
            Err(DeskError::StillRepresents { customers, one, .. }) => {
                return Err(Failure::Refused(format!(
                    "{id} looks after {}: hand them over first, {one} with `{}`",
                    count(customers as u64, "customer"),
                    context.hint(&format!("orders hand-over {one} EMPLOYEE"))
                )));
            }
            done => done?,
        };
        match left_on {
            None => imported.moved += 1,
            Some(_) => imported.left += 1,
        }
    }
    context.print(&imported, || {
        let Imported { hired, moved, left } = imported;
        format!("{hired} hired, {moved} moved, {left} left\n")
    })?;
    Ok(Exit::Done)
}

pub async fn employees(context: &Context, desk: &OrderDesk, args: &EmployeesArgs) -> Result<Exit, Failure> {
    let all = Paging::all();
    let ids = if let Some(name) = &args.name {
        desk.table.employees_by_name(name, &all).await?.into_items()?
    } else if let Some(title) = &args.title {
        desk.table.employees_by_title(title, &all).await?.into_items()?
    } else if let Some(warehouse) = &args.warehouse {
        desk.table.employees_of_warehouse(warehouse, &all).await?.into_items()?
    } else if let Some(department) = &args.department {
        desk.table.employees_of_department(department, &all).await?.into_items()?
    } else {
        args.employee.iter().cloned().collect()
    };
    let mut found = Vec::new();
    for id in ids {
        match desk.table.employee_details(&id).await? {
            Some(EmployeeDetails { employee, .. }) => found.push(EmployeeView::of(&employee)),
            None if args.employee.is_some() => return Err(Failure::Refused(format!("there is no employee {id}"))),
            // They were found through an index, which is a moment behind.
            None => {}
        }
    }
    context.print(&found, || match found.len() {
        0 => "nobody\n".to_owned(),
        some => {
            format!("{}\n{}\n", table(&SHOWN, found.iter().map(EmployeeView::cells)), count(some as u64, "employee"))
        }
    })?;
    Ok(Exit::Done)
}

impl EmployeeView {
    fn of(employee: &Employee) -> Self {
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

    fn cells(&self) -> Vec<String> {
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
