//! Tests of the simulator: simulations with and without faults, simulations with corrupted items, and tests of the order
//! desk. The models for NoSQL Workbench are generated here, because their sample data are simulated.

mod corruption_simulation;
mod corruptions;
mod fault_simulation;
mod order_desk;
mod simulation;
mod workbench;

use mimalloc::MiMalloc;

// The allocator mimalloc is faster than the default allocator: the simulations allocate in two threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
