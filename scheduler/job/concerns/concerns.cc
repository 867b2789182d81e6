#include "scheduler/job/concerns/concerns.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace strata::scheduler {

void Concerns::Look(std::vector<Concern> seen, absl::Time now) {
  std::map<Key, Concern> standing;
  for (Concern& concern : seen) {
    Key key{concern.reason(), concern.who(), concern.other()};
    if (concern.since_unix_ms() == 0) {
      const auto before = standing_.find(key);
      concern.set_since_unix_ms(before == standing_.end() ? absl::ToUnixMillis(now)
                                                          : before->second.since_unix_ms());
    }
    standing.insert_or_assign(std::move(key), std::move(concern));
  }
  standing_ = std::move(standing);
}

google::protobuf::RepeatedPtrField<Concern> Concerns::all() const {
  google::protobuf::RepeatedPtrField<Concern> out;
  for (const auto& [key, concern] : standing_) *out.Add() = concern;
  std::stable_sort(out.begin(), out.end(), [](const Concern& a, const Concern& b) {
    return a.since_unix_ms() < b.since_unix_ms();
  });
  return out;
}

}  // namespace strata::scheduler
