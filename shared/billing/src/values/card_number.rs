//! Detection of card numbers. A card number must never be stored, in whatever field a caller sends it.

use std::ops::RangeInclusive;

use crate::values::character_checks::{is_ignorable_character, to_ascii_digit};

/// The error text for a value that contains a card number.
pub const NO_CARD_NUMBER: &str = "must not contain a card number; send the tokens of the payment gateway instead";

/// The numbers of digits that a card number can have (ISO/IEC 7812-1).
const CARD_NUMBER_DIGITS: RangeInclusive<usize> = 13..=19;

/// The first four digits of the card numbers of each card network, and the numbers of digits of these card numbers. A
/// number that begins in another way is not the number of a payment card.
const NETWORKS: [(RangeInclusive<u16>, RangeInclusive<usize>); 15] = [
    (1000..=1999, 15..=15), // UATP
    (2200..=2204, 16..=19), // Mir
    (2221..=2720, 16..=16), // Mastercard
    (3000..=3059, 14..=19), // Diners Club
    (3095..=3095, 14..=19), // Diners Club
    (3400..=3499, 15..=15), // American Express
    (3528..=3589, 16..=19), // JCB
    (3600..=3699, 14..=19), // Diners Club
    (3700..=3799, 15..=15), // American Express
    (3800..=3999, 14..=19), // Diners Club
    (4000..=4999, 13..=19), // Visa
    (5000..=5999, 13..=19), // Mastercard, Maestro, Verve
    (6000..=6999, 13..=19), // Discover, Maestro, RuPay, UnionPay
    (8100..=8299, 16..=19), // RuPay, UnionPay
    (9792..=9792, 16..=16), // Troy
];

/// The longest gap between two groups of digits of one card number.
const MAX_GAP_CHARS: usize = 3;
/// The fewest digits of a group that is separated by something other than one space or hyphen. Dates have shorter groups.
const MIN_GROUP_DIGITS: usize = 3;

/// Returns whether `text` contains a card number: 13 to 19 digits that begin as the numbers of a card network do, and
/// have a correct check digit (Luhn). The digits may be in groups, which are separated by up to three spaces, hyphens,
/// dots, slashes, commas or underscores. The digits of every script count. Invisible characters between digits are ignored.
///
/// ```
/// use billing::contains_card_number;
/// assert!(contains_card_number("Visa 4242 4242 4242 4242, 12/30"));
/// assert!(contains_card_number("4242.4242.4242.4242"));
/// assert!(!contains_card_number("order 4242424242424241"));
/// ```
pub fn contains_card_number(text: &str) -> bool {
    let plain: String =
        text.chars().filter(|c| !is_ignorable_character(*c)).map(|c| to_ascii_digit(c).unwrap_or(c)).collect();
    let groups = split_digit_groups(&plain);
    (0..groups.len()).any(|first| {
        let (mut digits, mut previous_digits) = (String::new(), 0);
        for (place, group) in groups.iter().enumerate().skip(first) {
            let is_apart = place > first
                && match group.gap {
                    DigitGap::Apart => true,
                    DigitGap::Wide => group.digits.len().min(previous_digits) < MIN_GROUP_DIGITS,
                    DigitGap::Narrow => false,
                };
            previous_digits = group.digits.len();
            digits.push_str(group.digits);
            if is_apart || digits.len() > *CARD_NUMBER_DIGITS.end() {
                return false;
            }
            if is_card_number(&digits) {
                return true;
            }
        }
        false
    })
}

/// Returns whether `digits` are a card number.
fn is_card_number(digits: &str) -> bool {
    let begins = digits.get(..4).and_then(|first| first.parse().ok());
    let fits = |first: u16| {
        NETWORKS.iter().any(|(begins, lengths)| begins.contains(&first) && lengths.contains(&digits.len()))
    };
    CARD_NUMBER_DIGITS.contains(&digits.len()) && begins.is_some_and(fits) && passes_luhn_check(digits)
}

/// A group of adjacent digits in a text.
struct DigitGroup<'a> {
    digits: &'a str,
    /// What separates this group from the previous group.
    gap: DigitGap,
}

/// What separates two groups of digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DigitGap {
    /// One space or hyphen.
    Narrow,
    /// Up to [`MAX_GAP_CHARS`] separators.
    Wide,
    /// Another text: the groups are different numbers.
    Apart,
}

impl DigitGap {
    /// Returns the kind of the gap `text`.
    fn of(text: &str) -> Self {
        let is_narrow = |c: char| c.is_whitespace() || matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}');
        let is_separator = |c: char| is_narrow(c) || matches!(c, '.' | ',' | '/' | '_' | '\u{b7}' | '\u{2022}');
        match text.chars().count() {
            1 if text.chars().all(is_narrow) => Self::Narrow,
            1..=MAX_GAP_CHARS if text.chars().all(is_separator) => Self::Wide,
            _ => Self::Apart,
        }
    }
}

/// Splits the ASCII digits of `text` into groups of adjacent digits.
fn split_digit_groups(text: &str) -> Vec<DigitGroup<'_>> {
    let mut groups = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (gap, run) = rest.split_at(start);
        let end = run.find(|c: char| !c.is_ascii_digit()).unwrap_or(run.len());
        groups.push(DigitGroup { digits: &run[..end], gap: DigitGap::of(gap) });
        rest = &run[end..];
    }
    groups
}

/// Returns whether the check digit is correct (Luhn, ISO/IEC 7812-1, annex B): every second digit from the right is
/// doubled, and the sum of the resulting digits is a multiple of ten.
fn passes_luhn_check(digits: &str) -> bool {
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
            "4242.4242.4242.4242",
            "4242  4242  4242  4242",
            "4242 - 4242 - 4242 - 4242",
            "4242/4242/4242/4242",
            "4242_4242_4242_4242",
            "https://example.com/hook?card=4242424242424242",
        ] {
            assert!(contains_card_number(text), "{text}");
        }
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
            "4242    4242    4242    4242",
            "4242:4242:4242:4242",
            "2026-03-31",
            "30/04/2026 - 31/05/2026",
            "+49 30 1234567",
            "Gold plan 12 months",
            // A token of a gateway and a phone number with a correct check digit, but not of a card network.
            "8313147988756817",
            "+49 (0)30 12345670000 42",
        ] {
            assert!(!contains_card_number(text), "{text}");
        }
    }

    #[test]
    fn test_numbers_of_each_card_network_are_found() {
        for number in [
            "4000056655665556",
            "2223003122003222",
            "5200828282828210",
            "378282246310005",
            "6011111111111117",
            "3056930009020004",
            "36227206271667",
            "3566002020360505",
            "6200000000000005",
            "6205500000000000004",
            "2200000000000004",
            "6304000000000000",
        ] {
            assert!(contains_card_number(number), "{number}");
        }
    }

    #[test]
    fn search_for_card_numbers_takes_linear_time() {
        // The search combines each group of digits with at most nineteen of the groups after it. If the search combined
        // each group with all later groups, this test would take minutes.
        assert!(!contains_card_number(&"1 ".repeat(200_000)));
    }
}
