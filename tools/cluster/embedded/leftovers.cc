#include "tools/cluster/embedded/leftovers.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/runtime/files/file_system.h"
#include "server/job/job_folder.h"
#include "tools/cluster/embedded/scratch_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

Leftover JobLeftover(const std::string& folder) {
  Leftover out{.folder = folder, .bytes = server::FolderBytes(folder), .whose = {}};
  out.in_use = absl::IsUnavailable(server::JobFolderLock::Take(folder).status());
  const auto record = server::ReadJobFolder(folder);
  if (!record.ok()) {
    out.whose = "a job that did not begin";
    return out;
  }
  out.abandoned = record->transient();
  out.whose = absl::StrCat("job ", record->name(), " (", record->job(), "), server ",
                           record->server(), ", cluster ", record->cluster_id());
  return out;
}

Leftover ScratchLeftover(const std::string& folder) {
  Leftover out{.folder = folder, .bytes = server::FolderBytes(folder), .whose = "scratch folder"};
  out.in_use = ScratchFolder::InUse(folder);
  out.abandoned = true;
  return out;
}

// What is in a folder, by name; nothing where it cannot be read.
std::vector<fs::path> FoldersIn(const std::string& folder, std::error_code& error) {
  std::vector<fs::path> out;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code gone;
    if (it->is_directory(gone) && !it->is_symlink(gone)) out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool IsJob(const fs::path& path) {
  return server::ParseJobFolderName(path.filename().string()).has_value();
}

}  // namespace

absl::StatusOr<std::vector<Leftover>> FindLeftovers(const std::string& directory) {
  std::error_code error;
  const std::vector<fs::path> folders = FoldersIn(directory, error);
  if (error == std::errc::no_such_file_or_directory) {
    return absl::NotFoundError(absl::StrCat("there is no folder ", directory));
  }
  if (error) return ErrnoStatus(error.value(), "list", directory);
  std::vector<Leftover> out;
  for (const fs::path& path : folders) {
    if (IsJob(path)) {
      out.push_back(JobLeftover(path.string()));
    } else if (ScratchFolder::IsName(path.filename().string())) {
      out.push_back(ScratchLeftover(path.string()));
    } else {
      std::error_code unreadable;
      for (const fs::path& below : FoldersIn(path.string(), unreadable)) {
        if (IsJob(below)) out.push_back(JobLeftover(below.string()));
      }
    }
  }
  return out;
}

std::string SizeText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " bytes");
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  return absl::StrFormat("%.1f %s", size, kUnits[unit]);
}

absl::Status RemoveLeftover(const Leftover& leftover) {
  const fs::path path(leftover.folder);
  if (!IsJob(path)) return ScratchFolder::Remove(leftover.folder);
  const std::string root = path.parent_path().string();
  const auto identity = server::ParseJobFolderName(path.filename().string());
  if (absl::Status s = server::RemoveJob(root, *identity); !s.ok()) return s;
  ::rmdir(root.c_str());  // the server's; stays where something is in it
  return absl::OkStatus();
}

}  // namespace strata
