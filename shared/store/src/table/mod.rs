//! The table with its two indexes, and the copy of the policy that each process keeps.

pub(crate) mod batch;
pub(crate) mod payments_table;
pub(crate) mod policy_copy;
