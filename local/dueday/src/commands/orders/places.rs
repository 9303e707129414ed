//! Imports regions, countries, locations, departments and jobs from a CSV file, and shows the countries and warehouses
//! of a region.

use std::fs::File;
use std::path::Path;

use billing::{ActionKind, Label};
use orders::{Country, Department, Job, Location, OrderDesk, PlaceId, Region, WriteOutcome};
use serde::Serialize;
use strum::{Display, EnumString};

use super::csv_file::{self, Line};
use crate::context::Context;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

pub const AFTER_HELP: &str = "\
The columns of the file: kind,id,name,in,represents_customers.

The column in contains the region of a country (its id), the country of a location (its name), or the location of a \
department (its id). The name of a location is its address; the name of a job is its title.

Example:
  kind,id,name,in,represents_customers
  region,eu,Europe,,
  country,gb,United Kingdom,eu,
  location,leeds,1 High Street,United Kingdom,
  department,sales,Sales,leeds,
  job,am,Account Manager,,true";

const FILE_COLUMNS: [&str; 5] = ["kind", "id", "name", "in", "represents_customers"];

#[derive(Clone, Copy, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
enum PlaceKind {
    Region,
    Country,
    Location,
    Department,
    Job,
}

/// The item that a line of the file defines.
enum PlaceRow {
    Region(Region),
    Country(Country),
    Location(Location),
    Department(Department),
    Job(Job),
}

#[derive(Serialize)]
struct ImportReport {
    entities: usize,
}

#[derive(Serialize)]
struct RegionView {
    region: String,
    countries: Vec<String>,
    warehouses: Vec<String>,
}

fn parse_place_row(line: &Line<'_>) -> Result<PlaceRow, String> {
    let kind: String = line.required_cell("kind")?;
    let kind: PlaceKind =
        kind.parse().map_err(|_| format!("kind {kind:?}: must be region, country, location, department or job"))?;
    let name: Label = line.required_cell("name")?;
    Ok(match kind {
        PlaceKind::Region => PlaceRow::Region(Region { id: line.required_cell("id")?, name }),
        PlaceKind::Country => {
            PlaceRow::Country(Country { id: line.required_cell("id")?, name, region: line.required_cell("in")? })
        }
        PlaceKind::Location => PlaceRow::Location(Location {
            id: line.required_cell("id")?,
            address: name,
            country_name: line.required_cell("in")?,
        }),
        PlaceKind::Department => PlaceRow::Department(Department {
            id: line.required_cell("id")?,
            name,
            location: line.required_cell("in")?,
        }),
        PlaceKind::Job => {
            let represents_customers = line.cell("represents_customers")?.unwrap_or(false);
            PlaceRow::Job(Job { id: line.required_cell("id")?, title: name, represents_customers })
        }
    })
}

pub async fn import(context: &Context, desk: &OrderDesk, open_table: &OpenTable, path: &Path) -> Result<Exit, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| invalid_file(error.to_string()))?;
    let entities = csv_file::read_lines(file, &FILE_COLUMNS, parse_place_row).map_err(invalid_file)?;
    let action = context.action(ActionKind::ImportPlaces, None);
    // An interrupted job keeps this entry, without its counts.
    open_table.table.put_action(&action.on_job([])).await?;
    for place_row in &entities {
        let (written, id) = match place_row {
            PlaceRow::Region(region) => (desk.table.put_region(region).await?, region.id.to_string()),
            PlaceRow::Country(country) => (desk.table.put_country(country).await?, country.id.to_string()),
            PlaceRow::Location(location) => (desk.table.put_location(location).await?, location.id.to_string()),
            PlaceRow::Department(department) => {
                (desk.table.put_department(department).await?, department.id.to_string())
            }
            PlaceRow::Job(job) => (desk.table.put_job(job).await?, job.id.to_string()),
        };
        if written != WriteOutcome::Done {
            return Err(Failure::Refused(format!("a concurrent request changed {id}: import the file again")));
        }
    }
    let imported = ImportReport { entities: entities.len() };
    open_table.table.put_action(&action.on_job([("entities", imported.entities as u64)])).await?;
    context.print(&imported, || format!("{} imported\n", format_count(imported.entities as u64, "line")))?;
    Ok(Exit::Done)
}

pub async fn region(context: &Context, desk: &OrderDesk, region: &PlaceId) -> Result<Exit, Failure> {
    let (countries, warehouses) = desk.table.countries_and_warehouses(region).await?;
    let texts = |all: Vec<String>| if all.is_empty() { "none".to_owned() } else { all.join(", ") };
    let view = RegionView {
        region: region.to_string(),
        countries: countries.iter().map(ToString::to_string).collect(),
        warehouses: warehouses.iter().map(ToString::to_string).collect(),
    };
    context.print(&view, || {
        format!("countries   {}\nwarehouses  {}\n", texts(view.countries.clone()), texts(view.warehouses.clone()))
    })?;
    Ok(Exit::Done)
}
