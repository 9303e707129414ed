//! Months in seconds: simulations, trouble, the order desk, and the protocol explored as a model.

mod model;
mod order_desk;
mod simulation;
mod trouble;
