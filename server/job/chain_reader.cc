#include "server/job/chain_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "server/shard/update_record.h"

namespace strata::server {
namespace {

bool IsCut(const storage::LogHeader& header) {
  return header.kind == static_cast<uint16_t>(RecordKind::kCut);
}

}  // namespace

void ChainSegments::Appended(LogEnd before, uint64_t segment) {
  if (notes_.empty() || notes_.back().segment < segment) notes_.push_back({before, segment});
}

uint64_t ChainSegments::From(LogEnd end) const {
  const auto later = std::upper_bound(notes_.begin(), notes_.end(), end,
                                      [](LogEnd e, const Note& note) { return e < note.before; });
  return later == notes_.begin() ? 0 : std::prev(later)->segment;
}

void ChainSegments::Trimmed(uint64_t first_segment) {
  while (!notes_.empty() && notes_.front().segment < first_segment) notes_.pop_front();
}

absl::StatusOr<std::vector<ChainEntryPtr>> ChainReader::Read(storage::UpdateLog& log, ShardId shard,
                                                             uint64_t segment, LogEnd after,
                                                             LogEnd through, uint64_t most_bytes) {
  if (!placed_ || after != end_ || STRATA_MUTATION("chain.log_read_from_its_start")) {
    place_ = {segment, 0};
    end_ = after;
  }
  placed_ = false;  // until this went through
  std::vector<ChainEntryPtr> entries;
  uint64_t bytes = 0;
  const auto wanted = [&](const storage::LogHeader& header) {
    return header.shard == shard &&
           (header.step.value > end_.step || (IsCut(header) && header.step.value == end_.step));
  };
  const auto take = [&](const storage::LogRecordView& record) -> absl::StatusOr<bool> {
    const LogEnd cut = {record.header.step.value, record.header.window};
    const bool is_cut = IsCut(record.header);
    const EntryFit fit = is_cut ? FitOfCut(end_, cut) : FitOfStep(end_, record.header.step.value);
    if (fit == EntryFit::kHave) return true;  // written again after an error
    if (fit == EntryFit::kGap) {
      return absl::OutOfRangeError(absl::StrCat("the log of shard ", shard.value,
                                                " does not go on after step ", end_.step, ", cut ",
                                                end_.cut, ", which the copy after this one has"));
    }
    end_ = is_cut ? cut : LogEnd{end_.step + 1, end_.cut};
    const std::span<const uint8_t> parts[] = {record.payload};
    entries.push_back(MakeChainEntry(record.header, end_, parts));
    bytes += entries.back()->size();
    return bytes < most_bytes && end_ < through;
  };
  const auto place = log.ReadOn(place_, wanted, take);
  if (!place.ok()) return place.status();
  if (entries.empty()) {
    return absl::OutOfRangeError(absl::StrCat("the log of shard ", shard.value,
                                              " has nothing after step ", after.step, ", cut ",
                                              after.cut));
  }
  place_ = *place;
  placed_ = true;
  return entries;
}

}  // namespace strata::server
