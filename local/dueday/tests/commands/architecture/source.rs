//! The items, imports and paths of a source file. Types are not resolved, and macros are not expanded.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

/// The segments of a Rust path, such as `crate`, `machine`, `OpenTable`.
pub type RustPath = Vec<String>;

/// An import or a re-export.
#[derive(Debug)]
pub struct Import {
    pub path: RustPath,
    /// The name in the importing file; `*` for an import of all names.
    pub name: String,
    /// Whether the import is a re-export, such as `pub use` or `pub(crate) use`.
    pub is_public: bool,
}

/// The code of a source file, without its tests.
#[derive(Debug, Default)]
pub struct SourceFile {
    /// The child modules that are files of their own, and whether they are declared with `pub`, `pub(crate)` or similar.
    pub children: BTreeMap<String, bool>,
    /// The names of the items that the file defines.
    pub defined: BTreeSet<String>,
    pub imports: Vec<Import>,
    /// The other paths of at least two segments.
    pub paths: Vec<RustPath>,
}

impl SourceFile {
    /// Reads the source text of a file.
    pub fn parse(text: &str) -> Self {
        let (syntax, mut file) = (syn::parse_file(text).unwrap(), Self::default());
        file.visit_file(&syntax);
        file.defined.extend(syntax.items.iter().filter_map(item_name));
        file
    }

    /// Adds the imports of one tree of names, such as `a::{b, c as d}`. The segments `above` come before the tree.
    fn add_imports(&mut self, tree: &UseTree, above: &[String], is_public: bool) {
        let below = |name: &syn::Ident| match name.to_string() {
            name if name == "self" => above.to_vec(),
            name => [above, &[name]].concat(),
        };
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.add_imports(&path.tree, &[above, &[path.ident.to_string()]].concat(), is_public);
            }
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.add_imports(tree, above, is_public));
            }
            UseTree::Glob(_) => (above.to_vec(), "*".to_owned()),
            UseTree::Name(name) => (below(&name.ident), below(&name.ident).last().unwrap().clone()),
            UseTree::Rename(rename) => (below(&rename.ident), rename.rename.to_string()),
        };
        self.imports.push(Import { path, name, is_public });
    }

    /// Adds a path, unless it has only one segment.
    fn add_path(&mut self, path: RustPath) {
        self.paths.extend(Some(path).filter(|path| path.len() > 1));
    }
}

impl Visit<'_> for SourceFile {
    fn visit_item_mod(&mut self, module: &ItemMod) {
        let is_test = |meta: &syn::MetaList| meta.path.is_ident("cfg") && meta.tokens.to_string() == "test";
        if module.attrs.iter().any(|attribute| attribute.meta.require_list().is_ok_and(is_test)) {
            return;
        }
        if module.content.is_none() {
            self.children.insert(module.ident.to_string(), is_public(&module.vis));
            return;
        }
        // An inline module is a part of its file, which the module itself calls `super`.
        self.defined.insert(module.ident.to_string());
        let mut inner = Self::default();
        visit::visit_item_mod(&mut inner, module);
        for mut path in inner.imports.into_iter().map(|import| import.path).chain(inner.paths) {
            if path[0] == "super" {
                path[0] = "self".to_owned();
            }
            self.add_path(path);
        }
    }

    fn visit_item_use(&mut self, import: &ItemUse) {
        // A path with leading colons leads to another crate.
        if import.leading_colon.is_none() {
            self.add_imports(&import.tree, &[], is_public(&import.vis));
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        if path.leading_colon.is_none() {
            self.add_path(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    /// Adds the paths in the arguments of a macro or of an attribute.
    fn visit_token_stream(&mut self, tokens: &TokenStream) {
        let (mut path, mut colons) = (RustPath::new(), 0);
        for token in tokens.clone() {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_path(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.add_path(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.visit_token_stream(&group.stream());
                    }
                }
            }
        }
        self.add_path(path);
    }
}

/// Returns whether other modules may use an item with this visibility.
fn is_public(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

/// Returns the name that `item` defines; `None` for imports, implementations and modules.
fn item_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

#[test]
fn architecture_reads_imports_and_paths_and_skips_text_comments_and_tests() {
    let file = SourceFile::parse(
        r#"
        pub use crate::{a::{self, B as C}, d::*};
        use ::other::not;
        mod child;
        /// [`super::not`]
        fn f(x: &str) -> super::e::G<self::h::I> { println!("super::not {}", super::j::k(x)) }
        mod inner { use super::l; }
        #[cfg(test)]
        mod tests { use super::not; }
        "#,
    );
    let imports: Vec<_> =
        file.imports.iter().map(|import| format!("{} as {}", import.path.join("::"), import.name)).collect();
    assert_eq!(imports, ["crate::a as a", "crate::a::B as C", "crate::d as *"]);
    let paths: Vec<_> = file.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["super::e::G", "self::h::I", "super::j::k", "self::l"]);
    assert!(file.defined.iter().eq(["f", "inner"]) && file.children.keys().eq(["child"]), "{file:?}");
}
