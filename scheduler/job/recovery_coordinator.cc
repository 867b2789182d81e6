#include "scheduler/job/recovery_coordinator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"

namespace strata::scheduler {
namespace {

// How long it may be silent before another takes its place.
absl::Duration Patience(const ServerFacts& facts, absl::Duration lease) {
  const bool nothing_to_lose = !facts.opened || facts.keeps_nothing;
  if (nothing_to_lose) return lease;
  return facts.patience > absl::ZeroDuration() ? facts.patience : lease * (1 + kReturnLeases);
}

std::string TimeOfDay(absl::Time time) {
  return absl::FormatTime("%H:%M:%S UTC", time, absl::UTCTimeZone());
}

}  // namespace

ServerVerdict JudgeServer(const ServerFacts& facts, absl::Duration lease) {
  if (facts.alive) {
    if (!facts.opened || facts.same_process) {
      return facts.opened ? ServerVerdict::kFine : ServerVerdict::kWait;
    }
    return facts.keeps_nothing && !STRATA_MUTATION("recovery.memory_goes_on")
               ? ServerVerdict::kRollBack
               : ServerVerdict::kWait;
  }
  if (facts.silent > Patience(facts, lease) && facts.replaceable) return ServerVerdict::kReplace;
  return ServerVerdict::kWait;
}

std::string DescribeSilentServer(absl::string_view name, absl::string_view address,
                                 absl::Time last_seen, const ServerFacts& facts,
                                 absl::Duration lease) {
  std::string text = absl::StrCat("server ", name);
  if (!address.empty()) absl::StrAppend(&text, " at ", address);
  const bool known = last_seen != absl::InfinitePast();
  absl::StrAppend(&text, facts.name_taken ? " is away, and a worker has its name" : " is silent");
  if (known) absl::StrAppend(&text, " since ", TimeOfDay(last_seen));
  absl::StrAppend(&text, "; the job waits for it. ",
                  facts.name_taken ? "End that worker, and start it" : "Start it",
                  " again with the --name and --dir that it had");
  const std::string when =
      known ? absl::StrCat(" after ", TimeOfDay(last_seen + Patience(facts, lease))) : "";
  absl::StrAppend(&text,
                  facts.replaceable
                      ? absl::StrCat("; else another server takes its place", when)
                      : absl::StrCat(", or start another server, which takes its place", when),
                  " from ", facts.from);
  return text;
}

std::string DescribeAwayCopies(absl::string_view shards, const std::vector<AwayCopy>& away,
                               const ServerFacts& facts, absl::Duration lease) {
  absl::Time last = absl::InfinitePast();
  std::vector<std::string> each;
  for (const AwayCopy& copy : away) {
    std::string text = absl::StrCat("server ", copy.server);
    if (!copy.lost.empty()) {
      absl::StrAppend(&text, " has lost its copy (", copy.lost, ")");
    } else if (copy.last_seen != absl::InfinitePast()) {
      absl::StrAppend(&text, " is silent since ", TimeOfDay(copy.last_seen));
      last = std::max(last, copy.last_seen);
    } else {
      absl::StrAppend(&text, " is silent");
    }
    each.push_back(std::move(text));
  }
  const std::string when = last == absl::InfinitePast()
                               ? ""
                               : absl::StrCat(" after ", TimeOfDay(last + Patience(facts, lease)));
  return absl::StrCat(
      "the last copies of ", shards, " are away: ", absl::StrJoin(each, ", "),
      "; the job waits for one of those that are silent. Start it again with the --name and --dir "
      "that it had",
      facts.replaceable ? "; else other servers take their place"
                        : ", or start another server, which takes their place",
      when, " from ", facts.from);
}

ReadVerdict JudgeRead(const ReadFacts& facts) {
  if (!facts.doubted && !STRATA_MUTATION("reader.first_word_counts"))
    return ReadVerdict::kReadAgain;
  if (!facts.same_reader || !facts.another || STRATA_MUTATION("reader.same_confirms"))
    return ReadVerdict::kSetAside;
  return facts.others_read ? ReadVerdict::kBadReader : ReadVerdict::kWait;
}

std::string DescribeBadReader(absl::string_view checkpoint, absl::string_view why,
                              absl::string_view full) {
  const std::string others = full.empty() ? "" : absl::StrCat("; no other can now: ", full);
  return absl::StrCat(
      "checkpoint ", checkpoint, " stays, since other servers read it; but ", why,
      ". Look at that server's machine and start the server again, or start another "
      "one, which takes its place; until then it tries again now and then",
      others);
}

std::string DescribeNoCheckpoint(const std::vector<std::string>& set_aside, bool init) {
  const std::string what = absl::StrCat(
      "no whole checkpoint is left to start from (damaged: ", absl::StrJoin(set_aside, ", "),
      "), and a job does not start anew unasked; ");
  if (init)
    return absl::StrCat(what, "name another one in spec.model.initFrom, or put back a copy");
  return absl::StrCat(what,
                      "put back a whole copy and submit the job again with --resume, or start anew "
                      "with --overwrite");
}

void AddSetAside(const std::string& folder,
                 google::protobuf::RepeatedPtrField<std::string>& aside) {
  const std::string latest = folder;  // may be one of them
  DropSetAside(latest, aside);
  while (aside.size() >= kMaxSetAside) aside.erase(aside.begin());
  *aside.Add() = latest;
}

void DropSetAside(absl::string_view folder,
                  google::protobuf::RepeatedPtrField<std::string>& aside) {
  const auto another = [folder](const std::string& other) { return other != folder; };
  aside.erase(std::stable_partition(aside.begin(), aside.end(), another), aside.end());
}

void RecoveryCoordinator::Begin(uint32_t servers, uint64_t clock) {
  begin_clock_ = max_clock_ = clock;
  servers_.assign(servers, View{clock, false, clock, clock});
}

void RecoveryCoordinator::ProcessChanged(uint32_t server) {
  // Whatever is known now is older than anything that the new process says.
  servers_[server] = View{begin_clock_, false, max_clock_, max_clock_};
}

bool RecoveryCoordinator::Clocks(uint32_t server, uint64_t min_clock, uint64_t max_clock,
                                 uint64_t least_end) {
  View& view = servers_[server];
  // A late report of the same process changes nothing: clocks do not go back.
  view.min_clock = std::max(view.min_clock, min_clock);
  view.spoke = true;
  if (std::max(view.min_clock, least_end) + 1 < view.floor &&
      !STRATA_MUTATION("recovery.lost_steps_unseen"))
    return false;
  max_clock_ = std::max({max_clock_, min_clock, max_clock});
  view.floor = view.next_floor;
  view.next_floor = max_clock_;
  return true;
}

uint64_t RecoveryCoordinator::min_clock() const {
  uint64_t least = max_clock_;
  for (const View& view : servers_) {
    least = std::min(least, view.spoke ? view.min_clock : begin_clock_);
  }
  return least;
}

}  // namespace strata::scheduler
