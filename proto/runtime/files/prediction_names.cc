#include "proto/runtime/files/prediction_names.h"

#include <algorithm>
#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/path_policy.h"

namespace strata {
namespace {

constexpr int kMostLinks = 40;  // as of the kernel

// /dev/shm holds files like any other folder.
bool InDevices(absl::string_view path) {
  return absl::StartsWith(path, "/proc/") ||
         (absl::StartsWith(path, "/dev/") && !absl::StartsWith(path, "/dev/shm/"));
}

}  // namespace

absl::StatusOr<PredictionsPlace> PlaceOfPredictions(const std::string& path, FileSystem& files) {
  PredictionsPlace place = {.path = path};
  bool device = false;  // also behind further links: /dev/stdout leads to what the process has open
  for (int links = 0; links < kMostLinks; ++links) {
    FileInfo info;
    // What cannot be looked at is told by who opens it.
    if (files.LookAtLink(place.path, info) < 0) return place;
    place.device = device || info.kind == FileKind::kOther;
    if (info.kind != FileKind::kLink) return place;
    const std::string name = AbsolutePath(place.path);
    const size_t slash = name.find_last_of('/');
    const auto folder = ResolvePath(slash == 0 ? "/" : name.substr(0, slash), files);
    if (!folder.ok()) return folder.status();
    const std::string above = *folder == "/" ? "" : *folder;
    place.path = absl::StrCat(above, name.substr(slash));
    device = device || InDevices(place.path);
    place.device = device;
    if (absl::StartsWith(place.path, "/proc/")) return place;
    std::string target;
    if (const int read = files.ReadLink(place.path, target); read < 0) {
      return ErrnoStatus(-read, "follow", path);
    }
    place.path = absl::StartsWith(target, "/") ? target : absl::StrCat(above, "/", target);
  }
  return ErrnoStatus(ELOOP, "follow", path);
}

absl::StatusOr<PredictionsPlace> PlaceOfOutput(absl::string_view option, const std::string& path,
                                               FileSystem& files) {
  if (path.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(option, " has no name; name a file"));
  }
  if (path == "-") return PredictionsPlace{.path = path, .device = true};
  auto place = PlaceOfPredictions(path, files);
  if (!place.ok() || place->device) return place;
  FileInfo info;
  const int looked = files.Look(place->path, info);
  if ((looked == 0 && info.kind == FileKind::kFolder) || place->path.back() == '/') {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", path, " is a folder; name a file in it"));
  }
  const std::string name = AbsolutePath(place->path);
  const std::string folder = name.substr(0, std::max<size_t>(1, name.find_last_of('/')));
  if (looked == -ENOENT && files.Look(folder, info) == -ENOENT) {
    return absl::NotFoundError(absl::StrCat(option, " ", path, ": there is no folder ", folder,
                                            "; make it, or name another place"));
  }
  return place;
}

std::string NextPredictions(const std::string& path) { return path + ".next"; }
std::string UnfinishedPredictions(const std::string& path) { return path + ".tmp"; }

std::vector<std::string> NamesInTraining(const std::string& path) {
  const std::string next = NextPredictions(path);
  std::vector<std::string> names = UnfinishedNames(next);
  names.insert(names.begin(), {path, next});
  return names;
}

std::vector<std::string> NamesInPredict(const std::string& path) {
  return {path, UnfinishedPredictions(path)};
}

}  // namespace strata
