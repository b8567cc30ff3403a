//! The stacks of one or two sides as a tree of calls.

use super::stacks::Profile;
use std::collections::{BTreeMap, HashMap};

/// Deepest call; what lies deeper counts for the last function that is shown.
const DEPTH_MAX: usize = 256;
/// Most nodes; what comes after them counts for the function that would have called it.
const NODES_MAX: usize = 1_000_000;

/// A weight on either side; the second is zero where there is only one.
pub(super) type Weights = [f64; 2];

/// A function as it was called on one path.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) name: &'a str,
    pub(super) children: BTreeMap<&'a str, usize>,
    /// Seen in the function itself.
    pub(super) own: Weights,
    /// Seen in it and in what it called.
    pub(super) total: Weights,
}

/// All calls; node 0 is what they have in common.
#[derive(Debug)]
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
}

/// A function over all paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) own: Weights,
    pub(super) total: Weights,
}

impl<'a> Tree<'a> {
    /// The profiles of both sides, each summed.
    pub(super) fn of(sides: [&[&'a Profile]; 2]) -> Tree<'a> {
        let mut tree = Tree { nodes: vec![Node::new("all")] };
        for (side, profiles) in sides.into_iter().enumerate() {
            for (stack, count) in profiles.iter().flat_map(|profile| &profile.stacks) {
                tree.add(stack, side, *count as f64);
            }
        }
        tree
    }

    /// Seen in all.
    pub(super) fn total(&self) -> Weights {
        self.nodes[0].total
    }

    fn add(&mut self, stack: &'a str, side: usize, weight: f64) {
        let mut at = 0;
        self.nodes[0].total[side] += weight;
        for name in stack.split(';').take(DEPTH_MAX) {
            let next = match self.nodes[at].children.get(name) {
                Some(next) => *next,
                None if self.nodes.len() >= NODES_MAX => break,
                None => {
                    let next = self.nodes.len();
                    self.nodes[at].children.insert(name, next);
                    self.nodes.push(Node::new(name));
                    next
                }
            };
            at = next;
            self.nodes[at].total[side] += weight;
        }
        self.nodes[at].own[side] += weight;
    }

    /// Multiplies everything of each side by its factor.
    pub(super) fn scale(&mut self, factors: Weights) {
        for node in &mut self.nodes {
            for (side, factor) in factors.into_iter().enumerate() {
                node.own[side] *= factor;
                node.total[side] *= factor;
            }
        }
    }

    /// Every function, over all paths. One that calls itself counts once.
    pub(super) fn functions(&self) -> Vec<Function<'a>> {
        let mut functions: HashMap<&'a str, Function<'a>> = HashMap::new();
        let mut open: HashMap<&'a str, u32> = HashMap::new();
        // Nodes to enter, and those to leave again.
        let mut todo: Vec<(usize, bool)> = vec![(0, true)];
        while let Some((at, is_entering)) = todo.pop() {
            let node = &self.nodes[at];
            let depth = open.entry(node.name).or_default();
            if !is_entering {
                *depth -= 1;
                continue;
            }
            let is_outermost = *depth == 0;
            *depth += 1;
            todo.push((at, false));
            todo.extend(node.children.values().map(|child| (*child, true)));
            if at == 0 {
                continue;
            }
            let function = functions.entry(node.name).or_insert(Function {
                name: node.name,
                own: [0.0; 2],
                total: [0.0; 2],
            });
            for side in 0..2 {
                function.own[side] += node.own[side];
                function.total[side] += if is_outermost { node.total[side] } else { 0.0 };
            }
        }
        functions.into_values().collect()
    }
}

impl<'a> Node<'a> {
    fn new(name: &'a str) -> Node<'a> {
        Node { name, children: BTreeMap::new(), own: [0.0; 2], total: [0.0; 2] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let stacks = vec![("a;b;a;c".to_owned(), 3), ("a;b".to_owned(), 2), ("c".to_owned(), 5)];
        let profile = Profile { stacks, ..Profile::default() };
        let tree = Tree::of([&[&profile], &[]]);
        let mut functions = tree.functions();
        functions.sort_by_key(|function| function.name);
        let seen: Vec<_> = functions.iter().map(|f| (f.name, f.own[0], f.total[0])).collect();
        assert_eq!(seen, [("a", 0.0, 5.0), ("b", 2.0, 5.0), ("c", 8.0, 8.0)]);
        assert_eq!(tree.total(), [10.0, 0.0]);
    }

    #[test]
    fn a_deep_stack_is_bounded() {
        let stacks = vec![("f;".repeat(100_000), 1)];
        let profile = Profile { stacks, ..Profile::default() };
        let tree = Tree::of([&[&profile], &[]]);
        assert_eq!(tree.nodes.len(), 1 + DEPTH_MAX);
        assert_eq!(tree.functions().len(), 1);
    }
}
