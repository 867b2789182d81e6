// Which windows of asynchronous training a shard has applied, so that each takes effect once
// whatever is retried (DESIGN.md section 5: work identity).
#ifndef STRATA_SERVER_PROTOCOL_WINDOW_LEDGER_H_
#define STRATA_SERVER_PROTOCOL_WINDOW_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/core/ids.h"

namespace strata::server {

enum class WindowVerdict : uint8_t {
  kNew,       // apply it, then Record it
  kRepeated,  // applied before: acknowledge, apply nothing
  kClosed,    // its task is closed, so it was applied before: as kRepeated
  // More than kMaxAhead windows beyond the first missing one, or of one more task that is too far
  // beyond those that are closed: refuse it.
  kTooFar,
};

// A pure machine; one per shard and generation. Its size: one entry per open task that was touched,
// and at most kMaxAhead window numbers in each that arrived out of order. Tasks that a scheduler
// hands out lie less than kMaxSpread above the first that is open, as far as the shard was told; of
// others, whoever names them, it remembers kMaxFar, which are not closed before the tasks up to
// them.
class WindowLedger {
 public:
  static constexpr uint64_t kMaxAhead = 4096;
  // Four times what a scheduler hands out beyond the oldest open task (TaskLedger::kMaxSpread):
  // shards hear late of what is closed.
  static constexpr uint64_t kMaxSpread = 1 << 18;
  static constexpr size_t kMaxFar = 4096;

  WindowVerdict Check(TaskId task, uint64_t window) const;
  // The window was applied. One that is known, or of a closed task, is counted, and no more is kept
  // of it. The caller asks Check before it applies one.
  void Record(TaskId task, uint64_t window);
  // Tasks below `task` are over: what is known of them goes, pushes to them are refused. Never
  // back.
  void CloseBelow(TaskId task);
  TaskId closed_below() const { return closed_below_; }
  size_t tasks() const { return tasks_.size(); }
  // Windows recorded since the ledger was made or parsed from nothing.
  uint64_t applied() const { return applied_; }

  // Little-endian: closed_below, applied, count; then per task ascending: task, first missing
  // window, count, windows applied beyond it ascending. All fields are 8 bytes.
  std::string Serialize() const;
  // DATA_LOSS when the bytes are not what Serialize writes.
  static absl::StatusOr<WindowLedger> Parse(absl::string_view bytes);
  // The union of two shards' ledgers at one cut (restore onto another sharding).
  void Merge(const WindowLedger& other);

  friend bool operator==(const WindowLedger&, const WindowLedger&) = default;

 private:
  struct Task {
    uint64_t next = 0;         // windows below are applied
    std::set<uint64_t> ahead;  // applied, all > next
    friend bool operator==(const Task&, const Task&) = default;
  };
  static void Add(Task& task, uint64_t window);
  bool HasRoomFor(TaskId task) const;

  TaskId closed_below_;
  uint64_t applied_ = 0;
  std::map<TaskId, Task> tasks_;
};

}  // namespace strata::server

#endif  // STRATA_SERVER_PROTOCOL_WINDOW_LEDGER_H_
