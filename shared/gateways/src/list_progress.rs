//! Detects a list that never ends: a gateway that always returns another list page, but no further objects.

use std::collections::HashSet;

use super::{GatewayError, ListPage};

/// The largest number of consecutive empty list pages. A gateway may return an empty list page although another list
/// page follows, for example if it selects the objects after it has read them, but not for ever.
const MAX_EMPTY_PAGES: u32 = 1_000;

/// The progress through one list, from list page to list page. Without it, a list that repeats a list page, or that
/// always promises another list page, would be read for ever.
#[derive(Clone, Debug, Default)]
pub struct ListProgress {
    /// The positions after which the list pages began that were already announced.
    positions: HashSet<String>,
    /// The number of consecutive empty list pages.
    empty_pages: u32,
}

impl ListProgress {
    /// Records that `page` was read. Call this method for each list page, before the next list page is requested.
    ///
    /// # Errors
    /// [`GatewayError::Unknown`] if the list makes no progress: the next list page begins at a position of an earlier
    /// list page, or too many empty list pages followed each other.
    pub fn record<T>(&mut self, page: &ListPage<T>) -> Result<(), GatewayError> {
        let no_progress =
            |how: String| Err(GatewayError::Unknown { reason: format!("a list makes no progress: {how}") });
        self.empty_pages = if page.items.is_empty() { self.empty_pages.saturating_add(1) } else { 0 };
        match &page.next {
            Some(next) if !self.positions.insert(next.clone()) => {
                no_progress(format!("two list pages are followed by the list page after {next}"))
            }
            Some(_) if self.empty_pages >= MAX_EMPTY_PAGES => {
                no_progress(format!("{MAX_EMPTY_PAGES} list pages in a row were empty"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a list page with `items` objects, which is followed by the list page after `next`.
    fn new_list_page(items: usize, next: Option<&str>) -> ListPage<u32> {
        ListPage::new(vec![1; items], next.map(str::to_owned))
    }

    #[test]
    fn list_that_repeats_a_position_makes_no_progress() {
        // Each case contains the positions after which the next list pages begin, and whether the last of them is
        // refused.
        for (positions, is_refused) in [
            (vec![Some("a"), Some("b"), Some("c"), None], false),
            (vec![Some("a"), Some("a")], true),
            (vec![Some("a"), Some("b"), Some("a")], true),
        ] {
            let mut progress = ListProgress::default();
            let results: Vec<bool> =
                positions.iter().map(|next| progress.record(&new_list_page(1, *next)).is_err()).collect();
            let expected: Vec<bool> = (1..=positions.len()).map(|n| is_refused && n == positions.len()).collect();
            assert_eq!(results, expected, "{positions:?}");
        }
    }

    #[test]
    fn list_of_empty_pages_makes_no_progress_although_each_page_has_a_new_position() {
        let mut progress = ListProgress::default();
        let mut is_refused =
            |items: usize, n: u32| progress.record(&new_list_page(items, Some(&n.to_string()))).is_err();
        assert!((1..MAX_EMPTY_PAGES).all(|n| !is_refused(0, n)));
        assert!(!is_refused(1, 100_000), "an object is progress");
        assert!((1..MAX_EMPTY_PAGES).all(|n| !is_refused(0, n + 200_000)));
        assert!(is_refused(0, 300_000));
    }
}
