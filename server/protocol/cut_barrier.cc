#include "server/protocol/cut_barrier.h"

namespace strata::server {

bool CutBarrier::Push(CutNumber cut, HeldPush held) {
  if (!Waits(cut)) return true;
  held_.push_back({cut, held});
  return false;
}

void CutBarrier::Forget(HeldPush held) {
  std::erase_if(held_, [&](const Held& h) { return h.push == held; });
}

void CutBarrier::Begin(CutNumber cut) {
  if (cut <= pending_) return;
  pending_ = cut;
  marks_.clear();
}

void CutBarrier::Mark(uint32_t lane, CutNumber cut, LaneMark mark) {
  if (lane >= lanes_ || cut <= done_ || cut < pending_) return;
  Begin(cut);
  marks_[lane] = mark;
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
