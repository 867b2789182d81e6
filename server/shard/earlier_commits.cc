#include "server/shard/earlier_commits.h"

#include <algorithm>
#include <cstring>

#include "server/shard/file_sections.h"

namespace strata::server {

std::vector<uint8_t> EncodeEarlierCommits(const std::vector<uint64_t>& commits) {
  std::vector<uint8_t> bytes(commits.size() * sizeof(uint64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), commits.data(), bytes.size());
  return bytes;
}

absl::StatusOr<EarlierCommits> ReadEarlierCommits(const storage::ShardFileReader& file) {
  EarlierCommits commits;
  const auto& tables = file.header().tables;
  const absl::Status s = file.ReadSectionsOf(
      kEarlierSection, file.header().partitions, [&](const storage::Section& section) {
        if (section.bytes.size() != tables.size() * sizeof(uint64_t)) {
          return absl::DataLossError("earlier commits: damaged bytes");
        }
        for (size_t i = 0; i < tables.size(); ++i) {
          std::memcpy(&commits[tables[i].id], section.bytes.data() + i * sizeof(uint64_t),
                      sizeof(uint64_t));
        }
        return absl::OkStatus();
      });
  if (!s.ok()) return s;
  return commits;
}

absl::Status RaiseEarlierCommits(const RestorePlan& plan, TableId dense,
                                 const storage::ShardFileReader& file, uint64_t clock,
                                 EarlierCommits& commits) {
  auto before = ReadEarlierCommits(file);
  if (!before.ok()) return before.status();
  const auto raise = [&](TableId from, TableId to) {
    commits[to] = std::max(commits[to], clock + (*before)[from]);
  };
  for (const RestoreTable& table : plan.tables()) {
    if (!table.reset_state()) raise(TableId(table.from()), TableId(table.to()));
  }
  for (const RestoreTensor& tensor : plan.tensors()) {
    if (!tensor.reset_state()) raise(dense, dense);
  }
  return absl::OkStatus();
}

}  // namespace strata::server
