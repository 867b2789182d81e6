#include "storage/row/table_batch.h"

#include "absl/strings/str_cat.h"

namespace strata::storage {

absl::Status CheckBatch(std::span<const Position> positions, Position first, Position last,
                        size_t most) {
  if (positions.empty()) return absl::OkStatus();
  if (positions.size() > most) {
    return absl::InvalidArgumentError(absl::StrCat("a batch of ", positions.size(),
                                                   " positions; the table's limit is ", most,
                                                   ": split the batch"));
  }
  bool ascending = true;
  for (size_t i = 1; i < positions.size(); ++i) ascending &= positions[i - 1] < positions[i];
  if (!ascending) {
    return absl::InvalidArgumentError("the positions of a batch must strictly ascend");
  }
  if (positions.front() < first || last < positions.back()) {
    return absl::InvalidArgumentError(
        absl::StrCat("positions ", positions.front().value, " .. ", positions.back().value,
                     " are not all in the shard's range ", first.value, " .. ", last.value));
  }
  return absl::OkStatus();
}

}  // namespace strata::storage
