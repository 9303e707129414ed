//! Tests of the routes: requests to the router on a simulated clock.

mod access;
mod action_log;
mod card_links;
mod core;
mod erasure;
mod export;
mod first_payment;
mod limits;
mod lists;
mod payment_method_setups;
mod payments;
mod prices;
mod refunds;
mod repeated;
mod root_route;
mod sign_up;
mod webhooks;
mod why;
mod wording;
mod world;
