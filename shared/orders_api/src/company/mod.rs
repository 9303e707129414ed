//! `/company`: the regions, countries, locations, jobs and departments to which addresses, warehouses and employees refer.
//! Only for operators.

pub mod jobs;
pub mod places;

use ::orders::{OrdersTable, ReferencedEntity};
use axum::Json;
use rest::list::ListView;
use rest::parameters::PageQuery;

use super::OrdersApi;
use super::desk_problem::DeskProblem;

/// Returns a list page of the entities of the kind `E`, such as regions, sorted by id.
async fn list_entities<E: ReferencedEntity, V: From<E>>(
    api: &OrdersApi,
    page: PageQuery,
) -> Result<Json<ListView<V>>, DeskProblem> {
    let paging = page.paging(|text| OrdersTable::cursor_of_entities(E::KIND, text))?;
    let page = api.desk.table.get_entities::<E>(&paging).await?;
    Ok(Json(ListView::from_page(page, V::from)?))
}
