//! Checks that the top-level modules of a crate have no cyclic dependencies, and that the pages of `billing` and `store`
//! name all their modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::crates::Crates;
use super::source::{RustPath, defined_names, rust_paths, tokens};
use super::{CRATE_FOLDERS, root};

/// The path of a module from the root of its crate. The path of the root is empty.
type Module = Vec<String>;

/// The modules of a crate, the Rust paths in their source, and their imports.
#[derive(Debug, Default)]
struct Source {
    /// The Rust paths in each module, each with the file that contains the path.
    modules: BTreeMap<Module, Vec<(String, RustPath)>>,
    /// The full path of each name that a module imports or re-exports.
    imports: BTreeMap<(Module, String), Module>,
    /// The modules whose names a module imports or re-exports with `*`.
    globs: BTreeMap<Module, Vec<Module>>,
    /// The names that a module defines.
    defined: BTreeSet<(Module, String)>,
}

/// For each dependency between two top-level modules, the Rust paths that cause the dependency, as `file: path`.
type Dependencies = BTreeMap<(String, String), BTreeSet<String>>;

impl Source {
    /// Reads the source files of the crate in `folder`.
    fn read(folder: &Path) -> Self {
        let mut source = Self::default();
        source.read_folder(&folder.join("src"), &[]);
        let (mut imports, mut globs) = (BTreeMap::new(), BTreeMap::<Module, Vec<Module>>::new());
        for (module, (_, named)) in source.rust_paths().filter(|(_, (_, named))| named.inside.is_empty()) {
            let (Some(mut path), Some(name)) = (source.absolute(module, named), &named.imported_as) else { continue };
            if name == "*" {
                path.pop();
                globs.entry(module.clone()).or_default().push(path);
            } else {
                imports.insert((module.clone(), name.clone()), path);
            }
        }
        source.globs = globs;
        source.imports = imports;
        source
    }

    /// Reads the source files of the module `module`, which are in `folder`, and of its child modules.
    fn read_folder(&mut self, folder: &Path, module: &[String]) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let below = [module, std::slice::from_ref(&name)].concat();
            // Each file in `bin` is a crate of its own.
            if path.is_dir() && name != "bin" {
                self.read_folder(&path, &below);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let of = if ["lib", "main", "mod"].contains(&name.as_str()) { module.to_vec() } else { below };
                let file = path.strip_prefix(root()).unwrap().display().to_string();
                let tokens = tokens(&std::fs::read_to_string(&path).unwrap());
                self.defined.extend(defined_names(&tokens).map(|name| (of.clone(), name.to_owned())));
                let paths = rust_paths(&tokens);
                self.modules.entry(of).or_default().extend(paths.into_iter().map(|named| (file.clone(), named)));
            }
        }
    }

    /// Returns each Rust path in the source, with the module and the file that contain it.
    fn rust_paths(&self) -> impl Iterator<Item = (&Module, &(String, RustPath))> {
        self.modules.iter().flat_map(|(module, files)| files.iter().map(move |file| (module, file)))
    }

    /// Returns the path of `named` from the root of the crate; `None` if the path leads to another crate.
    fn absolute(&self, module: &Module, named: &RustPath) -> Option<Module> {
        let mut base: Module = [module.as_slice(), &named.inside].concat();
        let mut path = named.path.as_slice();
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                path = &path[1..];
            }
            "self" => path = &path[1..],
            "super" => {
                while path.first().is_some_and(|first| first == "super") {
                    base.pop();
                    path = &path[1..];
                }
            }
            first => {
                let child = [base.as_slice(), &[first.to_owned()]].concat();
                if !self.modules.contains_key(&child) {
                    return None;
                }
            }
        }
        base.extend_from_slice(path);
        Some(base)
    }

    /// Returns the module that defines the item at `path`. Follows at most ten re-exports; `steps` is the number of
    /// re-exports that were followed before.
    fn owner(&self, path: &[String], steps: usize) -> Module {
        let mut module = Module::new();
        for (place, name) in path.iter().enumerate() {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            if self.modules.contains_key(&child) {
                module = child;
                continue;
            }
            let key = (module.clone(), name.clone());
            let of_glob = || {
                let all = self.globs.get(&module).into_iter().flatten();
                let key = |target: &Module| (target.clone(), name.clone());
                let is_there =
                    |target: &&Module| self.defined.contains(&key(target)) || self.imports.contains_key(&key(target));
                all.filter(|target| **target != module)
                    .find(is_there)
                    .map(|target| [target.as_slice(), std::slice::from_ref(name)].concat())
            };
            return match self.imports.get(&key).cloned().or_else(of_glob) {
                Some(target) if steps < 10 && target != child => {
                    self.owner(&[target.as_slice(), &path[place + 1..]].concat(), steps + 1)
                }
                _ => module,
            };
        }
        module
    }

    /// Returns the dependencies between top-level modules.
    fn dependencies(&self) -> Dependencies {
        let mut dependencies = Dependencies::new();
        for (module, (file, named)) in self.rust_paths() {
            let Some(path) = self.absolute(module, named) else { continue };
            let owner = self.owner(&path, 0);
            if let (Some(from), Some(to)) = (module.first(), owner.first())
                && from != to
            {
                let because = format!("{file}: {}", named.path.join("::"));
                dependencies.entry((from.clone(), to.clone())).or_default().insert(because);
            }
        }
        dependencies
    }
}

/// Returns the modules that `from` depends on, directly or through other modules.
fn reachable_modules<'a>(dependencies: &'a Dependencies, from: &'a str) -> BTreeSet<&'a str> {
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
fn architecture_has_no_cycle_between_modules() {
    let crates = Crates::of_project();
    let mut report = String::new();
    for folder in CRATE_FOLDERS {
        // The protocol model consists of tests only.
        for name in crates.of_folder(folder).into_iter().filter(|name| crates.path(name).join("src").exists()) {
            let dependencies = Source::read(crates.path(name)).dependencies();
            for cycle in cycles(&dependencies) {
                report += &format!("\n{name}: {}\n", cycle.join(", "));
                let is_inside = |module: &String| cycle.contains(&module.as_str());
                for ((from, to), files) in
                    dependencies.iter().filter(|((from, to), _)| is_inside(from) && is_inside(to))
                {
                    let files: Vec<&str> = files.iter().take(3).map(String::as_str).collect();
                    report += &format!("  {from} depends on {to}: {}\n", files.join("; "));
                }
            }
        }
    }
    assert!(report.is_empty(), "cyclic dependencies between modules:{report}");
}

#[test]
fn architecture_pages_of_billing_and_store_name_every_public_module() {
    for name in ["billing", "store"] {
        let text = std::fs::read_to_string(root().join("shared").join(name).join("src/lib.rs")).unwrap();
        let page: String = text.lines().filter(|line| line.starts_with("//!")).collect();
        let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
        let is_missing =
            |module: &&str| !page.contains(&format!("[`{module}`]")) && !page.contains(&format!("@{module}`]"));
        let missing: Vec<&str> = modules.filter(is_missing).collect();
        assert!(missing.is_empty(), "{name}: the reading order does not contain {missing:?}");
    }
}
