#include "proto/runtime/files/job_places.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/path_policy.h"
#include "proto/runtime/files/prediction_names.h"

namespace strata {
namespace {

enum class Use : uint8_t { kReadFile, kReadFolder, kWriteFile, kWriteFolder };

// One place, as far as it was looked at.
struct Place {
  std::string field, path;
  Use use = Use::kReadFile;
  // How names begin that are ours in a folder that is written to.
  std::vector<std::string> own = {};
  bool look = true;

  bool resolved = false, looked = false;
  std::string way = {};               // without links, as far as is known
  std::optional<FileInfo> info = {};  // nothing: it is not there, or cannot be looked at
};

std::string Above(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

std::string NameOf(const Place& p) {
  std::string name = std::filesystem::path(p.path).lexically_normal().string();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  return name;
}

bool Reads(const Place& p) { return p.use == Use::kReadFile || p.use == Use::kReadFolder; }
bool IsFile(const Place& p) { return p.use == Use::kReadFile || p.use == Use::kWriteFile; }

class Places {
 public:
  Places(const JobPlacesOptions& options, FileSystem& files) : o_(options), files_(files) {}

  bool Same(Place& a, Place& b) {
    if (a.path == b.path) return !KeepsNothing(a);
    if (!a.look || !b.look) return NameOf(a) == NameOf(b);
    // What is not there is no file to read; many are not looked at for nothing.
    if (b.use == Use::kReadFile && !Info(a)) return Way(a) == NameOf(b);
    if (Info(a) && Info(b)) {
      return a.info->device == b.info->device && a.info->inode == b.info->inode && !KeepsNothing(a);
    }
    return Way(a) == Way(b);
  }

  // The first name of `inner` below the folder `outer`; nothing: it is not below.
  std::optional<std::string> NameBelow(Place& inner, Place& outer) {
    const std::string& way = Way(inner);
    if (KeepsNothing(inner)) return std::nullopt;
    for (std::string at = way; at != "/";) {
      const std::string folder = Above(at);
      if (SameFolder(folder, inner, outer)) return at.substr(folder == "/" ? 1 : folder.size() + 1);
      at = folder;
    }
    return std::nullopt;
  }

 private:
  bool KeepsNothing(Place& p) { return Info(p).has_value() && p.info->kind == FileKind::kOther; }

  const std::optional<FileInfo>& Info(Place& p) {
    if (p.looked || !p.look) return p.info;
    p.looked = true;
    if (o_.looking_at) o_.looking_at(p.field, p.path);
    FileInfo info;
    if (files_.Look(p.path, info) == 0) p.info = info;
    return p.info;
  }

  const std::string& Way(Place& p) {
    if (p.resolved) return p.way;
    p.resolved = true;
    p.way = NameOf(p);
    if (!p.look) return p.way;
    if (o_.looking_at) o_.looking_at(p.field, p.path);
    if (auto way = ResolvePath(p.path, files_); way.ok()) p.way = *std::move(way);
    return p.way;
  }

  // `folder` is above `inner`. Where that is not looked at, neither is what is above it.
  bool SameFolder(const std::string& folder, const Place& inner, Place& outer) {
    if (folder == Way(outer)) return true;
    if (!inner.look) return folder == NameOf(outer);
    if (!Info(outer)) return false;
    if (o_.looking_at) o_.looking_at(inner.field, inner.path);
    FileInfo info;
    return files_.Look(folder, info) == 0 && info.device == outer.info->device &&
           info.inode == outer.info->inode;
  }

  const JobPlacesOptions& o_;
  FileSystem& files_;
};

// Under which names the job writes them; the first is as it was given.
std::vector<std::string> PredictionNames(const std::string& path, const JobPlacesOptions& options,
                                         FileSystem& files) {
  if (path.empty()) return {};
  if (options.looking_at) options.looking_at("spec.output.predictions", path);
  const auto place = PlaceOfPredictions(path, files);
  if (place.ok() && place->device) return {path};
  std::vector<std::string> names = NamesInTraining(place.ok() ? place->path : path);
  names.front() = path;
  return names;
}

std::vector<Place> PlacesOf(const JobSpec& spec, const JobPlacesOptions& options,
                            FileSystem& files) {
  std::vector<Place> places;
  const auto add = [&places](absl::string_view field, const std::string& path, Use use,
                             std::vector<std::string> own = {}) {
    if (path.empty() || path == "-") return;
    places.push_back(
        {.field = std::string(field), .path = path, .use = use, .own = std::move(own)});
  };
  // What is written stands before what it is held against.
  add("spec.output.metrics", spec.output().metrics(), Use::kWriteFile);
  for (const std::string& name : PredictionNames(spec.output().predictions(), options, files)) {
    add("spec.output.predictions", name, Use::kWriteFile);
  }
  add("spec.output.removed", spec.output().removed(), Use::kWriteFolder, {"removed-"});
  add("spec.storage.directory", spec.storage().directory(), Use::kWriteFolder);
  if (!places.empty() && places.back().field == "spec.storage.directory") {
    places.back().look = options.storage == JobPlacesOptions::Storage::kLook;
  }
  add("spec.checkpoint.directory", spec.checkpoint().directory(), Use::kWriteFolder,
      {"step-", "LOCK."});
  for (int i = 0; i < spec.data().train_size(); ++i) {
    add(absl::StrCat("spec.data.train[", i, "]"), spec.data().train(i), Use::kReadFile);
  }
  for (int i = 0; i < spec.data().eval_size(); ++i) {
    add(absl::StrCat("spec.data.eval[", i, "]"), spec.data().eval(i), Use::kReadFile);
  }
  for (int i = 0; i < spec.fields_size(); ++i) {
    add(absl::StrCat("spec.fields[", i, "].vocabulary.file"), spec.fields(i).vocabulary().file(),
        Use::kReadFile);
  }
  add("spec.model.initFrom", spec.model().init_from().checkpoint(), Use::kReadFolder);
  add("the job file", options.job_file, Use::kReadFile);
  return places;
}

// How the names of the folder's own files begin that this is one of; empty: it is none.
std::string OwnPrefix(const Place& folder, absl::string_view name) {
  for (const std::string& own : folder.own) {
    if (absl::StartsWith(name, own)) return own;
  }
  return "";
}

absl::Status Refuse(const Place& a, absl::string_view how, const Place& b, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(a.field, ": ", a.path, " ", how, " ", b.field, " ", b.path, why));
}

// A folder that is written to may hold other things, but where files of its own may come. Those of
// checkpoints that are read are named in their manifests alone.
absl::Status CheckOwnNames(Place& inner, Place& folder, Places& places) {
  if (folder.use != Use::kWriteFolder || inner.use == Use::kReadFolder) return absl::OkStatus();
  if (Reads(inner) && folder.field != "spec.output.removed") return absl::OkStatus();
  const std::string own =
      folder.own.empty() ? "" : OwnPrefix(folder, places.NameBelow(inner, folder).value_or(""));
  if (own.empty()) return absl::OkStatus();
  return Refuse(inner, "lies in", folder,
                absl::StrCat(", where the names that begin with ", own,
                             " are the job's own; name another place"));
}

// `a` is written.
absl::Status CheckPair(Place& a, Place& b, Places& places) {
  if (a.field == b.field) return absl::OkStatus();
  if (b.use != Use::kReadFolder && IsFile(a) == IsFile(b) && places.Same(a, b)) {
    return Refuse(a, IsFile(a) ? "is the same file as" : "is the same folder as", b,
                  Reads(b) ? ", which the job reads; name another one"
                           : ", which the job writes as well; name another one");
  }
  if (b.use == Use::kReadFolder && (places.Same(a, b) || places.NameBelow(a, b))) {
    return Refuse(a, "lies in the checkpoint", b, ", which the job reads; name another place");
  }
  absl::Status s = CheckOwnNames(a, b, places);
  if (s.ok()) s = CheckOwnNames(b, a, places);
  return s;
}

Place Given(const std::string& path, Use use) {
  return {.field = "", .path = AbsolutePath(path), .use = use};
}

}  // namespace

absl::Status CheckJobPlaces(const JobSpec& spec, const JobPlacesOptions& options,
                            FileSystem& files) {
  std::vector<Place> all = PlacesOf(spec, options, files);
  Places places(options, files);
  for (size_t i = 0; i < all.size(); ++i) {
    if (Reads(all[i])) continue;
    for (size_t j = i + 1; j < all.size(); ++j) {
      if (absl::Status s = CheckPair(all[i], all[j], places); !s.ok()) return s;
      const bool replaces = options.overwrite && all[i].field == "spec.checkpoint.directory" &&
                            all[j].use == Use::kReadFolder;
      if (replaces && places.NameBelow(all[j], all[i])) {
        return Refuse(all[j], "lies in", all[i],
                      ", whose checkpoints --overwrite removes; start from a copy elsewhere, or "
                      "write to another directory");
      }
    }
  }
  return absl::OkStatus();
}

std::vector<WrittenFile> FilesWritten(const JobSpec& spec, FileSystem& files) {
  std::vector<WrittenFile> written;
  if (!spec.output().metrics().empty()) {
    written.push_back({"spec.output.metrics", spec.output().metrics()});
  }
  for (std::string& name : PredictionNames(spec.output().predictions(), {}, files)) {
    written.push_back({"spec.output.predictions", std::move(name)});
  }
  return written;
}

absl::Status CheckNoInput(absl::string_view option, const std::string& output,
                          const std::vector<std::string>& inputs, FileSystem& files) {
  Place to = Given(output, Use::kWriteFile);
  const JobPlacesOptions options;
  Places places(options, files);
  for (const std::string& input : inputs) {
    Place from = Given(input, Use::kReadFile);
    if (input == "-" || !places.Same(to, from)) continue;
    return absl::FailedPreconditionError(absl::StrCat(option, " ", output, " is the same file as ",
                                                      input, ", which is read; name another one"));
  }
  return absl::OkStatus();
}

absl::Status CheckOutsideCheckpoint(absl::string_view option, const std::string& output,
                                    const std::string& folder, FileSystem& files) {
  Place to = Given(output, Use::kWriteFile), from = Given(folder, Use::kReadFolder);
  const JobPlacesOptions options;
  Places places(options, files);
  if (!places.Same(to, from) && !places.NameBelow(to, from)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(option, " ", output, " lies in the checkpoint ",
                                                    folder, ", which is read; name another place"));
}

}  // namespace strata
