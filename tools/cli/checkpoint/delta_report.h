// What delta files and streams of removed keys hold (`strata delta`).
// Tested by tests/tools/cli/checkpoint/delta_command_test.cc
#ifndef STRATA_TOOLS_CLI_CHECKPOINT_DELTA_REPORT_H_
#define STRATA_TOOLS_CLI_CHECKPOINT_DELTA_REPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/ids.h"
#include "storage/delta/format.h"
#include "storage/delta/removed_stream.h"
#include "storage/row/layout.h"

namespace strata {

struct DeltaFileReport {
  // A file of spec.output.removed.
  struct Removals {
    std::optional<storage::RemovedName> name;  // none: the file was renamed
    storage::RemovedSummary summary;
  };

  std::string path;
  uint64_t bytes = 0;
  std::vector<storage::DeltaTable> tables;
  std::vector<uint64_t> put, removed;  // rows and keys, by table; of removals those that count
  std::optional<storage::DeltaHeader> delta;  // of a delta file; else
  std::optional<Removals> removals;
};

// One row of a delta file, or one removed key. Spans are valid during the call.
struct DeltaRow {
  TableId table;
  uint64_t key = 0;  // feature id; of a dense table the position
  bool removed = false;
  std::span<const float> weights;        // (dim); none of a row that is gone
  std::span<const float> state;          // (state_floats) where the delta has whole rows,
  std::optional<storage::RowMeta> meta;  // and this
  std::optional<uint64_t> step;          // of a stream: of the commit that removed it
};
using DeltaRowVisitor = std::function<absl::Status(const DeltaRow&)>;

// Of the file at `path`, or of all files of a folder: deltas by name, then removals as
// ListRemoved gives them, of which those do not count that a roll-back undid. Everything is read,
// each checksum and the order of keys checked; a delta is checked whole before `visit` (may be
// null) sees its rows. Memory: one block (kDeltaMostPayload).
// NOT_FOUND: nothing is there, or nothing of the kind in the folder; DATA_LOSS: damaged, or none of
// ours, with file and offset; PERMISSION_DENIED.
absl::StatusOr<std::vector<DeltaFileReport>> ReadDeltas(const std::string& path,
                                                        const DeltaRowVisitor& visit);

}  // namespace strata

#endif  // STRATA_TOOLS_CLI_CHECKPOINT_DELTA_REPORT_H_
