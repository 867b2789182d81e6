"""Reads our BUILD files without Bazel: targets with their sources, headers, deps and tags.

BUILD files are Starlark, close enough to Python: each is executed with functions of ours in place
of the rules. A construct that this does not know is an error, so nothing is silently unchecked.
"""

import os

FOLDERS = ("proto", "ops", "storage", "server", "worker", "scheduler", "tools", "tests")


class Target:
    def __init__(self, package, kind, name, attributes):
        self.package = package
        self.kind = kind
        self.name = name
        self.label = "//%s:%s" % (package, name)
        self.sources = [self._file(f) for f in attributes.get("srcs") or []]
        self.headers = [self._file(f) for f in attributes.get("hdrs") or []]
        self.headers += [self._file(f) for f in attributes.get("textual_hdrs") or []]
        self.deps = [absolute(package, d) for d in attributes.get("deps") or []]
        self.data = [absolute(package, d) for d in attributes.get("data") or []]
        self.tags = list(attributes.get("tags") or [])

    def _file(self, name):
        return os.path.join(self.package, name.lstrip(":"))


def absolute(package, label):
    """"//x:y" for ":y", "//x/y" and "//x:y"; labels of other repositories stay."""
    if label.startswith("@"):
        return label
    if label.startswith(":"):
        return "//%s%s" % (package, label)
    if not label.startswith("//"):
        return "//%s:%s" % (package, label)
    if ":" not in label:
        return "%s:%s" % (label, label.rsplit("/", 1)[-1])
    return label


def packages(root):
    """Folders (relative) with a BUILD.bazel, sorted."""
    found = []
    for top in FOLDERS:
        for folder, below, files in os.walk(os.path.join(root, top)):
            below[:] = sorted(d for d in below if not d.startswith("."))
            if "BUILD.bazel" in files:
                found.append(os.path.relpath(folder, root))
    return sorted(f for f in found if not f.startswith("tools/bazel"))


def read_package(root, package):
    """Returns the Targets of one package."""
    targets = []

    def rule(kind):
        def call(name, **attributes):
            if kind == "strata_test":
                attributes["srcs"] = attributes.get("srcs") or [name + ".cc"]
            targets.append(Target(package, kind, name, attributes))
        return call

    def strata_proto_library(name, src, deps=(), grpc=False, visibility=None):
        stem = src[:-len(".proto")]
        deps = list(deps)
        targets.append(Target(package, "proto", name, {"hdrs": [stem + ".pb.h"], "deps": deps}))
        if grpc:
            targets.append(Target(package, "proto", name + "_grpc", {
                "hdrs": [stem + ".grpc.pb.h"], "deps": [":" + name]}))

    def glob(include, exclude=(), **_):
        import fnmatch
        names = []
        for folder, _, files in os.walk(os.path.join(root, package)):
            for f in files:
                names.append(os.path.relpath(os.path.join(folder, f), os.path.join(root, package)))
        return sorted(n for n in names
                      if any(fnmatch.fnmatch(n, p) for p in include)
                      and not any(fnmatch.fnmatch(n, p) for p in exclude))

    def ignore(*_, **__):
        return None

    def select(branches):
        return [item for value in branches.values() for item in value]

    def load(label, *symbols):
        """A macro of ours is executed like its BUILD file; what is known already is not loaded."""
        missing = [symbol for symbol in symbols if symbol not in names]
        if not missing:
            return
        folder, _, file_name = absolute(package, label)[2:].partition(":")
        path = os.path.join(root, folder, file_name)
        with open(path, encoding="utf-8") as file:
            loaded = dict(names)
            exec(compile(file.read(), path, "exec"), loaded)  # pylint: disable=exec-used
        names.update((symbol, loaded[symbol]) for symbol in missing)

    names = {"load": load, "package": ignore, "exports_files": ignore, "filegroup": ignore,
             "config_setting": ignore, "genrule": ignore, "test_suite": ignore, "glob": glob,
             "select": select, "strata_proto_library": strata_proto_library,
             "alias": ignore, "package_group": ignore, "CUDA_ONLY": []}
    for kind in ("cc_library", "cc_binary", "cc_test", "strata_test", "sh_test", "sh_binary",
                 "py_test", "py_binary", "cuda_library"):
        names[kind] = rule(kind)
    path = os.path.join(root, package, "BUILD.bazel")
    with open(path, encoding="utf-8") as file:
        exec(compile(file.read(), path, "exec"), names)  # pylint: disable=exec-used
    return targets


def reached(labels, edges):
    """`labels` and what they lead to: `edges` has the next ones of each."""
    found, queue = set(labels), list(labels)
    for label in queue:
        for after in edges.get(label, ()):
            if after not in found:
                found.add(after)
                queue.append(after)
    return found


def read_all(root):
    return [t for p in packages(root) for t in read_package(root, p)]
