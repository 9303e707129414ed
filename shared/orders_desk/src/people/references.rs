//! The regions, countries, locations, jobs and departments of the company, and the checks that requests refer only to
//! existing entities.

use crate::error::DeskError;
use crate::{MAX_ATTEMPTS, OrderDesk};
use orders::{Assignment, PlaceId, ReferenceKind, ShippingAddress};
use orders_table::{ReferencedEntity, WriteOutcome};

/// The maximum number of existing ids that an error message lists.
const MAX_LISTED_IDS: usize = 20;

/// Returns the clause of an error message that lists the first [`MAX_LISTED_IDS`] of `ids`, the ids of the existing
/// entities of `kind`, and the number of further ones.
fn existing_ids_clause(kind: ReferenceKind, mut ids: Vec<String>) -> String {
    if ids.is_empty() {
        return format!("there are no {} yet", kind.plural());
    }
    let omitted = ids.len().saturating_sub(MAX_LISTED_IDS);
    ids.truncate(MAX_LISTED_IDS);
    let more = if omitted > 0 { format!(" and {omitted} more") } else { String::new() };
    format!("the existing ids are: {}{more}", ids.join(", "))
}

impl OrderDesk {
    /// Creates or replaces an entity: a region, a country, a location, a job or a department. If the entity refers to
    /// another entity, the caller must have checked that the other entity exists.
    ///
    /// # Errors
    /// Other requests changed the entity at the same time, or the table cannot be used.
    pub async fn put_entity(&self, entity: &impl ReferencedEntity) -> Result<(), DeskError> {
        for _ in 0..MAX_ATTEMPTS {
            if self.table.put_entity(entity).await? == WriteOutcome::Done {
                return Ok(());
            }
        }
        Err(DeskError::WriteConflict { item: entity.id().to_owned() })
    }

    /// Returns an error if there is no region with this id.
    ///
    /// # Errors
    /// There is no region with this id, or the table cannot be used.
    pub async fn check_region(&self, region: &PlaceId) -> Result<(), DeskError> {
        self.check_reference(ReferenceKind::Region, region.as_str()).await
    }

    /// Returns an error if the region or the country of `address` does not exist.
    pub(crate) async fn check_address(&self, address: &ShippingAddress) -> Result<(), DeskError> {
        self.check_region(&address.region).await?;
        self.check_reference(ReferenceKind::Country, address.country.as_str()).await
    }

    /// Returns an error if the warehouse, the job or the department of `assignment` does not exist.
    pub(crate) async fn check_assignment(&self, assignment: Option<&Assignment>) -> Result<(), DeskError> {
        let Some(assignment) = assignment else { return Ok(()) };
        self.check_reference(ReferenceKind::Job, assignment.job.as_str()).await?;
        self.check_reference(ReferenceKind::Department, assignment.department.as_str()).await?;
        match &assignment.warehouse {
            Some(id) if self.table.get_warehouse(id).await?.is_none() => Err(DeskError::NoWarehouse(id.clone())),
            _ => Ok(()),
        }
    }

    /// Returns an error if there is no entity of `kind` with this id.
    async fn check_reference(&self, kind: ReferenceKind, id: &str) -> Result<(), DeskError> {
        if self.table.has_entity(kind, id).await? {
            return Ok(());
        }
        let existing = existing_ids_clause(kind, self.table.ids_of_references(kind).await?);
        Err(DeskError::UnknownReference { kind, id: id.to_owned(), existing })
    }
}
