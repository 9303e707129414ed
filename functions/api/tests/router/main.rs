//! The router on a clock that is set: what callers see, request by request.

mod access;
mod lists;
mod payments;
mod repeated;
mod why;
mod world;
