"""Compiles one source once per instruction set (EXACT.md rule 9)."""

load("@rules_cc//cc:defs.bzl", "cc_library")

def isa_library(name, srcs, deps):
    """Makes `name`_v3 (x86-64-v3) and `name`_v4 (AVX-512) from the same sources.

    The sources put their functions into namespace STRATA_ISA, which is v3 or v4 here, and include
    no inline std or Abseil code: the linker keeps one copy of an inline function, perhaps the
    AVX-512 one, for everybody.

    Args:
      name: prefix of both targets.
      srcs: the sources.
      deps: header-only targets of ops.
    """
    cc_library(
        name = name + "_v3",
        srcs = srcs,
        copts = ["-O3"],
        local_defines = ["STRATA_ISA=v3"],
        visibility = ["//visibility:private"],
        deps = deps,
    )
    cc_library(
        name = name + "_v4",
        srcs = srcs,
        copts = ["-O3", "-march=x86-64-v4", "-mprefer-vector-width=512"],
        local_defines = ["STRATA_ISA=v4"],
        visibility = ["//visibility:private"],
        deps = deps,
    )
