// Damages a checkpoint on disk.
#ifndef STRATA_TESTS_E2E_CLUSTER_DAMAGE_CHECKPOINT_H_
#define STRATA_TESTS_E2E_CLUSTER_DAMAGE_CHECKPOINT_H_

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

namespace strata::testing {

// Flips a bit in the middle of the largest file of rows in the checkpoint's folder; its path.
inline std::string FlipBit(const std::string& folder) {
  namespace fs = std::filesystem;
  std::string largest;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() == "MANIFEST.json") continue;
    if (largest.empty() || entry.file_size() > fs::file_size(largest)) largest = entry.path();
  }
  REQUIRE_FALSE(largest.empty());
  std::fstream file(largest, std::ios::in | std::ios::out | std::ios::binary);
  const auto middle = static_cast<std::streamoff>(fs::file_size(largest) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get() ^ 0x10);
  file.seekp(middle);
  file.put(byte);
  return largest;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_DAMAGE_CHECKPOINT_H_
