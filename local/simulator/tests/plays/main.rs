//! Tests of the simulator: simulations with and without faults, simulations with corrupted items, tests of the order
//! desk, and an exploration of all states of a model of the payment protocol.

mod corruption_simulation;
mod corruptions;
mod fault_simulation;
mod model;
mod order_desk;
mod simulation;

use mimalloc::MiMalloc;

// The allocator mimalloc is faster than the default allocator: the model and the simulations allocate in two threads.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;
