//! The errors of the order desk.

use chrono::NaiveDate;
use ulid::Ulid;

use billing::AccountId;
use dynamo::TableError;
use orders::{
    AddressCorrectionError, EmployeeId, FollowUpError, MAX_LINES, MovementError, OrderId, OrderLinesError,
    OrderProductsError, PlaceId, ProductId, ReferenceKind, TransitionError, WarehouseId,
};

/// The reason why the order desk did not carry out a request.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
pub enum DeskError {
    #[error(transparent)]
    Table(#[from] TableError),
    #[error(transparent)]
    Transition(#[from] TransitionError),
    #[error(transparent)]
    Correction(#[from] AddressCorrectionError),
    #[error(transparent)]
    Products(#[from] OrderProductsError),
    #[error(transparent)]
    FollowUp(#[from] FollowUpError),
    #[error("an order must have at least one product; cancel the order instead")]
    NoLines,
    #[error("at most {MAX_LINES} products of an order can change at once, not {0}")]
    TooManyChanges(usize),
    #[error("the order {0} was shipped already, with another carrier or tracking number")]
    OtherParcel(OrderId),
    #[error("the products of the order {0} were added to the stock already; write them off from the stock")]
    AlreadyRestored(OrderId),
    #[error("there is no order {0}")]
    NoOrder(OrderId),
    #[error("there is no account {0}")]
    NoAccount(AccountId),
    #[error("there is no product {0}")]
    NoProduct(ProductId),
    #[error(transparent)]
    Lines(#[from] OrderLinesError),
    #[error("there is no warehouse {0}")]
    NoWarehouse(WarehouseId),
    #[error("there is no warehouse in the region {region}; the regions with a warehouse are: {regions}")]
    NoWarehouseInRegion { region: PlaceId, regions: String },
    #[error(
        "there is no {} {id}; {existing}; import it with `dueday orders places`",
        .kind.name()
    )]
    UnknownReference { kind: ReferenceKind, id: String, existing: String },
    #[error("the delivery {0} was already received with another quantity or in another warehouse")]
    DeliveryMismatch(Ulid),
    #[error("{0} was already used for another movement of the product")]
    MovementMismatch(Ulid),
    #[error(transparent)]
    Movement(#[from] MovementError),
    #[error("there is no employee {0}")]
    NoEmployee(EmployeeId),
    #[error("must be from {earliest} to {latest}")]
    DateOutOfRange { field: &'static str, earliest: NaiveDate, latest: NaiveDate },
    // The message does not contain the first day of the current job: it can be the hire date, which is confidential.
    #[error("the current job of {0} cannot end before its first day")]
    BeforeCurrentJob(EmployeeId),
    #[error("{employee} still represents customers ({customers} in all, such as {example}); hand them over first")]
    StillHasCustomers { employee: EmployeeId, customers: usize, example: AccountId },
    #[error("{0} is not a customer representative")]
    NotRepresentative(EmployeeId),
    #[error("other requests changed {item} at the same time; try again")]
    WriteConflict { item: String },
}

impl DeskError {
    /// Returns the name of the error, such as `WriteConflict`, which the log contains as `error_type`.
    pub fn error_type(&self) -> &'static str {
        self.into()
    }

    /// Returns whether the same request can succeed later without a change of the data.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Table(error) => error.is_transient(),
            Self::WriteConflict { .. } => true,
            Self::Transition(_)
            | Self::Correction(_)
            | Self::Products(_)
            | Self::FollowUp(_)
            | Self::NoLines
            | Self::TooManyChanges(_)
            | Self::OtherParcel(_)
            | Self::AlreadyRestored(_)
            | Self::NoOrder(_)
            | Self::NoAccount(_)
            | Self::NoProduct(_)
            | Self::Lines(_)
            | Self::NoWarehouse(_)
            | Self::NoWarehouseInRegion { .. }
            | Self::UnknownReference { .. }
            | Self::NoEmployee(_)
            | Self::DeliveryMismatch(_)
            | Self::MovementMismatch(_)
            | Self::Movement(_)
            | Self::DateOutOfRange { .. }
            | Self::BeforeCurrentJob(_)
            | Self::StillHasCustomers { .. }
            | Self::NotRepresentative(_) => false,
        }
    }
}
