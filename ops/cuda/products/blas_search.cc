#include "ops/cuda/products/blas_search.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace strata::ops::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libcublasLt.so.13";

// Entries of a folder, sorted; none where it cannot be read.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

void AddFile(const fs::path& file, std::vector<std::string>* out) {
  std::error_code error;
  if (fs::exists(file, error)) out->push_back(file.string());
}

// lib/python3*/{site,dist}-packages beside the folder of a python3.
void AddPython(const fs::path& bin, std::vector<std::string>* out) {
  for (const fs::path& version : Entries(bin.parent_path() / "lib")) {
    if (!absl::StartsWith(version.filename().string(), "python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      for (const fs::path& package : Entries(version / packages / "nvidia")) {
        AddFile(package / "lib" / kName, out);
      }
    }
  }
}

}  // namespace

std::vector<std::string> BlasCandidates(absl::string_view library, absl::string_view toolkit,
                                        absl::string_view path) {
  if (!library.empty()) return {std::string(library)};
  std::vector<std::string> candidates = {kName};
  AddFile(fs::path(toolkit.empty() ? "/usr/local/cuda" : std::string(toolkit)) / "lib64" / kName,
          &candidates);
  for (absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    const fs::path bin = fs::path(std::string(folder)).lexically_normal();
    std::error_code error;
    if (!fs::exists(bin / "python3", error)) continue;
    AddPython(bin.has_filename() ? bin : bin.parent_path(), &candidates);
    break;
  }
  return candidates;
}

}  // namespace strata::ops::gpu
