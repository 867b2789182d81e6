#include "scheduler/nodes/troubles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace strata::scheduler {
namespace {

TroubleNews Over(const StandingTrouble& trouble, int64_t now_unix_ms) {
  const int64_t lasted = std::max<int64_t>(0, now_unix_ms - trouble.since_unix_ms());
  return {kTroubleOver, absl::StrCat(trouble.node(), ": ", trouble.reason(), " is over after ",
                                     absl::FormatDuration(absl::Milliseconds(lasted)))};
}

bool Passes(const StandingTrouble& trouble) {
  return trouble.reason() != kLinesAreBad && trouble.reason() != kHeldOutLinesAreBad;
}

}  // namespace

std::vector<TroubleNews> FollowTroubles(
    absl::string_view node, const google::protobuf::RepeatedPtrField<Trouble>& reported,
    int64_t now_unix_ms, google::protobuf::RepeatedPtrField<StandingTrouble>& standing) {
  std::vector<TroubleNews> news;
  const int looked_at = std::min(reported.size(), kMaxTroubles);
  for (int i = 0; i < standing.size();) {
    const StandingTrouble& old = standing[i];
    const bool goes_on = std::any_of(reported.begin(), reported.begin() + looked_at,
                                     [&](const Trouble& t) { return t.reason() == old.reason(); });
    if (node != old.node() || goes_on || !Passes(old)) {
      ++i;
      continue;
    }
    news.push_back(Over(old, now_unix_ms));
    standing.erase(standing.begin() + i);
  }
  for (int i = 0; i < looked_at; ++i) {
    const Trouble& t = reported[i];
    const bool known =
        std::any_of(standing.begin(), standing.end(), [&](const StandingTrouble& old) {
          return node == old.node() && t.reason() == old.reason();
        });
    if (known) continue;
    const absl::Time since = absl::FromUnixMillis(t.since_unix_ms());
    news.push_back(
        {t.reason(),
         absl::StrCat(node, ": ", t.message(), " (since ",
                      absl::FormatTime("%H:%M:%S UTC", since, absl::UTCTimeZone()), ")")});
    StandingTrouble* fresh = standing.Add();
    fresh->set_node(std::string(node));
    fresh->set_reason(t.reason());
    fresh->set_since_unix_ms(now_unix_ms);
  }
  return news;
}

std::vector<TroubleNews> EndTroubles(
    int64_t now_unix_ms, google::protobuf::RepeatedPtrField<StandingTrouble>& standing) {
  std::vector<TroubleNews> news;
  for (const StandingTrouble& trouble : standing) {
    if (Passes(trouble)) news.push_back(Over(trouble, now_unix_ms));
  }
  standing.Clear();
  return news;
}

void ForgetTroubles(absl::string_view node,
                    google::protobuf::RepeatedPtrField<StandingTrouble>& standing) {
  for (int i = standing.size() - 1; i >= 0; --i) {
    if (node == standing[i].node()) standing.erase(standing.begin() + i);
  }
}

}  // namespace strata::scheduler
