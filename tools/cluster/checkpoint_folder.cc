#include "tools/cluster/checkpoint_folder.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/manifest_io.h"

namespace strata {

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& directory) {
  std::error_code error;
  std::string folder = directory;
  if (!std::filesystem::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat("no folder ", directory));
  }
  if (!std::filesystem::exists(absl::StrCat(directory, "/", kManifestName), error)) {
    auto newest = NewestCheckpoint(directory);
    if (!newest.ok()) return newest.status();
    if (!newest->has_value()) {
      return absl::NotFoundError(absl::StrCat("no complete checkpoint in ", directory,
                                              " (a complete one holds ", kManifestName, ")"));
    }
    folder = (*newest)->folder;
  }
  auto manifest = ReadManifest(folder);
  if (!manifest.ok()) return manifest.status();
  return FoundCheckpoint{std::move(folder), *std::move(manifest)};
}

}  // namespace strata
