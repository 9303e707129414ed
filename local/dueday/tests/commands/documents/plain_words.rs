//! Checks that names, comments, messages and documents contain no words that readers of this project have
//! misunderstood. CONTRIBUTING.md lists the words to use instead.

use super::text_files;

/// Words that readers have misunderstood: everyday words in place of technical terms ("told" for published, logged,
/// notified or returned), and pronouns without a noun.
const CONFUSING_WORDS: [&str; 14] = [
    "told", "tells", "telling", "hears", "whoever", "somebody", "nobody", "anybody", "mend", "mends", "mended",
    "mending", "quicker", "heard",
];

/// Phrases that readers have misunderstood.
const CONFUSING_PHRASES: [&str; 9] = [
    "became of",
    "become of",
    "becomes of",
    "what came of",
    "come to nothing",
    "comes to nothing",
    "held against",
    "hold against",
    "stands against",
];

/// Names in stored items, log lines and the template that contain confusing words, but must not change.
const KEPT_NAMES: [&str; 3] = ["TOLD#", "told = ?outcome", "StripeTellsOfStripe"];

/// Files that may quote confusing words. They are not checked.
const FILES_THAT_QUOTE_CONFUSING_WORDS: [&str; 1] = ["local/dueday/tests/commands/documents/plain_words.rs"];

/// Splits `line` into lower-case words. An identifier is several words: `was_told` and `wasTold` are two.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in line.chars() {
        let begins = !character.is_alphabetic() || (character.is_uppercase() && was_lower);
        if begins && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if character.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words
}

/// Returns the first word of `CONFUSING_WORDS` or phrase of `CONFUSING_PHRASES` in `line`; `None` if there is none.
fn find_confusing_wording(line: &str) -> Option<String> {
    let words = words(line);
    if let Some(word) = words.iter().find(|word| CONFUSING_WORDS.contains(&word.as_str())) {
        return Some(word.clone());
    }
    let text = format!(" {} ", words.join(" "));
    CONFUSING_PHRASES.iter().find(|phrase| text.contains(&format!(" {phrase} "))).map(|phrase| (*phrase).to_owned())
}

#[test]
fn confusing_words_are_found_in_names_and_in_sentences() {
    for (line, expected) in [
        ("/// What became of a batch.", Some("became of")),
        ("let was_told = true;", Some("told")),
        ("struct WhoeverAsks;", Some("whoever")),
        ("/// Publishes the events of a stolidly bold batch.", None),
    ] {
        assert_eq!(find_confusing_wording(line).as_deref(), expected, "{line}");
    }
}

#[test]
fn project_has_no_words_that_readers_have_misunderstood() {
    let mut found = Vec::new();
    for (path, text) in
        text_files::text_files().filter(|(path, _)| !FILES_THAT_QUOTE_CONFUSING_WORDS.contains(&path.as_str()))
    {
        for (number, line) in text.lines().enumerate() {
            let line = KEPT_NAMES.iter().fold(line.to_owned(), |line, name| line.replace(name, ""));
            if let Some(word) = find_confusing_wording(&line) {
                found.push(format!("{path}:{}: \"{word}\": {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "words that readers have misread (see CONTRIBUTING.md):\n{}", found.join("\n"));
}
