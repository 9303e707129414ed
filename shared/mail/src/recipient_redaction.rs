//! Removes the address of the recipient from the responses of mail servers, which often repeat the address.

/// The text that replaces a part of a response that may contain the address.
const REDACTED: &str = "<redacted>";
/// The maximum length of a response in a log or a message, in characters.
const MAX_RESPONSE_CHARS: usize = 300;

/// Returns the response `text` of a mail server in one line, at most 300 characters long, without mail addresses and
/// without the user and the domain of the recipient. `recipients` are the forms of the recipient's address: as stored,
/// and with the domain in Punycode.
pub(crate) fn redact_recipient(text: &str, recipients: &[&str]) -> String {
    let text = recipients.iter().fold(text.to_owned(), |text, address| replace_ignoring_case(&text, address));
    let parts: Vec<(String, String)> = recipients
        .iter()
        .filter_map(|address| address.rsplit_once('@'))
        .map(|(user, domain)| (user.to_lowercase(), domain.to_lowercase()))
        .collect();
    let is_personal = |word: &str| {
        let word = word.to_lowercase();
        let trimmed = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.contains('@')
            || word.contains("%40")
            || parts.iter().any(|(user, domain)| word.contains(domain.as_str()) || word == *user || trimmed == user)
    };
    let is_separator = |c: char| c.is_whitespace() || c.is_control() || "\"'`()<>[]{},;:/=".contains(c);
    let words = text.split_inclusive(is_separator).map(|part| {
        let word = part.strip_suffix(is_separator).unwrap_or(part);
        if is_personal(word) { format!("{REDACTED}{}", &part[word.len()..]) } else { part.to_owned() }
    });
    let text: String = words.collect();
    let line = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    line.collect::<Vec<_>>().join(" ").chars().take(MAX_RESPONSE_CHARS).collect()
}

/// Replaces each occurrence of `address` in `text`, in capital or small ASCII letters.
fn replace_ignoring_case(text: &str, address: &str) -> String {
    let address = address.to_ascii_lowercase();
    let (mut replaced, mut rest) = (String::new(), text);
    while let Some(start) = rest.to_ascii_lowercase().find(&address).filter(|_| !address.is_empty()) {
        replaced.push_str(&rest[..start]);
        replaced.push_str(REDACTED);
        rest = &rest[start + address.len()..];
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_keeps_its_reason_and_loses_the_address() {
        for (address, text, expected) in [
            ("ada@example.com", "5.1.1 <ada@example.com>: Recipient unknown", "5.1.1 <<redacted>>: Recipient unknown"),
            (
                "ada@example.com",
                "5.1.1 Ada: no such user\r\nsee http://help",
                "5.1.1 <redacted>: no such user see http://help",
            ),
            ("ada@example.com", "no host for mail.Example.COM found", "no host for <redacted> found"),
            ("ada@example.com", "id=srs0+x=ada%40example.com", "id=srs0+x=<redacted>"),
            ("o'neil@example.com", "<O'Neil@Example.com> is full", "<<redacted>> is full"),
            ("josé@example.com", "user josé unknown", "user <redacted> unknown"),
            ("ada@example.com", "4.3.1 Insufficient system storage", "4.3.1 Insufficient system storage"),
            ("ada@example.com", "from <shop@roasters.example>", "from <<redacted>>"),
        ] {
            assert_eq!(redact_recipient(text, &[address]), expected);
        }
        assert_eq!(redact_recipient(&"x ".repeat(1_000), &["ada@example.com"]).len(), MAX_RESPONSE_CHARS);
        let forms = ["ada@bücher.example", "ada@xn--bcher-kva.example"];
        assert_eq!(redact_recipient("no route to xn--bcher-kva.example", &forms), "no route to <redacted>");
    }
}
