//! The environment, and how one variable of it is read.

use super::Variable;

/// Environment variables, wherever they come from.
#[derive(Clone, Copy)]
pub struct Env<'a>(pub &'a (dyn Fn(&str) -> Option<String> + Sync));

/// A variable that is missing or wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{name} must be set: {help}")]
    Missing { name: &'static str, help: &'static str },
    #[error("{name} {reason}")]
    Invalid { name: &'static str, reason: String },
}

impl Env<'_> {
    /// The process's own environment.
    pub fn process() -> Env<'static> {
        Env(&|name| std::env::var(name).ok())
    }

    /// What `variable` is set to; blank is not set.
    pub fn given(&self, variable: &Variable) -> Option<String> {
        self.named(variable.name).or_else(|| {
            let former = variable.formerly?;
            let value = self.named(former)?;
            tracing::warn!("the environment variable {former} is called {} now", variable.name);
            Some(value)
        })
    }

    fn named(&self, name: &str) -> Option<String> {
        (self.0)(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// The text of `variable`, or its default.
    ///
    /// # Errors
    /// [`ConfigError::Missing`], which says what it is.
    pub fn text(&self, variable: &Variable) -> Result<String, ConfigError> {
        let text = self.given(variable).or_else(|| variable.default.map(str::to_owned));
        text.ok_or(ConfigError::Missing { name: variable.name, help: variable.help })
    }

    /// `variable`, or its default, as `read` reads it.
    ///
    /// # Errors
    /// [`ConfigError`], with what `read` says.
    pub fn read<T, E: ToString>(
        &self,
        variable: &Variable,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<T, ConfigError> {
        let invalid = |error: E| ConfigError::Invalid { name: variable.name, reason: error.to_string() };
        read(&self.text(variable)?).map_err(invalid)
    }

    /// `variable` as `read` reads it, if it is set.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`], with what `read` says.
    pub fn read_given<T, E: ToString>(
        &self,
        variable: &Variable,
        read: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, ConfigError> {
        self.given(variable).map(|_| self.read(variable, read)).transpose()
    }

    /// `variable` as a number of its range, if it is set.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn number_given(&self, variable: &Variable) -> Result<Option<u32>, ConfigError> {
        self.read_given(variable, |text| number(variable, text))
    }

    /// `variable` as a number of its range.
    ///
    /// # Errors
    /// [`ConfigError::Invalid`].
    pub fn number(&self, variable: &Variable) -> Result<u32, ConfigError> {
        self.read(variable, |text| number(variable, text))
    }
}

/// A URL that is shown to whoever asks, and carries no user and password.
///
/// # Errors
/// What is allowed.
pub fn plain_url(text: &str) -> Result<String, &'static str> {
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
        _ => Err("a URL like http://127.0.0.1:7879, without a user, a password or a query"),
    }
}

/// A page that customers open in a browser.
///
/// # Errors
/// What is allowed.
pub fn web_address(text: &str) -> Result<String, &'static str> {
    let is_web = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    match url::Url::parse(text) {
        Ok(url) if is_web(&url) => Ok(url.to_string()),
        _ => Err("must be a URL like https://shop.example.com/account"),
    }
}

fn number(variable: &Variable, text: &str) -> Result<u32, String> {
    let (least, largest) = variable.range.unwrap_or((0, u32::MAX));
    let number = text.parse().ok().filter(|number| (least..=largest).contains(number));
    number.ok_or_else(|| format!("must be a whole number from {least} to {largest}, not {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_reads_a_former_name_where_the_present_one_is_not_set() {
        const RENAMED: Variable = Variable::new(&[], "PRESENT", "NAME", "a name").formerly("FORMER");
        for (set, expected) in [
            (&[("FORMER", "old")][..], Some("old")),
            (&[("FORMER", "old"), ("PRESENT", "new")], Some("new")),
            (&[("FORMER", "old"), ("PRESENT", " ")], Some("old")),
            (&[], None),
        ] {
            let find = |name: &str| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Env(&find).given(&RENAMED).as_deref(), expected, "{set:?}");
        }
    }
}
