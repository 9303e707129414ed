//! The length of the tests with many repetitions.

/// The environment variable that selects the long form of the tests. `.ci/simulations` sets it.
const LONG_TESTS: &str = "DUEDAY_LONG_TESTS";

/// Returns `long` if the environment variable `DUEDAY_LONG_TESTS` is set, otherwise `short`. Both forms of a test make
/// the same checks; the short form has fewer repetitions, seeds or configurations.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if std::env::var_os(LONG_TESTS).is_some() { long } else { short }
}
