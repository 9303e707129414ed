//! Tests of the engine, its fault injection, its stream, and the local servers.

mod faults;
mod servers;
mod stream;
mod table_description;
