#include "proto/runtime/files/leftovers.h"

#include <fcntl.h>

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
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

constexpr uint64_t kMostManifestBytes = uint64_t{1} << 30;

// Of a finished file; nothing: it is not known.
std::optional<FileWriter> WriterIn(const std::string& path, FileSystem& files) {
  const PlainFile file(path, O_RDONLY, files);
  if (!file.opened().ok()) return std::nullopt;
  std::vector<uint8_t> start(kShardHeadBytes);
  const absl::StatusOr<size_t> n = file.Read(start, 0);
  if (!n.ok()) return std::nullopt;
  return DecodeShardWriter(std::span<const uint8_t>(start).first(*n));
}

bool IsLeftover(const std::string& folder, const std::string& name, const CutsOver& over,
                FileSystem& files) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (name == absl::StrCat(kManifestName, ".tmp")) {
    // By this job, whose writes of manifests are not under way while this is; or by nobody else.
    const auto text = ReadPlainFile(path, kMostManifestBytes, files);
    return text.ok() && (text->empty() || absl::StrContains(*text, over.identity.job.text()));
  }
  const auto parsed = CutFileName::Parse(name);
  if (!parsed) return false;
  if (!over.Has(parsed->generation, parsed->made_by()) &&
      !STRATA_MUTATION("cut.leftovers_of_newer")) {
    return false;
  }
  if (parsed->begun) return *parsed->begun == over.identity.job;
  const std::optional<FileWriter> writer = WriterIn(path, files);
  return writer && writer->identity == over.identity && writer->generation == parsed->generation &&
         writer->cut == parsed->cut;
}

// A checkpoint of the job whose removal ended in its midst: its files went as those of a cut.
bool IsRemoved(const std::string& folder, const CutsOver& over, FileSystem& files) {
  const auto removed = ReadRemovedManifest(folder, files);
  return removed.ok() && removed->cluster_id() == over.identity.cluster.text() &&
         removed->job_uid() == over.identity.job.text() &&
         over.Has(Generation(removed->generation()), removed->cut());
}

absl::Status CleanFolder(const std::string& folder, const CutsOver& over, FileSystem& files) {
  const auto names = ListFolder(folder, files);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  std::set<std::string> named;
  const auto manifest = ReadManifest(folder);
  if (manifest.ok()) {
    for (const CheckpointFile& file : manifest->files()) named.insert(file.name());
  } else if (!absl::IsNotFound(manifest.status())) {
    return manifest.status();
  }
  absl::Status first;
  for (const std::string& name : *names) {
    if (named.contains(name) || !IsLeftover(folder, name, over, files)) continue;
    first.Update(RemovePlainFile(absl::StrCat(folder, "/", name), files));
  }
  if (first.ok() && IsRemoved(folder, over, files)) {
    first = RemovePlainFile(absl::StrCat(folder, "/", kRemovedName), files);
  }
  // Stays where something is in it.
  if (!manifest.ok() && !over.pending_folders.contains(folder)) files.RemoveFolder(folder);
  return first;
}

}  // namespace

absl::Status RemoveLeftovers(const std::string& directory, const CutsOver& over,
                             FileSystem& files) {
  if (STRATA_MUTATION("cut.leftovers_stay")) return absl::OkStatus();
  absl::Status first;
  for (const std::string& folder : over.folders) first.Update(CleanFolder(folder, over, files));
  if (!over.folders.empty()) return first;
  const auto names = ListFolder(directory, files);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (!StepOfFolder(name)) continue;
    first.Update(CleanFolder(absl::StrCat(directory, "/", name), over, files));
  }
  return first;
}

}  // namespace strata
