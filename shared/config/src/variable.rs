//! Environment variables, each declared once, by the crate that reads it. The functions read them, the command makes flags of
//! them, and the template is held against them.

/// An environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    pub name: &'static str,
    /// The functions that read it.
    pub read_by: &'static [ReadBy],
    /// What its value is called in help, such as `DAYS`.
    pub value: &'static str,
    pub help: &'static str,
    /// The least and the largest number that is allowed.
    pub range: Option<(u32, u32)>,
    pub default: Option<&'static str>,
    /// The name that it had before. It is still read, with a warning.
    pub formerly: Option<&'static str>,
    /// The command's flag for it.
    pub flag: Option<Flag>,
}

/// A function that reads variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadBy {
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
}

/// A flag of the command, without its dashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// Shown by `-h` and by `--help`.
    Common(&'static str),
    /// Shown by `--help` alone.
    Rare(&'static str),
}

impl Variable {
    /// A variable without a range, a default and a flag.
    pub const fn new(read_by: &'static [ReadBy], name: &'static str, value: &'static str, help: &'static str) -> Self {
        Self { name, read_by, value, help, range: None, default: None, formerly: None, flag: None }
    }

    /// It, with a flag that `-h` shows.
    pub const fn common(self, flag: &'static str) -> Self {
        Self { flag: Some(Flag::Common(flag)), ..self }
    }

    /// It, with a flag that `--help` alone shows.
    pub const fn rare(self, flag: &'static str) -> Self {
        Self { flag: Some(Flag::Rare(flag)), ..self }
    }

    /// It, read as `text` where it is not set.
    pub const fn default(self, text: &'static str) -> Self {
        Self { default: Some(text), ..self }
    }

    /// It, which was called `name` before.
    pub const fn formerly(self, name: &'static str) -> Self {
        Self { formerly: Some(name), ..self }
    }

    /// It, a number from `least` to `largest`.
    pub const fn within(self, least: u32, largest: u32) -> Self {
        Self { range: Some((least, largest)), ..self }
    }
}

/// Declares variables as constants, and all of them as `VARIABLES`.
#[macro_export]
macro_rules! variables {
    ($($(#[$doc:meta])* $constant:ident = $variable:expr;)+) => {
        $($(#[$doc])* pub const $constant: $crate::Variable = $variable;)+

        /// All of them.
        pub const VARIABLES: &[$crate::Variable] = &[$($constant),+];
    };
}
