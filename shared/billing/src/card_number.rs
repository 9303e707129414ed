//! Detection of card numbers. A card number must never be stored, in whatever field a caller sends it.

use super::character_checks::{decimal_digit, is_ignorable};

/// The error text for a value that contains a card number.
pub const NO_CARD_NUMBER: &str = "must not contain a card number; send the tokens of the payment gateway instead";

/// The allowed numbers of digits of a card number (ISO/IEC 7812-1).
const CARD_NUMBER_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;

/// Returns whether `text` contains a card number: 13 to 19 digits with a correct check digit (Luhn), not all zero, in
/// one group or in several groups separated by single spaces or hyphens. The digits of every script count. Invisible
/// characters between digits are ignored.
///
/// ```
/// use billing::contains_card_number;
/// assert!(contains_card_number("Visa 4242 4242 4242 4242, 12/30"));
/// assert!(!contains_card_number("order 4242424242424241"));
/// ```
pub fn contains_card_number(text: &str) -> bool {
    finds_card_number(text, false)
}

/// Returns whether the gateway token `token` contains a card number. Digits next to a letter or `_` are ignored,
/// because these digits are a part of the token itself, as in `cus_4242424242424242`.
pub(super) fn token_contains_card_number(token: &str) -> bool {
    finds_card_number(token, true)
}

/// A group of adjacent digits in a text.
struct DigitGroup<'a> {
    digits: &'a str,
    /// Whether exactly one space or hyphen separates this group from the previous group.
    continues_previous: bool,
    /// Whether a letter or `_` is directly before or after the digits.
    touches_letter: bool,
}

/// Returns whether `text` contains a card number. If `skips_names` is true, digits next to a letter or `_` are ignored,
/// because they are a part of a name.
fn finds_card_number(text: &str, skips_names: bool) -> bool {
    let plain: String = text.chars().filter(|c| !is_ignorable(*c)).map(|c| decimal_digit(c).unwrap_or(c)).collect();
    let groups = split_digit_groups(&plain);
    (0..groups.len()).any(|first| {
        let mut digits = String::new();
        for (place, group) in groups.iter().enumerate().skip(first) {
            let is_apart = place > first && !group.continues_previous;
            digits.push_str(group.digits);
            if is_apart || digits.len() > *CARD_NUMBER_DIGITS.end() || (skips_names && group.touches_letter) {
                return false;
            }
            if CARD_NUMBER_DIGITS.contains(&digits.len()) && passes_luhn(&digits) {
                return true;
            }
        }
        false
    })
}

/// Splits the ASCII digits of `text` into groups of adjacent digits.
fn split_digit_groups(text: &str) -> Vec<DigitGroup<'_>> {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
    let mut groups = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let gap = &rest[..start];
        let run = &rest[start..];
        let end = run.find(|c: char| !c.is_ascii_digit()).unwrap_or(run.len());
        let mut between = gap.chars();
        let continues_previous =
            !groups.is_empty() && between.next().is_some_and(is_separator) && between.next().is_none();
        let touches_letter = is_letter(gap.chars().next_back()) || is_letter(run[end..].chars().next());
        groups.push(DigitGroup { digits: &run[..end], continues_previous, touches_letter });
        rest = &run[end..];
    }
    groups
}

/// Returns whether the check digit is correct (Luhn, ISO/IEC 7812-1, annex B): every second digit from the right is
/// doubled, and the sum of the resulting digits is a multiple of ten.
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
    fn card_number_is_found_in_every_place_and_notation() {
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
    fn other_numbers_are_not_card_numbers() {
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
    fn search_for_card_numbers_takes_linear_time() {
        // The search combines each group of digits with at most nineteen of the groups after it. If the search combined
        // each group with all later groups, this test would take minutes.
        assert!(!contains_card_number(&"1 ".repeat(200_000)));
    }
}
