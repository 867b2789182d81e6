#include "scheduler/store/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strata::scheduler {
namespace {

constexpr char kPrefix[] = "event/";

std::string RecordKey(uint64_t sequence) { return absl::StrFormat("%s%020d", kPrefix, sequence); }

// At most `limit` bytes of a text, and no half of a UTF-8 character.
absl::string_view Cut(absl::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  while (limit > 0 && (static_cast<uint8_t>(text[limit]) & 0xc0) == 0x80) --limit;
  return text.substr(0, limit);
}

}  // namespace

bool EventLog::IsRecord(absl::string_view key) { return absl::StartsWith(key, kPrefix); }

absl::Status EventLog::Restore(const std::map<std::string, std::string>& records) {
  for (auto it = records.lower_bound(kPrefix); it != records.end() && IsRecord(it->first); ++it) {
    Event event;
    if (!event.ParseFromString(it->second) || RecordKey(event.sequence()) != it->first) {
      return absl::DataLossError(
          absl::StrCat("record ", it->first, " (", it->second.size(), " bytes) cannot be read"));
    }
    events_.push_back(std::move(event));
  }
  if (events_.empty()) return absl::OkStatus();
  next_ = events_.back().sequence() + 1;
  recorded_ = events_.back().sequence();
  first_recorded_ = events_.front().sequence();
  return absl::OkStatus();
}

void EventLog::Add(absl::Time now, absl::string_view reason, absl::string_view node, uint64_t job,
                   absl::string_view message) {
  Event event;
  event.set_sequence(next_++);
  event.set_time_unix_ms(absl::ToUnixMillis(now));
  event.set_reason(std::string(reason));
  event.set_node(std::string(node));
  event.set_job(job);
  event.set_message(std::string(Cut(message, kMaxMessageBytes)));
  events_.push_back(std::move(event));
  if (events_.size() > kMaxEvents) events_.pop_front();
}

void EventLog::TakeChanges(std::vector<MetadataChange>& out) {
  if (events_.empty()) return;
  const uint64_t first = events_.front().sequence();
  for (uint64_t gone = first_recorded_; gone < first && gone <= recorded_; ++gone) {
    out.push_back({RecordKey(gone), std::nullopt});
  }
  const uint64_t from = std::max(recorded_ + 1, first);
  for (uint64_t i = from; i < next_; ++i) {
    const Event& event = events_[i - first];
    out.push_back({RecordKey(i), event.SerializeAsString()});
  }
  first_recorded_ = first;
  recorded_ = next_ - 1;
}

GetEventsReply EventLog::Since(uint64_t after_sequence, uint64_t job, int64_t since_unix_ms) const {
  GetEventsReply reply;
  reply.set_last_sequence(next_ - 1);
  reply.set_first_sequence(events_.empty() ? next_ : events_.front().sequence());
  const auto begin = std::partition_point(
      events_.begin(), events_.end(),
      [after_sequence](const Event& e) { return e.sequence() <= after_sequence; });
  for (auto it = begin; it != events_.end(); ++it) {
    if (job != 0 && it->job() != job) continue;
    if (it->time_unix_ms() < since_unix_ms) continue;
    *reply.add_events() = *it;
  }
  return reply;
}

int64_t SinceUnixMs(const GetEventsRequest& request, absl::Time now) {
  if (!request.has_since_ago_ms()) return request.since_unix_ms();
  const absl::Time since = now - absl::Milliseconds(request.since_ago_ms());
  return std::max<int64_t>(request.since_unix_ms(), absl::ToUnixMillis(since));
}

}  // namespace strata::scheduler
