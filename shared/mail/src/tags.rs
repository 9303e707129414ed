//! What a mail service is told beside a mail, and repeats in its news of it: whose it is, and its occasion.
//!
//! Amazon SES takes letters, digits, `_` and `-` in a tag, and an account's id may have a `.`. So `_` begins a pair: `__` is `_`,
//! and `_-` is `.`. Each id has one tag, at most twice as long (128 of 256 characters), and no other id has the same one.

use billing::AccountId;

/// The tag that names the account.
pub const ACCOUNT: &str = "account";
/// The tag that names the [`Occasion`](super::Occasion).
pub const OCCASION: &str = "occasion";

/// `account` as the value of a tag.
///
/// ```
/// use mail::tags::{account_of, tag_of};
/// assert_eq!(tag_of(&"acme.eu_1".parse()?), "acme_-eu__1");
/// assert_eq!(account_of("acme_-eu__1"), Some("acme.eu_1".parse()?));
/// # Ok::<(), billing::IdError>(())
/// ```
pub fn tag_of(account: &AccountId) -> String {
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

/// The account that `tag` names; `None` if [`tag_of`] has not made it.
pub fn account_of(tag: &str) -> Option<AccountId> {
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
        fn tag_names_its_account_in_characters_that_are_allowed(id in "[A-Za-z0-9][A-Za-z0-9._-]{0,63}") {
            let account: AccountId = id.parse().unwrap();
            let tag = tag_of(&account);
            prop_assert!(tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'), "{tag}");
            prop_assert!(tag.len() <= 256);
            prop_assert_eq!(account_of(&tag), Some(account));
        }

        #[test]
        fn tag_of_no_account_names_none(text in "[a-z._-]{0,6}") {
            // Whatever is read is what would be written.
            if let Some(account) = account_of(&text) {
                prop_assert_eq!(tag_of(&account), text);
            }
        }
    }

    #[test]
    fn account_of_refuses_what_tag_of_does_not_write() {
        for text in ["", "a_", "a_b", "a.b", "_-a", "a b", &"x".repeat(65)] {
            assert_eq!(account_of(text), None, "{text:?}");
        }
    }
}
