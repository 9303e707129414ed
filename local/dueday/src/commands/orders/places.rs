//! Regions, countries, locations, departments and jobs, from a CSV file; and what lies in a region.

use std::fs::File;
use std::path::Path;

use billing::Label;
use orders::{Country, Department, Job, Location, OrderDesk, PlaceId, Region, Written};
use serde::Serialize;
use strum::{Display, EnumString};

use super::csv_file::{self, Line};
use crate::context::Context;
use crate::terminal::output::count;
use crate::{Exit, Failure};

pub const AFTER_HELP: &str = "\
The file's columns: kind,id,name,in,represents_customers. What a kind lies in: a country in a region (by its id), a location in a \
country (by its name), a department in a location (by its id). The name of a location is its address, that of a job its title.

Example:
  kind,id,name,in,represents_customers
  region,eu,Europe,,
  country,gb,United Kingdom,eu,
  location,leeds,1 High Street,United Kingdom,
  department,sales,Sales,leeds,
  job,am,Account Manager,,true";

const COLUMNS: [&str; 5] = ["kind", "id", "name", "in", "represents_customers"];

#[derive(Clone, Copy, Display, EnumString)]
#[strum(serialize_all = "snake_case")]
enum Kind {
    Region,
    Country,
    Location,
    Department,
    Job,
}

enum Entity {
    Region(Region),
    Country(Country),
    Location(Location),
    Department(Department),
    Job(Job),
}

#[derive(Serialize)]
struct Imported {
    entities: usize,
}

#[derive(Serialize)]
struct RegionView {
    region: String,
    countries: Vec<String>,
    warehouses: Vec<String>,
}

fn entity(line: &Line<'_>) -> Result<Entity, String> {
    let kind: String = line.needed("kind")?;
    let kind: Kind =
        kind.parse().map_err(|_| format!("kind {kind:?}: must be region, country, location, department or job"))?;
    let name: Label = line.needed("name")?;
    Ok(match kind {
        Kind::Region => Entity::Region(Region { id: line.needed("id")?, name }),
        Kind::Country => Entity::Country(Country { id: line.needed("id")?, name, region: line.needed("in")? }),
        Kind::Location => {
            Entity::Location(Location { id: line.needed("id")?, address: name, country_name: line.needed("in")? })
        }
        Kind::Department => {
            Entity::Department(Department { id: line.needed("id")?, name, location: line.needed("in")? })
        }
        Kind::Job => {
            let represents_customers = line.cell("represents_customers")?.unwrap_or(false);
            Entity::Job(Job { id: line.needed("id")?, title: name, represents_customers })
        }
    })
}

pub async fn import(context: &Context, desk: &OrderDesk, path: &Path) -> Result<Exit, Failure> {
    let wrong = |reason: String| Failure::File { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| wrong(error.to_string()))?;
    let entities = csv_file::lines(file, &COLUMNS, entity).map_err(wrong)?;
    for entity in &entities {
        let (written, id) = match entity {
            Entity::Region(region) => (desk.table.put_region(region).await?, region.id.to_string()),
            Entity::Country(country) => (desk.table.put_country(country).await?, country.id.to_string()),
            Entity::Location(location) => (desk.table.put_location(location).await?, location.id.to_string()),
            Entity::Department(department) => (desk.table.put_department(department).await?, department.id.to_string()),
            Entity::Job(job) => (desk.table.put_job(job).await?, job.id.to_string()),
        };
        if written != Written::Done {
            return Err(Failure::Refused(format!(
                "{id} was changed by somebody else at the same time: import it again"
            )));
        }
    }
    let imported = Imported { entities: entities.len() };
    context.print(&imported, || format!("{} brought in\n", count(imported.entities as u64, "line")))?;
    Ok(Exit::Done)
}

pub async fn region(context: &Context, desk: &OrderDesk, region: &PlaceId) -> Result<Exit, Failure> {
    let (countries, warehouses) = desk.table.in_region(region).await?;
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
