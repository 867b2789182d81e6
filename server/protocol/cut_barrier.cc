#include "server/protocol/cut_barrier.h"

#include <algorithm>

#include "proto/core/mutation.h"

namespace strata::server {

bool CutBarrier::MayExist(CutNumber cut) const {
  return cut <= over_ || cut - 1 == over_ || STRATA_MUTATION("cut.impossible_is_kept");
}

bool CutBarrier::Push(CutNumber cut, HeldPush held, absl::Time now) {
  if (!Waits(cut) || STRATA_MUTATION("cut.nothing_is_held")) return true;
  held_.push_back({cut, held, now});
  return false;
}

void CutBarrier::Forget(HeldPush held) {
  std::erase_if(held_, [&](const Held& h) { return h.push == held; });
}

void CutBarrier::Begin(CutNumber cut) {
  if (cut <= pending_) return;
  End(cut - 1);
  pending_ = cut;
  marks_.clear();
}

void CutBarrier::Mark(uint32_t lane, CutNumber cut, LaneMark mark) {
  if (lane >= lanes_ || cut <= over_) return;
  if (cut > pending_) {
    pending_ = cut;
    marks_.clear();
  }
  marks_[lane] = mark;
}

void CutBarrier::End(CutNumber through) {
  if (through <= over_ || STRATA_MUTATION("cut.given_up_stays_closed")) return;
  over_ = through;
  if (pending_ > over_) return;
  pending_ = over_;
  marks_.clear();
}

void CutBarrier::Taken() {
  taken_ = pending_;
  End(pending_);
  patience_ = kPatience;
}

std::optional<absl::Time> CutBarrier::Deadline() const {
  if (held_.empty()) return std::nullopt;
  return held_.front().since + patience_;
}

// A push that waits has a tag that is the pending cut's or above: the pending one ends as well.
bool CutBarrier::EndOverdue(absl::Time now) {
  CutNumber through = 0;
  for (const Held& h : held_) {
    if (h.since + patience_ <= now) through = std::max(through, h.cut);
  }
  if (through == 0 || STRATA_MUTATION("cut.waits_for_ever")) return false;
  if (STRATA_MUTATION("cut.time_only_lets_go")) {
    for (Held& h : held_) h.cut = over_;
    return true;
  }
  End(through);
  patience_ = std::min(2 * patience_, kMostPatience);
  return true;
}

std::vector<HeldPush> CutBarrier::Release() {
  std::vector<HeldPush> out;
  std::erase_if(held_, [&](const Held& h) {
    if (Waits(h.cut)) return false;
    out.push_back(h.push);
    return true;
  });
  return out;
}

}  // namespace strata::server
