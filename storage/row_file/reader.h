// Batched reads of rows from a row file, many blocks in flight.
// Tested by tests/storage/row_file/tier_test.cc
#ifndef STRATA_STORAGE_ROW_FILE_READER_H_
#define STRATA_STORAGE_ROW_FILE_READER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "proto/core/ids.h"
#include "storage/io/async_reads.h"
#include "storage/row_file/memtable.h"
#include "storage/row_file/version.h"
#include "storage/tier/row_tier.h"

namespace strata::storage::row_file {

// What a lookup is made in: taken at one moment.
struct ReadView {
  std::shared_ptr<const Version> version;
  std::shared_ptr<const Memtable> frozen;  // may be null
};

// One batch at a time. Memory: 128 blocks, at most 1 MiB or 8 blocks, and a window of
// RowTier::ReadRowsAtOnce rows.
class BatchReader {
 public:
  explicit BatchReader(std::unique_ptr<AsyncReads> reads) : reads_(std::move(reads)) {}

  // Takes a view and looks the positions up in the active memtable: known(i, hit) for those that
  // it decides.
  using Known = std::function<void(size_t i, const Memtable::Hit& hit)>;
  using Look = std::function<ReadView(std::span<const Position>, const Known&)>;
  absl::Status Read(TableId table, std::span<const Position> positions, size_t row_bytes,
                    const Look& look, const RowTier::Found& found);

  uint64_t bytes_read() const { return bytes_read_; }

  static constexpr size_t kDepth = 256;  // of AsyncReads

 private:
  enum class State : uint8_t { kSearching, kAbsent, kFound };
  struct Slot {
    State state = State::kSearching;
    const Range* range = nullptr;
    size_t sources = 0;  // not tried yet: the base, and deltas from the oldest on
    size_t next = 0;     // in the list of an operation: position number + 1
  };
  struct Operation {
    std::shared_ptr<const Extent> extent;
    const Section* section = nullptr;
    uint32_t block = 0;
    size_t pieces = 0;  // in flight
    size_t slots = 0;   // list of position numbers + 1
    int64_t error = 0;
  };

  void Prepare(size_t row_bytes);
  void Admit(const Look& look);
  bool TakeView(const Look& look);
  // Starts a read of the next place that may have the row, or decides that there is none. False if
  // no operation is free.
  bool Advance(size_t i);
  void Start(size_t number, std::shared_ptr<const Extent> extent, const Section* section,
             uint32_t block);
  void Complete(size_t number);
  void Emit(const RowTier::Found& found);
  Slot& SlotOf(size_t i) { return slots_[i % window_]; }
  uint8_t* RowOf(size_t i) { return rows_.data() + i % window_ * row_bytes_; }
  uint8_t* BlockOf(size_t operation) { return blocks_.get() + operation * block_bytes_; }

  const std::unique_ptr<AsyncReads> reads_;
  uint64_t bytes_read_ = 0;

  // Of the batch.
  TableId table_;
  std::span<const Position> positions_;
  size_t row_bytes_ = 0;
  size_t window_ = 0;
  size_t head_ = 0;                                // the first position that was not answered
  size_t tail_ = 0;                                // the first that was not begun
  size_t viewed_ = 0;                              // the first without a view
  std::deque<std::pair<size_t, ReadView>> views_;  // each with the end of its positions
  std::vector<Slot> slots_;
  std::vector<uint8_t> rows_;
  std::vector<Operation> operations_;
  std::vector<size_t> free_;
  std::vector<size_t> retry_;   // positions that wait for a free operation
  std::optional<size_t> last_;  // the operation begun last
  size_t block_bytes_ = 0;
  size_t block_capacity_ = 0;
  PageMemory blocks_;
  size_t in_flight_ = 0;
  std::vector<AsyncReads::Done> done_;
  std::vector<Piece> pieces_;
  absl::Status status_;
};

}  // namespace strata::storage::row_file

#endif  // STRATA_STORAGE_ROW_FILE_READER_H_
