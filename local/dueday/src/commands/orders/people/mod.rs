//! The commands for employees, customers and the company.

pub mod customers;
pub mod employees;
pub mod places;
