//! Tests of the order desk with the real SDK and the embedded engine: the results of its fourteen access patterns are
//! compared with a scan of all items, and its orders are checked after crashes, repetitions and races.

mod audit;
mod crash;
mod events;
mod filling;
mod filling_races;
mod follow_ups;
mod hand_overs;
mod kills;
mod naive_reader;
mod order_life_cycle;
mod paid_orders;
mod pattern_costs;
mod patterns;
mod paused;
mod races;
mod refunds;
mod stale_indexes;
mod stock;
mod world;
