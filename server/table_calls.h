// What calls of a shard's table say beside rows: which update it is, how rows are to be written.
#ifndef STRATA_SERVER_TABLE_CALLS_H_
#define STRATA_SERVER_TABLE_CALLS_H_

#include <cstdint>

#include "ops/codec.h"
#include "server/kept_rows.h"

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
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_CALLS_H_
