#include "tests/sim/bsp_worker.h"

#include <algorithm>
#include <utility>

namespace strata::sim {

// Some way to push these lanes: any node may be split.
std::vector<LaneNode> BspWorker::Grouping(const std::vector<uint32_t>& lanes) {
  std::vector<LaneNode> nodes = CoverNodes(lanes, o_.lanes), out;
  while (!nodes.empty()) {
    const LaneNode n = nodes.back();
    nodes.pop_back();
    if (n.IsLeaf() || (*random_)() % 2 == 0) {
      out.push_back(n);
    } else {
      nodes.push_back(n.Left());
      nodes.push_back(n.Right());
    }
  }
  std::shuffle(out.begin(), out.end(), *random_);
  return out;
}

// With its ticket a push goes as the process would send it; else in any grouping, and what is not
// the process's has a number of its own.
BspMessage BspWorker::MakePush(const LaneDriver::Action& a) {
  BspMessage m{BspMessage::kPush, o_.number, a.server, a.ticket, a.step, a.lanes};
  const std::vector<LaneNode> whole = CoverNodes(a.lanes, o_.lanes);
  m.named = tickets_.TakeForPush(a.step, a.server, a.lanes);
  m.nodes = m.named ? whole : Grouping(a.lanes);
  m.sequence = m.nodes == whole ? sequences_.Of(a.step, a.lanes) : counter_.Next();
  return m;
}

// At times, the keys of the step that follows.
void BspWorker::Prefetch(const LaneDriver::Action& a, std::vector<BspMessage>& network) {
  if (a.step == o_.last_step) return;
  for (uint32_t s = 0; s < o_.servers; ++s) {
    if ((*random_)() % 2 == 0) continue;
    network.push_back({BspMessage::kPrefetch, o_.number, s, 0, a.step.Next(), a.lanes});
  }
}

void BspWorker::Act(std::vector<BspMessage>& network) {
  for (const LaneDriver::Action& a : driver_.Next()) {
    switch (a.kind) {
      case LaneDriver::Kind::kPull: {
        BspMessage m{BspMessage::kPull, o_.number, a.server, a.ticket, a.step, a.lanes};
        m.named = tickets_.ForPull(a.step, a.server, a.lanes);
        network.push_back(std::move(m));
        break;
      }
      case LaneDriver::Kind::kPush:
        network.push_back(MakePush(a));
        break;
      case LaneDriver::Kind::kCompute:
        Prefetch(a, network);
        if (CoverNodes(a.lanes, o_.lanes).size() == 1) tickets_.SameKeys(a.step, a.lanes);
        driver_.OnComputed(a.step, a.lanes);
        break;
      case LaneDriver::Kind::kDrop:
        tickets_.DropBelow(a.step.Next());
        sequences_.DropBelow(a.step.Next());
        break;
      case LaneDriver::Kind::kDone:
        break;
    }
  }
}

void BspWorker::Answer(const BspMessage& m) {
  if (m.kind == BspMessage::kBroken) tickets_.Broken(m.server);
  if ((m.kind == BspMessage::kServed || m.kind == BspMessage::kNotYet ||
       m.kind == BspMessage::kPrefetched) &&
      m.step >= driver_.step()) {
    tickets_.Learn(m.step, m.server, m.lanes, m.given);
  }
  switch (m.kind) {
    case BspMessage::kPrefetched:
      return;
    case BspMessage::kServed:
      return driver_.OnServed(m.ticket, m.identity);
    case BspMessage::kNotYet:
      return driver_.OnNotYet(m.ticket, m.identity);
    case BspMessage::kTooOld:
      return driver_.OnTooOld(m.ticket, m.identity, m.step);
    case BspMessage::kAccepted:
      return driver_.OnAccepted(m.ticket, m.identity);
    default:
      return driver_.OnBroken(m.ticket);
  }
}

}  // namespace strata::sim
