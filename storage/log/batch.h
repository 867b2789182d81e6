// The records of one append to the update log, made ready before anybody is waited for.
// Tested by tests/storage/log/update_log_test.cc
#ifndef STRATA_STORAGE_LOG_BATCH_H_
#define STRATA_STORAGE_LOG_BATCH_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/mutex.h"
#include "storage/io/huge_memory.h"
#include "storage/log/format.h"
#include "storage/log/record.h"

namespace strata::storage {

// Memory in which batches lie as whole blocks, ready for a device. Thread-safe. At most as many
// pieces exist as appends run at a time, and kKept when none does; a piece takes up what was used
// of it, at most kBytes.
class BatchMemory {
 public:
  static constexpr uint64_t kBytes = uint64_t{8} << 20;
  static constexpr size_t kKept = 4;

  // Nothing (size 0) where the system has none left.
  HugeMemory Take();
  void Return(HugeMemory memory);

 private:
  Mutex mu_;
  std::vector<HugeMemory> kept_ ABSL_GUARDED_BY(mu_);
};

// One thread at a time. Points into the entries' parts, which outlive it.
class LogBatch {
 public:
  // Sums the payloads. With `memory`, records that fit into a piece of it are copied there in the
  // same pass, as whole blocks. INVALID_ARGUMENT: no entry, or one over the limit of a payload.
  // DATA_LOSS: a payload is not what its entry says that it sums up to.
  static absl::StatusOr<LogBatch> Make(std::span<const LogEntry> entries, uint64_t payload_limit,
                                       BatchMemory* memory);
  LogBatch(LogBatch&&) = default;
  LogBatch& operator=(LogBatch&&) = delete;
  ~LogBatch();

  size_t size() const { return records_.size(); }
  // Of all records with the zeros behind them.
  uint64_t Bytes(uint32_t alignment) const;
  // Writes the headers of records that follow each other from `place.at` on, each with
  // `place.settled` or its own offset, whichever is less, and adds the batch's bytes to `parts`,
  // which points into it. May be called again, for another place.
  void Place(log::RecordPlace place, uint32_t alignment, std::vector<iovec>& parts);

 private:
  struct Record {
    LogHeader header;
    log::PayloadSum payload;
    std::span<const std::span<const uint8_t>> parts;
    uint32_t crc = 0;                                   // of the payload alone
    uint8_t* staged = nullptr;                          // in memory_, or null
    std::array<uint8_t, log::kRecordHeaderBytes> head;  // unless staged
  };
  explicit LogBatch(BatchMemory* pool) : pool_(pool) {}
  void Stage();
  void Sum();

  BatchMemory* pool_;
  HugeMemory memory_;
  std::vector<Record> records_;
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_BATCH_H_
