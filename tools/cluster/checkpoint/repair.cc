#include "tools/cluster/checkpoint/repair.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/manifest_io.h"
#include "storage/io/file_io.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// A name beside `folder` that nothing has.
std::string NameForDamaged(const fs::path& folder) {
  const std::string plain =
      (folder.parent_path() / absl::StrCat("damaged-", folder.filename().string())).string();
  std::string name = plain;
  std::error_code error;
  for (int i = 2; fs::exists(name, error); ++i) name = absl::StrCat(plain, ".", i);
  return name;
}

absl::Status MoveAside(DamagedFolder& damaged) {
  const std::string to = NameForDamaged(damaged.folder);
  std::error_code error;
  fs::rename(damaged.folder, to, error);
  if (error) {
    return ErrnoStatus(error.value(), absl::StrCat("rename to ", to), damaged.folder);
  }
  damaged.moved_to = to;
  return storage::SyncFolder(fs::path(to).parent_path().string());
}

// By step.
std::vector<std::string> WithoutManifest(const std::string& directory) {
  std::set<std::pair<uint64_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator it(directory, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::optional<uint64_t> step = StepOfFolder(it->path().filename().string());
    if (!step) continue;
    const auto complete = IsThere((it->path() / kManifestName).string());
    if (complete.ok() && !*complete) found.emplace(*step, it->path().string());
  }
  std::vector<std::string> folders;
  for (const auto& [step, folder] : found) folders.push_back(folder);
  return folders;
}

}  // namespace

absl::StatusOr<RepairReport> RepairCheckpoints(const std::string& directory, RepairMode mode) {
  RepairReport report;
  report.directory = directory;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat(directory, ": no such folder"));
  }
  auto list = ListCheckpoints(directory);
  if (!list.ok()) return list.status();
  std::map<std::pair<uint64_t, std::string>, absl::Status, std::greater<>> folders;  // newest first
  for (const CheckpointEntry& c : list->complete) folders[{c.step, c.folder}] = absl::OkStatus();
  for (const DamagedCheckpoint& c : list->damaged) folders[{c.step, c.folder}] = c.error;
  for (const auto& [at, known] : folders) {
    const std::string& folder = at.second;
    absl::Status whole = known;
    if (whole.ok()) {
      auto summary = VerifyFolder(folder);
      if (summary.ok()) {
        report.newest = *std::move(summary);
        break;
      }
      whole = summary.status();
    }
    if (absl::IsUnimplemented(whole)) {
      return absl::UnimplementedError(
          absl::StrCat(whole.message(), "; nothing is wrong with it: move ", folder,
                       " away by hand, where the newest whole one of what is older is wanted"));
    }
    // What cannot be read now may be whole.
    if (!absl::IsDataLoss(whole)) return whole;
    report.damaged.push_back({folder, whole, ""});
    if (mode == RepairMode::kOnlyLook) continue;
    if (absl::Status s = MoveAside(report.damaged.back()); !s.ok()) return s;
  }
  report.incomplete = WithoutManifest(directory);
  return report;
}

}  // namespace strata
