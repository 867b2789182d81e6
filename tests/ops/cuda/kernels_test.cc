// What the compiler told about every kernel (tools/bazel/cuda_compile.sh): registers, spills, and
// PTX that rounds as EXACT.md says. Without --config=cuda there is nothing to look at.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace strata {
namespace {

// Those of tools/bazel/cuda.bzl.
#ifdef STRATA_CUDA_NEWEST
const std::set<std::string> kArchitectures = {"sm_90"};
#else
const std::set<std::string> kArchitectures = {"sm_80", "sm_90"};
#endif

std::vector<std::string> FilesEndingWith(const std::string& ending) {
  std::vector<std::string> paths;
  for (const char* folder : {"ops/cuda/api/_cuda", "ops/cuda/rows/_cuda", "ops/cuda/nn/_cuda",
                             "ops/cuda/products/_cuda", "storage/gpu/device/_cuda"}) {
    if (!std::filesystem::exists(folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      if (path.size() > ending.size() &&
          path.compare(path.size() - ending.size(), ending.size(), ending) == 0) {
        paths.push_back(path);
      }
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct KernelLine {
  std::string architecture;
  int registers = 0, spill_stores = 0, spill_loads = 0, stack = 0, shared = 0;
  std::string name;
  bool ours() const { return name.find("strata::ops::gpu") != std::string::npos; }
  bool of_storage() const { return name.find("strata::storage") != std::string::npos; }
};

std::vector<KernelLine> Kernels(const std::string& path) {
  std::ifstream in(path);
  std::vector<KernelLine> kernels;
  for (std::string text; std::getline(in, text);) {
    std::istringstream words(text);
    KernelLine k;
    words >> k.architecture >> k.registers >> k.spill_stores >> k.spill_loads >> k.stack >>
        k.shared;
    std::getline(words, k.name);
    kernels.push_back(k);
  }
  return kernels;
}

TEST_CASE("no kernel spills, for any architecture", "[ops][cuda]") {
  const std::vector<std::string> reports = FilesEndingWith(".kernels");
  if (reports.empty()) return;  // the build has no device code
  std::set<std::string> architectures;
  size_t ours = 0, of_storage = 0;
  for (const std::string& path : reports) {
    for (const KernelLine& k : Kernels(path)) {
      architectures.insert(k.architecture);
      ours += k.ours();
      of_storage += k.of_storage();
      std::printf("%s %3d registers, %d + %d bytes spilled, %d stack, %6d shared: %s\n",
                  k.architecture.c_str(), k.registers, k.spill_stores, k.spill_loads, k.stack,
                  k.shared, k.name.c_str());
      INFO(path << ": " << k.name);
      CHECK(k.registers > 0);
      CHECK(k.registers <= 255);
      CHECK(k.spill_stores == 0);
      CHECK(k.spill_loads == 0);
      CHECK(k.stack == 0);
    }
  }
  CHECK(architectures == kArchitectures);
  CHECK(ours >= architectures.size() * 40);
  CHECK(of_storage >= architectures.size() * 30);
}

TEST_CASE("rows of GPU tables move 16 bytes at a time", "[ops][cuda][storage]") {
  if (FilesEndingWith(".ptx").empty()) return;
  const std::vector<std::string> files = FilesEndingWith("/calls.ptx");
  CHECK(files.size() == 1);
  for (const std::string& path : files) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    CHECK(text.str().find("ld.global.v2.u64") != std::string::npos);
    CHECK(text.str().find("st.global.v2.u64") != std::string::npos);
  }
}

// The instructions of PTX text that round otherwise than EXACT.md says.
std::vector<std::string> Inexact(const std::string& ptx) {
  std::vector<std::string> found;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find("//")));
    std::string instruction;
    words >> instruction;
    if (!instruction.empty() && instruction[0] == '@') words >> instruction;  // a predicate
    const auto has = [&](const char* part) { return instruction.find(part) != std::string::npos; };
    const auto is = [&](const char* name) { return instruction.rfind(name, 0) == 0; };
    const bool arithmetic = is("add.") || is("sub.") || is("mul.") || is("fma.") || is("mad.") ||
                            is("div.") || is("sqrt.") || is("rcp.");
    const bool floats = has(".f32") || has(".f64");
    if (has(".approx") || has(".ftz") || has(".full.f32") ||
        (arithmetic && floats && !has(".rn")) || (is("red.") && floats) ||
        (is("atom.") && floats)) {
      found.push_back(line);
    }
  }
  return found;
}

TEST_CASE("PTX rounds every operation to nearest, once", "[ops][cuda][exact]") {
  const std::vector<std::string> files = FilesEndingWith(".ptx");
  if (files.empty()) return;
  size_t operations = 0;
  for (const std::string& path : files) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    INFO(path);
    CHECK(Inexact(text.str()) == std::vector<std::string>{});
    for (size_t at = 0; (at = text.str().find(".rn.f32", at)) != std::string::npos; ++at) {
      ++operations;
      if (operations > 1000) break;
    }
  }
  CHECK(operations > 1000);
}

TEST_CASE("device code was compiled with the flags that bits depend on", "[ops][cuda][exact]") {
  std::ifstream in("tools/bazel/cuda.bzl");
  std::stringstream text;
  text << in.rdbuf();
  for (const char* flag :
       {"\"-fmad=false\"", "\"-prec-div=true\"", "\"-prec-sqrt=true\"", "\"-ftz=false\"",
        "\"-Xcompiler=-ffp-contract=off\"", "\"-gencode=arch=compute_80,code=sm_80\"",
        "\"-gencode=arch=compute_90,code=[sm_90,compute_90]\""}) {
    INFO(flag);
    CHECK(text.str().find(flag) != std::string::npos);
  }
  for (const char* flag : {"use_fast_math", "-fmad=true", "-ftz=true", "maxrregcount"}) {
    INFO(flag);
    CHECK(text.str().find(flag) == std::string::npos);
  }
}

TEST_CASE("the check of PTX sees what it looks for", "[ops][cuda]") {
  CHECK(Inexact("  add.rn.f32 %f1, %f2, %f3;\n  @%p1 fma.rn.f32 %f1, %f2, %f3, %f4;\n"
                "  add.s32 %r1, %r2, %r3;\n  mad.lo.s32 %r1, %r2, %r3, %r4;\n"
                "  // mul.f32\n  ld.global.nc.v4.f32 {%f1}, [%rd1];\n  atom.global.add.u32 %r1;\n"
                "  setp.lt.f32 %p1, %f1, %f2;\n  cvt.rn.f32.s32 %f1, %r1;\n"
                "  ld.shared.v4.f32 {%f1}, [%r1];\n")
            .empty());
  for (const char* line : {"add.f32 %f1, %f2, %f3;", "mul.f32 a;", "sub.f32 a;", "@%p1 add.f32 a;",
                           "div.approx.f32 a;", "add.rn.ftz.f32 a;", "sqrt.approx.ftz.f32 a;",
                           "ex2.approx.f32 a;", "div.full.f32 a;", "fma.rz.f32 a;",
                           "red.global.add.f32 [a], b;", "atom.global.add.f32 a;"}) {
    INFO(line);
    CHECK(Inexact(line).size() == 1);
  }
}

}  // namespace
}  // namespace strata
