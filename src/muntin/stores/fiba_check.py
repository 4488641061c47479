"""Everything that must hold in a finger B-tree between operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from muntin.stores.fiba_layout import *

if TYPE_CHECKING:
    from muntin.stores.fiba import FiBA


@dataclass(slots=True)
class _Tree:
    """The state as plain lists, and what the walk has seen."""

    store: FiBA
    state: list[int]
    ints: list[int]
    layout: dict[str, int]
    nodes: set[int] = field(default_factory=set)
    times: list[int] = field(default_factory=list)
    size: int = 0

    def of(self, x: int, what: int) -> int:
        return self.ints[x + what]

    def kids(self, x: int) -> list[int]:
        if self.of(x, FLAGS) & LEAF:
            return []
        at = x + self.layout["KIDS"]
        return self.ints[at : at + self.of(x, COUNT) + 1]

    def cell(self, x: int, i: int) -> Any:
        return self.store._partial(self.store._data[2], x + i)


def check_tree(store: FiBA) -> None:
    """Assert size, order, fingers, flags, counts and all aggregates: O(n)."""
    state, ints, _ = store._data
    plain = (state.tolist(), ints.tolist()) if store.compiled else (state, ints)
    tree = _Tree(store, *plain, constants(store.arity))
    root = tree.state[TOP]
    assert tree.of(root, FLAGS) & ROOT == ROOT, "the root is on both spines"
    _check_node(tree, root, tree.state[HEIGHT] - 1)
    assert tree.times == sorted(set(tree.times)), "times strictly in order"
    assert len(tree.times) == tree.state[SIZE], "entries are counted"
    earliest = store._constants().get("EARLIEST", EARLIEST)
    assert tree.state[NEWEST] == (tree.times[-1] if tree.times else earliest), "the newest time is known"
    _check_fingers(tree, root)
    _check_left_sums(tree)
    _check_free(tree)


def _check_node(tree: _Tree, x: int, level: int) -> None:
    tree.nodes.add(x)
    n, flags, mu = tree.of(x, COUNT), tree.of(x, FLAGS), tree.store.arity
    assert n <= 2 * mu - 1, f"node {x} has at most 2 mu - 1 entries"
    least = {0: mu - 1, ROOT: 1}.get(flags & ROOT, tree.layout["SPARE"])
    assert n >= least or (flags & ROOT and level == 0), f"node {x} has enough entries"
    assert bool(flags & LEAF) == (level == 0), f"all leaves are on one level (node {x})"
    kids = tree.kids(x)
    for i in range(n + 1):
        if kids:
            assert tree.of(kids[i], PARENT) == x, f"node {kids[i]} knows its parent"
            expected = (flags & LEFT if i == 0 else 0) | (flags & RIGHT if i == n else 0)
            assert tree.of(kids[i], FLAGS) & ROOT == expected, f"node {kids[i]} knows its spine"
            _check_node(tree, kids[i], level - 1)
        if i < n and (x != tree.state[LEFT_FINGER] or i >= tree.state[SKIP]):
            tree.times.append(tree.of(x, TIMES + i))
    _check_aggregate(tree, x, kids)


def _check_aggregate(tree: _Tree, x: int, kids: list[int]) -> None:
    n, flags = tree.of(x, COUNT), tree.of(x, FLAGS)
    own = tree.layout["OWN"]
    partials, count = [], n
    for i in range(n + 1):
        skipped = (i == 0 and flags & LEFT) or (i == n and flags & RIGHT)
        if kids and not skipped:
            part = tree.cell(kids[i], own)
            copy = tree.cell(x, tree.layout["KID_OWN"] + i)
            tree.store._assert_same(part, copy, f"node {x} has copies of its children's aggregates")
            partials.append(part)
            count += tree.of(kids[i], BELOW)
        if i < n:
            partials.append(tree.cell(x, i))
    assert tree.of(x, BELOW) == count, f"node {x} counts the entries below it"
    if x != tree.state[LEFT_FINGER]:
        tree.store._assert_same(
            tree.store._product(partials), tree.cell(x, own), f"node {x} holds its own aggregate"
        )


def _check_fingers(tree: _Tree, root: int) -> None:
    own, down = tree.layout["OWN"], tree.layout["DOWN"]
    for side, finger in ((LEFT, LEFT_FINGER), (RIGHT, RIGHT_FINGER)):
        x, above = root, None
        while kids := tree.kids(x):
            x = kids[0] if side == LEFT else kids[-1]
            if side == LEFT and tree.of(x, FLAGS) & LEAF:
                break
            expected = tree.cell(x, own)
            if above is not None:
                pair = (expected, above) if side == LEFT else (above, expected)
                expected = tree.store._product(pair)
            tree.store._assert_same(expected, tree.cell(x, down), f"spine node {x} adds up to the root")
            above = expected
        assert tree.state[finger] == x, "the fingers are the outer leaves"


def _check_left_sums(tree: _Tree) -> None:
    """The sums of the left finger, and while the root is a leaf its entries behind them."""
    x, summed, skip = tree.state[LEFT_FINGER], tree.state[SUMMED], tree.state[SKIP]
    n = tree.of(x, COUNT)
    assert skip <= summed <= n, "no more is gone than is summed up"
    entries = [tree.cell(x, i) for i in range(n)]
    above = []
    if tree.state[HEIGHT] == 1:
        if summed < n:
            behind = tree.cell(x, tree.layout["OWN"])
            tree.store._assert_same(tree.store._product(entries[summed:]), behind, "the root sums the rest")
    else:
        assert summed == n, "all of the left finger is summed up"
        if tree.of(x, PARENT) != tree.state[TOP]:
            above = [tree.cell(tree.of(x, PARENT), tree.layout["DOWN"])]
    for i in range(skip, summed + 1):
        expected = tree.store._product(entries[i:summed] + above)
        tree.store._assert_same(expected, tree.cell(0, i), f"the left finger is summed up from {i}")


def _check_free(tree: _Tree) -> None:
    """The free list and the subtrees that hang from it, with the tree, are all nodes ever used."""
    stack, x = [], tree.state[FREE]
    while x >= 0:
        stack.append(x)
        x = tree.of(x, PARENT)
    assert len(stack) == tree.state[FREE_COUNT], "the free list is counted"
    free: set[int] = set()
    while stack:
        x = stack.pop()
        assert x not in free, f"node {x} is free once"
        assert x not in tree.nodes, f"node {x} is not free and in use"
        free.add(x)
        stack.extend(tree.kids(x))
    assert len(free) + len(tree.nodes) + 1 == tree.state[FRESH], "no node is lost"
    assert tree.state[FRESH] <= tree.state[CAPACITY], "no more nodes than there is room for"
