//! A small parser for Rust source text that finds the Rust paths in a file. It resolves no types and expands no macros.

/// A Rust path, such as `crate::machine::OpenTable`, that occurs in a source file.
#[derive(Debug, PartialEq, Eq)]
pub struct RustPath {
    /// The names of the inline modules (`mod NAME { ... }`) of the file that contain the path.
    pub inside: Vec<String>,
    /// The segments of the path, such as `crate`, `machine`, `OpenTable`.
    pub path: Vec<String>,
    /// The local name in the module, if the path is imported.
    pub imported_as: Option<String>,
}

/// Returns the words and punctuation marks of `source`, without comments, literals and tests. `::` is one mark.
pub fn tokens(source: &str) -> Vec<String> {
    without_tests(all_tokens(source))
}

/// Returns the words and punctuation marks of `source`, without comments and literals, but with tests.
fn all_tokens(source: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) =
            raw_string_length(rest).or_else(|| string_length(rest)).or_else(|| char_length(rest))
        {
            length
        } else if is_word(first) {
            let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
            tokens.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    tokens
}

/// Returns the length of the raw string literal, such as `r#"…"#`, at the start of `rest`; `None` if there is none.
fn raw_string_length(rest: &str) -> Option<usize> {
    let start = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let body = start.trim_start_matches('#');
    let marks = start.len() - body.len();
    let body = body.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    Some(rest.len() - body.len() + body.find(&end)? + end.len())
}

/// Returns the length of the string literal, such as `"…"`, at the start of `rest`; `None` if there is none.
fn string_length(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('"')?;
    let mut is_escaped = false;
    let end = body.find(|character| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    })?;
    Some(rest.len() - body.len() + end + 1)
}

/// Returns the length of the character literal, such as `'x'`, at the start of `rest`. `None` if there is none, or if
/// `rest` begins with a lifetime, which has no second quote.
fn char_length(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    let end = match body.strip_prefix('\\') {
        Some(escape) => 2 + escape.get(1..)?.find('\'')?,
        None => body.chars().next()?.len_utf8(),
    };
    body[end..].starts_with('\'').then_some(1 + end + 1)
}

/// Removes the modules that are only compiled for tests.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    /// The tokens of the attribute `#[cfg(test)]`.
    const CFG_TEST_TOKENS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is_mod = |at: usize| tokens.get(at).is_some_and(|token| token == "mod");
        if tokens[at..].starts_with(&CFG_TEST_TOKENS.map(str::to_owned)) && is_mod(at + CFG_TEST_TOKENS.len()) {
            at += CFG_TEST_TOKENS.len() + 2;
            at = if tokens[at] == "{" { end_of_block(&tokens, at) } else { at + 1 };
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index of the token after the block that begins at `at`.
fn end_of_block(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return place + 1,
            "}" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the names that `tokens` define, also inside functions and blocks.
pub fn defined_names(tokens: &[String]) -> impl Iterator<Item = &str> {
    const DEFINING_KEYWORDS: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];
    tokens.windows(2).filter(|pair| DEFINING_KEYWORDS.contains(&pair[0].as_str())).map(|pair| pair[1].as_str())
}

/// Returns the paths that `tokens` import, and all paths that begin with `crate`, `self` or `super`.
pub fn rust_paths(tokens: &[String]) -> Vec<RustPath> {
    let (mut found, mut inside, mut depth, mut at) = (Vec::new(), Vec::<(String, usize)>::new(), 0, 0);
    while at < tokens.len() {
        let next = tokens.get(at + 1).map_or("", String::as_str);
        let names: Vec<String> = inside.iter().map(|(name, _)| name.clone()).collect();
        match tokens[at].as_str() {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside.retain(|(_, at_depth)| *at_depth <= depth);
            }
            "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => inside.push((next.to_owned(), depth + 1)),
            // `use<'a>` is not an import.
            "use" if next != "<" => {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap();
                let mut tree = &tokens[at + 1..end];
                read_import_tree(&mut tree, &[], &names, &mut found);
                at = end;
            }
            "crate" | "self" | "super" if next == "::" && (at == 0 || tokens[at - 1] != "::") => {
                let path = tokens[at..].iter().enumerate().map_while(|(place, token)| {
                    let is_mark = token == "::";
                    let is_word = token.starts_with(|first: char| first.is_alphabetic() || first == '_');
                    (is_mark == (place % 2 == 1) && (is_mark || is_word)).then_some(token)
                });
                let path: Vec<String> = path.step_by(2).cloned().collect();
                at += 2 * path.len() - 2;
                found.push(RustPath { inside: names, path, imported_as: None });
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads one tree of an import, such as `a::{b, c as d}`, and appends its paths to `found`. Each path begins with the
/// segments `above`, which come before the tree.
fn read_import_tree(tree: &mut &[String], above: &[String], inside: &[String], found: &mut Vec<RustPath>) {
    let mut path = above.to_vec();
    let mut alias = None;
    while let Some((token, rest)) = tree.split_first() {
        match token.as_str() {
            "," | "}" => break,
            "::" => *tree = rest,
            "{" => {
                *tree = rest;
                while tree.first().is_some_and(|token| token != "}") {
                    read_import_tree(tree, &path, inside, found);
                    if tree.first().is_some_and(|token| token == ",") {
                        *tree = &tree[1..];
                    }
                }
                *tree = tree.get(1..).unwrap_or_default();
                return;
            }
            "as" => {
                alias = rest.first().cloned();
                *tree = &rest[1..];
            }
            _ => {
                path.push(token.clone());
                *tree = rest;
            }
        }
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let imported_as = alias.or_else(|| path.last().cloned());
    found.push(RustPath { inside: inside.to_vec(), path, imported_as });
}

#[test]
fn architecture_reads_imports_and_paths_and_skips_text_comments_and_tests() {
    let source = r##"
        use crate::{a::{self, B as C}, d};
        /* super::not */ // crate::not
        fn f<'a>(x: &'a str) -> impl Fn() + use<'a> { let _ = ('"', '\'', "crate::not \" ", r#"super::"not"#); super::e::f(x) }
        mod inner { use super::g; }
        #[cfg(test)]
        mod tests { use super::not; }
    "##;
    let found: Vec<String> = rust_paths(&tokens(source))
        .into_iter()
        .map(|named| {
            let alias = named.imported_as.map(|alias| format!(" as {alias}")).unwrap_or_default();
            format!(
                "{}{}{alias}",
                named.inside.iter().map(|m| format!("{m}: ")).collect::<String>(),
                named.path.join("::")
            )
        })
        .collect();
    assert_eq!(found, ["crate::a as a", "crate::a::B as C", "crate::d as d", "super::e::f", "inner: super::g as g"]);
}
