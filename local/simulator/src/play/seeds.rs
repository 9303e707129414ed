//! Plays of many seeds, as many at a time as the machine has cores.

use emulator::Config;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use chrono::NaiveDate;

use super::{Played, play};
use crate::SimulationError;
use crate::played_gateway::GatewayKind;
use crate::population::Enrolment;
use crate::random_faults::Odds;

/// What is played, whatever the seed.
#[derive(Clone, Debug)]
pub struct Setting {
    pub config: Config,
    pub enrolments: Vec<Enrolment>,
    pub from: NaiveDate,
    pub months: u32,
    /// The part of all requests that have a fault.
    pub faults: f64,
    pub gateway: GatewayKind,
}

/// Plays `setting` with each seed from `first` on, `count` of them at most, and as long as `goes_on` says so; tells
/// `on_play` of each. It ends with the first play in which something was wrong.
///
/// # Errors
/// [`SimulationError`]: subscriptions that cannot begin.
pub fn play_seeds(
    setting: &Setting,
    (first, count): (u64, u64),
    goes_on: impl Fn() -> bool + Sync,
    on_play: impl Fn(&Played) + Sync,
) -> Result<Vec<Played>, SimulationError> {
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let all = Mutex::new(Vec::new());
    let play_on = || {
        while !is_over.load(Ordering::Relaxed) && goes_on() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return;
            }
            let Setting { config, enrolments, from, months, faults, gateway } = setting.clone();
            let odds = Odds { faults, seed: first.wrapping_add(number) };
            let played = play(config, enrolments, (from, months), (odds, gateway), |_| {});
            if let Ok(played) = &played {
                on_play(played);
            }
            if played.as_ref().map_or(true, |played| !played.wrong.is_empty()) {
                is_over.store(true, Ordering::Relaxed);
            }
            all.lock().unwrap_or_else(PoisonError::into_inner).push(played);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    thread::scope(|scope| {
        for _ in 0..cores.min(usize::try_from(count).unwrap_or(cores)) {
            scope.spawn(play_on);
        }
    });
    let mut all =
        all.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect::<Result<Vec<_>, _>>()?;
    all.sort_by_key(|played| played.seed);
    Ok(all)
}
