//! The person or program that makes a change.

use serde_with::{DeserializeFromStr, SerializeDisplay};
use sha2::{Digest, Sha256};
use strum::{Display, EnumString};

use crate::values::character_checks::is_control_character;

/// The maximum number of characters of the name of an actor.
const MAX_NAME_CHARS: usize = 255;

/// The person or program that makes a change, with the name by which the merchant can identify this person or program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Actor {
    /// A caller of the API with the token of an operator. Contains the subject of the token, if the token has one.
    Operator(Option<ActorName>),
    /// A caller of the API with the token of an account. Contains the subject of the token, if the token has one.
    Account(Option<ActorName>),
    /// The command `dueday`. Contains the name of the user who runs the command, if the operating system reports a
    /// name.
    Command(Option<ActorName>),
    /// A customer who entered a payment method on a checkout page of the gateway. Contains the public name of the
    /// payment method setup.
    Customer(Option<ActorName>),
    /// A caller of the API without a token: a customer who opens a link, or any caller of a local system that checks no
    /// tokens.
    Anonymous,
}

/// The kind of an [`Actor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Display, EnumString, SerializeDisplay, DeserializeFromStr)]
#[strum(serialize_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(rename_all = "snake_case"))]
pub enum ActorKind {
    Operator,
    Account,
    Command,
    Customer,
    Anonymous,
}

/// The name of an actor: the subject of a token, the name of a user of the operating system, or the public name of a
/// payment method setup. The name never contains an e-mail address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActorName(String);

impl ActorName {
    /// Creates the name of an actor from `text`. Removes control characters, and cuts the name to 255 characters.
    /// Returns `None` if no characters remain. A `text` that contains `@` may be an e-mail address, so its name is
    /// `sha256-` and the first 32 hexadecimal digits of the SHA-256 hash of `text`.
    ///
    /// ```
    /// use billing::ActorName;
    ///
    /// let name = |text: &str| ActorName::new(text).map(|name| name.as_str().to_owned());
    /// assert_eq!(name("auth0|123").as_deref(), Some("auth0|123"));
    /// assert_eq!(name("a@example.com").as_deref(), Some("sha256-08168cd80dfd534ab0f10af10f1303fe"));
    /// assert_eq!(name(""), None);
    /// ```
    pub fn new(text: &str) -> Option<Self> {
        if text.contains('@') {
            let digits: String = Sha256::digest(text).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            return Some(Self(format!("sha256-{digits}")));
        }
        let name: String = text.chars().filter(|c| !is_control_character(*c)).take(MAX_NAME_CHARS).collect();
        (!name.is_empty()).then_some(Self(name))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Actor {
    /// Creates the actor of the kind `kind` with the name `name`. An anonymous actor has no name.
    pub fn from_parts(kind: ActorKind, name: Option<ActorName>) -> Self {
        match kind {
            ActorKind::Operator => Self::Operator(name),
            ActorKind::Account => Self::Account(name),
            ActorKind::Command => Self::Command(name),
            ActorKind::Customer => Self::Customer(name),
            ActorKind::Anonymous => Self::Anonymous,
        }
    }

    /// Returns the kind of the actor.
    pub fn kind(&self) -> ActorKind {
        match self {
            Self::Operator(_) => ActorKind::Operator,
            Self::Account(_) => ActorKind::Account,
            Self::Command(_) => ActorKind::Command,
            Self::Customer(_) => ActorKind::Customer,
            Self::Anonymous => ActorKind::Anonymous,
        }
    }

    /// Returns the name of the actor; `None` if the actor has no name.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Operator(name) | Self::Account(name) | Self::Command(name) | Self::Customer(name) => {
                name.as_ref().map(ActorName::as_str)
            }
            Self::Anonymous => None,
        }
    }
}
