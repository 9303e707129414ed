//! Checks that the files of a crate have no cyclic dependencies, that each item has one path, and that the pages of
//! `billing` and `store` name all their modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use super::crates::Crates;
use super::source::{RustPath, SourceFile};
use super::{CRATE_FOLDERS, root};

/// The path of a module from the root of its crate. The path of the root is empty. Each module is one file.
pub type Module = Vec<String>;

/// The largest number of imports that are followed to find the file that defines an item.
const MAX_IMPORTS: usize = 20;

/// The source files of a crate.
#[derive(Debug, Default)]
pub struct Source {
    pub files: BTreeMap<Module, SourceFile>,
}

/// For each dependency between two modules, the imports and paths that cause the dependency, as `module: path`.
pub type Dependencies = BTreeMap<(String, String), BTreeSet<String>>;

impl Source {
    /// Returns the source of each library and program of the project, with the name of its crate. Leaves out the programs in
    /// `bin`, which consist of one file each.
    pub fn of_project() -> &'static [(&'static str, Self)] {
        static SOURCES: LazyLock<Vec<(&str, Source)>> = LazyLock::new(|| {
            let crates = Crates::of_project();
            let names = CRATE_FOLDERS.into_iter().flat_map(|folder| crates.of_folder(folder));
            let main_files = names.flat_map(|name| ["lib.rs", "main.rs"].map(|file| (name, file)));
            let read = |(name, file)| {
                let (folder, mut source) = (crates.path(name).join("src"), Source::default());
                folder.join(file).exists().then(|| source.read(&folder.join(file), &folder, Module::new()))?;
                Some((name, source))
            };
            main_files.filter_map(read).collect()
        });
        &SOURCES
    }

    /// Reads the file `path` of the module `module`, and the files of its child modules in `folder`.
    fn read(&mut self, path: &Path, folder: &Path, module: Module) {
        let file = SourceFile::parse(&std::fs::read_to_string(path).unwrap());
        for name in file.children.keys() {
            let (below, path) = (folder.join(name), folder.join(format!("{name}.rs")));
            let path = if path.exists() { path } else { below.join("mod.rs") };
            self.read(&path, &below, [module.as_slice(), std::slice::from_ref(name)].concat());
        }
        self.files.insert(module, file);
    }

    /// Returns the path from the root of the crate for `path`, which `module` contains; `None` if the path leads to
    /// another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<RustPath> {
        let (file, mut base, mut rest) = (&self.files[module], module.to_vec(), path);
        while let Some((first, below)) = rest.split_first() {
            match first.as_str() {
                "crate" => base.clear(),
                "self" => {}
                "super" => drop(base.pop()),
                _ => break,
            }
            rest = below;
        }
        let is_here = |name: &String| {
            file.children.contains_key(name)
                || file.defined.contains(name)
                || file.imports.iter().any(|import| import.name == *name && import.path != path)
        };
        (rest.len() < path.len() || is_here(&path[0])).then(|| [base.as_slice(), rest].concat())
    }

    /// Returns the module that defines the item at `path`, a path from the root of the crate. Follows at most `imports`
    /// imports. Returns `None` if another crate may define the item.
    fn owner(&self, path: &[String], imports: usize) -> Option<Module> {
        let is_module = |length: &usize| self.files.contains_key(&path[..*length]);
        let length = (0..=path.len()).take_while(is_module).last()?;
        let (module, rest) = path.split_at(length);
        let file = &self.files[module];
        let Some(name) = rest.first().filter(|name| !file.defined.contains(*name)) else {
            return Some(module.to_vec());
        };
        let imports = imports.checked_sub(1)?;
        let candidates = file.imports.iter().filter(|import| import.name == *name || import.name == "*");
        if candidates.clone().next().is_none() {
            // A macro of the module defines the item.
            return Some(module.to_vec());
        }
        candidates.into_iter().find_map(|import| {
            let is_glob = import.name == "*";
            let rest = if is_glob { rest } else { &rest[1..] };
            let target = self.absolute(module, &import.path)?;
            let owner = self.owner(&[target.as_slice(), rest].concat(), imports)?;
            // A module that is imported as a whole need not define the item.
            (!is_glob || self.files[&owner].defined.contains(name)).then_some(owner)
        })
    }

    /// Returns the dependencies between modules with the same parent. A dependency between two files is a dependency
    /// between the modules that contain them, below their closest common parent. So a module and its child modules, which
    /// are parts of it, may depend on each other.
    pub fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::new();
        for (module, file) in &self.files {
            for path in file.imports.iter().map(|import| &import.path).chain(&file.paths) {
                let owner = self.absolute(module, path).and_then(|path| self.owner(&path, MAX_IMPORTS));
                let Some(owner) = owner else { continue };
                let common = common_length(module, &owner);
                if let (Some(from), Some(to)) = (module.get(..=common), owner.get(..=common)) {
                    let because = format!("{}: {}", module.join("::"), path.join("::"));
                    dependencies.entry((from.join("::"), to.join("::"))).or_default().insert(because);
                }
            }
        }
        dependencies
    }

    /// Returns the re-exports, as `module: path`, that give an item or a module a second path: the modules of the path are
    /// public, so the path is open to all users of the re-export.
    fn second_paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (module, file) in &self.files {
            for import in file.imports.iter().filter(|import| import.is_public) {
                let Some(path) = self.absolute(module, &import.path) else { continue };
                let below = common_length(module, &path)..path.len();
                let child = |at: usize| self.files.get(&path[..at])?.children.get(&path[at]);
                let mut are_public = below.map_while(child).peekable();
                if are_public.peek().is_some() && are_public.all(|is_public| *is_public) {
                    found.push(format!("{}: {}", module.join("::"), import.path.join("::")));
                }
            }
        }
        found
    }
}

