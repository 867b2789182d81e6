#include "scheduler/store/submission.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/message_differencer.h"
#include "proto/core/mutation.h"
#include "proto/job/schema/schema.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/job_places.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"
#include "scheduler/state/checkpoint_identity.h"
#include "scheduler/state/closed_tasks.h"
#include "scheduler/state/resume.h"
#include "scheduler/state/start.h"

namespace strata::scheduler {
namespace {

using google::protobuf::util::MessageDifferencer;

CheckpointRecord ToRecord(const std::string& folder, const Manifest& manifest) {
  CheckpointRecord record;
  record.set_step(manifest.step());
  record.set_folder(folder);
  record.set_generation(manifest.generation());
  record.set_cluster_id(manifest.cluster_id());
  record.set_job_uid(manifest.job_uid());
  record.set_of_cut(manifest.cut());
  record.set_model_hash(manifest.model_hash());
  record.set_examples(manifest.examples());
  record.set_bad_lines(manifest.bad_lines());
  SetClosedTasks(manifest.closed_tasks(), record);
  *record.mutable_lanes() = manifest.lanes();
  return record;
}

absl::Status OfDirectory(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("spec.checkpoint.directory: ", status.message()));
}

// By what the folder holds now.
absl::StatusOr<RemovalRecord> Removal(const std::string& folder) {
  RemovalRecord removal;
  removal.set_path(folder);
  const auto manifest = ReadManifest(folder);
  if (MayPass(manifest.status())) return OfDirectory(manifest.status());
  if (!manifest.ok()) return removal;
  *removal.mutable_meant() = IdentityOf(*manifest);
  return removal;
}

absl::Status MakeDirectory(const std::string& directory) {
  FileSystem& files = FileSystem::Kernel();
  if (const int made = TryMakeFolders(directory, files); made < 0) {
    const std::string text = absl::StrCat("spec.checkpoint.directory ", directory,
                                          " cannot be made: ", std::strerror(-made));
    // What no rights mend is a wrong name: a file where a folder should be, a circle of links.
    const bool name = made == -ENOTDIR || made == -EEXIST || made == -ENAMETOOLONG ||
                      made == -ELOOP || made == -EINVAL;
    if (made == -kOutsideRoots) {
      return absl::PermissionDeniedError(
          absl::StrCat("spec.checkpoint.directory: ", files.WhyOutside(directory)));
    }
    if (const absl::Status s = PlainFileError(-made, "make", directory);
        MayPass(s) && !absl::IsNotFound(s))
      return absl::Status(s.code(), text);
    return name ? absl::InvalidArgumentError(text) : absl::PermissionDeniedError(text);
  }
  if (const int may = files.MayChange(directory); may < 0) {
    const absl::Status s = PlainFileError(-may, "write to spec.checkpoint.directory", directory);
    if (MayPass(s)) return s;
    return absl::PermissionDeniedError(
        absl::StrCat("spec.checkpoint.directory ", directory, " is not writable"));
  }
  return absl::OkStatus();
}

// spec.model.initFrom is one checkpoint that fits the job. Its files are read, and checked, by the
// servers.
absl::StatusOr<std::optional<Manifest>> FindInit(const JobSpec& spec) {
  const std::string& folder = spec.model().init_from().checkpoint();
  if (folder.empty()) return std::nullopt;
  auto manifest = ReadManifest(folder);
  if (!manifest.ok()) {
    const auto newest = NewestCheckpoint(folder);
    const std::string hint =
        newest.ok() && newest->has_value()
            ? absl::StrCat("; it holds checkpoints: name one of them, as in ", (*newest)->folder)
            : std::string("; name the folder of one checkpoint");
    const bool passes = MayPass(manifest.status()) && (!newest.ok() || !newest->has_value());
    return absl::Status(passes ? manifest.status().code() : absl::StatusCode::kFailedPrecondition,
                        absl::StrCat("spec.model.initFrom ", folder, " is no whole checkpoint: ",
                                     manifest.status().message(), hint));
  }
  if (manifest->partitions() != spec.storage().partitions()) {
    return absl::FailedPreconditionError(
        absl::StrCat("spec.storage.partitions is ", spec.storage().partitions(),
                     " but spec.model.initFrom ", folder, " was made with ", manifest->partitions(),
                     "; set spec.storage.partitions to that"));
  }
  if (const absl::Status s = CheckSchemaOf(*manifest); !s.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("spec.model.initFrom ", folder,
                                                      " is no whole checkpoint: ", s.message(),
                                                      "; put back a whole copy, or name another"));
  }
  *manifest->mutable_schema() = SavedSchema(*manifest);
  const auto now = ExpectedSchema(spec, *manifest);
  if (!now.ok()) return now.status();
  const absl::Status fits =
      CheckInit(manifest->schema(), manifest->job().spec().sample_weight(), *now, spec);
  if (!fits.ok()) return fits;
  return *std::move(manifest);
}

