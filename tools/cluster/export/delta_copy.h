// A copy of a model in memory that deltas keep up to date: what a server for inference does.
// Tested by tests/tools/cluster/export/delta_test.cc
#ifndef STRATA_TOOLS_CLUSTER_EXPORT_DELTA_COPY_H_
#define STRATA_TOOLS_CLUSTER_EXPORT_DELTA_COPY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/delta/file.h"

namespace strata {

// One thread. Memory: every row, and about 40 bytes for each.
class DeltaCopy {
 public:
  // Applies a delta file. FAILED_PRECONDITION: it does not follow what was applied before, has
  // other tables, or has rows of another kind (with and without state); DATA_LOSS: it is damaged,
  // or it holds whole rows and the model's hash is not what it says. The copy is then as it was,
  // but after a wrong hash, which says that it was wrong before.
  absl::Status Apply(const std::string& path);

  // No value before the first delta.
  const std::optional<storage::DeltaPoint>& at() const { return at_; }
  // The tables' rows: of the header's row_bytes each. Null: the key reads as its initial value.
  const std::vector<uint8_t>* Find(TableId table, uint64_t key) const;
  uint64_t rows(TableId table) const;
  // Of everything that was applied.
  const storage::DeltaSummary& applied() const { return applied_; }

 private:
  using Rows = absl::flat_hash_map<uint64_t, std::vector<uint8_t>>;
  absl::Status CheckHeader(const storage::DeltaHeader& header, const std::string& path) const;

  std::optional<storage::DeltaPoint> at_;
  bool with_state_ = false;
  std::vector<storage::DeltaTable> tables_;
  std::map<TableId, Rows> rows_;
  storage::HashSum hash_;
  storage::DeltaSummary applied_;
};

}  // namespace strata

#endif  // STRATA_TOOLS_CLUSTER_EXPORT_DELTA_COPY_H_
