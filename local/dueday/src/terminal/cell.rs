//! Cells of CSV files that people open in spreadsheets.

use std::borrow::Cow;

/// `text`, so that a spreadsheet shows it and does not calculate it: a formula is given a `'` in front ("CSV injection",
/// OWASP).
pub fn for_spreadsheets(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_spreadsheets_marks_formulas_and_leaves_the_rest() {
        for formula in ["=1+1", "+49 30", "-2", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(for_spreadsheets(formula), format!("'{formula}"));
        }
        for text in ["", "12.99", "a=b", "2027-01-31", "'=1"] {
            assert_eq!(for_spreadsheets(text), text);
        }
    }
}
