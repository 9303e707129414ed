//! A small reader of Rust's source text: enough to see which paths a file names. It knows no types and expands no macros.

/// A path that a file names.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The inline modules around it.
    pub inside: Vec<String>,
    /// Its segments, such as `crate`, `machine`, `Folder`.
    pub path: Vec<String>,
    /// The name that it has from now on in its module, if it is imported.
    pub imported_as: Option<String>,
}

/// Words and marks of `source`, without comments, literals and tests. `::` is one mark.
pub fn tokens(source: &str) -> Vec<String> {
    without_tests(all_tokens(source))
}

fn all_tokens(source: &str) -> Vec<String> {
    let (mut tokens, mut rest) = (Vec::new(), source);
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = raw_text(rest).or_else(|| text(rest)).or_else(|| character(rest)) {
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

/// How long a literal such as `r#"…"#` is.
fn raw_text(rest: &str) -> Option<usize> {
    let start = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let body = start.trim_start_matches('#');
    let marks = start.len() - body.len();
    let body = body.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(marks));
    Some(rest.len() - body.len() + body.find(&end)? + end.len())
}

/// How long a literal such as `"…"` is.
fn text(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('"')?;
    let mut is_escaped = false;
    let end = body.find(|character| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end
    })?;
    Some(rest.len() - body.len() + end + 1)
}

/// How long a literal such as `'x'` is. A lifetime has no second quote.
fn character(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('\'')?;
    let end = match body.strip_prefix('\\') {
        Some(escape) => 2 + escape.get(1..)?.find('\'')?,
        None => body.chars().next()?.len_utf8(),
    };
    body[end..].starts_with('\'').then_some(1 + end + 1)
}

/// The tokens without each module that is compiled for tests alone.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const FOR_TESTS: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is_mod = |at: usize| tokens.get(at).is_some_and(|token| token == "mod");
        if tokens[at..].starts_with(&FOR_TESTS.map(str::to_owned)) && is_mod(at + FOR_TESTS.len()) {
            at += FOR_TESTS.len() + 2;
            at = if tokens[at] == "{" { end_of_block(&tokens, at) } else { at + 1 };
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The place behind the block that begins at `at`.
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

/// The names that `tokens` define, those inside of functions and blocks as well.
pub fn defined(tokens: &[String]) -> impl Iterator<Item = &str> {
    const WORDS: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];
    tokens.windows(2).filter(|pair| WORDS.contains(&pair[0].as_str())).map(|pair| pair[1].as_str())
}

/// The paths that `tokens` import, and those that begin with `crate`, `self` or `super`.
pub fn named(tokens: &[String]) -> Vec<Named> {
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
            // `use<'a>` is no import.
            "use" if next != "<" => {
                let end = at + tokens[at..].iter().position(|token| token == ";").unwrap();
                let mut tree = &tokens[at + 1..end];
                imported(&mut tree, &[], &names, &mut found);
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
                found.push(Named { inside: names, path, imported_as: None });
            }
            _ => {}
        }
        at += 1;
    }
    found
}

/// Reads one tree of an import, such as `a::{b, c as d}`, below `above`.
fn imported(tree: &mut &[String], above: &[String], inside: &[String], found: &mut Vec<Named>) {
    let mut path = above.to_vec();
    let mut alias = None;
    while let Some((token, rest)) = tree.split_first() {
        match token.as_str() {
            "," | "}" => break,
            "::" => *tree = rest,
            "{" => {
                *tree = rest;
                while tree.first().is_some_and(|token| token != "}") {
                    imported(tree, &path, inside, found);
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
    found.push(Named { inside: inside.to_vec(), path, imported_as });
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
    let found: Vec<String> = named(&tokens(source))
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
