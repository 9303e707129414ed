//! Why a simulation fails.

use emulator::EnrolError;
use store::TableError;
use sweep::SweepError;

/// Why a simulation could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error("the simulation would leave the calendar")]
    Calendar,
    #[error("{account}: {source}")]
    Enrol { account: String, source: EnrolError },
    #[error("a run did not come to its end or does not add up: {report}")]
    Unfinished { report: String },
    #[error(transparent)]
    Sweep(#[from] SweepError),
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("the engine refused: {0}")]
    Engine(String),
}
