//! Tests of the routes of the order desk: access rights, problem responses, lists and repeated requests.

mod access;
mod lifecycle;
mod lists;
mod test_desk;
