//! Reading the whole table, for audits, exports and copies.

pub(crate) mod account_partitions;
pub(crate) mod other_items;
pub(crate) mod scan;
pub(crate) mod sorted_by_account;
