"""Headers that many files include, parsed once for all of them."""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# Gives the compiler each library header that these files include, and as its source one of the
# system's that includes nothing.
_PARSE_EACH = """
headers=$(sed -n 's/^#include [<"]\\(.*\\)[">]$/-include \\1/p' %s | grep -v ' tools/')
exec "$@" $headers -x c++-header /usr/include/stdc-predef.h
"""

# The compiler's arguments follow. Where the plugin is made: a name that no other action has.
_INSTANTIATE = """
set -eu
export PATH=/usr/bin:/bin
compiler=$1 plugin=$2
shift 2
headers=$("$compiler" -print-file-name=plugin)/include
if [[ ! -e "$headers/gcc-plugin.h" ]]; then
  echo "$compiler has no headers for plugins (Debian 12: gcc-12-plugin-dev); tools/setup installs them" >&2
  exit 1
fi
"$compiler" -x c++ -std=c++17 -shared -fPIC -fno-rtti -O1 -isystem "$headers" tools/bazel/instantiate.cc -o "$plugin"
exec "$compiler" "-fplugin=./$plugin" "$@"
"""

def _prelude_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    ours = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        user_compile_flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts,
        quote_include_directories = depset([".", ctx.bin_dir.path]),
        use_pic = True,
    )
    flags = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )

    compiler = cc_common.get_tool_for_action(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
    )
    env = cc_common.get_environment_variables(
        feature_configuration = features,
        action_name = CPP_COMPILE_ACTION_NAME,
        variables = variables,
    )
    inputs = depset(
        [ctx.file.hdr, ctx.file._instantiate, ctx.file._instantiate_header] + ctx.files.textual_hdrs,
        transitive = [toolchain.all_files, ours.headers],
    )
    header = ctx.actions.declare_file(ctx.label.name + "/" + ctx.file.hdr.basename)
    ctx.actions.symlink(output = header, target_file = ctx.file.hdr)
    said = dict(
        env = env,
        inputs = inputs,
        mnemonic = "CppPrelude",
        progress_message = "Parsing " + ctx.file.hdr.short_path,
    )
    if toolchain.compiler == "clang":
        # What was parsed names its files by absolute paths and is refused where one is missing. It is
        # of the system's files alone, so that one build can take it from another's cache.
        parsed = ctx.actions.declare_file(ctx.label.name + "/" + ctx.file.hdr.basename + ".pch")
        ctx.actions.run_shell(
            command = _PARSE_EACH % " ".join([f.path for f in [ctx.file.hdr] + ctx.files.textual_hdrs]),
            arguments = [compiler] + flags + [
                "-fpch-instantiate-templates",
                "-Xclang",
                "-fno-pch-timestamp",
                "-o",
                parsed.path,
            ],
            outputs = [parsed],
            **said
        )
    else:
        # g++ takes NAME.h.gch where it finds it beside NAME.h and the flags are the same; else it
        # reads NAME.h. Templates that its inline functions use are instantiated in it (instantiate.cc).
        parsed = ctx.actions.declare_file(ctx.label.name + "/" + ctx.file.hdr.basename + ".gch")
        plugin = ctx.actions.declare_file(ctx.label.name + "/instantiate.so")
        ctx.actions.run_shell(
            command = _INSTANTIATE,
            arguments = [compiler, plugin.path] + flags + [
                "-include",
                ctx.file.hdr.path,
                "-x",
                "c++-header",
                ctx.file._instantiate_header.path,
                "-o",
                parsed.path,
            ],
            outputs = [parsed, plugin],
            **said
        )
    return [
        DefaultInfo(files = depset([parsed])),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset([header, parsed] + ctx.files.textual_hdrs, transitive = [ours.headers]),
            quote_includes = depset([header.dirname]),
        )),
    ]

cc_prelude = rule(
    implementation = _prelude_impl,
    doc = "A header of others, and its precompiled form. Depend on it, and give -include.",
    attrs = {
        "hdr": attr.label(allow_single_file = [".h"], mandatory = True),
        "textual_hdrs": attr.label_list(allow_files = [".h"], doc = "What hdr includes of this folder."),
        "deps": attr.label_list(providers = [CcInfo], doc = "What it includes of ours."),
        "_instantiate": attr.label(default = "//tools/bazel:instantiate.cc", allow_single_file = True),
        "_instantiate_header": attr.label(default = "//tools/bazel:instantiate.h", allow_single_file = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
