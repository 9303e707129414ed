//! `/company/regions`, `/company/countries` and `/company/locations`: where the company works. Only for operators.

use ::orders::{Country, Location, LocationId, PlaceId, Region};
use axum::Json;
use axum::extract::State;
use billing::Label;
use rest::body::Body;
use rest::list::ListView;
use rest::parameters::{NoParameters, PageQuery, Path, Query};
use rest::{AdminAccess, Operator};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::OrdersApi;
use crate::desk_for_caller::DeskForCaller;
use crate::desk_problem::DeskProblem;

use super::list_entities;

/// The path parameter for a region.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct RegionPath {
    /// The merchant's identifier of the region.
    region: PlaceId,
}

/// The data of a region to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutRegion)]
pub struct RegionFields {
    /// The name of the region.
    name: Label,
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

impl From<Region> for RegionView {
    fn from(Region { id, name }: Region) -> Self {
        Self { id, name }
    }
}

/// List the regions
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/regions",
    operation_id = "list_regions",
    tag = "company",
    params(PageQuery),
    responses((status = 200, description = "A list page of regions", body = ListView<RegionView>))
)]
pub async fn list_regions(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<RegionView>>, DeskProblem> {
    list_entities::<Region, _>(&api, page).await
}

/// Create or change a region
///
/// Replaces the data of the region.
#[utoipa::path(
    put,
    path = "/company/regions/{region}",
    operation_id = "put_region",
    tag = "company",
    params(RegionPath),
    request_body = RegionFields,
    responses((status = 200, description = "The region has the requested data now", body = RegionView))
)]
pub async fn put_region(
    DeskForCaller(desk): DeskForCaller,
    Path(RegionPath { region: id }): Path<RegionPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<RegionFields>,
) -> Result<Json<RegionView>, DeskProblem> {
    let RegionFields { name } = body.value;
    let entity = Region { id, name };
    desk.put_entity(&entity).await?;
    Ok(Json(entity.into()))
}

/// The path parameter for a country.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct CountryPath {
    /// The merchant's identifier of the country.
    country: PlaceId,
}

/// The data of a country to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutCountry)]
pub struct CountryFields {
    /// The name of the country.
    name: Label,
    /// The merchant's identifier of the region of the country.
    region: PlaceId,
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

impl From<Country> for CountryView {
    fn from(Country { id, name, region }: Country) -> Self {
        Self { id, name, region }
    }
}

/// List the countries
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/countries",
    operation_id = "list_countries",
    tag = "company",
    params(PageQuery),
    responses((status = 200, description = "A list page of countries", body = ListView<CountryView>))
)]
pub async fn list_countries(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<CountryView>>, DeskProblem> {
    list_entities::<Country, _>(&api, page).await
}

/// Create or change a country
///
/// Replaces the data of the country. The region of the country must exist.
#[utoipa::path(
    put,
    path = "/company/countries/{country}",
    operation_id = "put_country",
    tag = "company",
    params(CountryPath),
    request_body = CountryFields,
    responses((status = 200, description = "The country has the requested data now", body = CountryView))
)]
pub async fn put_country(
    DeskForCaller(desk): DeskForCaller,
    Path(CountryPath { country: id }): Path<CountryPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<CountryFields>,
) -> Result<Json<CountryView>, DeskProblem> {
    let CountryFields { name, region } = body.value;
    let entity = Country { id, name, region };
    desk.check_region(&entity.region).await?;
    desk.put_entity(&entity).await?;
    Ok(Json(entity.into()))
}

/// The path parameter for a location.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct LocationPath {
    /// The merchant's identifier of the location.
    location: LocationId,
}

/// The data of a location to create or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutLocation)]
pub struct LocationFields {
    /// The address of the location.
    address: Label,
    /// The name of the country of the location.
    country_name: Label,
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

impl From<Location> for LocationView {
    fn from(Location { id, address, country_name }: Location) -> Self {
        Self { id, address, country_name }
    }
}

/// List the locations
///
/// Sorted by id.
#[utoipa::path(
    get,
    path = "/company/locations",
    operation_id = "list_locations",
    tag = "company",
    params(PageQuery),
    responses((status = 200, description = "A list page of locations", body = ListView<LocationView>))
)]
pub async fn list_locations(
    State(api): State<OrdersApi>,
    _: Operator,
    Query(page): Query<PageQuery>,
) -> Result<Json<ListView<LocationView>>, DeskProblem> {
    list_entities::<Location, _>(&api, page).await
}

/// Create or change a location
///
/// Replaces the data of the location. A country with the name `country_name` must exist.
#[utoipa::path(
    put,
    path = "/company/locations/{location}",
    operation_id = "put_location",
    tag = "company",
    params(LocationPath),
    request_body = LocationFields,
    responses((status = 200, description = "The location has the requested data now", body = LocationView))
)]
pub async fn put_location(
    DeskForCaller(desk): DeskForCaller,
    Path(LocationPath { location: id }): Path<LocationPath>,
    _: AdminAccess,
    _: Query<NoParameters>,
    body: Body<LocationFields>,
) -> Result<Json<LocationView>, DeskProblem> {
    let LocationFields { address, country_name } = body.value;
    let entity = Location { id, address, country_name };
    desk.check_country_name(&entity.country_name).await?;
    desk.put_entity(&entity).await?;
    Ok(Json(entity.into()))
}
