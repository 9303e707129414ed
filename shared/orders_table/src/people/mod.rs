//! The items of customers, employees, quarter totals and the company.

pub mod company;
pub mod customers;
pub mod employees;
pub mod quarter_totals;
