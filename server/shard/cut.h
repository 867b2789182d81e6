// Cuts of a shard: what is ordered, and what the shard has to say of it.
// Tested by tests/server/shard/cut_consistency_test.cc
#ifndef STRATA_SERVER_SHARD_CUT_H_
#define STRATA_SERVER_SHARD_CUT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "server/protocol/cut_barrier.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/hash.h"

namespace strata::server {

// A cut as the scheduler orders it.
struct CutOrder {
  CutNumber cut = 0;
  Step step;              // bsp: exactly here; async: 0
  std::string directory;  // empty: hash only
  // The newest complete cut, whose files an increment may follow; 0: write all rows.
  CutNumber base = 0;
  bool follow = false;  // the next cut may be an increment on this one
  friend bool operator==(const CutOrder&, const CutOrder&) = default;
};

// A file of a cut, in the cut's folder.
struct CutFile {
  std::string name;       // empty without one
  FileWriter writer;      // an increment's base is one of an earlier cut
  uint64_t epoch = 0;     // chain epoch in which it was begun; 0: the shard has no copies
  uint32_t sequence = 0;  // 0: all rows; else an increment on the file with the number before
  storage::ShardFileSummary summary;
  // Share of the model hash and change of the number of rows, against the file before.
  storage::HashSum hash;
  int64_t row_change = 0;
};

// What a shard has to say of a cut.
struct ShardCut {
  enum class Outcome : uint8_t { kDone, kRefused, kFailed };
  Outcome outcome = Outcome::kDone;
  std::string message;                            // refused, failed
  absl::StatusCode code = absl::StatusCode::kOk;  // failed
  std::vector<CutFile> files;  // in the order of their sequence; without a folder one, the sums
  Step step;
  std::map<uint32_t, LaneMark> marks;  // async
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_CUT_H_
