// JobMachine: what is slow or stuck, told while it lasts.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "scheduler/job/machine.h"

namespace strata::scheduler {
namespace {

// Of training that stands for so long people are told; an evaluation is no such case.
constexpr absl::Duration kStuckAfter = absl::Seconds(10);

std::string NameOf(NodeRole role, absl::string_view name) {
  return absl::StrCat(role == SERVER ? "server/" : "worker/", name);
}

int64_t Before(absl::Time now, absl::Duration passed) {
  return absl::ToUnixMillis(now - std::max(passed, absl::ZeroDuration()));
}

std::string Seconds(absl::Duration d) {
  return absl::StrFormat("%.0f s", absl::ToDoubleSeconds(d));
}

// What people can do about a trouble of a node, or what is done; empty: its text says it.
std::string RemedyOf(absl::string_view reason) {
  if (reason == "SlowDisk") return "nothing is lost, commits take longer; look at the disk";
  if (reason == "DiskFull") return "commits are tried again ten times a second; free space there";
  if (reason == "DiskFailing")
    return "commits are tried again ten times a second; look at the disk";
  if (reason == "MemoryFull") return "it is tried again; give the process more memory";
  return "";
}

}  // namespace

void JobMachine::LookAround(const ClusterView& cluster, absl::Time now) {
  if (over() || state_.phase() < OPENING) return concerns_.Clear();
  std::vector<Concern> seen;
  FindTroubles(seen);
  FindSilentServers(*cluster.members, now, seen);
  FindUnreachable(*cluster.members, now, seen);
  if (state_.phase() == TRAINING) {
    FindSlowWorkers(now, seen);
    FindStuck(now, seen);
  } else {
    last_move_ = {};
  }
  concerns_.Look(std::move(seen), now);
}

void JobMachine::FindSlowWorkers(absl::Time now, std::vector<Concern>& out) const {
  for (const SlowWorkers::Slow& slow : slow_workers_.Find(now)) {
    const auto is_here = [&slow](const WorkerSlot& slot) { return slot.name() == slow.name; };
    if (std::none_of(state_.workers().begin(), state_.workers().end(), is_here)) continue;
    Concern& c = out.emplace_back();
    c.set_reason("Straggler");
    c.set_who(NameOf(WORKER, slow.name));
    c.set_known_by(absl::StrFormat("it works %.3g ms on an example, the others %.3g ms (median)",
                                   slow.seconds * 1000, slow.others * 1000));
    c.set_remedy(bsp()
                     ? "every step waits for it; look what else its machine does, or stop it: the "
                       "others take its lanes"
                     : "the others do more tasks; look what else its machine does");
  }
}

void JobMachine::FindTroubles(std::vector<Concern>& out) const {
  for (const StandingTrouble& trouble : state_.troubles()) {
    const auto is_it = [&trouble](const Trouble& t) { return t.reason() == trouble.reason(); };
    Concern& c = out.emplace_back();
    c.set_reason(trouble.reason());
    c.set_since_unix_ms(trouble.since_unix_ms());
    c.set_who(NameOf(WORKER, trouble.node()));
    for (int i = 0; i < state_.servers_size(); ++i) {
      if (state_.servers(i).name() != trouble.node()) continue;
      c.set_who(NameOf(SERVER, trouble.node()));
      const auto& told = servers_[i].last.troubles();
      const auto it = std::find_if(told.begin(), told.end(), is_it);
      if (it != told.end()) c.set_known_by(it->message());
    }
    for (int i = 0; i < state_.workers_size(); ++i) {
      if (state_.workers(i).name() != trouble.node()) continue;
      const auto& told = workers_[i].last.troubles();
      const auto it = std::find_if(told.begin(), told.end(), is_it);
      if (it != told.end()) c.set_known_by(it->message());
    }
    c.set_remedy(RemedyOf(trouble.reason()));
  }
}

void JobMachine::FindSilentServers(const Membership& members, absl::Time now,
                                   std::vector<Concern>& out) const {
  for (const ServerSlot& slot : state_.servers()) {
    const Node* node = members.Find(slot.name(), SERVER);
    if (node != nullptr && node->alive) continue;
    Concern& c = out.emplace_back();
    c.set_reason("SilentServer");
    c.set_who(NameOf(SERVER, slot.name()));
    if (node == nullptr) {
      c.set_known_by("the scheduler knows no server of that name");
    } else {
      c.set_since_unix_ms(Before(now, node->silence));
      c.set_known_by(absl::StrCat("the scheduler has not heard of it for ", Seconds(node->silence),
                                  "; a lease lasts ", Seconds(members.lease())));
    }
    c.set_remedy("the job waits for it, as the condition ServerLost says; start it again");
  }
}

// A node that the scheduler hears, and that another one does not: the network between them is
// broken, one way or both.
void JobMachine::FindUnreachable(const Membership& members, absl::Time now,
                                 std::vector<Concern>& out) const {
  const auto look = [&](NodeRole role, const std::string& name) {
    const Node* node = members.Find(name, role);
    if (node == nullptr || !node->alive) return;
    for (const PeerTrouble& peer : node->peers) {
      const absl::Duration lasted = absl::Milliseconds(peer.for_ms());
      if (lasted < Concerns::kPatience || !Hosts(peer.name())) continue;
      const Node* other = members.Find(peer.name(), peer.role());
      const bool heard = other != nullptr && other->alive;
      Concern& c = out.emplace_back();
      c.set_reason("Unreachable");
      c.set_who(NameOf(peer.role(), peer.name()));
      c.set_other(NameOf(role, name));
      c.set_since_unix_ms(Before(now, lasted));
      c.set_known_by(absl::StrCat(c.other(), " has had no answer of it for ", Seconds(lasted), " (",
                                  peer.message(), "); the scheduler hears ",
                                  heard ? "both" : "the other one alone"));
      c.set_remedy(heard ? "calls are tried again; look at the network between the two"
                         : "calls are tried again; see what SilentServer says of it");
    }
  };
  for (const ServerSlot& slot : state_.servers()) look(SERVER, slot.name());
  for (const WorkerSlot& slot : state_.workers()) {
    if (!slot.name().empty()) look(WORKER, slot.name());
  }
}

void JobMachine::FindStuck(absl::Time now, std::vector<Concern>& out) {
  bool evaluates = false;
  for (const WorkerView& view : workers_) evaluates |= view.last.evaluating();
  const uint64_t progress = Progress();
  if (!last_move_.since || last_move_.progress != progress || evaluates ||
      last_move_.generation != state_.generation()) {
    last_move_ = {progress, state_.generation(), now};
    return;
  }
  const absl::Duration stands = now - *last_move_.since;
  if (stands < kStuckAfter || TrainingFinished()) return;
  uint64_t first = 0, last = 0;
  std::vector<std::string> behind, steps;
  for (int i = 0; bsp() && i < state_.workers_size(); ++i) {
    const uint64_t step = workers_[i].last.step();
    if (state_.workers(i).name().empty() || step == 0) continue;
    if (first == 0 || step < first) behind.clear();
    first = first == 0 ? step : std::min(first, step);
    last = std::max(last, step);
    if (step == first) behind.push_back(NameOf(WORKER, state_.workers(i).name()));
    steps.push_back(absl::StrCat(state_.workers(i).name(), " is at step ", step));
  }
  if (first == last) behind.clear();
  for (int i = 0; bsp() && i < state_.servers_size(); ++i) {
    const ServerJobReport& report = servers_[i].last;
    if (behind.empty() && report.min_clock() < recovery_.max_clock()) {
      behind.push_back(NameOf(SERVER, state_.servers(i).name()));
    }
    steps.push_back(absl::StrCat(state_.servers(i).name(), " has committed ", report.min_clock()));
  }
  Concern& c = out.emplace_back();
  c.set_reason("NoProgress");
  c.set_who(behind.empty() ? "job" : absl::StrJoin(behind, ", "));
  c.set_since_unix_ms(absl::ToUnixMillis(*last_move_.since));
  bool worker = false;
  for (const WorkerSlot& slot : state_.workers()) worker |= !slot.name().empty();
  c.set_known_by(absl::StrCat("nothing was committed for ", Seconds(stands),
                              worker ? "" : "; the job has no worker", steps.empty() ? "" : "; ",
                              absl::StrJoin(steps, ", ")));
  c.set_remedy(!worker          ? "start strata-worker; see why the one before has ended"
               : behind.empty() ? "look at the other lines, and at the logs of its workers"
                                : "all wait for it; look at its log and its machine");
}

}  // namespace strata::scheduler
