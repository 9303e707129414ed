//! Imports regions, countries, locations, departments and jobs from a CSV file, and shows the countries and warehouses
//! of a region.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use billing::{ActionKind, Label};
use orders::{Country, Department, Job, Location, LocationId, PlaceId, ReferenceKind, Region};
use orders_desk::{DeskError, OrderDesk};
use orders_table::normalize_name;
use serde::Serialize;
use strum::{Display, EnumString};

use crate::commands::orders::csv_file::{self, CsvLine};
use crate::context::CommandContext;
use crate::machine::open_table::OpenTable;
use crate::terminal::output::format_count;
use crate::{Exit, Failure};

/// The text after the help of `dueday orders places`.
pub const AFTER_HELP: &str = "\
The columns of the file: kind,id,name,in,represents_customers.

The column in contains the region of a country (its id), the country of a location (its name), or the location of a \
department (its id). The name of a location is its address; the name of a job is its title.

Example:
  kind,id,name,in,represents_customers
  region,eu,Europe,,
  region,na,North America,,
  country,gb,United Kingdom,eu,
  location,leeds,1 High Street,United Kingdom,
  department,sales,Sales,leeds,
  department,logistics,Logistics,leeds,
  job,am,Account Manager,,true
  job,pk,Picker,,false";

/// The columns of the file.
const FILE_COLUMNS: [&str; 5] = ["kind", "id", "name", "in", "represents_customers"];

/// The kind of the entity that a line of the file defines. An entity of one kind refers only to entities of an earlier
/// kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
enum PlaceKind {
    Region,
    Country,
    Location,
    Department,
    Job,
}

/// The entity that a line of the file defines.
enum PlaceRow {
    Region(Region),
    Country(Country),
    Location(Location),
    Department(Department),
    Job(Job),
}

/// The output of `dueday orders places` with `--json`.
#[derive(Serialize)]
struct PlaceImportReport {
    entities: usize,
}

/// The output of `dueday orders region` with `--json`.
#[derive(Serialize)]
struct RegionView {
    region: String,
    countries: Vec<String>,
    warehouses: Vec<String>,
}

/// Parses a line of the file.
fn parse_place_row(line: &CsvLine<'_>) -> Result<(PlaceKind, PlaceRow), String> {
    let kind: String = line.required_cell("kind")?;
    let kind: PlaceKind =
        kind.parse().map_err(|_| format!("kind {kind:?}: must be region, country, location, department or job"))?;
    let name: Label = line.required_cell("name")?;
    let row = match kind {
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
            let represents_customers = line.optional_cell("represents_customers")?.unwrap_or(false);
            PlaceRow::Job(Job { id: line.required_cell("id")?, title: name, represents_customers })
        }
    };
    Ok((kind, row))
}

/// The entities of a file to which other entities can refer.
#[derive(Default)]
struct FileEntities<'a> {
    regions: BTreeSet<&'a PlaceId>,
    country_names: BTreeSet<String>,
    locations: BTreeSet<&'a LocationId>,
}

impl<'a> FileEntities<'a> {
    /// Collects the entities in `rows`.
    fn collect_from_rows(rows: &'a [(PlaceKind, PlaceRow)]) -> Self {
        let mut entities = Self::default();
        for (_, row) in rows {
            match row {
                PlaceRow::Region(region) => {
                    entities.regions.insert(&region.id);
                }
                PlaceRow::Country(country) => {
                    entities.country_names.insert(normalize_name(country.name.as_str()));
                }
                PlaceRow::Location(location) => {
                    entities.locations.insert(&location.id);
                }
                PlaceRow::Department(_) | PlaceRow::Job(_) => {}
            }
        }
        entities
    }

    /// Checks that the entity to which `row` refers is in the file or stored.
    async fn check_reference(&self, desk: &OrderDesk, row: &PlaceRow) -> Result<(), Failure> {
        let (kind, id, is_stored) = match row {
            PlaceRow::Country(Country { region, .. }) if !self.regions.contains(region) => {
                ("region", region.as_str(), desk.table.has_entity(ReferenceKind::Region, region.as_str()).await?)
            }
            PlaceRow::Location(Location { country_name, .. })
                if !self.country_names.contains(&normalize_name(country_name.as_str())) =>
            {
                let is_stored = desk.table.has_country_named(country_name).await?;
                ("country with the name", country_name.as_str(), is_stored)
            }
            PlaceRow::Department(Department { location, .. }) if !self.locations.contains(location) => {
                let is_stored = desk.table.has_entity(ReferenceKind::Location, location.as_str()).await?;
                ("location", location.as_str(), is_stored)
            }
            _ => return Ok(()),
        };
        match is_stored {
            true => Ok(()),
            false => {
                Err(Failure::Refused(format!("there is no {kind} {id}, neither in the file nor among the stored ones")))
            }
        }
    }
}

/// Creates or replaces the entity of a row.
async fn put_place_row(desk: &OrderDesk, row: &PlaceRow) -> Result<(), DeskError> {
    match row {
        PlaceRow::Region(region) => desk.put_entity(region).await,
        PlaceRow::Country(country) => desk.put_entity(country).await,
        PlaceRow::Location(location) => desk.put_entity(location).await,
        PlaceRow::Department(department) => desk.put_entity(department).await,
        PlaceRow::Job(job) => desk.put_entity(job).await,
    }
}

/// Parses the lines of a CSV file. Sorts them so that each entity comes before the entities that refer to it.
fn parse_place_rows(source: impl Read) -> Result<Vec<(PlaceKind, PlaceRow)>, String> {
    let mut rows = csv_file::read_csv_lines(source, &FILE_COLUMNS, parse_place_row)?;
    rows.sort_by_key(|(kind, _)| *kind);
    Ok(rows)
}

/// Creates or replaces the regions, countries, locations, departments and jobs of `csv`, a text in the format of `dueday
/// orders places`.
///
/// # Errors
/// If a line is invalid, if a line refers to an entity that does not exist, or if the table cannot be used.
pub async fn put_places(desk: &OrderDesk, csv: &str) -> Result<(), Failure> {
    let rows = parse_place_rows(csv.as_bytes()).map_err(Failure::Refused)?;
    for (_, row) in &rows {
        put_place_row(desk, row).await?;
    }
    Ok(())
}

/// Runs `dueday orders places`: imports the file at `path`.
pub async fn import_places(
    context: &CommandContext,
    desk: &OrderDesk,
    open_table: &OpenTable,
    path: &Path,
) -> Result<Exit, Failure> {
    let invalid_file = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| invalid_file(error.to_string()))?;
    let entities = parse_place_rows(file).map_err(invalid_file)?;
    let in_file = FileEntities::collect_from_rows(&entities);
    for (_, row) in &entities {
        in_file.check_reference(desk, row).await?;
    }
    let action = context.new_log_entry(ActionKind::ImportPlaces, None);
    // The action log gets an entry without counts before the work, so that the log also contains an interrupted import.
    open_table.table.put_action(&action.on_job([])).await?;
    for (_, row) in &entities {
        put_place_row(desk, row).await?;
    }
    let imported = PlaceImportReport { entities: entities.len() };
    open_table.table.put_action(&action.on_job([("entities", imported.entities as u64)])).await?;
    context.print(&imported, || format!("{} imported\n", format_count(imported.entities as u64, "line")))?;
    Ok(Exit::Done)
}

/// Shows the countries and the warehouses of a region.
pub async fn show_region(context: &CommandContext, desk: &OrderDesk, region: &PlaceId) -> Result<Exit, Failure> {
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
