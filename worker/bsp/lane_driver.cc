#include "worker/bsp/lane_driver.h"

#include <algorithm>
#include <utility>

#include "proto/core/mutation.h"

namespace strata {

LaneDriver::LaneDriver(uint32_t servers, Step last_step)
    : servers_(servers), last_step_(last_step), identity_(servers), push_flight_(servers) {}

LaneDriver::Cohort& LaneDriver::CohortAt(Step step) {
  auto [it, fresh] = cohorts_.try_emplace(step);
  if (fresh) {
    it->second.served.assign(servers_, false);
    it->second.in_flight.assign(servers_, std::nullopt);
  }
  return it->second;
}

void LaneDriver::Host(uint32_t lane, Step step) {
  Unhost(lane);
  Cohort& cohort = CohortAt(step);
  cohort.lanes.insert(lane);
  // Answers so far were for the keys of the other lanes: ask again for all.
  cohort.served.assign(servers_, false);
  cohort.in_flight.assign(servers_, std::nullopt);
  done_ = false;
}

void LaneDriver::Unhost(uint32_t lane) {
  for (auto it = cohorts_.begin(); it != cohorts_.end();) {
    const bool left = it->second.lanes.erase(lane) > 0;
    if (left && !it->second.lanes.empty()) {
      // Answers so far were for the keys of that lane too; the caller keeps them by their lanes.
      it->second.served.assign(servers_, false);
      it->second.in_flight.assign(servers_, std::nullopt);
    }
    it = it->second.lanes.empty() ? cohorts_.erase(it) : std::next(it);
  }
  for (auto it = kept_.begin(); it != kept_.end();) {
    it->second.erase(lane);
    it = it->second.empty() ? kept_.erase(it) : std::next(it);
  }
}

std::vector<LaneDriver::Action> LaneDriver::Next() {
  std::vector<Action> out;
  if (cohorts_.empty() || done_) return out;
  // A full set of answers to Pull(t) proves that every shard has committed t - 1.
  for (auto& [step, cohort] : cohorts_) {
    if (std::find(cohort.served.begin(), cohort.served.end(), false) != cohort.served.end() &&
        !STRATA_MUTATION("bsp.computes_on_first_answer")) {
      continue;
    }
    DropCommitted(step, out);
    if (step > last_step_) {
      if (cohorts_.size() == 1) {
        done_ = true;
        out.push_back({Kind::kDone, 0, step, {}, 0});
      }
    } else if (!cohort.computing) {
      cohort.computing = true;
      out.push_back({Kind::kCompute, 0, step, {cohort.lanes.begin(), cohort.lanes.end()}, 0});
    }
  }
  PushActions(out);
  for (auto& [step, cohort] : cohorts_) {
    for (uint32_t s = 0; s < servers_; ++s) {
      if (cohort.served[s] || cohort.in_flight[s].has_value()) continue;
      std::vector<uint32_t> lanes;
      if (step <= last_step_) lanes.assign(cohort.lanes.begin(), cohort.lanes.end());
      const uint64_t ticket = next_ticket_++;
      cohort.in_flight[s] = ticket;
      calls_[ticket] = {Kind::kPull, s, step, lanes};
      out.push_back({Kind::kPull, s, step, std::move(lanes), ticket});
    }
  }
  return out;
}

void LaneDriver::DropCommitted(Step served, std::vector<Action>& out) {
  while (!kept_.empty() && kept_.begin()->first < served) {
    out.push_back({Kind::kDrop, 0, kept_.begin()->first, {}, 0});
    kept_.erase(kept_.begin());
  }
}

void LaneDriver::PushActions(std::vector<Action>& out) {
  for (uint32_t s = 0; s < servers_; ++s) {
    if (push_flight_[s].has_value()) continue;
    for (auto& [step, by_lane] : kept_) {  // the older step first: the server needs it first
      std::vector<uint32_t> lanes;
      for (auto& [lane, kept] : by_lane) {
        if (kept.accepted[s] != identity_[s]) lanes.push_back(lane);
      }
      if (lanes.empty()) continue;
      const uint64_t ticket = next_ticket_++;
      push_flight_[s] = ticket;
      calls_[ticket] = {Kind::kPush, s, step, lanes};
      out.push_back({Kind::kPush, s, step, std::move(lanes), ticket});
      break;
    }
  }
}

std::optional<LaneDriver::Call> LaneDriver::Take(uint64_t ticket, Kind kind) {
  auto it = calls_.find(ticket);
  if (it == calls_.end() || it->second.kind != kind) return std::nullopt;
  Call call = std::move(it->second);
  calls_.erase(it);
  if (kind == Kind::kPush) {
    if (push_flight_[call.server] == ticket) push_flight_[call.server] = std::nullopt;
    return call;
  }
  auto cohort = cohorts_.find(call.step);
  if (cohort == cohorts_.end() || cohort->second.in_flight[call.server] != ticket) {
    return std::nullopt;  // the cohort moved on or changed while this was in flight
  }
  cohort->second.in_flight[call.server] = std::nullopt;
  return call;
}

// Acceptances given under another identity no longer count: PushActions compares them with this
// one.
void LaneDriver::Learn(uint32_t server, ServerIdentity identity) {
  if (STRATA_MUTATION("bsp.resend_only_by_epoch") && identity_[server].incarnation != 0) return;
  identity_[server] = identity;
}

void LaneDriver::OnServed(uint64_t ticket, ServerIdentity identity) {
  std::optional<Call> call = Take(ticket, Kind::kPull);
  if (!call) return;
  Learn(call->server, identity);
  cohorts_.at(call->step).served[call->server] = true;
}

void LaneDriver::OnNotYet(uint64_t ticket, ServerIdentity identity) {
  if (std::optional<Call> call = Take(ticket, Kind::kPull)) Learn(call->server, identity);
}

void LaneDriver::OnTooOld(uint64_t ticket, ServerIdentity identity, Step clock) {
  std::optional<Call> call = Take(ticket, Kind::kPull);
  if (!call) return;
  Learn(call->server, identity);
  auto it = cohorts_.find(call->step);
  if (clock <= call->step || it->second.computing || STRATA_MUTATION("bsp.lane_stays_behind"))
    return;  // nothing newer to go to
  const std::set<uint32_t> lanes = std::move(it->second.lanes);
  cohorts_.erase(it);
  for (uint32_t lane : lanes) Host(lane, clock);
}

void LaneDriver::OnAccepted(uint64_t ticket, ServerIdentity identity) {
  std::optional<Call> call = Take(ticket, Kind::kPush);
  if (!call) return;
  Learn(call->server, identity);
  auto kept = kept_.find(call->step);
  if (kept == kept_.end()) return;
  for (uint32_t lane : call->lanes) {
    auto it = kept->second.find(lane);
    if (it != kept->second.end()) it->second.accepted[call->server] = identity;
    if (STRATA_MUTATION("bsp.forgets_at_first_ok")) kept->second.erase(lane);
  }
}

void LaneDriver::OnBroken(uint64_t ticket) {
  auto it = calls_.find(ticket);
  if (it == calls_.end()) return;
  const uint32_t server = it->second.server;
  Take(ticket, it->second.kind);
  for (auto& [step, by_lane] : kept_) {
    for (auto& [lane, kept] : by_lane) kept.accepted[server] = std::nullopt;
  }
}

bool LaneDriver::StillWanted(uint64_t ticket) {
  auto call = calls_.find(ticket);
  if (call == calls_.end()) return false;
  const auto& [kind, server, step, lanes] = call->second;
  bool wanted = false;
  if (kind == Kind::kPull) {
    auto cohort = cohorts_.find(step);
    wanted = cohort != cohorts_.end() && cohort->second.in_flight[server] == ticket;
  } else if (auto kept = kept_.find(step); kept != kept_.end()) {
    wanted = std::all_of(lanes.begin(), lanes.end(),
                         [&](uint32_t lane) { return kept->second.contains(lane); });
  }
  if (!wanted) Take(ticket, kind);
  return wanted;
}

void LaneDriver::OnComputed(Step step, const std::vector<uint32_t>& lanes) {
  auto it = cohorts_.find(step);
  if (it == cohorts_.end()) return;
  std::vector<uint32_t> moved;
  for (uint32_t lane : lanes) {
    if (it->second.lanes.erase(lane) == 0) continue;  // unhosted meanwhile
    kept_[step][lane].accepted.assign(servers_, std::nullopt);
    moved.push_back(lane);
  }
  if (it->second.lanes.empty()) {
    cohorts_.erase(it);
  } else {
    it->second.computing = false;
  }
  // Joining lanes that already wait at the next step would throw away their answers, so those are
  // asked for again, once, after an adoption only.
  Cohort& next = CohortAt(step.Next());
  const bool joins = !next.lanes.empty();
  next.lanes.insert(moved.begin(), moved.end());
  if (joins) {
    next.served.assign(servers_, false);
    next.in_flight.assign(servers_, std::nullopt);
    next.computing = false;
  }
  if (next.lanes.empty()) cohorts_.erase(step.Next());
}

Step LaneDriver::step() const {
  return cohorts_.empty() ? last_step_.Next() : cohorts_.begin()->first;
}

std::vector<uint32_t> LaneDriver::lanes() const {
  std::vector<uint32_t> out;
  for (const auto& [step, cohort] : cohorts_) {
    out.insert(out.end(), cohort.lanes.begin(), cohort.lanes.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace strata