// Whether the job goes on from a checkpoint of its own: then it takes nothing of
// spec.model.initFrom, which may be gone by now.
absl::StatusOr<bool> GoesOn(const SubmitRequest& request) {
  const std::string& directory = request.job().spec().checkpoint().directory();
  if (!request.resume() || directory.empty() || STRATA_MUTATION("init.looked_at_by_resume")) {
    return false;
  }
  const auto list = ListCheckpoints(directory);
  if (!list.ok()) return OfDirectory(list.status());
  return !list->complete.empty();
}

// The servers' own folder may be another one here.
absl::Status CheckAsideFromStorage(const JobSpec& spec, bool overwrite,
                                   const LookingAt& looking_at) {
  JobPlacesOptions options;
  options.overwrite = overwrite;
  options.storage = JobPlacesOptions::Storage::kName;
  options.looking_at = looking_at;
  return CheckJobPlaces(spec, options);
}

// Of a checkpoint that another version wrote: nothing is wrong with it, and what it knows is not to
// be lost without a word.
absl::Status OtherFormat(const std::string& directory, const DamagedCheckpoint& newest,
                         absl::string_view otherwise) {
  return absl::FailedPreconditionError(absl::StrCat(
      "spec.checkpoint.directory ", directory,
      ": its newest checkpoint cannot be read: ", newest.error.message(), "; or ", otherwise));
}

struct Damaged {
  std::string text;                              // each of them, for people
  absl::Status other_format = absl::OkStatus();  // OtherFormat, of the first of another version
};

// The newest checkpoint that is whole; as it is made: there is none.
struct NewestWhole {
  uint64_t step = 0;
  std::string folder = "";
};

// What is damaged of what is newer than that; of all where there is none.
Damaged DamagedSince(const std::string& directory, const std::vector<DamagedCheckpoint>& all,
                     const NewestWhole& whole) {
  Damaged damaged;
  for (const DamagedCheckpoint& d : all) {
    if (d.step < whole.step) continue;
    if (absl::IsUnimplemented(d.error) && damaged.other_format.ok()) {
      damaged.other_format =
          OtherFormat(directory, d,
                      absl::StrCat("move ", d.folder, " away, to go on ",
                                   whole.folder.empty() ? "without it" : "from ", whole.folder));
    }
    absl::StrAppend(&damaged.text, damaged.text.empty() ? "" : ", ", d.folder, " (",
                    d.error.message(), ")");
  }
  return damaged;
}

// Whether that folder holds what it held when the job was submitted that replaces it: nothing is
// removed of what cannot be read, and so it lies there as long as the job lives.
bool WasThereBefore(const std::string& folder, const std::vector<RemovalRecord>& replaced) {
  const auto of_folder = [&folder](const RemovalRecord& r) { return r.path() == folder; };
  const auto before = std::find_if(replaced.begin(), replaced.end(), of_folder);
  if (before == replaced.end() || STRATA_MUTATION("checkpoint.replaced_is_own")) return false;
  const auto now = Removal(folder);
  return now.ok() && now->has_meant() == before->has_meant() &&
         MessageDifferencer::Equals(now->meant(), before->meant());
}

}  // namespace

