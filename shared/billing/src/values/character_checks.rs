//! Checks of characters by their Unicode properties: characters that could deceive a reader of a text, and digits of
//! other scripts, which could hide a card number.

use icu_properties::props::{
    BidiControl, BinaryProperty, DefaultIgnorableCodePoint, EnumeratedProperty, GeneralCategory,
};

/// The Braille blank: an invisible character that Unicode classifies as a symbol.
const BRAILLE_BLANK: char = '\u{2800}';

/// Returns whether `c` is a control character or a line break.
pub(crate) fn is_control_character(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether `c` changes the writing direction of the text around it.
pub(crate) fn changes_text_direction(c: char) -> bool {
    BidiControl::for_char(c)
}

/// Returns whether `c` is displayed without a visible mark: white space, characters without width, and fillers.
pub(crate) fn is_invisible_character(c: char) -> bool {
    c.is_whitespace() || is_ignorable_character(c) || c == BRAILLE_BLANK
}

/// Returns whether `c` is not displayed at all, not even as space.
pub(crate) fn is_ignorable_character(c: char) -> bool {
    DefaultIgnorableCodePoint::for_char(c)
}

/// Returns the ASCII digit with the same value as `c`; `None` if `c` is not a decimal digit of any script.
pub(crate) fn to_ascii_digit(c: char) -> Option<char> {
    let is_digit = |c: char| GeneralCategory::for_char(c) == GeneralCategory::DecimalNumber;
    if c.is_ascii() || !is_digit(c) {
        return Some(c).filter(char::is_ascii_digit);
    }
    // In Unicode, the ten digits of a script are adjacent and in the order 0 to 9.
    let before = (0..u32::from(c)).rev().take_while(|&code| char::from_u32(code).is_some_and(is_digit)).count();
    char::from_digit(u32::try_from(before % 10).ok()?, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_digit_recognizes_exactly_the_digits_of_all_scripts() {
        for digits in
            ["0123456789", "٠١٢٣٤٥٦٧٨٩", "۰۱۲۳۴۵۶۷۸۹", "०१२३४५६७८९", "０１２３４５６７８９", "𝟘𝟙𝟚𝟛𝟜𝟝𝟞𝟟𝟠𝟡", "𝟶𝟷𝟸𝟹𝟺𝟻𝟼𝟽𝟾𝟿"]
        {
            assert_eq!(
                digits.chars().map(|c| to_ascii_digit(c).unwrap()).collect::<String>(),
                "0123456789",
                "{digits}"
            );
        }
        assert!("aé½Ⅷ四 -".chars().all(|c| to_ascii_digit(c).is_none()));
        // In all of Unicode, each digit from 0 to 9 occurs equally often, because every script has all ten.
        let all: Vec<char> = ('\0'..=char::MAX).filter_map(to_ascii_digit).collect();
        let number_of = |digit: char| all.iter().filter(|c| **c == digit).count();
        let zeros = number_of('0');
        assert!(zeros >= 60 && ('1'..='9').all(|digit| number_of(digit) == zeros), "{}", all.len());
    }

    #[test]
    fn changes_direction_is_true_for_control_characters_and_false_for_letters() {
        for c in ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}').chain(['\u{200e}', '\u{200f}', '\u{61c}']) {
            assert!(changes_text_direction(c) && is_invisible_character(c), "{c:?}");
        }
        assert!("שלום مرحبا abc".chars().all(|c| !changes_text_direction(c)));
    }
}
