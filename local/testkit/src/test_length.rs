//! The length of the tests that repeat random or periodic events many times.

/// The environment variable that selects the long form of the tests. `.ci/simulations` sets it.
const LONG_TESTS: &str = "DUEDAY_LONG_TESTS";

/// Returns `long` if the environment variable `DUEDAY_LONG_TESTS` is set, otherwise `short`. Both forms of a test check
/// the same; the long form repeats it more often.
pub fn short_or_long<T>(short: T, long: T) -> T {
    if std::env::var_os(LONG_TESTS).is_some() { long } else { short }
}
