//! Tests of the order desk (the part of Dueday that places an order of products for each payment) with the real AWS SDK
//! and the embedded DynamoDB engine. The tests compare the results of its fourteen access patterns with a scan of all
//! items, and check the orders after crashes, repeated events and concurrent changes.

mod audit;
mod crash;
mod events;
mod filling;
mod filling_races;
mod follow_ups;
mod killed_process;
mod naive_reader;
mod order_life_cycle;
mod paid_orders;
mod pattern_costs;
mod patterns;
mod races;
mod refunds;
mod stock;
mod suspended_operation;
mod world;
