//! The tags of a mail: the account and the kind of mail. Amazon SES receives the tags with the mail, and returns the
//! tags in its notifications about the mail, for example about a bounce.
//!
//! Amazon SES allows letters, digits, `_` and `-` in a tag, but an account's id may contain a `.`. Therefore `_` starts
//! an escape sequence in a tag: `__` stands for `_`, and `_-` for `.`. Different ids have different tags. A tag is at
//! most twice as long as the id, so at most 128 characters. Amazon SES allows 256 characters.

use billing::AccountId;

/// The name of the tag that contains the account's id.
pub const ACCOUNT_TAG: &str = "account";
/// The name of the tag that contains the [`MailKind`](super::MailKind).
pub const MAIL_KIND_TAG: &str = "occasion";

/// Encodes `account` as the value of a tag.
///
/// ```
/// use mail::tags::{account_from_tag, account_tag};
/// assert_eq!(account_tag(&"acme.eu_1".parse()?), "acme_-eu__1");
/// assert_eq!(account_from_tag("acme_-eu__1"), Some("acme.eu_1".parse()?));
/// # Ok::<(), billing::IdError>(())
/// ```
pub fn account_tag(account: &AccountId) -> String {
    let mut tag = String::with_capacity(account.as_str().len());
    for character in account.as_str().chars() {
        match character {
            '_' => tag.push_str("__"),
            '.' => tag.push_str("_-"),
            other => tag.push(other),
        }
    }
    tag
}

/// Decodes the account from the value of a tag. Returns `None` if [`account_tag`] cannot have created the value.
pub fn account_from_tag(tag: &str) -> Option<AccountId> {
    let (mut id, mut characters) = (String::with_capacity(tag.len()), tag.chars());
    while let Some(character) = characters.next() {
        id.push(match character {
            '_' => match characters.next()? {
                '_' => '_',
                '-' => '.',
                _ => return None,
            },
            '.' => return None,
            other => other,
        });
    }
    id.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn account_tag_has_only_allowed_characters_and_can_be_decoded(id in "[A-Za-z0-9][A-Za-z0-9._-]{0,63}") {
            let account: AccountId = id.parse().unwrap();
            let tag = account_tag(&account);
            prop_assert!(tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{tag}");
            prop_assert!(tag.len() <= 256);
            prop_assert_eq!(account_from_tag(&tag), Some(account));
        }

        #[test]
        fn decoded_account_tag_encodes_to_the_same_text(text in "[a-z._-]{0,6}") {
            if let Some(account) = account_from_tag(&text) {
                prop_assert_eq!(account_tag(&account), text);
            }
        }
    }

    #[test]
    fn account_from_tag_rejects_texts_that_account_tag_does_not_return() {
        for text in ["", "a_", "a_b", "a.b", "_-a", "a b", &"x".repeat(65)] {
            assert_eq!(account_from_tag(text), None, "{text:?}");
        }
    }
}
