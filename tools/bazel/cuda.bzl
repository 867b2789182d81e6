"""Libraries for NVIDIA's GPUs: one source, for the device (--config=cuda) and for host threads."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@cuda//:toolkit.bzl", "NVCC", "NVCC_VERSION")
load("//tools/bazel:cc.bzl", "cc_library")

# ops/EXACT.md, rule 1. The first four hold for device code; the host's flags are .bazelrc's.
_EXACT_FLAGS = [
    "-fmad=false",
    "-prec-div=true",
    "-prec-sqrt=true",
    "-ftz=false",
    "-Xcompiler=-ffp-contract=off",
]

# Machine code for H100/H200, and PTX that drivers compile for what comes after them.
_NEWEST_FLAGS = ["-gencode=arch=compute_90,code=[sm_90,compute_90]"]

# And for A100, but with --define=cuda_targets=newest, which takes a quarter less time.
_TARGET_FLAGS = select({
    "//tools/bazel:cuda_newest": _NEWEST_FLAGS,
    "//conditions:default": ["-gencode=arch=compute_80,code=sm_80"] + _NEWEST_FLAGS,
})

_OTHER_FLAGS = [
    "-std=c++20",
    "-O3",
    "-lineinfo",
    # Line numbers are most of device code; so it is an eighth, and a bundle half (tools/gpu_bundle).
    "--compress-mode=size",
    "-Werror=all-warnings",
    # Taken for a dropped result: an assignment to an absl::Status.
    "-diag-suppress=2810",
    "-Xptxas=-v,-Werror",
]

def _cuda_objects_impl(ctx):
    if not NVCC:
        fail("--config=cuda wants nvcc: in $CUDA_HOME/bin, /usr/local/cuda/bin or PATH")
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    context = cc_common.merge_cc_infos(
        direct_cc_infos = [
            CcInfo(compilation_context = cc_common.create_compilation_context(
                headers = depset(ctx.files.hdrs),
                quote_includes = depset([".", ctx.bin_dir.path]),
            )),
        ],
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    )
    compilation = context.compilation_context
    flags = ["-x", "cu"] + _EXACT_FLAGS + ctx.attr.targets + _OTHER_FLAGS
    for flag in ctx.fragments.cpp.copts + ["-fPIC", "-Werror"]:
        flags.append("-Xcompiler=" + flag)
    for folder in compilation.quote_includes.to_list():
        flags += ["-I", folder]
    for folder in compilation.includes.to_list() + compilation.system_includes.to_list():
        flags += ["-isystem", folder]
    flags += ["-D" + define for define in compilation.defines.to_list()]

    objects, reports = [], []
    for source in ctx.files.srcs:
        stem = "_cuda/%s/%s" % (ctx.label.name, source.basename[:-len("." + source.extension)])
        compiled, report, ptx = [
            ctx.actions.declare_file(stem + suffix)
            for suffix in [".o", ".kernels", ".ptx"]
        ]
        ctx.actions.run(
            executable = ctx.executable._compile,
            arguments = [compiled.path, report.path, ptx.path, NVCC] + flags + [source.path],
            env = {"NVCC_VERSION": NVCC_VERSION, "PATH": "/usr/bin:/bin"},
            inputs = depset([source], transitive = [compilation.headers, toolchain.all_files]),
            outputs = [compiled, report, ptx],
            mnemonic = "CudaCompile",
            progress_message = "Compiling for GPUs " + source.short_path,
        )
        objects.append(compiled)
        reports += [report, ptx]

    outputs = cc_common.create_compilation_outputs(
        objects = depset(objects),
        pic_objects = depset(objects),
    )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = toolchain,
        compilation_outputs = outputs,
        name = ctx.label.name,
        disallow_dynamic_library = True,
        linking_contexts = [context.linking_context],
    )
    return [
        DefaultInfo(files = depset(objects)),
        OutputGroupInfo(reports = depset(reports)),
        CcInfo(compilation_context = compilation, linking_context = linking),
    ]

_cuda_objects = rule(
    implementation = _cuda_objects_impl,
    doc = "What nvcc makes of the sources; output group `reports`: see cuda_library.",
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc"], mandatory = True),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "targets": attr.string_list(doc = "nvcc's flags of what it compiles for."),
        "_compile": attr.label(
            default = "//tools/bazel:cuda_compile.sh",
            allow_single_file = True,
            cfg = "exec",
            executable = True,
        ),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)

def _cuda_reports_impl(ctx):
    reports = depset(transitive = [
        library[OutputGroupInfo].reports
        for library in ctx.attr.libraries
    ])
    return [DefaultInfo(files = reports, runfiles = ctx.runfiles(transitive_files = reports))]

_cuda_reports = rule(
    implementation = _cuda_reports_impl,
    doc = "What the compiler told about libraries' kernels.",
    attrs = {"libraries": attr.label_list(providers = [OutputGroupInfo])},
)

# For target_compatible_with: what exists with --config=cuda only, and without it only.
CUDA_ONLY = select({
    "//tools/bazel:cuda": [],
    "//conditions:default": ["//tools/bazel:nowhere"],
})
_HOST_ONLY = select({
    "//tools/bazel:cuda": ["//tools/bazel:nowhere"],
    "//conditions:default": [],
})

def cuda_library(name, srcs, hdrs = [], deps = [], host_srcs = None, cuda_only = False, visibility = None):
    """A library that nvcc compiles with --config=cuda, and the host's compiler without.

    Sources are .cc files in which __CUDACC__ tells the two apart. `name`_kernels holds, for each
    source, a table of its kernels' registers, spills, stack and shared memory per architecture
    (.kernels) and their PTX (.ptx); empty without --config=cuda.

    Args:
      name: the library's.
      srcs: .cc files.
      hdrs: its header.
      deps: cc_library or cuda_library targets.
      host_srcs: sources of it without --config=cuda; default: srcs.
      cuda_only: it does not exist without --config=cuda.
      visibility: of the library and of `name`_kernels.
    """
    _cuda_objects(
        name = name + "_cuda",
        srcs = srcs,
        hdrs = hdrs,
        target_compatible_with = CUDA_ONLY,
        visibility = ["//visibility:private"],
        targets = _TARGET_FLAGS,
        deps = deps + ["@cuda//:runtime"],
    )
    _cuda_reports(
        name = name + "_kernels",
        libraries = select({
            "//tools/bazel:cuda": [":" + name + "_cuda"],
            "//conditions:default": [],
        }),
        visibility = visibility,
    )
    if not cuda_only:
        cc_library(
            name = name + "_host",
            srcs = host_srcs or srcs,
            hdrs = hdrs,
            copts = ["-O3"],
            # It was not parsed with -O3, and g++ 12 crashes over that under ThreadSanitizer.
            prelude = False,
            target_compatible_with = _HOST_ONLY,
            visibility = ["//visibility:private"],
            deps = deps,
        )
    native.alias(
        name = name,
        actual = ":" + name + "_cuda" if cuda_only else select({
            "//tools/bazel:cuda": ":" + name + "_cuda",
            "//conditions:default": ":" + name + "_host",
        }),
        visibility = visibility,
    )
