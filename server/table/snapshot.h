// One table's rows as they were at one moment, read piece by piece while commits go on.
#ifndef STRATA_SERVER_TABLE_SNAPSHOT_H_
#define STRATA_SERVER_TABLE_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "server/table/row_block.h"
#include "storage/row/table.h"

namespace strata::server {

// Copy on write. A cursor goes through the table in order of position; before a commit changes or
// erases a row that the cursor has not passed, the row's old bytes are kept aside (Save) and come
// out at their place. What was changed since the beginning is known by the row's own last_step, so
// a row is kept once and a row that was born since is left out, without a set of positions.
//
// A pure machine, touched on the shard's executor only. The table reads rows of all tiers in one
// call, so a row that moves between tiers from one piece to the next is seen once.
//
// Bytes: held() of saved rows (8 + row_bytes each), bounded by its owner, who goes on with Next
// before he commits; a piece of kPieceBytes + one row; 24 per kPieceBytes of the table. With
// steps_tell == false 9 to 18 more per row that is touched.
class TableSnapshot {
 public:
  static constexpr size_t kPieceBytes = size_t{1} << 18;

  struct Options {
    TableId table;
    size_t row_bytes = 0;
    Position first{0};  // all rows lie in [first, last]
    Position last{~0ull};
    uint64_t rows = 0;  // that exist now, about
    uint64_t step = 0;  // the moment: every later commit has a larger number
    // Rows' last_step compares with `step` as numbers: no number has passed 2^31, and no row says
    // that it was touched after `step`. Else the snapshot keeps a set of positions.
    bool steps_tell = true;
    // An increment: only these rows (strictly ascending), all those that were changed, born or
    // erased after base_step. REQUIRES: steps_tell.
    std::optional<std::vector<Position>> changed;
    uint64_t base_step = 0;
  };

  explicit TableSnapshot(Options options);

  // Before the row at `position` changes or goes. row: (row_bytes), as it is until then.
  void Save(Position position, const uint8_t* row) {
    if (done_ || position < next_ || Touched(position, row)) return;
    if (options_.changed && LastStep(row) <= static_cast<int64_t>(options_.base_step)) return;
    Keep(position, row);
  }
  // A row that was absent is born.
  void Born(Position position) {
    if (!options_.steps_tell && !done_) touched_.insert(position);
  }

  // The next piece; `out` may stay empty. On error (of the tier below) nothing has moved: the same
  // call goes on. REQUIRES: no update of the table is half done; !done().
  absl::Status Next(storage::RowTable& table, RowBlock& out);
  bool done() const { return done_; }
  TableId table() const { return options_.table; }
  size_t held() const { return held_; }

 private:
  struct Saved {
    Position position;
    const uint8_t* row;
  };
  int64_t LastStep(const uint8_t* row) const;
  bool Touched(Position position, const uint8_t* row) const {
    return options_.steps_tell ? LastStep(row) > static_cast<int64_t>(options_.step)
                               : touched_.contains(position);
  }
  void Keep(Position position, const uint8_t* row);
  size_t RegionOf(Position p) const { return (p.value - options_.first.value) >> region_bits_; }
  Position RegionEnd(size_t region) const;
  std::vector<Saved> SavedFrom(size_t region) const;
  absl::Status ReadAll(storage::RowTable& table, Position end, const std::vector<Saved>& saved,
                       RowBlock& out, Position& reached);
  absl::Status ReadChanged(storage::RowTable& table, Position end, const std::vector<Saved>& saved,
                           RowBlock& out, Position& reached);
  void Emit(Position position, const uint8_t* row, RowBlock& out) const;
  void Pass(Position reached);

  const Options options_;
  uint32_t region_bits_ = 0;
  // Saved rows by region (a run of positions with about a piece of rows): position, then row.
  std::vector<std::vector<uint8_t>> saved_;
  absl::flat_hash_set<Position> touched_;  // empty where steps tell
  size_t held_ = 0;
  Position next_;            // everything before has come out
  size_t next_changed_ = 0;  // the first of options_.changed that has not
  bool done_ = false;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_TABLE_SNAPSHOT_H_
