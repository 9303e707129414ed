//! Checks the drawing of the layers in `docs/architecture.md`: it contains each crate of `shared` once, and no crate
//! depends on a crate of a layer above its own.

use super::{Crates, root};

/// The line of the document before the drawing.
const DRAWING_BEGIN: &str = "<!-- The layers -->";
/// The line of the document after the drawing.
const DRAWING_END: &str = "<!-- End of the layers -->";

/// Returns the layers of `drawing`, from the top to the bottom: the folders in each line that begins with the name of a
/// layer.
fn read_layers(drawing: &str) -> Vec<Vec<&str>> {
    let lines = drawing.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
    lines.map(|line| line.split_whitespace().skip(1).collect()).collect()
}

/// Returns what is wrong with the drawing `layers`: crates of `shared` that are missing, unknown or drawn twice, and
/// dependencies on a higher layer.
fn find_mistakes(layers: &[Vec<&str>], crates: &Crates) -> Vec<String> {
    let folder_of = |name: &str| crates.folder(name).strip_prefix("shared/").map(str::to_owned);
    let layer_of = |folder: &str| layers.iter().position(|layer| layer.contains(&folder));
    let shared = crates.of_folder("shared");
    let mut expected: Vec<String> = shared.iter().filter_map(|name| folder_of(name)).collect();
    // The folders of the programs contain a slash.
    let mut drawn: Vec<&str> = layers.iter().flatten().copied().filter(|folder| !folder.contains('/')).collect();
    expected.sort_unstable();
    drawn.sort_unstable();
    let mut mistakes = Vec::new();
    if drawn != expected {
        mistakes.push(format!("the drawing contains {drawn:?}, and the folder shared {expected:?}"));
    }
    for (name, folder) in shared.iter().filter_map(|name| Some((*name, folder_of(name)?))) {
        for used in crates.direct_dependencies(name).iter().filter(|used| shared.contains(&used.as_str())) {
            let used = folder_of(used).unwrap();
            if layer_of(&used).zip(layer_of(&folder)).is_some_and(|(layer_of_used, layer)| layer_of_used < layer) {
                mistakes.push(format!("{folder} uses {used}, which is drawn above it"));
            }
        }
    }
    mistakes
}

#[test]
fn no_crate_depends_on_a_crate_of_a_layer_above_its_own() {
    let document = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let drawing = document.split(DRAWING_BEGIN).nth(1).unwrap().split(DRAWING_END).next().unwrap();
    let mistakes = find_mistakes(&read_layers(drawing), Crates::of_project());
    assert!(mistakes.is_empty(), "the layers in docs/architecture.md:\n{}", mistakes.join("\n"));
}

#[test]
fn a_missing_crate_and_a_dependency_on_a_higher_layer_are_found() {
    let layers = read_layers("programs  functions/*\n    |\nlow  billing\nhigh  charging\n");
    let mistakes = find_mistakes(&layers, Crates::of_project());
    assert!(mistakes[0].starts_with("the drawing contains"), "{mistakes:?}");
    assert_eq!(mistakes[1..], ["charging uses billing, which is drawn above it"]);
}
