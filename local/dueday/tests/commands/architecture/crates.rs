//! The crates of the workspace and their dependencies, as `cargo metadata` lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use super::root;

/// A crate of the workspace.
#[derive(Debug)]
struct Package {
    path: PathBuf,
    description: String,
    /// The names of the library and the binaries, as written in paths and log lines.
    targets: BTreeSet<String>,
    /// The names of the binaries.
    programs: BTreeSet<String>,
    /// The main files of the library and the binaries that have `test = false` in the manifest.
    without_tests: Vec<PathBuf>,
    /// The main file of the library, if it has `doctest = false` in the manifest.
    without_examples: Vec<PathBuf>,
}

/// The crates of the workspace, and the dependencies of all crates by name, without dev- and build-dependencies.
#[derive(Debug)]
pub struct Crates {
    workspace_crates: BTreeMap<String, Package>,
    /// The dependencies of each crate. If a crate occurs in two versions, the set contains the dependencies of both
    /// versions.
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl Crates {
    /// Returns the crates of this project. `cargo metadata` runs only once for all tests.
    pub fn of_project() -> &'static Self {
        static CRATES: LazyLock<Crates> = LazyLock::new(Crates::read);
        &CRATES
    }

    /// Runs `cargo metadata` without the network, and only for the platform of this machine, because only the
    /// dependencies of this platform are downloaded.
    fn read() -> Self {
        let compiler = Command::new("rustc").arg("-vV").output().unwrap();
        let compiler = String::from_utf8(compiler.stdout).unwrap();
        let machine = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", machine];
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self::from_metadata(&serde_json::from_slice(&output.stdout).unwrap())
    }

    /// Reads the output of `cargo metadata`.
    fn from_metadata(metadata: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let members: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
        let (mut names, mut workspace_crates) = (BTreeMap::new(), BTreeMap::new());
        for package in list(&metadata["packages"]) {
            let (id, name) = (text(&package["id"]), text(&package["name"]));
            if members.contains(&id) {
                let targets = list(&package["targets"]);
                let of_kind = |kind: &str| -> BTreeSet<String> {
                    targets
                        .iter()
                        .filter(|target| target["kind"][0] == kind)
                        .map(|target| text(&target["name"]))
                        .collect()
                };
                let programs = of_kind("bin");
                let without = |kind: &str| -> Vec<PathBuf> {
                    let without = targets.iter().filter(|target| target[kind] == false);
                    without.map(|target| text(&target["src_path"]).into()).collect()
                };
                let (without_tests, mut without_examples) = (without("test"), without("doctest"));
                without_examples.retain(|path| path.ends_with("lib.rs"));
                let targets = of_kind("lib").union(&programs).map(|name| name.replace('-', "_")).collect();
                let description = text(&package["description"]);
                workspace_crates.insert(
                    name.clone(),
                    Package {
                        path: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_owned(),
                        description: description.trim_end_matches('.').to_owned(),
                        targets,
                        programs,
                        without_tests,
                        without_examples,
                    },
                );
            }
            names.insert(id, name);
        }
        let mut dependencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let of = dependencies.entry(names[&text(&node["id"])].clone()).or_default();
            for dependency in list(&node["deps"]) {
                // Dependencies of tests and build scripts have a kind; normal dependencies have none.
                if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                    of.insert(names[&text(&dependency["pkg"])].clone());
                }
            }
        }
        Self { workspace_crates, dependencies }
    }

    /// Returns the names of the crates of the workspace.
    pub fn workspace_crates(&self) -> impl Iterator<Item = &str> {
        self.workspace_crates.keys().map(String::as_str)
    }

    /// Returns the names of the crates in `folder`.
    pub fn of_folder(&self, folder: &str) -> Vec<&str> {
        let parent = root().join(folder);
        self.workspace_crates().filter(|name| self.path(name).parent() == Some(parent.as_path())).collect()
    }

    /// Returns the folder of the crate `name`.
    pub fn path(&self, name: &str) -> &Path {
        &self.workspace_crates[name].path
    }

    /// Returns the folder of the crate `name`, from the folder of the workspace, such as `shared/billing`.
    pub fn folder(&self, name: &str) -> String {
        self.path(name).strip_prefix(root()).unwrap().display().to_string()
    }

    /// Returns the description of the crate `name` in its manifest.
    pub fn description(&self, name: &str) -> &str {
        &self.workspace_crates[name].description
    }

    /// Returns the names of the library and the binaries of the crate `name`.
    pub fn targets(&self, name: &str) -> &BTreeSet<String> {
        &self.workspace_crates[name].targets
    }

    /// Returns the names of the binaries of the crate `name`.
    pub fn programs(&self, name: &str) -> &BTreeSet<String> {
        &self.workspace_crates[name].programs
    }

    /// Returns the main files of the libraries and binaries in the workspace for which `cargo test` builds no test
    /// program, because their manifest contains `test = false`.
    pub fn main_files_without_tests(&self) -> impl Iterator<Item = &Path> {
        self.workspace_crates.values().flat_map(|package| &package.without_tests).map(PathBuf::as_path)
    }

    /// Returns the main files of the libraries in the workspace in whose documentation `cargo test` looks for no
    /// examples, because their manifest contains `doctest = false`.
    pub fn libraries_without_examples(&self) -> impl Iterator<Item = &Path> {
        self.workspace_crates.values().flat_map(|package| &package.without_examples).map(PathBuf::as_path)
    }

    /// Returns whether `name` is a crate of the workspace.
    pub fn is_workspace_crate(&self, name: &str) -> bool {
        self.workspace_crates.contains_key(name)
    }

    /// Returns whether `name` is a crate of the workspace, or a direct or indirect dependency of such a crate.
    pub fn is_workspace_crate_or_dependency(&self, name: &str) -> bool {
        self.dependencies.contains_key(name)
    }

    /// Returns the direct dependencies of the crate `name`.
    pub fn direct_dependencies(&self, name: &str) -> &BTreeSet<String> {
        &self.dependencies[name]
    }

    /// Returns all direct and indirect dependencies of the crate `name`.
    pub fn all_dependencies(&self, name: &str) -> BTreeSet<String> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(name) = next.pop() {
            next.extend(self.dependencies[&name].iter().filter(|name| reached.insert((*name).clone())).cloned());
        }
        reached
    }
}
