"""C++ rules of this project: Bazel's, with library headers that are parsed once (prelude.h)."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")

def _with(prelude, args):
    """`args` of a rule, reading `prelude` (a cc_prelude of this folder) before each source."""
    wanted = args.pop("prelude", True)
    if not args.get("srcs") or not wanted:
        return args

    # Clang takes what it parsed for the same instruction set alone; g++ parses it again for others.
    parsed = ["-include-pch", "$(BINDIR)/tools/bazel/{0}/{0}.h.pch".format(prelude)]
    if [flag for flag in args.get("copts", []) if flag.startswith("-m")]:
        parsed = []
    off = {"//tools/bazel:" + prelude + "_off": [], "//tools/bazel:" + prelude + "_off_clang": []}
    args["copts"] = args.get("copts", []) + select(dict(off, **{
        "//tools/bazel:clang": parsed,
        "//conditions:default": ["-include", prelude + ".h"],
    }))
    args["deps"] = args.get("deps", []) + select(dict(off, **{
        "//tools/bazel:clang": ["//tools/bazel:" + prelude] if parsed else [],
        "//conditions:default": ["//tools/bazel:" + prelude],
    }))
    return args

def cc_library(mutations = False, **kwargs):
    """Static alone: nothing links a shared library of ours. prelude = False: without it.

    mutations = True: its sources have planted faults (proto/core/mutation.h)."""
    if mutations:
        kwargs["local_defines"] = kwargs.get("local_defines", []) + select({
            "//tools/bazel:mutations": ["STRATA_MUTATIONS"],
            "//conditions:default": [],
        })
    _cc_library(linkstatic = True, **_with("prelude", kwargs))

def cc_binary(**kwargs):
    _cc_binary(**_with("prelude", kwargs))

def cc_test(**kwargs):
    """With Catch2 among what is parsed once."""
    _cc_test(**_with("test_prelude", kwargs))
