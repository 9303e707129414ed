//! The crates of the workspace and all they depend on, as `cargo metadata` lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::root;

/// A crate of the workspace.
#[derive(Debug)]
struct Package {
    path: PathBuf,
    description: String,
    /// The names of its library and binaries, as they are in paths and log lines.
    targets: BTreeSet<String>,
}

/// The crates of the workspace, and the normal dependencies of every crate, by name.
#[derive(Debug)]
pub struct Crates {
    ours: BTreeMap<String, Package>,
    /// Of two versions of a crate, both.
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl Crates {
    /// Asks Cargo, without the network: for this machine alone, as only its dependencies were downloaded.
    pub fn read() -> Self {
        let compiler = Command::new("rustc").arg("-vV").output().unwrap();
        let compiler = String::from_utf8(compiler.stdout).unwrap();
        let machine = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
        let arguments = ["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", machine];
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self::of(&serde_json::from_slice(&output.stdout).unwrap())
    }

    fn of(metadata: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let list = |value: &Value| value.as_array().unwrap().clone();
        let members: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
        let (mut names, mut ours) = (BTreeMap::new(), BTreeMap::new());
        for package in list(&metadata["packages"]) {
            let (id, name) = (text(&package["id"]), text(&package["name"]));
            if members.contains(&id) {
                let kinds = |target: &Value| ["lib", "bin"].iter().any(|kind| target["kind"][0] == *kind);
                let targets = list(&package["targets"]).into_iter().filter(kinds);
                let description = text(&package["description"]);
                ours.insert(
                    name.clone(),
                    Package {
                        path: Path::new(&text(&package["manifest_path"])).parent().unwrap().to_owned(),
                        description: description.trim_end_matches('.').to_owned(),
                        targets: targets.map(|target| text(&target["name"]).replace('-', "_")).collect(),
                    },
                );
            }
            names.insert(id, name);
        }
        let mut dependencies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let of = dependencies.entry(names[&text(&node["id"])].clone()).or_default();
            for dependency in list(&node["deps"]) {
                // Those for tests and build scripts have a kind.
                if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                    of.insert(names[&text(&dependency["pkg"])].clone());
                }
            }
        }
        Self { ours, dependencies }
    }

    /// The names of the crates of the workspace.
    pub fn ours(&self) -> impl Iterator<Item = &str> {
        self.ours.keys().map(String::as_str)
    }

    /// The names of the crates in `folder`.
    pub fn of_folder(&self, folder: &str) -> Vec<&str> {
        let parent = root().join(folder);
        self.ours().filter(|name| self.path(name).parent() == Some(parent.as_path())).collect()
    }

    /// The folder of `name`.
    pub fn path(&self, name: &str) -> &Path {
        &self.ours[name].path
    }

    /// What `name` is, by its manifest.
    pub fn description(&self, name: &str) -> &str {
        &self.ours[name].description
    }

    /// The names of the library and the binaries of `name`.
    pub fn targets(&self, name: &str) -> &BTreeSet<String> {
        &self.ours[name].targets
    }

    /// Whether `name` is a crate of the workspace.
    pub fn is_ours(&self, name: &str) -> bool {
        self.ours.contains_key(name)
    }

    /// Whether any crate of the workspace, or of its dependencies, is `name`.
    pub fn is_in_the_lock(&self, name: &str) -> bool {
        self.dependencies.contains_key(name)
    }

    /// The crates that `name` depends on itself.
    pub fn direct(&self, name: &str) -> &BTreeSet<String> {
        &self.dependencies[name]
    }

    /// All crates that `name` is made of, without itself.
    pub fn reached(&self, name: &str) -> BTreeSet<String> {
        let (mut reached, mut next) = (BTreeSet::new(), vec![name.to_owned()]);
        while let Some(name) = next.pop() {
            next.extend(self.dependencies[&name].iter().filter(|name| reached.insert((*name).clone())).cloned());
        }
        reached
    }

    /// The crates of the workspace that `name` depends on, without those that another one of them reaches.
    pub fn drawn_dependencies(&self, name: &str) -> Vec<&str> {
        let direct: Vec<&str> =
            self.direct(name).iter().map(String::as_str).filter(|name| self.is_ours(name)).collect();
        let further: BTreeSet<String> = direct.iter().flat_map(|name| self.reached(name)).collect();
        direct.into_iter().filter(|name| !further.contains(*name)).collect()
    }
}
