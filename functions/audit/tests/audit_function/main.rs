//! Tests of the audit function: its binary, its audit of the order desk, and its alarms in a simulated year.

mod alarms;
mod function_binary;
mod orders_audit;
