// What happened in the cluster, in order: the newest events, and their records.
#ifndef STRATA_SCHEDULER_STORE_EVENT_LOG_H_
#define STRATA_SCHEDULER_STORE_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/strata/control.pb.h"
#include "scheduler/store/metadata_store.h"

namespace strata::scheduler {

// A pure value, part of ClusterState: one thread, no clock. A log restored from its records goes on
// with the same events and the next sequence.
class EventLog {
 public:
  // Kept, in memory and in the store; the oldest goes when one more comes. With the limit on
  // messages at most kMaxEvents * (kMaxMessageBytes + 400) bytes, 6 MB.
  static constexpr size_t kMaxEvents = 4096;
  // Of a message; longer ones are cut.
  static constexpr size_t kMaxMessageBytes = 1024;

  static bool IsRecord(absl::string_view key);

  // Takes back every record of `records` that is one of this log's. DATA_LOSS names the record.
  absl::Status Restore(const std::map<std::string, std::string>& records);

  // `node` may be empty, `job` 0.
  void Add(absl::Time now, absl::string_view reason, absl::string_view node, uint64_t job,
           absl::string_view message);

  // Appends the changes of its records since the last call.
  void TakeChanges(std::vector<MetadataChange>& out);

  // Events after `after_sequence`, of `job` (0: all), at or after `since_unix_ms`.
  GetEventsReply Since(uint64_t after_sequence, uint64_t job, int64_t since_unix_ms) const;

 private:
  std::deque<Event> events_;
  uint64_t next_ = 1;
  uint64_t recorded_ = 0;        // the newest whose record was taken
  uint64_t first_recorded_ = 1;  // the oldest that has a record, if any has
};

// When the events that a request asks for begin, by the clock of the log, which shows `now`.
int64_t SinceUnixMs(const GetEventsRequest& request, absl::Time now);

}  // namespace strata::scheduler

#endif  // STRATA_SCHEDULER_STORE_EVENT_LOG_H_
