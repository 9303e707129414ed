//! The declarations of environment variables. Each variable is declared once, in the crate that reads the variable. The
//! Lambda functions read the variables, the command `dueday` derives its flags from the declarations, and a test
//! compares `template.yaml` with the declarations.

/// The declaration of an environment variable.
#[derive(Clone, Copy, Debug)]
pub struct EnvVariable {
    pub name: &'static str,
    /// The Lambda functions that read the variable.
    pub read_by: &'static [ReadingFunction],
    /// The placeholder of the value in the command help, such as `DAYS`.
    pub value: &'static str,
    /// The description of the variable in the command help, and in the error text if the variable is missing.
    pub help: &'static str,
    /// The smallest and the largest allowed number; `None` if every value is allowed.
    pub range: Option<(u32, u32)>,
    pub default: Option<&'static str>,
    /// The former name of the variable. A value under the former name is still read, with a warning in the log.
    pub former_name: Option<&'static str>,
    /// The flag of the command `dueday` that sets the variable; `None` if there is no such flag.
    pub flag: Option<CommandFlag>,
}

/// A Lambda function that reads a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadingFunction {
    /// All functions read the variable.
    Every,
    Api,
    Reminders,
    Payments,
    Events,
    Deliver,
    Orders,
    OrdersApi,
    Notices,
    Webhooks,
    Sandbox,
    Reconcile,
    Erase,
    Audit,
}

/// A flag of the command `dueday`, without its dashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommandFlag {
    /// A flag that `--help` and `--help-all` show.
    Common(&'static str),
    /// A flag that only `--help-all` shows.
    Rare(&'static str),
}

impl EnvVariable {
    /// Creates the declaration of a variable without a range, a default, a former name and a flag.
    pub const fn new(
        read_by: &'static [ReadingFunction],
        name: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, read_by, value, help, range: None, default: None, former_name: None, flag: None }
    }

    /// Adds a flag that `--help` and `--help-all` show.
    pub const fn common_flag(self, flag: &'static str) -> Self {
        Self { flag: Some(CommandFlag::Common(flag)), ..self }
    }

    /// Adds a flag that only `--help-all` shows.
    pub const fn rare_flag(self, flag: &'static str) -> Self {
        Self { flag: Some(CommandFlag::Rare(flag)), ..self }
    }

    /// Sets the default value.
    pub const fn default(self, text: &'static str) -> Self {
        Self { default: Some(text), ..self }
    }

    /// Sets the former name of the variable. A value under this name is still read, with a warning in the log.
    pub const fn former_name(self, name: &'static str) -> Self {
        Self { former_name: Some(name), ..self }
    }

    /// Restricts the value to numbers from `least` to `largest`.
    pub const fn in_range(self, least: u32, largest: u32) -> Self {
        Self { range: Some((least, largest)), ..self }
    }
}

/// Declares variables as constants, and the constant `VARIABLES` with all of them.
#[macro_export]
macro_rules! variables {
    ($($(#[$doc:meta])* $constant:ident = $variable:expr;)+) => {
        $($(#[$doc])* pub const $constant: $crate::EnvVariable = $variable;)+

        /// All variables of this module.
        pub const VARIABLES: &[$crate::EnvVariable] = &[$($constant),+];
    };
}