absl::Status CheckOutputs(const SubmitRequest& request, const LookingAt& looking_at) {
  return CheckAsideFromStorage(request.job().spec(), request.overwrite(), looking_at);
}

absl::Status EmptyFile(const std::string& path) {
  FileSystem& files = FileSystem::Kernel();
  FileInfo info;
  const int looked = files.Look(path, info);
  if (looked == -ENOENT || (looked == 0 && info.kind != FileKind::kFile)) return absl::OkStatus();
  const int fd = looked < 0 ? looked : files.Open(path, O_WRONLY | O_TRUNC);
  if (fd < 0) return ErrnoStatus(-fd, "empty", path);
  files.Close(fd);
  return absl::OkStatus();
}

absl::StatusOr<OwnCheckpoints> FindOwnCheckpoints(const std::string& directory,
                                                  const JobIdentity& identity,
                                                  const std::vector<RemovalRecord>& replaced) {
  OwnCheckpoints own;
  auto list = ListCheckpoints(directory);
  if (!list.ok()) return OfDirectory(list.status());
  for (const DamagedCheckpoint& d : list->damaged) {
    if (MayPass(d.error)) return OfDirectory(d.error);
  }
  for (CheckpointEntry& entry : list->complete) {
    const auto writer = ParseJobIdentity(entry.manifest.cluster_id(), entry.manifest.job_uid());
    const bool is_own = writer == identity;
    if (is_own) own.complete.push_back(ToRecord(entry.folder, entry.manifest));
    // The newest's, at last; of others only before there are any.
    if (is_own || own.complete.empty()) {
      own.data = std::move(*entry.manifest.mutable_schema()->mutable_data());
    }
  }
  std::erase_if(list->damaged, [&replaced](const DamagedCheckpoint& d) {
    return WasThereBefore(d.folder, replaced);
  });
  NewestWhole newest;
  if (!own.complete.empty()) newest = {own.complete.back().step(), own.complete.back().folder()};
  Damaged damaged = DamagedSince(directory, list->damaged, newest);
  own.damaged = std::move(damaged.text);
  own.other_format = std::move(damaged.other_format);
  return own;
}

absl::Status CheckPlaces(const SubmitRequest& request, const PathPolicy& paths,
                         const LookingAt& looking_at, Asked asked, FoundCheckpoints* found) {
  const std::string& directory = request.job().spec().checkpoint().directory();
  if (request.resume() && request.overwrite()) {
    return absl::InvalidArgumentError("resume and overwrite exclude each other: give one of them");
  }
  const std::string& init_from = request.job().spec().model().init_from().checkpoint();
  const std::string& metrics = request.job().spec().output().metrics();
  const auto look = [&looking_at](absl::string_view field, const std::string& path) {
    if (looking_at) looking_at(field, path);
  };
  look("spec.checkpoint.directory", directory);
  absl::Status allowed = paths.Check("spec.checkpoint.directory", directory);
  if (allowed.ok() && request.overwrite() && !metrics.empty()) {
    look("spec.output.metrics", metrics);
    allowed = paths.Check("spec.output.metrics", metrics);
  }
  look("spec.model.initFrom", init_from);
  if (allowed.ok()) allowed = paths.Check("spec.model.initFrom", init_from);
  look("spec.checkpoint.directory", directory);
  if (!allowed.ok()) return allowed;
  if (asked == Asked::kNew) {
    JobSpec without_outputs = request.job().spec();
    without_outputs.clear_output();
    allowed = CheckAsideFromStorage(without_outputs, request.overwrite(), looking_at);
    if (!allowed.ok()) return allowed;
  }
  if (!init_from.empty()) {
    const auto goes_on = GoesOn(request);
    if (!goes_on.ok()) return goes_on.status();
    if (!*goes_on) {
      look("spec.model.initFrom", init_from);
      auto init = FindInit(request.job().spec());
      if (!init.ok()) return init.status();
      if (found != nullptr) {
        found->init = IdentityOf(**init);
        found->init_sample_weight = (*init)->job().spec().sample_weight();
        found->init_schema = std::move(*(*init)->mutable_schema());
      }
    }
  }
  look("spec.checkpoint.directory", directory);
  if (!directory.empty()) return MakeDirectory(directory);
  if (!request.resume()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "there is nothing to resume from: spec.checkpoint.directory is not set");
}