/// Returns the number of segments with which both paths begin.
fn common_length(one: &[String], other: &[String]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns the modules that `from` depends on, directly or through other modules.
pub fn reachable_modules<'a>(dependencies: &'a Dependencies, from: &'a str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        let needed = dependencies.keys().filter(|(of, _)| of == module).map(|(_, to)| to.as_str());
        next.extend(needed.filter(|to| reached.insert(*to)));
    }
    reached
}

/// Returns each group of modules that depend on each other, directly or through other modules.
fn cycles(dependencies: &Dependencies) -> BTreeSet<Vec<&str>> {
    let of = dependencies.keys().map(|(from, _)| from.as_str()).collect::<BTreeSet<_>>();
    let needed: BTreeMap<&str, BTreeSet<&str>> =
        of.iter().map(|from| (*from, reachable_modules(dependencies, from))).collect();
    let in_cycles = of.iter().filter(|module| needed[**module].contains(**module));
    let group = |module: &&str| {
        let is_with = |other: &&&str| needed[*module].contains(**other) && needed[**other].contains(*module);
        of.iter().filter(is_with).copied().collect()
    };
    in_cycles.map(group).collect()
}

#[test]
fn architecture_has_no_cycle_between_files() {
    let mut report = String::new();
    for (name, source) in Source::of_project() {
        let dependencies = source.dependencies();
        for cycle in cycles(&dependencies) {
            report += &format!("\n{name}: {}\n", cycle.join(", "));
            let is_inside = |module: &String| cycle.contains(&module.as_str());
            for ((from, to), paths) in dependencies.iter().filter(|((from, to), _)| is_inside(from) && is_inside(to)) {
                let paths: Vec<&str> = paths.iter().take(3).map(String::as_str).collect();
                report += &format!("  {from} depends on {to}: {}\n", paths.join("; "));
            }
        }
    }
    assert!(report.is_empty(), "cyclic dependencies between files:{report}");
}

#[test]
fn architecture_has_one_path_for_each_item() {
    let mut found = Vec::new();
    for (name, source) in Source::of_project() {
        found.extend(source.second_paths().into_iter().map(|path| format!("{name} {path}")));
    }
    assert!(found.is_empty(), "re-exports of items whose own path is public too:\n{}", found.join("\n"));
}

#[test]
fn architecture_check_follows_re_exports_and_finds_second_paths() {
    let files = [
        ("", "mod a; mod b; pub mod c; pub use a::A; pub use c::d::D;"),
        ("a", "use crate::b::B; pub struct A;"),
        ("b", "pub use self::inner::*; mod inner;"),
        ("b::inner", "pub struct B(crate::A);"),
        ("c", "pub mod d; mod e; pub use e::E; fn f() -> d::D {}"),
        ("c::d", "pub struct D;"),
        ("c::e", "use super::d::D; pub struct E;"),
    ];
    let module = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let source = Source { files: files.iter().map(|(name, text)| (module(name), SourceFile::parse(text))).collect() };
    assert_eq!(cycles(&source.dependencies()), BTreeSet::from([vec!["a", "b"]]));
    assert_eq!(source.second_paths(), [": c::d::D"]);
}

#[test]
fn architecture_pages_of_billing_and_store_name_every_module() {
    for name in ["billing", "store"] {
        let text = std::fs::read_to_string(root().join("shared").join(name).join("src/lib.rs")).unwrap();
        let page: String = text.lines().filter(|line| line.starts_with("//!")).collect();
        let modules = SourceFile::parse(&text).children.into_keys();
        let missing: Vec<String> = modules.filter(|module| !page.contains(&format!("`{module}`"))).collect();
        assert!(missing.is_empty(), "{name}: the reading order does not contain {missing:?}");
    }
}
