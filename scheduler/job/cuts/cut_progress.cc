#include "scheduler/job/cuts/cut_progress.h"

#include <algorithm>

namespace strata::scheduler {

std::optional<double> SecondsLeft(const ByteMark& from, const ByteMark& to, uint64_t total) {
  if (to.at <= from.at || to.bytes <= from.bytes) return std::nullopt;
  const double rate =
      static_cast<double>(to.bytes - from.bytes) / absl::ToDoubleSeconds(to.at - from.at);
  return static_cast<double>(total - std::min(total, to.bytes)) / rate;
}

CutProgress::Bytes CutProgress::Sum(const Cut& cut) {
  Bytes sum;
  for (const auto& [server, bytes] : cut.servers) {
    sum.written += bytes.written;
    sum.total += std::max(bytes.written, bytes.total);
  }
  return sum;
}

void CutProgress::Report(uint64_t cut, uint32_t server, uint64_t written, uint64_t total,
                         absl::Time now) {
  if (total == 0) return;
  Cut& c = cuts_[cut];
  const bool is_new = !c.servers.contains(server);
  const uint64_t before = Sum(c).written;
  c.servers[server] = {written, total};
  const uint64_t after = Sum(c).written;
  // Fewer: a server began again, and the rate before says nothing of what comes.
  if (!c.first || after < before) {
    c.first = {now, after};
  } else if (is_new) {
    c.first->bytes += written;  // it did not come since the mark
  }
}

void CutProgress::ForgetServer(uint32_t server) {
  for (auto& [number, cut] : cuts_) {
    if (cut.servers.erase(server) > 0) cut.first.reset();
  }
}

CutProgress::View CutProgress::At(absl::Time now) const {
  if (cuts_.empty()) return {};
  const Cut& cut = cuts_.begin()->second;
  const Bytes sum = Sum(cut);
  std::optional<double> left;
  if (cut.first) left = SecondsLeft(*cut.first, {now, sum.written}, sum.total);
  return {sum.written, sum.total, left};
}

}  // namespace strata::scheduler
