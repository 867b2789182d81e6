#include "tools/cluster/verify.h"

#include "absl/strings/str_cat.h"
#include "proto/runtime/manifest_io.h"
#include "storage/shard_file.h"
#include "tools/cluster/checkpoint_folder.h"

namespace strata {
namespace {

absl::StatusOr<CheckpointSummary> VerifyFound(FoundCheckpoint* found) {
  if (absl::Status s = VerifyCheckpointFiles(found->folder, found->manifest); !s.ok()) return s;
  CheckpointSummary summary;
  summary.directory = found->folder;
  summary.step = found->manifest.step();
  for (CheckpointFile& file : *found->manifest.mutable_files()) {
    const std::string path = absl::StrCat(found->folder, "/", file.name());
    auto reader = storage::ShardFileReader::Open(path);
    if (!reader.ok()) return reader.status();
    auto computed = (*reader)->Verify();
    if (!computed.ok()) return computed.status();
    if (computed->rows != file.rows()) {
      return absl::DataLossError(
          absl::StrCat(path, " holds ", computed->rows, " rows, its manifest says ", file.rows()));
    }
    file.set_hash_low(computed->hash.low);
    file.set_hash_high(computed->hash.high);
    summary.rows += computed->rows;
    summary.bytes += computed->bytes;
    ++summary.files;
  }
  const auto& files = found->manifest.files();
  summary.model_hash = ModelHashText({files.begin(), files.end()}, summary.step);
  if (summary.model_hash != found->manifest.model_hash()) {
    return absl::DataLossError(absl::StrCat(found->folder, ": the rows' model hash is ",
                                            summary.model_hash, ", the manifest says ",
                                            found->manifest.model_hash()));
  }
  return summary;
}

}  // namespace

absl::StatusOr<CheckpointSummary> VerifyCheckpoint(const std::string& directory) {
  auto found = FindCheckpoint(directory);
  if (!found.ok()) return found.status();
  auto summary = VerifyFound(&*found);
  if (!absl::IsDataLoss(summary.status())) return summary;
  return WithWholeOne(summary.status(), found->folder);
}

}  // namespace strata
