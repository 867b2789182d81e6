"""Finds NVIDIA's compiler on this machine, if there is one."""

_ABSENT = """
package(default_visibility = ["//visibility:public"])
cc_library(name = "runtime")
"""

_PRESENT = """
package(default_visibility = ["//visibility:public"])

# Headers of the runtime and of cuBLASLt, and the static runtime. cuBLASLt itself is loaded when it
# is wanted (ops/cuda/products/blas.h), never linked: a machine without it starts the same programs.
cc_library(
    name = "runtime",
    srcs = ["lib/libcudart_static.a"],
    hdrs = glob(["include/*.h", "include/crt/*"]),
    includes = ["include"],
    linkopts = ["-ldl", "-lrt", "-lpthread"],
)
"""

def _find_nvcc(repository):
    for home in [repository.os.environ.get("CUDA_HOME"), "/usr/local/cuda"]:
        if home and repository.path(home + "/bin/nvcc").exists:
            return repository.path(home + "/bin/nvcc").realpath
    on_path = repository.which("nvcc")
    return on_path.realpath if on_path else None

def _cuda_toolkit_impl(repository):
    nvcc = _find_nvcc(repository)
    version = ""
    if nvcc:
        asked = repository.execute([nvcc, "--version"])
        if asked.return_code == 0:
            version = asked.stdout.strip().split("\n")[-1]
    if not version:
        repository.file("BUILD.bazel", _ABSENT)
        repository.file("toolkit.bzl", "NVCC = \"\"\nNVCC_VERSION = \"\"\n")
        return
    home = nvcc.dirname.dirname
    repository.symlink(home.get_child("include"), "include")
    repository.symlink(home.get_child("lib64"), "lib")
    repository.file("BUILD.bazel", _PRESENT)
    repository.file("toolkit.bzl", "NVCC = \"%s\"\nNVCC_VERSION = \"%s\"\n" % (nvcc, version))

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    doc = """Gives @cuda//:runtime, and NVCC and NVCC_VERSION of @cuda//:toolkit.bzl.

    Looks in CUDA_HOME, /usr/local/cuda and PATH. Where no nvcc is found, NVCC is empty and
    @cuda//:runtime holds nothing: whatever needs it can only be built with --config=cuda.""",
    environ = ["CUDA_HOME", "PATH"],
    local = True,
)
