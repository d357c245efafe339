//! A red-black tree with keys in order, whose shape is part of the model: a search for a segment's place meets only the buffers on its way.
//!
//! Source: Cormen et al., *Introduction to Algorithms*, chapter 13; a node with two children is replaced by the one after it. Differs: nodes lie in one
//! vector, which never shrinks. Not modelled: nothing else is searched by it.

use std::num::NonZeroU32;

/// A node: valid until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(NonZeroU32);

/// Which child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// With smaller keys.
    Left,
    /// With greater keys.
    Right,
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

struct Node<T> {
    key: u64,
    value: T,
    /// Of a node that was removed: the next one of these.
    parent: Option<Id>,
    children: [Option<Id>; 2],
    is_red: bool,
}

/// The tree.
pub(super) struct Tree<T> {
    nodes: Vec<Node<T>>,
    root: Option<Id>,
    /// The nodes with the smallest and the greatest key.
    ends: [Option<Id>; 2],
    /// The first of those that were removed.
    unused: Option<Id>,
}

impl<T> Default for Tree<T> {
    fn default() -> Tree<T> {
        Tree { nodes: Vec::new(), root: None, ends: [None; 2], unused: None }
    }
}

impl<T: Copy> Tree<T> {
    /// Where a search begins.
    #[inline]
    pub fn root(&self) -> Option<Id> {
        self.root
    }
    /// Where a search goes on.
    #[inline]
    pub fn child(&self, id: Id, side: Side) -> Option<Id> {
        self.node(id).children[side as usize]
    }
    /// The key of a node.
    #[inline]
    pub fn key(&self, id: Id) -> u64 {
        self.node(id).key
    }
    /// What a node holds.
    #[inline]
    pub fn get(&self, id: Id) -> &T {
        &self.node(id).value
    }
    /// What a node holds, to be changed.
    #[inline]
    pub fn get_mut(&mut self, id: Id) -> &mut T {
        &mut self.node_mut(id).value
    }
    /// The node with the smallest key.
    #[inline]
    pub fn first(&self) -> Option<Id> {
        self.ends[Side::Left as usize]
    }
    /// The node with the greatest key.
    #[inline]
    pub fn last(&self) -> Option<Id> {
        self.ends[Side::Right as usize]
    }
    /// The node with the next greater key.
    #[inline]
    pub fn next(&self, id: Id) -> Option<Id> {
        if self.last() == Some(id) {
            return None;
        }
        self.successor(id)
    }
    fn successor(&self, id: Id) -> Option<Id> {
        if let Some(right) = self.child(id, Side::Right) {
            return Some(self.end(right, Side::Left));
        }
        let mut at = id;
        while let Some(parent) = self.node(at).parent {
            if self.child(parent, Side::Left) == Some(at) {
                return Some(parent);
            }
            at = parent;
        }
        None
    }

    /// Adds a node whose key is not there.
    pub fn insert(&mut self, key: u64, value: T) -> Id {
        let (mut below, mut at) = (None, self.root);
        while let Some(id) = at {
            let side = if key < self.key(id) { Side::Left } else { Side::Right };
            (below, at) = (Some((id, side)), self.child(id, side));
        }
        self.insert_below(below, key, value)
    }
    /// Adds a node where a search for its key ended: as the missing child of a node on that side, or as the root of an empty tree.
    pub fn insert_below(&mut self, below: Option<(Id, Side)>, key: u64, value: T) -> Id {
        let parent = below.map(|(parent, _)| parent);
        let id = self.place(Node { key, value, parent, children: [None; 2], is_red: true });
        match below {
            Some((parent, side)) => {
                self.node_mut(parent).children[side as usize] = Some(id);
                let end = &mut self.ends[side as usize];
                if *end == Some(parent) {
                    *end = Some(id);
                }
            }
            None => (self.root, self.ends) = (Some(id), [Some(id); 2]),
        }
        self.mend_red(id);
        id
    }
    /// Removes a node.
    pub fn remove(&mut self, id: Id) -> T {
        for side in [Side::Left, Side::Right] {
            if self.ends[side as usize] == Some(id) {
                // No child lies further out, so that the nearest node is the far end of the other child's subtree, or the parent.
                let inner = self.child(id, side.other());
                self.ends[side as usize] = inner.map(|inner| self.end(inner, side)).or(self.node(id).parent);
            }
        }
        let (gap, parent, was_red) = match self.node(id).children {
            [Some(left), Some(right)] => self.replace_by_next(id, left, right),
            [left, right] => {
                let (child, parent, was_red) = (left.or(right), self.node(id).parent, self.node(id).is_red);
                self.replace(id, child);
                (child, parent, was_red)
            }
        };
        if !was_red {
            self.mend_black(gap, parent);
        }
        self.node_mut(id).parent = self.unused.replace(id);
        self.node(id).value
    }
    // The node after one with two children takes its place. Returns what took the place of that, the parent there, and the colour that left it.
    fn replace_by_next(&mut self, id: Id, left: Id, right: Id) -> (Option<Id>, Option<Id>, bool) {
        let next = self.end(right, Side::Left);
        let (child, was_red) = (self.child(next, Side::Right), self.node(next).is_red);
        let mut parent = Some(next);
        if next != right {
            parent = self.node(next).parent;
            self.replace(next, child);
            self.adopt(next, Side::Right, Some(right));
        }
        self.replace(id, Some(next));
        self.adopt(next, Side::Left, Some(left));
        self.node_mut(next).is_red = self.node(id).is_red;
        (child, parent, was_red)
    }

