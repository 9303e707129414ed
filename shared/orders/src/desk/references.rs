//! Checks that the regions, countries, jobs and departments exist to which a request refers.

use super::super::{Assignment, PlaceId, ReferenceKind, ShippingAddress};
use super::{DeskError, OrderDesk};

/// The maximum number of existing ids in an error message.
const MAX_LISTED_IDS: usize = 20;

impl OrderDesk {
    /// Returns an error if the region does not exist.
    ///
    /// # Errors
    /// There are regions, but none with this id; or the table cannot be used.
    pub async fn check_region(&self, region: &PlaceId) -> Result<(), DeskError> {
        self.check_reference(ReferenceKind::Region, region.as_str()).await
    }

    /// Returns an error if the region or the country of `address` does not exist.
    pub(super) async fn check_address(&self, address: &ShippingAddress) -> Result<(), DeskError> {
        self.check_region(&address.region).await?;
        self.check_reference(ReferenceKind::Country, address.country.as_str()).await
    }

    /// Returns an error if the job, the department or the warehouse of `assignment` does not exist.
    pub(super) async fn check_assignment(&self, assignment: Option<&Assignment>) -> Result<(), DeskError> {
        let Some(assignment) = assignment else { return Ok(()) };
        self.check_reference(ReferenceKind::Job, assignment.job.as_str()).await?;
        self.check_reference(ReferenceKind::Department, assignment.department.as_str()).await?;
        match &assignment.warehouse {
            Some(id) if self.table.get_warehouse(id).await?.is_none() => Err(DeskError::NoWarehouse(id.clone())),
            _ => Ok(()),
        }
    }

    /// Returns an error if there are entities of `kind`, but none with this id. A merchant who has not imported any
    /// entity of this kind can use any id.
    async fn check_reference(&self, kind: ReferenceKind, id: &str) -> Result<(), DeskError> {
        if self.table.has_entity(kind, id).await? {
            return Ok(());
        }
        let mut ids = self.table.ids_of(kind).await?;
        if ids.is_empty() {
            return Ok(());
        }
        let omitted = ids.len().saturating_sub(MAX_LISTED_IDS);
        ids.truncate(MAX_LISTED_IDS);
        let more = if omitted > 0 { format!(" and {omitted} more") } else { String::new() };
        Err(DeskError::UnknownReference { kind, id: id.to_owned(), existing: ids.join(", ") + &more })
    }
}
