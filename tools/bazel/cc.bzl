"""C++ rules of this project: Bazel's, with headers that are parsed once (prelude.h, messages_prelude.h)."""

load("@rules_cc//cc:defs.bzl", _cc_binary = "cc_binary", _cc_library = "cc_library", _cc_test = "cc_test")

# What depends on one of these itself sees the messages of jobs: they are, or their headers include,
# messages_prelude.h's.
_SEE_MESSAGES = [
    "//proto/job/tables:model_tables",
    "//proto/strata:checkpoint_proto",
    "//proto/strata:control_proto",
    "//proto/strata:control_proto_grpc",
    "//proto/strata:job_proto",
    "//scheduler",
    "//server",
    "//tests/e2e/cluster:process_cluster",
    "//tests/server/shard:shard_fixture",
    "//worker/metrics:training_stats",
]

def _with(prelude, args):
    """`args` of a rule, reading `prelude` (a cc_prelude of this folder) before each source.

    With g++ that is messages_`prelude` where the rule sees messages; without what is chosen by select()."""
    wanted = args.pop("prelude", True)
    if not args.get("srcs") or not wanted:
        return args
    deps = args.get("deps", [])
    with_messages = type(deps) == "list" and [dep for dep in deps if dep in _SEE_MESSAGES]
    of_gcc = ("messages_" if with_messages else "") + prelude

    # Clang takes what it parsed for the same instruction set alone; g++ parses it again for others.
    parsed = ["-include-pch", "$(BINDIR)/tools/bazel/{0}/{0}.h.pch".format(prelude)]
    if [flag for flag in args.get("copts", []) if flag.startswith("-m")]:
        parsed = []
    off = {"//tools/bazel:" + prelude + "_off": [], "//tools/bazel:" + prelude + "_off_clang": []}
    args["copts"] = args.get("copts", []) + select(dict(off, **{
        "//tools/bazel:clang": parsed,
        "//conditions:default": ["-include", of_gcc + ".h"],
    }))
    args["deps"] = deps + select(dict(off, **{
        "//tools/bazel:clang": ["//tools/bazel:" + prelude] if parsed else [],
        "//conditions:default": ["//tools/bazel:" + of_gcc],
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
