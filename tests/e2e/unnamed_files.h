// What lies in a checkpoint directory and belongs to no checkpoint.
#ifndef STRATA_TESTS_E2E_UNNAMED_FILES_H_
#define STRATA_TESTS_E2E_UNNAMED_FILES_H_

#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "proto/runtime/files/manifest_io.h"

namespace strata::testing {

// Files, and empty folders, that no manifest names and that are not the directory's lock.
inline std::set<std::string> Unnamed(const std::string& directory) {
  std::set<std::string> all;
  std::error_code ignored;  // jobs remove files meanwhile
  namespace fs = std::filesystem;
  for (fs::recursive_directory_iterator at(directory, ignored), end; at != end;
       at.increment(ignored)) {
    const bool is_lock = at->path().filename().string().rfind("LOCK.", 0) == 0;
    if (!is_lock && (!at->is_directory(ignored) || fs::is_empty(at->path(), ignored))) {
      all.insert(at->path().string());
    }
  }
  for (fs::directory_iterator at(directory, ignored), end; at != end; at.increment(ignored)) {
    const auto manifest = ReadManifest(at->path().string());
    if (!manifest.ok()) continue;
    all.erase((at->path() / kManifestName).string());
    for (const CheckpointFile& file : manifest->files()) {
      all.erase((at->path() / file.name()).string());
    }
  }
  return all;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_UNNAMED_FILES_H_
