//! Checks that each log line with an error has the type of the error.

use super::source::tokens;
use super::source_files;

/// Returns the tokens between the parentheses of each log statement in `tokens`, such as `error!(...)`.
fn log_statements(tokens: &[String]) -> Vec<&[String]> {
    let starts = tokens.windows(3).enumerate().filter(|(_, three)| {
        ["error", "warn", "info", "debug", "trace"].contains(&three[0].as_str())
            && (three[1].as_str(), three[2].as_str()) == ("!", "(")
    });
    let statement = |(place, _): (usize, &[String])| {
        let inside = &tokens[place + 3..];
        let mut depth = 1_usize;
        let end = inside.iter().position(|token| {
            match token.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        &inside[..end.unwrap_or(inside.len())]
    };
    starts.map(statement).collect()
}

/// Returns whether `statement` has the field `name`, as `name`, `%name`, `?name` or `name = value`.
fn has_field(statement: &[String], name: &str) -> bool {
    let fields = std::iter::once(None).chain(statement.iter().map(Some)).zip(statement);
    let mut names = fields.filter(|(before, _)| before.is_none_or(|mark| [",", "%", "?"].contains(&mark.as_str())));
    names.any(|(_, token)| token == name)
}

#[test]
fn architecture_log_lines_with_an_error_have_the_type_of_the_error() {
    let (mut with_error, mut without_type) = (0, Vec::new());
    for (path, text) in source_files() {
        let tokens = tokens(&text);
        for statement in log_statements(&tokens).into_iter().filter(|statement| has_field(statement, "error")) {
            with_error += 1;
            if !has_field(statement, "error_type") {
                without_type.push(format!("{path}: {}", statement.join(" ")));
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
    let tokens = tokens(source);
    let statements = log_statements(&tokens);
    let found: Vec<(bool, bool)> =
        statements.iter().map(|one| (has_field(one, "error"), has_field(one, "error_type"))).collect();
    assert_eq!(found, [(true, true), (true, false)]);
}
