// What becomes of a row of a checkpoint's file in a table here: which of its floats are taken, and
// where they go (spec.model.initFrom).
// Tested by tests/server/job/restore_test.cc
// Tested by tests/server/job/label_columns_test.cc
#ifndef STRATA_SERVER_SHARD_ROW_CONVERSION_H_
#define STRATA_SERVER_SHARD_ROW_CONVERSION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "proto/core/ids.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/table/shard_table.h"
#include "storage/checkpoint/shard_file.h"
#include "storage/row/layout.h"

namespace strata::server {

// By column of the checkpoint, its column here; nothing: no label here has it. `now`: how many
// columns there are here. Null: `columns` does not say that of each column, or of one twice.
std::optional<std::vector<std::optional<uint32_t>>> ColumnsHere(const RestoreColumns& columns,
                                                                uint32_t now);

// Floats of the optimizer's state that each weight has, in as many arrays one behind the other;
// nothing: the state is one number of all weights.
std::optional<uint32_t> StateArrays(const storage::SegmentLayout& segment);

// The table outlives it.
class RowConversion {
 public:
  struct Options {
    bool reset_state = false;  // the state is that of a new row
    bool keep_score = false;   // but for its score
    // Of the last segment, which has a weight for each label; null: all weights lie where they did.
    const RestoreColumns* columns = nullptr;
  };

  // Nothing: the shapes do not fit.
  static std::optional<RowConversion> Of(const storage::TableShape& from, const ShardTable& to,
                                         const Options& options);

  size_t row_bytes() const { return from_.row_bytes(); }
  size_t meta_offset() const { return from_.row_bytes() - sizeof(storage::RowMeta); }

  // Fills `out`, of the table's row_bytes. What is not taken is as in a new row of `seed`. Step
  // `row_clock` of the file is step 0 here.
  void Convert(uint64_t seed, uint64_t row_clock, Key key, const uint8_t* row, uint8_t* out) const;
  // A row's last step as it is counted here; the file's steps would be steps to come. One that was
  // idle for longer than 2^31 - 1 steps is as old as that.
  static uint32_t LastStepHere(uint32_t last_step, uint64_t row_clock);

 private:
  // Floats one behind the other, by their places in the rows.
  struct Run {
    uint32_t from, to, floats;
  };

  RowConversion(const storage::TableShape& from, const ShardTable& to) : from_(from), to_(&to) {}
  // False: the shapes do not fit.
  bool TakeAll(bool reset_state);
  bool TakeColumns(const RestoreColumns& columns, bool reset_state);
  void TakeScore();
  void Copy(uint64_t seed, Key key, const uint8_t* row, uint8_t* out) const;
  void CountFromHere(uint64_t row_clock, uint8_t* row) const;

  storage::TableShape from_;
  const ShardTable* to_;
  bool whole_ = false;  // every byte lies where it did
  std::vector<Run> runs_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_ROW_CONVERSION_H_
