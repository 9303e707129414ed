//! The names of countries in the customer's language, from the Unicode CLDR.

use icu_experimental::displaynames::multi::RegionDisplayNames;
use icu_locale_core::subtags::Region;

use super::Language;

impl Language {
    /// Returns the name of the country with the ISO 3166-1 code `code`, such as `de`, in this language. Returns `None` if
    /// no country has this code.
    pub fn country_name(&self, code: &str) -> Option<String> {
        // `Region` also accepts the numbers of continents, such as 150 for Europe.
        let region = Region::try_from_str(code).ok().filter(|region| region.is_alphabetic())?;
        let names = RegionDisplayNames::try_new((&self.locale).into(), Default::default()).ok()?;
        names.of(region).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_a_country_is_in_the_customers_language() {
        for (locale, code, expected) in [
            ("en", "de", Some("Germany")),
            ("en-GB", "DE", Some("Germany")),
            ("de-AT", "de", Some("Deutschland")),
            ("es-MX", "de", Some("Alemania")),
            ("fr", "de", Some("Allemagne")),
            ("ko", "de", Some("독일")),
            ("zh", "de", Some("德国")),
            ("zh-Hant", "de", Some("德國")),
            ("zh-TW", "de", Some("德國")),
            // The language is not supported, so mails and packing slips are in English.
            ("nl", "de", Some("Germany")),
            ("en", "gb", Some("United Kingdom")),
            // `uk` is not the code of a country, 150 is a continent, and the others are ids of a merchant.
            ("en", "uk", None),
            ("en", "150", None),
            ("en", "germany", None),
            ("en", "d", None),
            ("en", "", None),
        ] {
            let language = Language::for_locale(&locale.parse().unwrap());
            assert_eq!(language.country_name(code).as_deref(), expected, "{locale} {code}");
        }
    }
}
