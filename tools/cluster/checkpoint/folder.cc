#include "tools/cluster/checkpoint/folder.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"

namespace strata {

absl::StatusOr<FoundCheckpoint> FindCheckpoint(const std::string& directory) {
  std::error_code error;
  std::string folder = directory;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (!std::filesystem::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat("no folder ", directory));
  }
  if (!std::filesystem::exists(absl::StrCat(directory, "/", kManifestName), error)) {
    auto list = ListCheckpoints(directory);
    if (!list.ok()) return list.status();
    if (list->complete.empty() && !list->damaged.empty() &&
        absl::IsUnimplemented(list->damaged.back().error)) {
      return list->damaged.back().error;  // nothing is wrong with it
    }
    if (list->complete.empty()) {
      return absl::NotFoundError(absl::StrCat(
          "no complete checkpoint in ", directory, " (a complete one holds ", kManifestName, ")",
          list->damaged.empty() ? ""
                                : absl::StrCat("; ", list->damaged.size(), " damaged, the newest ",
                                               list->damaged.back().folder)));
    }
    CheckpointEntry& newest = list->complete.back();
    if (!list->damaged.empty() && list->damaged.back().step > newest.step) {
      const DamagedCheckpoint& newer = list->damaged.back();
      return WithWholeOne(newer.error, newer.folder);
    }
    return FoundCheckpoint{std::move(newest.folder), std::move(newest.manifest)};
  }
  auto manifest = ReadManifest(folder);
  if (!manifest.ok()) return manifest.status();
  return FoundCheckpoint{std::move(folder), *std::move(manifest)};
}

absl::Status WithWholeOne(const absl::Status& damage, const std::string& folder) {
  std::filesystem::path damaged = std::filesystem::path(folder).lexically_normal();
  if (damaged.filename().empty()) damaged = damaged.parent_path();  // "dir/"
  const std::string directory =
      damaged.parent_path().empty() ? "." : damaged.parent_path().string();
  std::string advice = absl::StrCat("; there is no other whole checkpoint in ", directory);
  const auto list = ListCheckpoints(directory);
  if (list.ok()) {
    for (auto it = list->complete.rbegin(); it != list->complete.rend(); ++it) {
      if (std::filesystem::path(it->folder).filename() == damaged.filename()) continue;
      if (!VerifyCheckpointFiles(it->folder, it->manifest).ok()) continue;
      advice = absl::StrCat("; the newest whole one is ", it->folder, " (to use it: --checkpoint ",
                            it->folder, ")");
      break;
    }
  }
  return absl::Status(damage.code(), absl::StrCat(damage.message(), advice));
}

}  // namespace strata
