#include "proto/runtime/files/leftovers.h"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/core/cut_file_name.h"
#include "proto/core/mutation.h"
#include "proto/core/shard_head.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/locked_file.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

constexpr uint64_t kMostManifestBytes = uint64_t{1} << 30;

// Of several errors the one to tell: one that may pass, for which one tries again, before one that
// no retry mends, and that before a manifest that cannot be read.
class Errors {
 public:
  void Add(const absl::Status& s) {
    const bool unread = absl::IsDataLoss(s) || absl::IsUnimplemented(s);
    (unread ? unread_ : MayPass(s) ? passes_ : stays_).Update(s);
  }
  absl::Status first() const {
    if (STRATA_MUTATION("cut.leftovers_first_error") && !unread_.ok()) return unread_;
    if (!passes_.ok()) return passes_;
    return stays_.ok() ? unread_ : stays_;
  }

 private:
  absl::Status passes_, stays_, unread_;
};

// A later look at the file may tell more. What is no more is nobody's.
bool IsNotNow(const absl::Status& opened) { return MayPass(opened) && !absl::IsNotFound(opened); }

// Of a finished file; nothing: it does not say, is no more, or cannot be looked at by this process,
// as another user's.
absl::StatusOr<std::optional<FileWriter>> WriterIn(const std::string& path, FileSystem& files) {
  const PlainFile file(path, O_RDONLY, files);
  if (IsNotNow(file.opened())) return file.opened();
  if (!file.opened().ok()) return std::nullopt;
  std::vector<uint8_t> start(kShardHeadBytes);
  const absl::StatusOr<size_t> n = file.Read(start, 0);
  if (!n.ok()) return n.status();
  return DecodeShardWriter(std::span<const uint8_t>(start).first(*n));
}

// By this job, whose writes of manifests are not under way while this is; or by nobody else.
absl::StatusOr<bool> IsOwnManifest(const std::string& path, const CutsOver& over,
                                   FileSystem& files) {
  const auto text = ReadPlainFile(path, kMostManifestBytes, files);
  if (IsNotNow(text.status())) return text.status();
  if (!text.ok()) return false;
  return text->empty() || absl::StrContains(*text, over.identity.job.text());
}

// An error: it cannot be looked at now.
absl::StatusOr<bool> IsLeftover(const std::string& folder, const std::string& name,
                                const CutsOver& over, FileSystem& files) {
  const std::string path = absl::StrCat(folder, "/", name);
  for (const std::string& unfinished : UnfinishedNames(kManifestName)) {
    if (name == unfinished) return IsOwnManifest(path, over, files);
  }
  const auto parsed = CutFileName::Parse(name);
  if (!parsed) return false;
  if (!over.Has(parsed->generation, parsed->made_by()) &&
      !STRATA_MUTATION("cut.leftovers_of_newer")) {
    return false;
  }
  if (parsed->begun) return *parsed->begun == over.identity.job;
  const auto writer = WriterIn(path, files);
  if (!writer.ok()) return writer.status();
  return writer->has_value() && (*writer)->identity == over.identity &&
         (*writer)->generation == parsed->generation && (*writer)->cut == parsed->cut;
}

// Whether `folder` held a checkpoint of the job whose removal ended in its midst (its files went as
// those of a cut), and none of what that names is among `left`.
absl::StatusOr<bool> IsRemoved(const std::string& folder, const std::set<std::string>& left,
                               const CutsOver& over, FileSystem& files) {
  if (!left.contains(kRemovedName)) return false;
  const auto removed = ReadRemovedManifest(folder, files);
  if (absl::IsDataLoss(removed.status()) || absl::IsUnimplemented(removed.status())) return false;
  if (!removed.ok()) return removed.status();
  if (removed->cluster_id() != over.identity.cluster.text() ||
      removed->job_uid() != over.identity.job.text() ||
      !over.Has(Generation(removed->generation()), removed->cut())) {
    return false;
  }
  const auto is_left = [&left](const CheckpointFile& file) { return left.contains(file.name()); };
  return !std::any_of(removed->files().begin(), removed->files().end(), is_left) ||
         STRATA_MUTATION("removal.forgotten_early");
}

absl::Status CleanFolder(const std::string& folder, const CutsOver& over, FileSystem& files) {
  const auto names = ListFolder(folder, files);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  std::set<std::string> named;
  const auto manifest = ReadManifest(folder, files);
  if (manifest.ok()) {
    for (const CheckpointFile& file : manifest->files()) named.insert(file.name());
  } else if (!absl::IsNotFound(manifest.status())) {
    return manifest.status();
  }
  Errors errors;
  std::set<std::string> left;  // and are not of the checkpoint that is there
  for (const std::string& name : *names) {
    if (named.contains(name)) continue;
    const absl::StatusOr<bool> goes = IsLeftover(folder, name, over, files);
    absl::Status s = goes.status();
    if (goes.ok() && *goes) s = RemovePlainFile(absl::StrCat(folder, "/", name), files);
    if (!s.ok() || !*goes) left.insert(name);
    errors.Add(s);
  }
  const absl::StatusOr<bool> removed = IsRemoved(folder, left, over, files);
  errors.Add(removed.status());
  if (removed.ok() && *removed) {
    errors.Add(RemovePlainFile(absl::StrCat(folder, "/", kRemovedName), files));
  }
  // Stays where something is in it, or mounted there. One that is empty may be what a cut leaves
  // that was killed before its first file, or be made by hand: nobody can tell.
  if (!manifest.ok() && !over.pending_folders.contains(folder)) files.RemoveFolder(folder);
  return errors.first();
}

}  // namespace

absl::Status RemoveLeftovers(const std::string& directory, const CutsOver& over,
                             FileSystem& files) {
  if (STRATA_MUTATION("cut.leftovers_stay")) return absl::OkStatus();
  Errors errors;
  for (const std::string& folder : over.folders) errors.Add(CleanFolder(folder, over, files));
  if (!over.folders.empty()) return errors.first();
  const auto names = ListFolder(directory, files);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!StepOfFolder(name)) continue;
    errors.Add(CleanFolder(absl::StrCat(directory, "/", name), over, files));
  }
  return errors.first();
}

}  // namespace strata
