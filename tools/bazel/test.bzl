"""Tests in Catch2, one binary per tested library."""

load("//tools/bazel:cc.bzl", "cc_test")

def strata_test(name, srcs = None, deps = [], **kwargs):
    """A Catch2 test; `srcs` defaults to [name + ".cc"]."""
    cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        deps = deps + ["//tests:catch_main"],
        **kwargs
    )
