#include "storage/row_file/reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/io/file_io.h"

namespace strata::storage::row_file {
namespace {

constexpr size_t kMostOperations = 128;
constexpr size_t kBlockMemory = size_t{1} << 20;

}  // namespace

absl::Status BatchReader::Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                               const Look& look, const RowTier::Found& found) {
  table_ = table;
  positions_ = positions;
  Prepare(row_bytes);
  while (in_flight_ > 0 || (status_.ok() && head_ < positions_.size())) {
    if (status_.ok()) Admit(look);
    if (status_.ok()) Emit(found);
    if (in_flight_ == 0) continue;
    done_.clear();
    reads_->Wait(done_);
    for (const AsyncReads::Done& done : done_) {
      Operation& operation = operations_[done.tag >> 32];
      // A read that was cut short is an error: blocks never cross the end of the file.
      const auto wanted = static_cast<int64_t>(done.tag & 0xffffffff);
      if (done.result != wanted) operation.error = done.result < 0 ? -done.result : EIO;
      --in_flight_;
      if (--operation.pieces == 0) Complete(done.tag >> 32);
    }
  }
  views_.clear();
  return std::exchange(status_, absl::OkStatus());
}

void BatchReader::Prepare(size_t row_bytes) {
  row_bytes_ = row_bytes;
  window_ = RowTier::ReadRowsAtOnce(row_bytes);
  head_ = tail_ = viewed_ = 0;
  slots_.resize(window_);
  rows_.resize(window_ * row_bytes);
  block_bytes_ = BlockShape::For(static_cast<uint32_t>(row_bytes)).block_bytes;
  const size_t operations = std::clamp<size_t>(kBlockMemory / block_bytes_, 8, kMostOperations);
  if (operations * block_bytes_ > block_capacity_) {
    block_capacity_ = operations * block_bytes_;
    blocks_ = AllocatePages(block_capacity_);
  }
  operations_.assign(operations, {});
  free_.clear();
  for (size_t i = 0; i < operations; ++i) free_.push_back(i);
  retry_.clear();
  last_.reset();
}

bool BatchReader::TakeView(const Look& look) {
  // A quarter of the window at a time, so that reads never run dry at its end.
  const size_t n = std::min(std::max<size_t>(1, window_ / 4), positions_.size() - viewed_);
  if (n == 0 || viewed_ + n - head_ > window_) return false;
  const size_t begin = viewed_;
  for (size_t i = 0; i < n; ++i) SlotOf(begin + i) = {};
  const auto decide = [this](size_t i, const Memtable::Hit& hit) {
    if (!hit.known) return;
    SlotOf(i).state = hit.row == nullptr ? State::kAbsent : State::kFound;
    if (hit.row != nullptr) std::memcpy(RowOf(i), hit.row, row_bytes_);
  };
  const std::span<const Position> part = positions_.subspan(begin, n);
  ReadView view = look(part, [&](size_t i, const Memtable::Hit& hit) { decide(begin + i, hit); });
  for (size_t i = begin; i < begin + n; ++i) {
    Slot& slot = SlotOf(i);
    if (slot.state != State::kSearching) continue;
    if (view.frozen != nullptr) decide(i, view.frozen->Get(table_, positions_[i]));
    if (slot.state != State::kSearching) continue;
    slot.range = &view.version->ranges[view.version->RangeOf({table_, positions_[i]})];
    slot.sources = slot.range->deltas.size() + 1;
  }
  viewed_ += n;
  views_.emplace_back(viewed_, std::move(view));
  return true;
}

void BatchReader::Admit(const Look& look) {
  while (!retry_.empty()) {
    if (!Advance(retry_.back())) return;
    retry_.pop_back();
  }
  for (;;) {
    while (tail_ < viewed_) {
      if (SlotOf(tail_).state == State::kSearching && !Advance(tail_)) return;
      ++tail_;
    }
    if (!TakeView(look)) return;
  }
}

bool BatchReader::Advance(size_t i) {
  Slot& slot = SlotOf(i);
  while (slot.sources > 0) {
    const std::shared_ptr<const Extent>& extent =
        slot.sources == 1 ? slot.range->base : slot.range->deltas[slot.sources - 2];
    const Section* section = extent == nullptr ? nullptr : extent->Find(table_);
    const std::optional<uint32_t> block =
        section == nullptr ? std::nullopt : Extent::Find(*section, positions_[i]);
    if (block) {
      const bool same = last_ && operations_[*last_].pieces > 0 &&
                        operations_[*last_].section == section &&
                        operations_[*last_].block == *block;
      if (!same) {
        if (free_.empty()) return false;
        last_ = free_.back();
        free_.pop_back();
        Start(*last_, extent, section, *block);
      }
      --slot.sources;
      slot.next = std::exchange(operations_[*last_].slots, i + 1);
      return true;
    }
    --slot.sources;
  }
  slot.state = State::kAbsent;
  return true;
}

void BatchReader::Start(size_t number, std::shared_ptr<const Extent> extent, const Section* section,
                        uint32_t block) {
  Operation& operation = operations_[number];
  const uint64_t bytes = section->shape.block_bytes;
  pieces_.clear();
  PiecesOf(extent->place().runs, section->offset + block * bytes, bytes, pieces_);
  operation = {.extent = std::move(extent), .section = section, .block = block};
  uint8_t* out = BlockOf(number);
  for (const auto& [offset, n] : pieces_) {
    reads_->Submit(operation.extent->volume()->fd(), offset, {out, n}, uint64_t{number} << 32 | n);
    out += n;
  }
  operation.pieces = pieces_.size();
  in_flight_ += pieces_.size();
  bytes_read_ += bytes;
}

void BatchReader::Complete(size_t number) {
  Operation& operation = operations_[number];
  const Extent& extent = *operation.extent;
  const BlockShape& shape = operation.section->shape;
  const uint64_t offset = operation.section->offset + operation.block * uint64_t{shape.block_bytes};
  std::optional<BlockView> view;
  if (operation.error != 0) {
    status_ = ErrnoStatus(static_cast<int>(operation.error), "read", extent.volume()->path());
  } else {
    view = BlockView::Check(shape, {BlockOf(number), shape.block_bytes}, extent.place().number,
                            operation.section->first_block + operation.block);
    if (!view) status_ = extent.Damaged(offset, "a block that does not check");
  }
  for (size_t at = operation.slots; view && at != 0;) {
    const size_t i = at - 1;
    Slot& slot = SlotOf(i);
    at = slot.next;
    const uint32_t row = view->LowerBound(positions_[i]);
    if (row == view->rows() || view->position(row) != positions_[i]) {
      retry_.push_back(i);  // the filter was wrong
    } else if (const uint8_t* bytes = view->row(row); bytes == nullptr) {
      slot.state = State::kAbsent;
    } else {
      slot.state = State::kFound;
      std::memcpy(RowOf(i), bytes, row_bytes_);
    }
  }
  operation.extent.reset();
  free_.push_back(number);
}

void BatchReader::Emit(const RowTier::Found& found) {
  for (; head_ < tail_ && SlotOf(head_).state != State::kSearching; ++head_) {
    if (SlotOf(head_).state == State::kFound) found(head_, RowOf(head_));
  }
  while (!views_.empty() && views_.front().first <= head_) views_.pop_front();
}

}  // namespace strata::storage::row_file
