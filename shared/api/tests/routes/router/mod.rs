//! The router on a clock that is set: what callers see, request by request.

mod access;
mod first_payment;
mod index;
mod lists;
mod payment_method_setups;
mod payments;
mod refunds;
mod repeated;
mod sign_up;
mod why;
mod wording;
mod world;
