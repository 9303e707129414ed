//! The engine, its faults, its stream, and the servers of one machine.

mod faults;
mod servers;
mod stream;
