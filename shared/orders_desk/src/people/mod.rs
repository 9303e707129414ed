//! What the order desk does for customers and employees.

pub mod customers;
pub mod employees;
pub mod references;
