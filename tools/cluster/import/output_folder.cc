#include "tools/cluster/import/output_folder.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/core/uid.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

std::string MarkIn(const std::string& path) { return absl::StrCat(path, "/", ImportFolder::kMark); }

// Of an import that ended before its manifest had its name.
bool IsOfDead(absl::string_view name, const std::string& file) {
  if (name == ImportFolder::kMark || name == absl::StrCat(kManifestName, ".tmp")) return true;
  if (!absl::ConsumePrefix(&name, file)) return false;
  if (name.empty()) return true;
  return absl::ConsumePrefix(&name, ".") && absl::ConsumeSuffix(&name, ".tmp") &&
         JobUid::Parse(name).has_value();
}

// `marked`: a mark lay in the folder before it was taken.
absl::Status Empty(const std::string& path, const std::string& file, bool marked) {
  const auto names = ListFolder(path);
  if (!names.ok()) return names.status();
  const bool theirs = std::any_of(names->begin(), names->end(), [&](const std::string& name) {
    return name != ImportFolder::kMark && !(marked && IsOfDead(name, file));
  });
  if (theirs) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " has something in it; name an empty or new folder"));
  }
  for (const std::string& name : *names) {
    if (name == ImportFolder::kMark) continue;
    if (absl::Status s = RemovePlainFile(absl::StrCat(path, "/", name)); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ImportFolder> ImportFolder::Take(const std::string& path, const std::string& file) {
  constexpr int kMostTries = 100;
  FileSystem& files = FileSystem::Kernel();
  const std::string mark = MarkIn(path);
  for (int tries = 1;; ++tries) {
    const auto there = IsThere(path);
    if (!there.ok()) return there.status();
    const auto marked = IsThere(mark);
    if (!marked.ok()) return marked.status();
    if (absl::Status s = MakeFolders(path); !s.ok()) return s;
    const int lock = OpenAlone(mark, files);
    // Another import failed, and removed the folder that it had made.
    if (lock == -ENOENT && tries < kMostTries) continue;
    if (lock == -EWOULDBLOCK) {
      return absl::FailedPreconditionError(absl::StrCat(
          path, " is being written by another import; wait for its end, or name another folder"));
    }
    if (lock < 0) return ErrnoStatus(-lock, "write", mark);
    const absl::Status empty = Empty(path, file, *marked);
    if (empty.ok()) return ImportFolder(path, lock, !*there);
    // What shows that a dead one was here stays, unless that came to its end.
    const auto whole = IsThere(absl::StrCat(path, "/", kManifestName));
    if (!*marked || (whole.ok() && *whole)) files.Remove(mark);
    files.Close(lock);
    return empty;
  }
}

ImportFolder::ImportFolder(ImportFolder&& other) noexcept
    : path_(std::move(other.path_)),
      lock_(std::exchange(other.lock_, -1)),
      made_(std::exchange(other.made_, false)) {}

ImportFolder::~ImportFolder() {
  if (lock_ < 0) return;
  FileSystem& files = FileSystem::Kernel();
  files.Remove(MarkIn(path_));
  if (made_) files.RemoveFolder(path_);
  files.Close(lock_);
}

}  // namespace strata
