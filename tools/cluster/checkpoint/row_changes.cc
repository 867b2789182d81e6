#include "tools/cluster/checkpoint/row_changes.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/partition.h"

namespace strata {
namespace {

// Rows of a run of partitions, in memory.
struct Run {
  std::vector<Position> positions;
  std::vector<uint8_t> rows;
};

absl::Status ReadRun(const CheckpointRows& from, uint32_t table, PartitionRange partitions,
                     Run& run) {
  run.positions.clear();
  run.rows.clear();
  const size_t row_bytes = from.layout(table).row_bytes();
  return from.ReadPartitions(table, partitions, [&](Position position, const uint8_t* row) {
    run.positions.push_back(position);
    run.rows.insert(run.rows.end(), row, row + row_bytes);
    return absl::OkStatus();
  });
}

uint32_t PartitionsOfRun(const CheckpointRows& from, uint32_t table) {
  const uint64_t bytes = from.rows(table) * (from.layout(table).row_bytes() + 8);
  const uint64_t partitions = from.manifest().partitions();
  const uint64_t runs = std::min(bytes / kRunBytes + 1, partitions);
  return static_cast<uint32_t>(partitions / runs);
}

}  // namespace

absl::Status VisitChanges(const CheckpointRows* before, const CheckpointRows& after, uint32_t table,
                          const ChangeVisitor& visit) {
  if (before == nullptr) {
    return after.ReadAll(table, [&](Position position, const uint8_t* row) {
      return visit(position, nullptr, row);
    });
  }
  const size_t row_bytes = after.layout(table).row_bytes();
  const uint32_t step = PartitionsOfRun(*before, table);
  const uint32_t partitions = after.manifest().partitions();
  Run run;
  for (uint32_t first = 0; first < partitions; first += step) {
    const PartitionRange range = {PartitionId(first),
                                  PartitionId(std::min(first + step, partitions) - 1)};
    if (absl::Status s = ReadRun(*before, table, range, run); !s.ok()) return s;
    size_t at = 0;
    const auto gone_until = [&](const Position* until) {
      for (; at < run.positions.size() && (until == nullptr || run.positions[at] < *until); ++at) {
        absl::Status s = visit(run.positions[at], &run.rows[at * row_bytes], nullptr);
        if (!s.ok()) return s;
      }
      return absl::OkStatus();
    };
    absl::Status s = after.ReadPartitions(table, range, [&](Position position, const uint8_t* row) {
      if (absl::Status gone = gone_until(&position); !gone.ok()) return gone;
      const uint8_t* old = nullptr;
      if (at < run.positions.size() && run.positions[at] == position) {
        old = &run.rows[at++ * row_bytes];
        if (std::memcmp(old, row, row_bytes) == 0) return absl::OkStatus();
      }
      return visit(position, old, row);
    });
    if (s.ok()) s = gone_until(nullptr);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckSameModel(const CheckpointRows& before, const CheckpointRows& after) {
  const auto differ = [&](const auto&... what) {
    return absl::FailedPreconditionError(
        absl::StrCat(before.folder(), " and ", after.folder(), " are not of one model: ", what...));
  };
  const uint32_t a = before.manifest().partitions(), b = after.manifest().partitions();
  if (a != b) return differ(a, " and ", b, " partitions");
  if (before.tables().tables.size() != after.tables().tables.size()) {
    return differ("they have other tables");
  }
  for (uint32_t t = 0; t < after.tables().tables.size(); ++t) {
    const TableSpec& table = after.tables().tables[t];
    if (before.tables().tables[t].name != table.name ||
        before.layout(t).dim != after.layout(t).dim ||
        before.layout(t).state_floats != after.layout(t).state_floats ||
        !(before.tables().tables[t].tensors == table.tensors)) {
      return differ("table ", table.name, " has another shape");
    }
  }
  return absl::OkStatus();
}

}  // namespace strata
