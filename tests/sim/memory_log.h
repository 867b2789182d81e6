// An update log that survives what happens to a simulated process, in memory.
#ifndef STRATA_TESTS_SIM_MEMORY_LOG_H_
#define STRATA_TESTS_SIM_MEMORY_LOG_H_

#include <cstdint>
#include <vector>

#include "storage/update_log.h"

namespace strata::sim {

// One segment, number 0. One thread.
class MemoryLog : public storage::UpdateLog {
 public:
  using storage::UpdateLog::Append;
  using storage::UpdateLog::Replay;

  absl::StatusOr<storage::LogPosition> Append(std::span<const storage::LogEntry> entries) override {
    const storage::LogPosition first{0, records_.size()};
    for (const storage::LogEntry& e : entries) {
      Record record{e.header, {}};
      for (const auto part : e.parts) {
        record.payload.insert(record.payload.end(), part.begin(), part.end());
      }
      records_.push_back(std::move(record));
    }
    return first;
  }
  absl::Status Replay(uint64_t, const Filter& wanted, const Visitor& visit) override {
    for (size_t i = 0; i < records_.size(); ++i) {
      if (wanted != nullptr && !wanted(records_[i].header)) continue;
      absl::Status s = visit({{0, i}, records_[i].header, records_[i].payload});
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> Rotate() override { return 0; }
  absl::Status Trim(uint64_t) override { return absl::OkStatus(); }
  storage::LogStats stats() const override { return {.records = records_.size()}; }
  uint64_t BytesFrom(uint64_t) const override { return 0; }

 private:
  struct Record {
    storage::LogHeader header;
    std::vector<uint8_t> payload;
  };
  std::vector<Record> records_;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_SIM_MEMORY_LOG_H_
