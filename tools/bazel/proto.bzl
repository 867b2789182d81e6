"""Runs the system's protoc; returns ordinary cc_library targets."""

load("//tools/bazel:cc.bzl", "cc_library")

def strata_proto_library(name, src, deps = [], grpc = False, visibility = None):
    """C++ for one .proto file.

    Makes `name` (messages) and, with grpc = True, `name`_grpc (service stubs).

    Args:
      name: the target's name, by habit `x_proto` for x.proto.
      src: the .proto file, imported as its path from the workspace root.
      deps: strata_proto_library targets whose .proto files src imports.
      grpc: also make the service's stubs.
      visibility: of the made libraries.
    """
    stem = src[:-len(".proto")]
    native.filegroup(
        name = name + "_src",
        srcs = [src] + [d + "_src" for d in deps],
        visibility = ["//visibility:public"],
    )
    native.genrule(
        name = name + "_gen",
        srcs = [":" + name + "_src"],
        outs = [stem + ".pb.h", stem + ".pb.cc"],
        cmd = "/usr/bin/protoc -I. --cpp_out=$(GENDIR) $(location %s)" % src,
        tools = [src],
    )
    cc_library(
        name = name,
        srcs = [stem + ".pb.cc"],
        hdrs = [stem + ".pb.h"],
        copts = ["-w"],
        visibility = visibility,
        deps = deps + ["@system//:protobuf"],
    )
    if grpc:
        native.genrule(
            name = name + "_grpc_gen",
            srcs = [":" + name + "_src"],
            outs = [stem + ".grpc.pb.h", stem + ".grpc.pb.cc"],
            cmd = "/usr/bin/protoc -I. --grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin $(location %s)" % src,
            tools = [src],
        )
        cc_library(
            name = name + "_grpc",
            srcs = [stem + ".grpc.pb.cc"],
            hdrs = [stem + ".grpc.pb.h"],
            copts = ["-w"],
            visibility = visibility,
            deps = [":" + name, "@system//:grpc"],
        )
