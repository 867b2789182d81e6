"""C++ rules of this project: Bazel's, with library headers that are parsed once (prelude.h)."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")

def _with(prelude, args):
    """`args` of a rule, reading `prelude` (a cc_prelude of this folder) before each source."""
    wanted = args.pop("prelude", True)
    if not args.get("srcs") or not wanted:
        return args
    off = {"//tools/bazel:%s_off" % prelude: []}
    args["copts"] = args.get("copts", []) + select(dict(off, **{
        "//conditions:default": ["-include", prelude + ".h"],
    }))
    args["deps"] = args.get("deps", []) + select(dict(off, **{
        "//conditions:default": ["//tools/bazel:" + prelude],
    }))
    return args

def cc_library(**kwargs):
    """Static alone: nothing links a shared library of ours. prelude = False: without it."""
    _cc_library(linkstatic = True, **_with("prelude", kwargs))

def cc_binary(**kwargs):
    _cc_binary(**_with("prelude", kwargs))

def cc_test(**kwargs):
    """With Catch2 among what is parsed once."""
    _cc_test(**_with("test_prelude", kwargs))
