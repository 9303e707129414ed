//! Tests of the routes of customers, employees and the company.

mod address_fields;
mod company;
mod employees;
