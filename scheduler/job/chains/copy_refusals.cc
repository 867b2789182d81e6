#include "scheduler/job/chains/copy_refusals.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strata::scheduler {
namespace {

std::string Describe(const CopyRefusal& refusal) {
  switch (refusal.why) {
    case CopyRefusal::kSilent:
      return absl::StrCat(refusal.server, " is silent");
    case CopyRefusal::kEnded:
      return absl::StrCat(refusal.server,
                          " has ended or answers nobody, as a server beside it saw");
    case CopyRefusal::kFailed:
      return absl::StrCat(refusal.server, " lost its copy and gets none before ",
                          absl::FormatTime("%H:%M:%S UTC", refusal.until, absl::UTCTimeZone()),
                          ", unless it is started again");
    case CopyRefusal::kZone:
      return absl::StrCat(refusal.server, " is in zone ", refusal.zone, ", which has one");
    case CopyRefusal::kGpu:
      return absl::StrCat(refusal.server, " lacks the GPU that the job asks for");
    case CopyRefusal::kRoom:
      return absl::StrCat(refusal.server, " has not the room (`strata nodes` shows it)");
  }
  return refusal.server;
}

}  // namespace

void FailedCopies::Add(const std::string& server, uint64_t session, absl::Time until,
                       absl::Time now) {
  std::erase_if(failed_, [now](const auto& failed) { return failed.second.until <= now; });
  failed_[server] = {session, until};
}

std::optional<absl::Time> FailedCopies::Until(const std::string& server, uint64_t session,
                                              absl::Time now) const {
  const auto found = failed_.find(server);
  if (found == failed_.end() || found->second.session != session) return std::nullopt;
  return found->second.until > now ? std::optional(found->second.until) : std::nullopt;
}

std::string DescribeRefusals(const std::vector<CopyRefusal>& refusals) {
  constexpr size_t kMost = 4;
  std::vector<std::string> each;
  for (const CopyRefusal& refusal : refusals) {
    if (each.size() == kMost) break;
    each.push_back(Describe(refusal));
  }
  std::string text = "no server can take another: ";
  if (each.empty()) {
    absl::StrAppend(&text, "none is there beside those that have one");
  } else {
    absl::StrAppend(&text, absl::StrJoin(each, "; "));
  }
  if (refusals.size() > kMost) absl::StrAppend(&text, "; and ", refusals.size() - kMost, " more");
  return absl::StrCat(text,
                      "; start a server in another zone (strata-server --zone; default: each is "
                      "one)");
}

}  // namespace strata::scheduler
