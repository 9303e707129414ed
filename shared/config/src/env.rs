//! The environment, and the functions that read variables from the environment.

use super::EnvVariable;

/// A source of environment variables: the process, or a test.
#[derive(Clone, Copy)]
pub struct Env<'a>(pub &'a (dyn Fn(&str) -> Option<String> + Sync));

/// The error for a missing or invalid environment variable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{name} must be set: {help}")]
    Missing { name: &'static str, help: &'static str },
    #[error("{name} {reason}")]
    Invalid { name: &'static str, reason: String },
}

impl Env<'_> {
    /// Returns the environment of the process.
    pub fn of_process() -> Env<'static> {
        Env(&|name| std::env::var(name).ok())
    }

    /// Returns the value of `variable`. If the variable is not set, returns the value under its former name. Returns
    /// `None` if neither name is set. A blank value counts as not set.
    pub fn get(&self, variable: &EnvVariable) -> Option<String> {
        self.non_blank_value(variable.name).or_else(|| {
            let former = variable.former_name?;
            let value = self.non_blank_value(former)?;
            tracing::warn!("the environment variable {former} was renamed to {}", variable.name);
            Some(value)
        })
    }

    /// Returns the value of the variable with the name `name`, without white space at the start and end; `None` if the
    /// variable is not set or blank.
    fn non_blank_value(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns the value of `variable`, or its default.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] if the variable is not set and has no default.
    pub fn required_text(&self, variable: &EnvVariable) -> Result<String, ConfigError> {
        let text = self.get(variable).or_else(|| variable.default.map(str::to_owned));
        text.ok_or(ConfigError::Missing { name: variable.name, help: variable.help })
    }

    /// Parses the value of `variable`, or its default, with `parse`.
    ///
    /// # Errors
    /// - [`ConfigError::Missing`] if the variable is not set and has no default
    /// - [`ConfigError::Invalid`] if `parse` fails
    pub fn read<T, E: ToString>(
        &self,
        variable: &EnvVariable,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ConfigError> {
        let invalid = |error: E| ConfigError::Invalid { name: variable.name, reason: error.to_string() };
        parse(&self.required_text(variable)?).map_err(invalid)
    }

    /// Parses the value of `variable` with `parse`; returns `None` if the variable is not set.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if `parse` fails.
    pub fn read_optional<T, E: ToString>(
        &self,
        variable: &EnvVariable,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(variable).map(|_| self.read(variable, parse)).transpose()
    }

    /// Returns the value of `variable` as a number in its range; `None` if the variable is not set.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`] if the value is not a number in the range.
    pub fn optional_number(&self, variable: &EnvVariable) -> Result<Option<u32>, ConfigError> {
        self.read_optional(variable, |text| parse_number(variable, text))
    }

    /// Returns the value of `variable`, or its default, as a number in its range.
    ///
    /// # Errors
    /// - [`ConfigError::Missing`] if the variable is not set and has no default
    /// - [`ConfigError::Invalid`] if the value is not a number in the range
    pub fn number(&self, variable: &EnvVariable) -> Result<u32, ConfigError> {
        self.read(variable, |text| parse_number(variable, text))
    }
}

/// Checks that the URL `text` may be displayed: it must not contain a user, a password, a query or a fragment. Returns
/// the URL without slashes at its end.
///
/// # Errors
/// If the URL is not allowed, returns a description of the allowed URLs, with which the caller completes an error text.
pub fn parse_displayable_url(text: &str) -> Result<String, &'static str> {
    let is_plain = |url: &url::Url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    };
    match url::Url::parse(text) {
        Ok(url) if is_plain(&url) => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("a URL such as http://127.0.0.1:7879, without a user, a password or a query"),
    }
}

/// Checks that `text` is the URL of a web page (http or https), and returns the URL.
///
/// # Errors
/// If the URL is not allowed, returns an error text that describes the allowed URLs.
pub fn parse_web_page_url(text: &str) -> Result<String, &'static str> {
    let is_web = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match url::Url::parse(text) {
        Ok(url) if is_web(&url) => Ok(url.to_string()),
        _ => Err("must be a URL such as https://shop.example.com/account"),
    }
}

/// Parses `text` as a whole number in the range of `variable`.
fn parse_number(variable: &EnvVariable, text: &str) -> Result<u32, String> {
    let (least, largest) = variable.range.unwrap_or((0, u32::MAX));
    let number = text.parse().ok().filter(|number| (least..=largest).contains(number));
    number.ok_or_else(|| format!("must be a whole number from {least} to {largest}, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_reads_the_variable_with_the_former_name_if_the_current_name_is_not_set() {
        /// A variable that was renamed from `FORMER` to `PRESENT`.
        const RENAMED: EnvVariable = EnvVariable::new(&[], "PRESENT", "NAME", "a name").former_name("FORMER");
        for (set, expected) in [
            (&[("FORMER", "old")][..], Some("old")),
            (&[("FORMER", "old"), ("PRESENT", "new")], Some("new")),
            (&[("FORMER", "old"), ("PRESENT", " ")], Some("old")),
            (&[], None),
        ] {
            let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Env(&find).get(&RENAMED).as_deref(), expected, "{set:?}");
        }
    }
}
