//! Card numbers: what must never be kept, wherever somebody puts it.

use super::characters::{decimal_digit, is_ignorable};

/// What whoever sent one is told.
pub const NO_CARD_NUMBER: &str = "must not hold a card number: send the payment gateway's tokens";

/// The digits a card number has (ISO/IEC 7812-1).
const DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// Whether a card number stands in `text`: 13 to 19 digits, not all of them zero, whose check digit is right (Luhn), in one
/// group or in several that are parted by single spaces or hyphens. Digits of every script count, and what is shown as nothing
/// does not part them.
///
/// ```
/// use billing::contains_card_number;
/// assert!(contains_card_number("Visa 4242 4242 4242 4242, 12/30"));
/// assert!(!contains_card_number("order 4242424242424241"));
/// ```
pub fn contains_card_number(text: &str) -> bool {
    finds_card_number(text, false)
}

/// Whether a card number stands in `token`. Digits that go on from letters or `_` belong to the token's name, such as
/// `cus_4242424242424242`.
pub(super) fn token_contains_card_number(token: &str) -> bool {
    finds_card_number(token, true)
}

/// A group of digits in a text.
struct Group<'a> {
    digits: &'a str,
    /// What stands before it is a single space or hyphen after another group.
    goes_on: bool,
    /// It goes on from a letter or `_`, or into one.
    is_name: bool,
}

fn finds_card_number(text: &str, has_names: bool) -> bool {
    let plain: String = text.chars().filter(|c| !is_ignorable(*c)).map(|c| decimal_digit(c).unwrap_or(c)).collect();
    let groups = groups(&plain);
    (0..groups.len()).any(|first| {
        let mut digits = String::new();
        for (place, group) in groups.iter().enumerate().skip(first) {
            let is_apart = place > first && !group.goes_on;
            digits.push_str(group.digits);
            if is_apart || digits.len() > *DIGITS.end() || (has_names && group.is_name) {
                return false;
            }
            if DIGITS.contains(&digits.len()) && passes_luhn(&digits) {
                return true;
            }
        }
        false
    })
}

fn groups(text: &str) -> Vec<Group<'_>> {
    let is_name = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let mut groups = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let gap = &rest[..start];
        let run = &rest[start..];
        let end = run.find(|c: char| !c.is_ascii_digit()).unwrap_or(run.len());
        let mut apart = gap.chars();
        let goes_on = !groups.is_empty() && apart.next().is_some_and(is_separator) && apart.next().is_none();
        let is_name = is_name(gap.chars().next_back()) || is_name(run[end..].chars().next());
        groups.push(Group { digits: &run[..end], goes_on, is_name });
        rest = &run[end..];
    }
    groups
}

/// The check of ISO/IEC 7812-1, annex B: every second digit from the right counts twice, the digits of all are summed.
fn passes_luhn(digits: &str) -> bool {
    let sum: u32 = digits
        .bytes()
        .rev()
        .map(|digit| u32::from(digit.saturating_sub(b'0')))
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit) {
            (1, 5..) => digit.saturating_mul(2).saturating_sub(9),
            (1, _) => digit.saturating_mul(2),
            _ => digit,
        })
        .fold(0, u32::saturating_add);
    sum.is_multiple_of(10) && sum > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_card_number_finds_one_wherever_it_stands() {
        for text in [
            "4242424242424242",
            "4242 4242 4242 4242",
            "4242-4242-4242-4242",
            "4242\u{a0}4242\u{2011}4242 4242",
            "pay with 378282246310005, please",
            "6011000990139424.",
            "order 12 4242 4242 4242 4242 03",
            "Mr Smith 4242424242424242 3rd floor 2x",
            "Plan_2 4242 4242 4242 4242",
            "4222222222222",
            "Visa4242424242424242",
            "é4242424242424242x",
            "４２４２　４２４２　４２４２　４２４２",
            "٤٢٤٢-٤٢٤٢-٤٢٤٢-٤٢٤٢",
            "४२४२४२४२४२४२४२४२",
            "𝟒𝟚𝟦𝟮 4242 ４２４２ ٤٢٤٢",
            "4242\u{200b}4242\u{2060}4242\u{ad}4242",
        ] {
            assert!(contains_card_number(text), "{text}");
        }
        assert!(
            token_contains_card_number("4242-4242-4242-4242") && token_contains_card_number("cus-4242424242424242")
        );
    }

    #[test]
    fn contains_card_number_passes_other_numbers() {
        for text in [
            "",
            "4242424242424241",
            "424242424242",
            "0000 0000 0000 0000",
            "42424242424242424242",
            "5019717010103742123450",
            "4242  4242  4242  4242",
            "2026-03-31",
            "+49 30 1234567",
            "Gold plan 12 months",
        ] {
            assert!(!contains_card_number(text), "{text}");
        }
        for token in ["cus_4242424242424242", "pm4242424242424242", "4242424242424242x"] {
            assert!(!token_contains_card_number(token), "{token}");
        }
    }

    #[test]
    fn contains_card_number_takes_a_time_that_grows_with_the_text() {
        // Each group is looked at from at most nineteen places; a search that tried all pairs would take minutes here.
        assert!(!contains_card_number(&"1 ".repeat(200_000)));
    }
}
