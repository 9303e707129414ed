//! What Unicode says of characters that would deceive a reader or hide a number.

use icu_properties::props::{
    BidiControl, BinaryProperty, DefaultIgnorableCodePoint, EnumeratedProperty, GeneralCategory,
};

/// A blank that Unicode counts among the symbols.
const BRAILLE_BLANK: char = '\u{2800}';

/// Whether `c` ends a line or controls a device.
pub(super) fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether `c` changes the direction in which the text around it is shown.
pub(super) fn changes_direction(c: char) -> bool {
    BidiControl::for_char(c)
}

/// Whether `c` leaves no mark: white space, what has no width, and fillers.
pub(super) fn is_invisible(c: char) -> bool {
    c.is_whitespace() || is_ignorable(c) || c == BRAILLE_BLANK
}

/// Whether `c` is shown as nothing at all.
pub(super) fn is_ignorable(c: char) -> bool {
    DefaultIgnorableCodePoint::for_char(c)
}

/// The ASCII digit of the value of `c`, if it is a decimal digit of any script.
pub(super) fn decimal_digit(c: char) -> Option<char> {
    let is_digit = |c: char| GeneralCategory::for_char(c) == GeneralCategory::DecimalNumber;
    if c.is_ascii() || !is_digit(c) {
        return Some(c).filter(char::is_ascii_digit);
    }
    // Unicode keeps the digits of a script together, in the order of their values, from 0 to 9.
    let before = (0..u32::from(c)).rev().take_while(|&code| char::from_u32(code).is_some_and(is_digit)).count();
    char::from_digit(u32::try_from(before % 10).ok()?, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_digit_reads_every_script_and_nothing_else() {
        for digits in
            ["0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９", "𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡", "𝟶𝟷𝟸𝟹𝟺𝟻𝟼𝟽𝟾𝟿"]
        {
            assert_eq!(digits.chars().map(|c| decimal_digit(c).unwrap()).collect::<String>(), "0123456789", "{digits}");
        }
        assert!("aé½Ⅷ四 -".chars().all(|c| decimal_digit(c).is_none()));
        // All of Unicode's: as many of each value.
        let all: Vec<char> = ('\0'..=char::MAX).filter_map(decimal_digit).collect();
        let of = |digit: char| all.iter().filter(|c| **c == digit).count();
        assert!(of('0') >= 60 && ('1'..='9').all(|digit| of(digit) == of('0')), "{}", all.len());
    }

    #[test]
    fn changes_direction_is_of_controls_and_not_of_letters() {
        for c in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain(['\u{200e}', '\u{200f}', '\u{61c}']) {
            assert!(changes_direction(c) && is_invisible(c), "{c:?}");
        }
        assert!("שלום مرحبا abc".chars().all(|c| !changes_direction(c)));
    }
}
