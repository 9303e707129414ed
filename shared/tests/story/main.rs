//! Stories across modules: the rules, the table on the real SDK and the real engine, and the batches.

mod ahead;
mod audited;
mod believed;
mod by_hand;
mod calendar;
mod cancellations;
mod catch_up;
mod changes;
mod crash;
mod explained;
mod gateway_account;
mod gateways;
mod guards;
mod history;
mod interleaved;
mod lifecycle;
mod open_lane;
mod pages;
mod pauses;
mod payments;
mod proof;
mod reminders;
mod stale;
mod table;
mod why;
mod world;
