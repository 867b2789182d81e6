"""Reads which room includes which, without Bazel: rooms, floors, arrows and cycles of a folder.

A room of a folder is
* a subfolder with a BUILD.bazel, at the finest level: `storage/gpu/device` is a room of `storage`
  (and of `storage/gpu`), and its files are none of `storage/gpu`;
* or a unit among the files that lie in the folder itself: `x.h` with `x.cc`, `x.proto` and the
  headers that protoc makes of it. A further source of a class (`x_more.cc`) is a unit of its own.
An arrow is a pair of rooms of which one includes the other, in a source or a header. A floor holds
rooms that stand on the floors below: their number is the longest path, cycles taken as one room.
"""

import bisect
import os
import re

FOLDERS = ("storage", "server", "worker", "scheduler", "proto", "ops", "tools")
SOURCES = (".h", ".cc", ".cu", ".cuh", ".inc")
HOW_IT_IS_BUILT = "tools/bazel"  # no code of ours
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
IMPORT = re.compile(r'^[ \t]*import[ \t]+(?:public[ \t]+)?"([^"]+)"', re.MULTILINE)
GENERATED = re.compile(r"(\.grpc)?\.pb\.h$")


class Tree:
    """The sources of a checkout, what each includes, and the folders that are packages."""

    def __init__(self, root, folders=FOLDERS):
        self.includes = {}  # path: [(line, what it includes)]
        self.packages = set()
        for top in folders:
            for folder, below, names in os.walk(os.path.join(root, top)):
                here = os.path.relpath(folder, root).replace(os.sep, "/")
                below[:] = sorted(d for d in below if not d.startswith("."))
                if here == HOW_IT_IS_BUILT:
                    below[:] = []
                    continue
                if "BUILD.bazel" in names:
                    self.packages.add(here)
                for name in sorted(names):
                    if name.endswith(SOURCES + (".proto",)):
                        path = "%s/%s" % (here, name)
                        self.includes[path] = read_includes(root, path)

    def source_of(self, name):
        """The file of ours that an #include names; None for a header of others."""
        name = GENERATED.sub(".proto", name)
        return name if name in self.includes else None

    def room_of(self, folder, path):
        """The room of `folder` in which a file of it lies."""
        package = os.path.dirname(path)
        while package not in self.packages and package not in ("", folder):
            package = os.path.dirname(package)
        if package in ("", folder):
            return os.path.dirname(path) + "/" + os.path.basename(path).split(".")[0]
        return package

    def files(self, folder):
        return [path for path in sorted(self.includes) if path.startswith(folder + "/")]

    def is_flat(self, folder):
        """Whether no room lies in the folder but units of its own."""
        return all(self.room_of(folder, path) not in self.packages for path in self.files(folder))

    def own_files(self):
        """{folder: number of sources and headers that lie in it}"""
        count = {}
        for path in self.includes:
            if path.endswith(SOURCES):
                count[os.path.dirname(path)] = count.get(os.path.dirname(path), 0) + 1
        return count


def read_includes(root, path):
    """[(line, name)]; what is in comments counts, too: good enough.

    A name is a path from the root: check_includes sees to it."""
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    ends = [m.start() for m in re.finditer("\n", text)]
    pattern = IMPORT if path.endswith(".proto") else INCLUDE
    return [(bisect.bisect(ends, m.start(1)) + 1, m.group(1)) for m in pattern.finditer(text)]


class Graph:
    """The rooms of one folder and the arrows between them."""

    def __init__(self, tree, folder):
        self.rooms = set()
        self.arrows = {}  # (room, room): [(path, line, what it includes)]
        files = {path: tree.room_of(folder, path) for path in tree.files(folder)}
        for path, room in files.items():
            self.rooms.add(room)
            for line, name in tree.includes[path]:
                target = files.get(tree.source_of(name))
                if target not in (None, room):
                    self.arrows.setdefault((room, target), []).append((path, line, name))
        self.uses = {room: set() for room in self.rooms}
        for source, target in self.arrows:
            self.uses[source].add(target)
        self.parts = components(self.uses)  # what is used comes before its users

    def floors(self):
        """{room: floor}, the lowest is 1."""
        floor = {}
        for part in self.parts:
            below = [floor[used] for room in part for used in self.uses[room] if used not in part]
            for room in part:
                floor[room] = 1 + max(below, default=0)
        return floor

    def cycles(self):
        """One shortest cycle [a, b, ..., a] for each set of rooms that use each other."""
        return [self._cycle(part) for part in self.parts if len(part) > 1]

    def _cycle(self, part):
        start = min(part)
        came_from, queue = {start: None}, [start]
        for room in queue:
            for used in sorted(self.uses[room] & part):
                if used == start:
                    way = [start]
                    while room is not None:
                        way.append(room)
                        room = came_from[room]
                    return way[::-1]
                if used not in came_from:
                    came_from[used] = room
                    queue.append(used)
        raise AssertionError("no cycle in %s" % sorted(part))


def edges(tree, folder):
    """{room: rooms that it uses}, where the folder's own files stand together as `folder`.

    What they use of each other is left out, but a room that uses one of them names the unit.
    """
    found = {}
    graph = Graph(tree, folder)
    for room in graph.rooms:
        inside = room in tree.packages
        used = {u for u in graph.uses[room] if inside or u in tree.packages}
        found.setdefault(room if inside else folder, set()).update(used)
    return found


def components(uses):
    """The strongly connected components (sets), each after those that it uses: Tarjan's."""
    index, low, stack, found = {}, {}, [], []
    for start in sorted(uses):
        if start in index:
            continue
        work = [(start, iter(sorted(uses[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            room, rest = work[-1]
            for used in rest:
                if used not in index:
                    index[used] = low[used] = len(index)
                    stack.append(used)
                    work.append((used, iter(sorted(uses[used]))))
                    break
                if used in stack:
                    low[room] = min(low[room], index[used])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[room])
                if low[room] == index[room]:
                    part = set()
                    while room not in part:
                        part.add(stack.pop())
                    found.append(part)
    return found
