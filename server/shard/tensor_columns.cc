#include "server/shard/tensor_columns.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "proto/core/ids.h"
#include "proto/core/table_spec.h"
#include "storage/row/layout.h"
#include "storage/row/table.h"

namespace strata::server {
namespace {

const TensorSpec* FindTensor(const TableSpec& table, Position first) {
  for (const TensorSpec& t : table.tensors) {
    if (t.first == first) return &t;
  }
  return nullptr;
}

template <typename T>
T Load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// The greater one of both.
template <typename T>
void Raise(uint8_t* at, const uint8_t* other) {
  const T value = std::max(Load<T>(at), Load<T>(other));
  std::memcpy(at, &value, sizeof value);
}

}  // namespace

TensorColumns::TensorColumns(const RestoreTensor& plan, const RowConversion& rows, uint64_t seed,
                             uint64_t row_clock, ShardTable* table)
    : to_row_(plan.to_row()),
      reset_state_(plan.reset_state()),
      meta_offset_(rows.meta_offset()),
      seed_(seed),
      row_clock_(row_clock),
      table_(table),
      columns_(static_cast<uint32_t>(plan.columns().from_size())),
      row_(table->layout().row_bytes()) {}

std::optional<TensorColumns> TensorColumns::Of(const RestoreTensor& plan, const RowConversion& rows,
                                               uint64_t seed, uint64_t row_clock,
                                               ShardTable* table) {
  TensorColumns out(plan, rows, seed, row_clock, table);
  const TensorSpec* const tensor = FindTensor(table->spec(), Position(plan.to_row()));
  auto here = ColumnsHere(plan.columns(), out.columns_);
  if (tensor == nullptr || !here || out.columns_ == 0) return std::nullopt;
  if (tensor->elements % out.columns_ != 0) return std::nullopt;
  out.here_ = *std::move(here);
  out.saved_elements_ = tensor->elements / out.columns_ * out.here_.size();
  const uint64_t dim = table->layout().dim;
  if (plan.rows() != (out.saved_elements_ + dim - 1) / dim) return std::nullopt;
  return out;
}

absl::Status TensorColumns::Take(uint64_t row, const uint8_t* bytes) {
  const uint64_t dim = table_->layout().dim, first = row * dim;
  std::map<uint64_t, std::vector<Move>> rows;  // by the row here
  for (uint64_t e = first; e < std::min(first + dim, saved_elements_); ++e) {
    const auto column = here_[e % here_.size()];
    if (!column) continue;
    const uint64_t to = e / here_.size() * columns_ + *column;
    rows[to / dim].push_back({static_cast<uint32_t>(e - first), static_cast<uint32_t>(to % dim)});
  }
  for (const auto& [to, moves] : rows) {
    if (absl::Status s = TakeInto(Position(to_row_ + to), moves, bytes); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status TensorColumns::TakeInto(Position position, const std::vector<Move>& moves,
                                     const uint8_t* bytes) {
  bool there = false;
  if (absl::Status s = ReadRow(position, &there); !s.ok()) return s;
  for (const Move& m : moves) {
    std::memcpy(row_.data() + size_t{m.to} * 4, bytes + size_t{m.from} * 4, 4);
  }
  if (!reset_state_) CopyState(moves, bytes);
  uint8_t* const meta = row_.data() + table_->layout().meta_offset();
  const auto last_step = static_cast<int32_t>(RowConversion::LastStepHere(
      Load<uint32_t>(bytes + meta_offset_ + offsetof(storage::RowMeta, last_step)), row_clock_));
  uint8_t* const at = meta + offsetof(storage::RowMeta, last_step);
  const int32_t last = there ? std::max(Load<int32_t>(at), last_step) : last_step;
  std::memcpy(at, &last, sizeof last);
  Raise<uint32_t>(meta + offsetof(storage::RowMeta, updates),
                  bytes + meta_offset_ + offsetof(storage::RowMeta, updates));
  return table_->Put(std::span(&position, 1), row_.data());
}

absl::Status TensorColumns::ReadRow(Position position, bool* there) {
  storage::RowRef ref;
  absl::Status s =
      table_->rows().Resolve(std::span(&position, 1), storage::Access::kRead, std::span(&ref, 1));
  if (!s.ok()) return s;
  *there = ref.row != nullptr;
  if (*there) {
    std::memcpy(row_.data(), ref.row, row_.size());
  } else {
    storage::InitialRow(table_->spec(), table_->layout(), seed_,
                        table_->spec().KeyAtPosition(position), row_.data());
  }
  table_->rows().Release();
  return absl::OkStatus();
}

// Rows of the file have the same layout: a dense row is as wide in every job.
void TensorColumns::CopyState(const std::vector<Move>& moves, const uint8_t* bytes) {
  const storage::SegmentLayout& segment = table_->layout().segments[0];
  const auto arrays = StateArrays(segment);
  const size_t at = size_t{segment.state_offset} * 4;
  if (!arrays) return Raise<float>(row_.data() + at, bytes + at);
  for (uint32_t a = 0; a < *arrays; ++a) {
    const size_t array = at + size_t{a} * segment.dim * 4;
    for (const Move& m : moves) {
      std::memcpy(row_.data() + array + size_t{m.to} * 4, bytes + array + size_t{m.from} * 4, 4);
    }
  }
}

}  // namespace strata::server
