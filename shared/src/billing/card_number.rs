//! Card numbers: what must never be kept, wherever somebody puts it.

/// What whoever sent one is told.
pub const NO_CARD_NUMBER: &str = "must not hold a card number: send the payment gateway's tokens";

/// Whether a card number stands in `text`: 13 to 19 digits (ISO/IEC 7812) whose check digit is right (Luhn), alone or
/// in groups parted by single spaces or hyphens. Digits that go on from letters or `_` belong to a name, such as
/// `cus_4242424242424242`.
///
/// ```
/// use shared::billing::contains_card_number;
/// assert!(contains_card_number("Visa 4242 4242 4242 4242"));
/// assert!(!contains_card_number("cus_4242424242424242"));
/// ```
pub fn contains_card_number(text: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    let mut before = None;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        before = rest[..start].chars().next_back().or(before);
        let run = &rest[start..];
        let end = end_of_run(run);
        let after = run[end..].chars().next();
        if !before.is_some_and(is_name) && !after.is_some_and(is_name) && has_card_number(&run[..end]) {
            return true;
        }
        before = run[..end].chars().next_back();
        rest = &run[end..];
    }
    false
}

/// Where the digits at the start of `run`, and the groups that follow them, end.
fn end_of_run(run: &str) -> usize {
    let bytes = run.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is_separator = |at: usize| matches!(bytes.get(at), Some(b' ' | b'-'));
    let goes_on = |at: usize| is_digit(at) || is_separator(at) && is_digit(at.saturating_add(1));
    (0..bytes.len()).find(|&at| !goes_on(at)).unwrap_or(bytes.len())
}

/// Whether any groups of `run` that stand next to one another make a card number.
fn has_card_number(run: &str) -> bool {
    let groups: Vec<&str> = run.split([' ', '-']).collect();
    (0..groups.len()).any(|first| {
        let mut digits = String::new();
        groups[first..].iter().any(|group| {
            digits.push_str(group);
            (13..=19).contains(&digits.len()) && passes_luhn(&digits)
        })
    })
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
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_number_is_found_wherever_it_stands() {
        for text in [
            "4242424242424242",
            "4242 4242 4242 4242",
            "4242-4242-4242-4242",
            "pay with 378282246310005, please",
            "6011000990139424.",
            "order 12 4242 4242 4242 4242 03",
            "4222222222222",
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
            "42424242424242424242",
            "5019717010103742123450",
            "cus_4242424242424242",
            "pm4242424242424242",
            "4242424242424242x",
            "4242  4242  4242  4242",
            "2026-03-31",
            "+49 30 1234567",
            "Gold plan 12 months",
            "é4242424242424242",
        ] {
            assert!(!contains_card_number(text), "{text}");
        }
    }
}
