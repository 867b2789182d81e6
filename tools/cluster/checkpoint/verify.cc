#include "tools/cluster/checkpoint/verify.h"

#include <map>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "storage/checkpoint/shard_chain.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"
#include "tools/cluster/checkpoint/folder.h"

namespace strata {
namespace {

// The rows that a file's partitions hold with it and the increments after it, read as one.
absl::Status SumChain(const std::vector<storage::CheckpointPath>& files,
                      storage::ShardFileSummary& sum) {
  auto chain = storage::ShardChain::Open(files);
  if (!chain.ok()) return chain.status();
  const storage::ShardFileHeader& header = chain->header();
  for (const storage::TableShape& shape : header.tables) {
    uint64_t rows = 0;
    absl::Status s = chain->ReadRows(
        shape.id, header.partitions,
        [&](std::span<const Position> positions, const uint8_t* bytes) {
          for (size_t i = 0; i < positions.size(); ++i) {
            sum.hash += storage::HashRow(shape.id, shape.KeyAt(positions[i]),
                                         {bytes + i * shape.row_bytes(), shape.row_bytes()});
          }
          rows += positions.size();
          return absl::OkStatus();
        });
    if (!s.ok()) return s;
    const auto said = chain->rows(shape.id);
    if (!said.ok()) return said.status();
    if (*said != rows) {
      return absl::DataLossError(absl::StrCat(files.back().path, " says that table ",
                                              shape.id.value, " has ", *said,
                                              " rows, but there are ", rows));
    }
    sum.rows += rows;
  }
  return absl::OkStatus();
}

// 1 every file by itself: checksums, order, counts, its own hash  2 what the files make together.
absl::StatusOr<CheckpointSummary> VerifyFound(const FoundCheckpoint& found) {
  if (absl::Status s = VerifyCheckpointFiles(found.folder, found.manifest); !s.ok()) return s;
  CheckpointSummary summary;
  summary.directory = found.folder;
  summary.step = found.manifest.step();
  struct Chain {
    std::vector<storage::CheckpointPath> files;
    storage::ShardFileSummary sum;  // of the first alone
  };
  std::map<uint32_t, Chain> chains;  // by first partition
  storage::ShardFileSummary sum;
  for (const CheckpointFile& file : FilesInOrder(found.manifest)) {
    const std::string path = absl::StrCat(found.folder, "/", file.name());
    auto reader = storage::ShardFileReader::Open(path);
    if (!reader.ok()) return reader.status();
    const auto writer = WriterOf(file);
    if (!writer.ok()) return writer.status();
    if (absl::Status s = storage::CheckWriter((*reader)->header(), path, *writer); !s.ok())
      return s;
    auto computed = (*reader)->Verify();
    if (!computed.ok()) return computed.status();
    if (computed->rows != file.rows()) {
      return absl::DataLossError(
          absl::StrCat(path, " holds ", computed->rows, " rows, its manifest says ", file.rows()));
    }
    Chain& chain = chains[file.first_partition()];
    chain.files.push_back({path, *writer});
    if (file.sequence() == 0) chain.sum = *computed;
    summary.increments += file.sequence() > 0;
    summary.bytes += computed->bytes;
    ++summary.files;
  }
  for (const auto& [first, chain] : chains) {
    if (chain.files.size() == 1) {
      sum.hash += chain.sum.hash;
      sum.rows += chain.sum.rows;
    } else if (absl::Status s = SumChain(chain.files, sum); !s.ok()) {
      return s;
    }
  }
  summary.rows = sum.rows;
  CheckpointFile all;
  all.set_hash_low(sum.hash.low);
  all.set_hash_high(sum.hash.high);
  summary.model_hash = ModelHashText({all}, summary.step);
  if (summary.model_hash != found.manifest.model_hash()) {
    return absl::DataLossError(absl::StrCat(found.folder, ": the rows' model hash is ",
                                            summary.model_hash, ", the manifest says ",
                                            found.manifest.model_hash()));
  }
  return summary;
}

}  // namespace

absl::StatusOr<CheckpointSummary> VerifyFolder(const std::string& folder) {
  auto manifest = ReadManifest(folder);
  if (!manifest.ok()) return manifest.status();
  return VerifyFound({folder, *std::move(manifest)});
}

absl::StatusOr<CheckpointSummary> VerifyCheckpoint(const std::string& directory) {
  auto found = FindCheckpoint(directory);
  if (!found.ok()) return found.status();
  auto summary = VerifyFound(*found);
  if (!absl::IsDataLoss(summary.status())) return summary;
  return WithWholeOne(summary.status(), found->folder);
}

}  // namespace strata
