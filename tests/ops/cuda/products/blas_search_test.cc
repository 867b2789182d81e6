#include "ops/cuda/products/blas_search.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace strata::ops::gpu {
namespace {

void Touch(const std::filesystem::path& file) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << "x";
}

TEST_CASE("cuBLASLt is looked for in a fixed order", "[ops][cuda]") {
  const TempFolder folder;
  const std::filesystem::path root = folder.path();
  const std::string name = "libcublasLt.so.13";
  const std::string cuda = (root / "cuda").string();
  const std::string path = (root / "empty").string() + "::" + (root / "venv/bin").string() + ":" +
                           (root / "usr/bin").string();
  CHECK(BlasCandidates("", cuda, path) == std::vector<std::string>{name});

  Touch(root / "cuda/lib64" / name);
  Touch(root / "venv/lib/python3.12/site-packages/nvidia/cublas/lib" / name);
  Touch(root / "venv/lib/python3.12/site-packages/nvidia/cu13/lib" / name);
  Touch(root / "venv/lib/python3.12/site-packages/nvidia/other/lib/libother.so");
  Touch(root / "usr/lib/python3/dist-packages/nvidia/cublas/lib" / name);
  Touch(root / "usr/bin/python3");
  const std::string in_toolkit = cuda + "/lib64/" + name;
  const std::string in_usr =
      (root / "usr/lib/python3/dist-packages/nvidia/cublas/lib" / name).string();
  CHECK(BlasCandidates("", cuda, path) == std::vector<std::string>{name, in_toolkit, in_usr});

  // The first python3 of PATH is the one that counts.
  Touch(root / "venv/bin/python3");
  const std::string packages = (root / "venv/lib/python3.12/site-packages/nvidia/").string();
  CHECK(BlasCandidates("", cuda, path) ==
        std::vector<std::string>{name, in_toolkit, packages + "cu13/lib/" + name,
                                 packages + "cublas/lib/" + name});
  // A flag is all there is then, whether the file exists or not.
  CHECK(BlasCandidates("/x/y.so", cuda, path) == std::vector<std::string>{"/x/y.so"});
}

}  // namespace
}  // namespace strata::ops::gpu
