//! `/company/{list}`: the regions, countries, locations, jobs and departments to which addresses, warehouses and employees
//! refer. They are imported from a file (`dueday orders places`), so the API only lists them. Only for operators.

use axum::Json;
use axum::extract::State;
use billing::Label;
use orders::{Country, Department, DepartmentId, Job, JobId, Location, LocationId, PlaceId, Region};
use orders_table::{OrdersTable, ReferencedEntity};
use rest::OperatorAccess;
use rest::list::ListView;
use rest::parameters::{PageQuery, Path, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_problem::DeskProblem;

/// A list of the company: all regions, countries, locations, jobs or departments.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompanyList {
    Regions,
    Countries,
    Locations,
    Jobs,
    Departments,
}

/// The path parameter for a list of the company.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct CompanyListPath {
    /// The list.
    #[param(inline)]
    list: CompanyList,
}

/// A region of the world. Orders of customers in a region are shipped from a warehouse in this region, if possible.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Region)]
pub struct RegionView {
    /// The merchant's identifier of the region.
    id: PlaceId,
    /// The name of the region.
    name: Label,
}

/// A country, which belongs to one region.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Country)]
pub struct CountryView {
    /// The merchant's identifier of the country.
    id: PlaceId,
    /// The name of the country.
    name: Label,
    /// The merchant's identifier of the region of the country.
    region: PlaceId,
}

/// A place of work, such as an office.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Location)]
pub struct LocationView {
    /// The merchant's identifier of the location.
    id: LocationId,
    /// The address of the location.
    address: Label,
    /// The name of the country of the location.
    country_name: Label,
}

/// A kind of job in the company, such as "Account Manager". Several employees can have the same job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub struct JobView {
    /// The merchant's identifier of the job.
    id: JobId,
    /// The title of the job.
    title: Label,
    /// Whether employees with this job are customer representatives, to whom the orders of their customers are
    /// credited.
    represents_customers: bool,
}

/// A department of the company, which works at one location.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Department)]
pub struct DepartmentView {
    /// The merchant's identifier of the department.
    id: DepartmentId,
    /// The name of the department.
    name: Label,
    /// The merchant's identifier of the location where the department works.
    location: LocationId,
}

/// A region, a country, a location, a job or a department: an entry of the requested list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = CompanyEntity)]
pub enum CompanyEntityView {
    Region(RegionView),
    Country(CountryView),
    Location(LocationView),
    Job(JobView),
    Department(DepartmentView),
}

impl From<Region> for CompanyEntityView {
    fn from(Region { id, name }: Region) -> Self {
        Self::Region(RegionView { id, name })
    }
}

impl From<Country> for CompanyEntityView {
    fn from(Country { id, name, region }: Country) -> Self {
        Self::Country(CountryView { id, name, region })
    }
}

impl From<Location> for CompanyEntityView {
    fn from(Location { id, address, country_name }: Location) -> Self {
        Self::Location(LocationView { id, address, country_name })
    }
}

impl From<Job> for CompanyEntityView {
    fn from(Job { id, title, represents_customers }: Job) -> Self {
        Self::Job(JobView { id, title, represents_customers })
    }
}

impl From<Department> for CompanyEntityView {
    fn from(Department { id, name, location }: Department) -> Self {
        Self::Department(DepartmentView { id, name, location })
    }
}

/// List the regions, countries, locations, jobs or departments
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/{list}",
    operation_id = "list_company",
    tag = "company",
    params(CompanyListPath, PageQuery),
    responses((status = 200, description = "A list page of the requested list", body = ListView<CompanyEntityView>))
)]
pub async fn list_company_data(
    State(api): State<OrdersApi>,
    Path(CompanyListPath { list }): Path<CompanyListPath>,
    _: OperatorAccess,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<CompanyEntityView>>, DeskProblem> {
    match list {
        CompanyList::Regions => list_company_entities::<Region>(&api, page).await,
        CompanyList::Countries => list_company_entities::<Country>(&api, page).await,
        CompanyList::Locations => list_company_entities::<Location>(&api, page).await,
        CompanyList::Jobs => list_company_entities::<Job>(&api, page).await,
        CompanyList::Departments => list_company_entities::<Department>(&api, page).await,
    }
}

/// Returns a list page of the entities of the kind `E`, such as regions, sorted by id.
async fn list_company_entities<E>(
    api: &OrdersApi,
    page: PageQuery,
) -> Result<Json<ListView<CompanyEntityView>>, DeskProblem>
where
    E: ReferencedEntity,
    CompanyEntityView: From<E>,
{
    let paging = page.paging(|text| OrdersTable::cursor_of_entities(E::KIND, text))?;
    let page = api.desk.table.get_entities::<E>(&paging).await?;
    Ok(Json(ListView::from_page(page, CompanyEntityView::from)?))
}
