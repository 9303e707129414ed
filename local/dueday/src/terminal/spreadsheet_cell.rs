//! Cells of CSV files that are opened in a spreadsheet program.

use std::borrow::Cow;

/// Returns `text` with a `'` in front if a spreadsheet program would evaluate the text as a formula ("CSV injection",
/// OWASP).
pub fn escape_formula(text: &str) -> Cow<'_, str> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_formula_adds_a_quote_to_formulas_only() {
        for formula in ["=1+1", "+49 30", "-2", "@SUM(A1)", "\t=1", "\r=1"] {
            assert_eq!(escape_formula(formula), format!("'{formula}"));
        }
        for text in ["", "12.99", "a=b", "2027-01-31", "'=1"] {
            assert_eq!(escape_formula(text), text);
        }
    }
}
