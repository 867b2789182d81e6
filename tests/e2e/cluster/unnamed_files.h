// What lies in a checkpoint directory and belongs to no checkpoint.
#ifndef STRATA_TESTS_E2E_CLUSTER_UNNAMED_FILES_H_
#define STRATA_TESTS_E2E_CLUSTER_UNNAMED_FILES_H_

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "proto/runtime/files/manifest_io.h"

namespace strata::testing {

// Files, and empty folders, that no manifest names and that are not the directory's lock. Nothing
// where something went while it was looked at, as jobs remove files meanwhile: look again.
inline std::optional<std::set<std::string>> Unnamed(const std::string& directory) {
  std::set<std::string> all;
  std::error_code error;
  namespace fs = std::filesystem;
  for (fs::recursive_directory_iterator at(directory, error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().filename().string().rfind("LOCK.", 0) == 0) continue;
    const bool is_folder = at->is_directory(error);
    if (error) break;
    if (!is_folder || fs::is_empty(at->path(), error)) all.insert(at->path().string());
    if (error) break;
  }
  if (error) return std::nullopt;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    const auto manifest = ReadManifest(at->path().string());
    if (!manifest.ok()) continue;
    all.erase((at->path() / kManifestName).string());
    for (const CheckpointFile& file : manifest->files()) {
      all.erase((at->path() / file.name()).string());
    }
  }
  if (error) return std::nullopt;
  return all;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_UNNAMED_FILES_H_
