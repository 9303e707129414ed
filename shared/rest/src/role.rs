//! The roles of operators.

use std::str::FromStr;

use strum::{Display, EnumIter, IntoStaticStr};

/// The role of an operator: what the merchant's employee or program may do. Each role may also do what the roles before
/// it may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Display, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Role {
    /// Reads everything except confidential data, and changes nothing.
    Read,
    /// Changes accounts, subscriptions, orders and stock, and refunds payments up to a sum per day
    /// (`billing::PaymentLimit::SupportRefunds`).
    Support,
    /// May do everything except read and write confidential data: the role of the scope `operator`, which earlier versions
    /// gave to every operator. The next version removes this role and its scope.
    Operator,
    /// May do everything, also read and write confidential data of employees.
    Admin,
}

impl Role {
    /// The roles that new tokens give.
    pub const GIVEN: [Self; 3] = [Self::Read, Self::Support, Self::Admin];

    /// Returns whether the refunds of an operator with this role count toward the sum that support may refund per day.
    pub fn has_refund_limit(self) -> bool {
        self < Self::Operator
    }
}

impl FromStr for Role {
    type Err = String;

    /// Reads the name of a role that new tokens give.
    fn from_str(text: &str) -> Result<Self, String> {
        let role = Self::GIVEN.into_iter().find(|role| role.to_string() == text);
        role.ok_or_else(|| format!("must be one of {}", Self::GIVEN.map(|role| role.to_string()).join(", ")))
    }
}
