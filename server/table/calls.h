// What calls of a shard's table say beside rows: which update it is, how rows are to be written;
// and what it knows of a piece of work.
// Tested by tests/server/table/shard_table_test.cc
#ifndef STRATA_SERVER_TABLE_CALLS_H_
#define STRATA_SERVER_TABLE_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/codec.h"
#include "proto/core/ids.h"
#include "server/table/kept_rows.h"
#include "storage/row/hash.h"
#include "storage/row/table.h"

namespace strata::server {

// Which update is being applied; the same for all tables of a shard's record.
struct UpdateStep {
  uint64_t number = 0;    // committed step, or applied-record number, from 1
  uint64_t examples = 0;  // the sums are divided by it
};

// How rows are written for a reader.
struct ReadAs {
  ops::RowCodec codec = ops::RowCodec::kFloat32;
  KeptRows* kept = nullptr;  // notes where the rows lie, and pins them
  // Rows go there instead, as floats, in the memory of the table's device.
  float* there = nullptr;
};

// What of a chunk of sums is applied to rows.
struct SumsChunk {
  std::span<const Position> positions;
  const float* values = nullptr;        // (n, push dim)
  std::span<storage::RowSlot> slots;    // hints, or empty
  const float* values_there = nullptr;  // instead of values: in the memory of the table's device
};

// The chunk that admission has decided on.
struct AdmittedChunk {
  bool decided = false;
  std::vector<Position> positions;
  std::vector<size_t> index;  // in the chunk
  std::vector<float> values;  // where some key got no row
  std::vector<storage::RowSlot> slots;
};

// A row that changes for the first time since a list of changes began.
struct FirstChange {
  size_t row;  // of the chunk
  bool born;
  storage::HashSum before;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_CALLS_H_