    // ---- colours ---------------------------------------------------------------------------------------------------

    // A red node may have a red parent (Cormen et al., RB-INSERT-FIXUP).
    fn mend_red(&mut self, id: Id) {
        let mut at = id;
        while let Some(parent) = self.node(at).parent.filter(|&p| self.node(p).is_red) {
            let Some(above) = self.node(parent).parent else { break };
            let side = self.side(parent, above);
            let uncle = self.child(above, side.other());
            if let Some(uncle) = uncle.filter(|&u| self.node(u).is_red) {
                self.node_mut(parent).is_red = false;
                self.node_mut(uncle).is_red = false;
                self.node_mut(above).is_red = true;
                at = above;
                continue;
            }
            let upper = if self.side(at, parent) == side {
                parent
            } else {
                self.rotate(parent, side);
                at
            };
            self.node_mut(upper).is_red = false;
            self.node_mut(above).is_red = true;
            self.rotate(above, side.other());
            break;
        }
        if let Some(root) = self.root {
            self.node_mut(root).is_red = false;
        }
    }
    // Paths through the child `at` of `parent`, which may be none, have one black node less than others (RB-DELETE-FIXUP).
    fn mend_black(&mut self, at: Option<Id>, parent: Option<Id>) {
        let (mut at, mut parent) = (at, parent);
        while let Some(above) = parent.filter(|_| !self.is_red(at)) {
            let side = if self.child(above, Side::Left) == at { Side::Left } else { Side::Right };
            let Some(mut sibling) = self.child(above, side.other()) else { break };
            if self.node(sibling).is_red {
                self.node_mut(sibling).is_red = false;
                self.node_mut(above).is_red = true;
                self.rotate(above, side);
                let Some(nephew) = self.child(above, side.other()) else { break };
                sibling = nephew;
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, side.other()));
            if !self.is_red(near) && !self.is_red(far) {
                self.node_mut(sibling).is_red = true;
                (at, parent) = (Some(above), self.node(above).parent);
                continue;
            }
            if let Some(near) = near.filter(|_| !self.is_red(far)) {
                self.node_mut(near).is_red = false;
                self.node_mut(sibling).is_red = true;
                self.rotate(sibling, side.other());
                sibling = near;
            }
            self.node_mut(sibling).is_red = self.node(above).is_red;
            self.node_mut(above).is_red = false;
            if let Some(far) = self.child(sibling, side.other()) {
                self.node_mut(far).is_red = false;
            }
            self.rotate(above, side);
            return;
        }
        if let Some(at) = at {
            self.node_mut(at).is_red = false;
        }
    }

    // ---- links -----------------------------------------------------------------------------------------------------

    #[inline]
    fn node(&self, id: Id) -> &Node<T> {
        &self.nodes[id.0.get() as usize - 1]
    }
    #[inline]
    fn node_mut(&mut self, id: Id) -> &mut Node<T> {
        &mut self.nodes[id.0.get() as usize - 1]
    }
    fn is_red(&self, id: Option<Id>) -> bool {
        id.is_some_and(|id| self.node(id).is_red)
    }
    fn side(&self, id: Id, parent: Id) -> Side {
        if self.child(parent, Side::Left) == Some(id) {
            Side::Left
        } else {
            Side::Right
        }
    }
    // The outermost node of a subtree.
    fn end(&self, root: Id, side: Side) -> Id {
        let mut at = root;
        while let Some(child) = self.child(at, side) {
            at = child;
        }
        at
    }
    fn place(&mut self, node: Node<T>) -> Id {
        if let Some(id) = self.unused {
            self.unused = self.node(id).parent;
            *self.node_mut(id) = node;
            return id;
        }
        self.nodes.push(node);
        Id(NonZeroU32::MIN.saturating_add(self.nodes.len() as u32 - 1))
    }
    fn adopt(&mut self, parent: Id, side: Side, child: Option<Id>) {
        self.node_mut(parent).children[side as usize] = child;
        if let Some(child) = child {
            self.node_mut(child).parent = Some(parent);
        }
    }
    // A subtree takes the place of another one.
    fn replace(&mut self, old: Id, new: Option<Id>) {
        match self.node(old).parent {
            Some(parent) => self.adopt(parent, self.side(old, parent), new),
            None => {
                self.root = new;
                if let Some(new) = new {
                    self.node_mut(new).parent = None;
                }
            }
        }
    }
    // A node goes down to `side`; its child on the other side takes its place.
    fn rotate(&mut self, id: Id, side: Side) {
        let Some(up) = self.child(id, side.other()) else { return };
        let inner = self.child(up, side);
        self.replace(id, Some(up));
        self.adopt(id, side.other(), inner);
        self.adopt(up, side, Some(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Black nodes on each path of a subtree; the keys in order are appended.
    fn checked(tree: &Tree<()>, at: Option<Id>, parent: Option<Id>, keys: &mut Vec<u64>) -> u32 {
        let Some(id) = at else { return 0 };
        let node = tree.node(id);
        assert_eq!(node.parent, parent);
        assert!(!(node.is_red && tree.is_red(parent)), "a red node has a red parent");
        let left = checked(tree, node.children[0], at, keys);
        keys.push(node.key);
        assert_eq!(left, checked(tree, node.children[1], at, keys), "paths have other numbers of black nodes");
        left + u32::from(!node.is_red)
    }
    /// Keys from the root on, level by level.
    fn levels(tree: &Tree<()>) -> Vec<Vec<u64>> {
        let (mut levels, mut row) = (Vec::new(), Vec::from_iter(tree.root()));
        while !row.is_empty() {
            levels.push(row.iter().map(|&id| tree.key(id)).collect());
            row = row.iter().flat_map(|&id| tree.node(id).children).flatten().collect();
        }
        levels
    }
    fn of(keys: impl IntoIterator<Item = u64>) -> Tree<()> {
        let mut tree = Tree::default();
        for key in keys {
            tree.insert(key, ());
        }
        tree
    }

    /// Cormen et al., exercises 13.3-2 and 13.4-3: 41, 38, 31, 12, 19, 8 are inserted, and deleted from the smallest on.
    #[test]
    fn the_textbook() {
        let mut tree = of([41, 38, 31, 12, 19, 8]);
        assert_eq!(levels(&tree), [vec![38], vec![19, 41], vec![12, 31], vec![8]]);
        let mut roots = Vec::new();
        while let Some(first) = tree.first() {
            tree.remove(first);
            roots.push(tree.root().map(|id| tree.key(id)));
        }
        assert_eq!(roots, [Some(38), Some(38), Some(38), Some(38), Some(41), None]);
    }

    /// Any order of insertions and removals keeps the keys in order and the tree balanced.
    #[test]
    fn laws() {
        let (mut tree, mut there, mut x) = (Tree::default(), std::collections::BTreeSet::new(), 1_u64);
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (x >> 33) % 200;
            if there.insert(key) {
                tree.insert(key, ());
            } else {
                there.remove(&key);
                let mut at = tree.first();
                while at.map(|id| tree.key(id)) != Some(key) {
                    at = at.and_then(|id| tree.next(id));
                }
                tree.remove(at.unwrap());
            }
            let mut keys = Vec::new();
            checked(&tree, tree.root(), None, &mut keys);
            assert!(keys.iter().eq(&there));
            let ends = [tree.first(), tree.last()].map(|end| end.map(|id| tree.key(id)));
            assert_eq!(ends, [there.first().copied(), there.last().copied()]);
            assert_eq!(tree.last().and_then(|last| tree.next(last)), None);
        }
        assert!(tree.nodes.len() <= 200, "places of removed nodes are used again");
    }
}
