// An update log that survives what happens to a simulated process, in memory.
#ifndef STRATA_TESTS_SIM_MEMORY_LOG_H_
#define STRATA_TESTS_SIM_MEMORY_LOG_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/checksum.h"
#include "storage/log/update_log.h"

namespace strata::sim {

// Segments from number 0, of any number of records. One thread.
class MemoryLog : public storage::UpdateLog {
 public:
  using storage::UpdateLog::Append;
  using storage::UpdateLog::Replay;

  absl::StatusOr<storage::LogPosition> Append(std::span<const storage::LogEntry> entries) override {
    const storage::LogPosition first{segment_, records_.size()};
    for (const storage::LogEntry& e : entries) {
      Record record{segment_, e.header, {}};
      for (const auto part : e.parts) {
        record.payload.insert(record.payload.end(), part.begin(), part.end());
      }
      if (e.summed != nullptr) *e.summed = Crc32c(record.payload);
      records_.push_back(std::move(record));
    }
    return first;
  }
  absl::Status Replay(uint64_t from, const Filter& wanted, const Visitor& visit) override {
    if (from != 0 && from < first_) return absl::OutOfRangeError("the segment was trimmed");
    for (size_t i = 0; i < records_.size(); ++i) {
      const Record& r = records_[i];
      if (r.segment < from || (wanted != nullptr && !wanted(r.header))) continue;
      absl::Status s = visit({{r.segment, i}, r.header, r.payload});
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<storage::LogPosition> ReadOn(storage::LogPosition from, const Filter& wanted,
                                              const Taker& take) override {
    if (from.segment != 0 && from.segment < first_) {
      return absl::OutOfRangeError("the segment was trimmed");
    }
    for (size_t i = 0; i < records_.size(); ++i) {
      const Record& r = records_[i];
      const storage::LogPosition at{r.segment, i};
      if (at < from) continue;
      from = {r.segment, i + 1};
      if (wanted != nullptr && !wanted(r.header)) continue;
      const auto more = take({at, r.header, r.payload});
      if (!more.ok()) return more.status();
      if (!*more) break;
    }
    return from;
  }
  absl::StatusOr<uint64_t> Rotate() override { return ++segment_; }
  absl::Status Trim(uint64_t before) override {
    first_ = std::max(first_, std::min(before, segment_));
    std::erase_if(records_, [this](const Record& r) { return r.segment < first_; });
    return absl::OkStatus();
  }
  storage::LogStats stats() const override {
    return {.first_segment = first_, .last_segment = segment_, .records = records_.size()};
  }
  uint64_t BytesFrom(uint64_t) const override { return 0; }

 private:
  struct Record {
    uint64_t segment;
    storage::LogHeader header;
    std::vector<uint8_t> payload;
  };
  std::vector<Record> records_;
  uint64_t first_ = 0;
  uint64_t segment_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_MEMORY_LOG_H_
