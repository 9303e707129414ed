//! Tests of the function's audit of the order desk: in one invocation, and in many invocations that have little time.
//! Both kinds of audit find the same damage.

mod one_invocation;
mod short_invocations;
mod world;
