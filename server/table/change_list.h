// Which rows of a table were changed, born or erased since a checkpoint: what an increment holds.
// Tested by tests/server/table/shard_table_device_test.cc
#ifndef STRATA_SERVER_TABLE_CHANGE_LIST_H_
#define STRATA_SERVER_TABLE_CHANGE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "proto/core/ids.h"
#include "storage/row/hash.h"

namespace strata::server {

// A pure machine, touched on the shard's executor only. A row is new to the list when its last_step
// is not after the base, so that nothing is looked up. The base's rows that changed are also summed
// by hash: the model hash of an increment's moment follows without reading the other rows.
//
// Bytes: 8 per entry, at most 8 * Limit(rows); with more, the list is given up and the next
// checkpoint is whole.
class ChangeList {
 public:
  // Of a table that had `rows` at the base: a quarter, since a larger increment is no gain.
  static constexpr uint64_t kLeastLimit = uint64_t{1} << 16;
  static constexpr uint64_t Limit(uint64_t rows) {
    return rows / 4 < kLeastLimit ? kLeastLimit : rows / 4;
  }

  // Forgets everything; from now on lists what changes after `base_step`.
  void Begin(uint64_t base_step, uint64_t rows);
  void Stop();
  bool active() const { return active_; }
  uint64_t base_step() const { return base_step_; }

  // A row that existed at the base, was not touched since and hashes to `before`, changes or goes.
  void Changed(Position position, const storage::HashSum& before);
  void Born(Position position) { Add(position); }
  // True: a row with this last_step is not in the list yet.
  bool IsFirst(int64_t last_step) const {
    return active_ && last_step <= static_cast<int64_t>(base_step_);
  }

  struct Changes {
    uint64_t base_step = 0;
    std::vector<Position> positions;  // strictly ascending
    storage::HashSum before;          // of those that existed at the base
    uint64_t rows_before = 0;         // how many did
  };
  // What was listed; stops. REQUIRES: active().
  Changes Take();

 private:
  void Add(Position position);

  bool active_ = false;
  uint64_t base_step_ = 0;
  uint64_t limit_ = 0;
  std::vector<Position>
      positions_;  // in order of change; a row erased and born again is twice here
  storage::HashSum before_;
  uint64_t rows_before_ = 0;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_CHANGE_LIST_H_
