//! Profiles: folded stacks of a run directory, the hottest functions, flame graphs, and what
//! changed from one side of a comparison to the other.

mod diff;
mod flame;
mod stacks;
mod tree;

pub use diff::{Change, Difference, Side, compare, diff};
pub use flame::flame;
pub use stacks::{FOLDER, Profile};
pub(crate) use stacks::{check_size, file_name, list, parse};

use crate::summary::{HotRow, ProfileRow};
use tree::Tree;

/// The style of flame graphs; a page that shows one needs it once.
pub const STYLE: &str = include_str!("../../assets/flame.css");
/// The script that zooms flame graphs; a page works without it.
pub const SCRIPT: &str = include_str!("../../assets/flame.js");
/// Functions in a table of the hottest.
pub const HOTTEST: usize = 10;

/// A profile in a nutshell: how often was looked, and where it was found most.
pub(crate) fn row(profile: &Profile) -> ProfileRow {
    let tree = Tree::of([&[profile], &[]]);
    let percent = |weight: f64| crate::analysis::ratio(weight * 100.0, tree.total()[0]);
    let mut functions = tree.functions();
    functions.sort_by(|a, b| {
        b.own[0]
            .total_cmp(&a.own[0])
            .then(b.total[0].total_cmp(&a.total[0]))
            .then(a.name.cmp(b.name))
    });
    let hottest = functions.iter().filter(|function| function.own[0] > 0.0).take(HOTTEST);
    ProfileRow {
        phase: profile.phase.clone(),
        profiler: profile.name.clone(),
        file: profile.file.clone(),
        seen: profile.stacks.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count)),
        hottest: hottest
            .map(|function| HotRow {
                function: shown(function.name),
                self_percent: percent(function.own[0]),
                total_percent: percent(function.total[0]),
            })
            .collect(),
    }
}

/// The name of a function as people read it: the ends that mark kernel and compiled code become
/// words.
pub(crate) fn shown(name: &str) -> String {
    match name {
        name if name.ends_with("_[k]") => format!("{} [kernel]", &name[..name.len() - 4]),
        name if name.ends_with("_[j]") => name[..name.len() - 4].to_owned(),
        name => name.to_owned(),
    }
}
