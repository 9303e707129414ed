//! Checks that each log line with an error has the type of the error.

use proc_macro2::{TokenStream, TokenTree};

use super::source_files;

/// A log statement: the tokens between its parentheses.
type LogStatement = Vec<TokenTree>;

/// Returns the log statements in `tokens`, such as `error!(...)`.
fn log_statements(tokens: TokenStream) -> Vec<LogStatement> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let statement = |three: &[TokenTree]| match three {
        [TokenTree::Ident(name), TokenTree::Punct(mark), TokenTree::Group(arguments)]
            if mark.as_char() == '!'
                && ["error", "warn", "info", "debug", "trace"].contains(&name.to_string().as_str()) =>
        {
            Some(arguments.stream().into_iter().collect())
        }
        _ => None,
    };
    let mut found: Vec<LogStatement> = tokens.windows(3).filter_map(statement).collect();
    for token in tokens {
        if let TokenTree::Group(group) = token {
            found.extend(log_statements(group.stream()));
        }
    }
    found
}

/// Returns whether `statement` has the field `name`, as `name`, `%name`, `?name` or `name = value`.
fn has_field(statement: &[TokenTree], name: &str) -> bool {
    let is_mark = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if ",%?".contains(mark.as_char()));
    let is_name = |token: &TokenTree| matches!(token, TokenTree::Ident(ident) if ident == name);
    let before = std::iter::once(None).chain(statement.iter().map(Some));
    before.zip(statement).any(|(before, token)| is_name(token) && before.is_none_or(is_mark))
}

#[test]
fn architecture_log_lines_with_an_error_have_the_type_of_the_error() {
    let (mut with_error, mut without_type) = (0, Vec::new());
    for (path, text) in source_files() {
        let statements = log_statements(text.parse().unwrap());
        for statement in statements.into_iter().filter(|statement| has_field(statement, "error")) {
            with_error += 1;
            if !has_field(&statement, "error_type") {
                without_type.push(format!("{path}: {}", TokenStream::from_iter(statement)));
            }
        }
    }
    assert!(with_error > 40, "the test finds too few log lines: {with_error}");
    assert!(without_type.is_empty(), "log lines without `error_type`:\n{}", without_type.join("\n"));
}

#[test]
fn architecture_finds_the_fields_of_log_statements() {
    let source =
        "fn f() { tracing::error!(%error, error_type = error.kind(), \"a (text)\"); warn!(error = %g(x), \"b\"); }";
    let statements = log_statements(source.parse().unwrap());
    let found: Vec<(bool, bool)> =
        statements.iter().map(|one| (has_field(one, "error"), has_field(one, "error_type"))).collect();
    assert_eq!(found, [(true, true), (true, false)]);
}