absl::StatusOr<FoundCheckpoints> PrepareCheckpoints(const SubmitRequest& request,
                                                    const PathPolicy& paths,
                                                    const LookingAt& looking_at) {
  const std::string& directory = request.job().spec().checkpoint().directory();
  FoundCheckpoints found;
  if (absl::Status s = CheckPlaces(request, paths, looking_at, Asked::kAccepted, &found); !s.ok()) {
    return s;
  }
  const std::string& metrics = request.job().spec().output().metrics();
  if (request.overwrite() && !metrics.empty() && !STRATA_MUTATION("end.metrics_of_two_runs"))
    found.replaced.emplace_back().set_path(metrics);
  if (directory.empty()) return found;
  auto list = ListCheckpoints(directory);
  if (!list.ok()) return OfDirectory(list.status());
  if (!list->empty_directory && !request.resume() && !request.overwrite()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.checkpoint.directory ", directory, " is not empty (",
        list->complete.empty()
            ? std::string("no complete checkpoint")
            : absl::StrCat("newest checkpoint: step ", list->complete.back().step),
        "); --resume goes on from its newest checkpoint, --overwrite removes its checkpoints"));
  }
  for (const DamagedCheckpoint& d : list->damaged) {
    // It may be whole: a job neither begins before it for that, nor replaces what it cannot name.
    if (MayPass(d.error)) return OfDirectory(d.error);
  }
  if (request.resume() && list->complete.empty() && !list->damaged.empty()) {
    // Starting anew would look like going on.
    const DamagedCheckpoint& newest = list->damaged.back();
    if (absl::IsUnimplemented(newest.error)) {
      return OtherFormat(directory, newest, "name another directory");
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "spec.checkpoint.directory ", directory, " has no checkpoint to resume from: ",
        list->damaged.size(), " damaged, the newest ", newest.folder, " (", newest.error.message(),
        "); put back a whole copy, or start anew with --overwrite"));
  }
  for (const CheckpointEntry& e : list->complete) {
    const auto& owners = e.manifest.job().metadata().owners();
    if (owners.empty()) continue;  // of a job that was submitted where nobody was asked
    found.owned.push_back({e.folder, {owners.begin(), owners.end()}});
  }
  if (request.overwrite()) {
    for (const CheckpointEntry& e : list->complete) {
      RemovalRecord& removal = found.replaced.emplace_back();
      removal.set_path(e.folder);
      *removal.mutable_meant() = IdentityOf(e.manifest);
    }
    for (const DamagedCheckpoint& d : list->damaged) {
      auto removal = Removal(d.folder);
      if (!removal.ok()) return removal.status();
      found.replaced.push_back(*std::move(removal));
    }
    return found;
  }
  if (request.resume()) {
    NewestWhole newest;
    if (!list->complete.empty())
      newest = {list->complete.back().step, list->complete.back().folder};
    Damaged damaged = DamagedSince(directory, list->damaged, newest);
    if (!damaged.other_format.ok()) return damaged.other_format;
    found.damaged = std::move(damaged.text);
  }
  for (CheckpointEntry& entry : list->complete) {
    if (absl::Status s = CheckResumable(request.job(), entry.manifest); !s.ok()) return s;
    found.complete.push_back(ToRecord(entry.folder, entry.manifest));
    found.resume_schema = SavedSchema(entry.manifest);  // the newest's, at last
    // Those of earlier versions do not say it in `end`.
    auto& data = *found.resume_schema->mutable_data();
    if (data.has_end()) data.mutable_end()->set_bad_lines(entry.manifest.bad_lines());
  }
  return found;
}

}  // namespace strata::scheduler
