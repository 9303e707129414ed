//! The routes of customers, employees and the company.

pub mod company;
pub mod customers;
pub mod employee_lists;
pub mod employee_view;
pub mod employees;
