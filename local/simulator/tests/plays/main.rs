//! Tests of the simulator: simulations with and without faults, tests of the order desk, and the payment protocol as a
//! state machine model, all states of which are explored.

mod corruption_simulation;
mod corruptions;
mod fault_simulation;
mod model;
mod order_desk;
mod simulation;
