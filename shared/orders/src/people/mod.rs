//! The company and its people: customers, employees, their representatives' totals, and phone numbers.

pub mod company;
pub mod customer;
pub mod phone_number;
pub mod quarter;
