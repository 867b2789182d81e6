// A dense tensor of another job's checkpoint that has a column for each label, where labels are
// others here (spec.model.initFrom): its elements lie in other rows, and some of them nowhere.
// Tested by tests/server/job/label_columns_test.cc
#ifndef STRATA_SERVER_SHARD_TENSOR_COLUMNS_H_
#define STRATA_SERVER_SHARD_TENSOR_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/position.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/shard/row_conversion.h"
#include "server/table/shard_table.h"

namespace strata::server {

// The shard's executor alone. `table` outlives it.
class TensorColumns {
 public:
  // `rows`: of the dense table, as the plan's tensor wants them. `row_clock`: the file's step, from
  // which the rows age here. Nothing: the tensor here does not
  // have the shape that the plan speaks of.
  static std::optional<TensorColumns> Of(const RestoreTensor& plan, const RowConversion& rows,
                                         uint64_t seed, uint64_t row_clock, ShardTable* table);

  // Puts the elements of row number `row` of the tensor, whose bytes are the file's. A row here has
  // elements of several ones of the file: it is read, and what is not taken stays as it is, in a
  // row that is not there yet as in a new one. State that is one number of a row is the greatest of
  // theirs, and so are the step and the updates. Memory: a row.
  absl::Status Take(uint64_t row, const uint8_t* bytes);

 private:
  // An element by its places in the row of the file and in that here.
  struct Move {
    uint32_t from, to;
  };

  TensorColumns(const RestoreTensor& plan, const RowConversion& rows, uint64_t seed,
                uint64_t row_clock, ShardTable* table);
  absl::Status TakeInto(Position position, const std::vector<Move>& moves, const uint8_t* bytes);
  absl::Status ReadRow(Position position, bool* there);
  void CopyState(const std::vector<Move>& moves, const uint8_t* bytes);

  const uint64_t to_row_;
  const bool reset_state_;
  const size_t meta_offset_;  // in the file's rows
  const uint64_t seed_, row_clock_;
  ShardTable* table_;
  uint32_t columns_ = 0;  // here
  uint64_t saved_elements_ = 0;
  std::vector<std::optional<uint32_t>> here_;  // by column of the checkpoint
  std::vector<uint8_t> row_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_SHARD_TENSOR_COLUMNS_H_
