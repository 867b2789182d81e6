// JobMachine: what happens when servers restart, vanish or lose what they held.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "scheduler/job/life_cycle_sums.h"
#include "scheduler/job/machine.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/troubles.h"

namespace strata::scheduler {

bool JobMachine::ServersOpen(const Membership& members) const {
  bool worker = false;
  for (const WorkerSlot& slot : state_.workers()) worker |= !slot.name().empty();
  if (!worker) return false;
  for (const ServerSlot& slot : state_.servers()) {
    const Node* node = members.Find(slot.name());
    if (node == nullptr || slot.opened_generation() != state_.generation() ||
        slot.opened_session() != node->record.session()) {
      return false;
    }
  }
  return true;
}

bool JobMachine::WatchServers(const ClusterView& cluster, absl::Time now) {
  for (int i = 0; i < state_.servers_size(); ++i) {
    const ServerSlot& slot = state_.servers(i);
    ServerView& view = servers_[i];
    const Node* node = cluster.members->Find(slot.name());
    const uint64_t session = node == nullptr ? 0 : node->record.session();
    if (view.session != session) {
      // The first look after a start of the scheduler is no change.
      if (view.session != 0) ServerBeganAgain(i);
      view = ServerView{.session = session};
    }
    ServerFacts facts;
    facts.alive = node != nullptr && node->alive;
    facts.silent = node == nullptr ? absl::InfiniteDuration() : node->silence;
    facts.opened = slot.opened_generation() == state_.generation();
    facts.same_process = slot.opened_session() == session;
    facts.keeps_nothing = job().storage().durability() == "memory";
    facts.replaceable = !facts.alive && ChooseServers(Candidates(cluster, SERVER), 1).ok();
    switch (JudgeServer(facts, cluster.members->lease())) {
      case ServerVerdict::kFine:
        break;
      case ServerVerdict::kWait:
        if (!facts.alive) {
          SayAgain("ServerLost",
                   DescribeSilentServer(slot.name(), node ? node->record.data_address() : "",
                                        node ? node->last_seen : absl::InfinitePast(), facts,
                                        cluster.members->lease()),
                   now);
        }
        break;
      case ServerVerdict::kRollBack:
        RollBack(absl::StrCat("server ", slot.name(),
                              " was restarted, and spec.storage.durability is memory"),
                 now);
        return true;
      case ServerVerdict::kReplace:
        ReplaceServer(cluster, i, now);
        return true;
    }
  }
  return false;
}

// What it held was recovered, or is to be: clocks go on, marks of lanes and words on cuts are gone.
void JobMachine::ServerBeganAgain(int slot) {
  recovery_.ProcessChanged(static_cast<uint32_t>(slot));
  cuts_->ForgetServer(static_cast<uint32_t>(slot));
  if (!bsp()) AbortCuts();
}

void JobMachine::ReplaceServer(const ClusterView& cluster, int slot, absl::Time now) {
  auto chosen = ChooseServers(Candidates(cluster, SERVER), 1);
  if (!chosen.ok()) return;
  const std::string old = state_.servers(slot).name();
  ForgetTroubles(old, *state_.mutable_troubles());
  state_.mutable_servers(slot)->Clear();
  state_.mutable_servers(slot)->set_name(chosen->front());
  state_.set_map_epoch(state_.map_epoch() + 1);
  servers_[slot] = {};
  RollBack(absl::StrCat("server ", old, " stayed away; ", chosen->front(), " takes its place"),
           now);
}

void JobMachine::RollBack(absl::string_view why, absl::Time now) {
  const uint64_t reached = bsp() ? recovery_.max_clock() : ledger_->closed_count();
  if (reached > state_.furthest_step()) {
    state_.set_furthest_step(reached);
    state_.set_fruitless(0);
  }
  state_.set_fruitless(state_.fruitless() + 1);
  if (state_.fruitless() > RecoveryCoordinator::kMaxFruitless) {
    return End(
        FAILED, "TooManyRollBacks",
        absl::StrCat(state_.fruitless(), " roll-backs without a step forward; the last: ", why),
        now);
  }
  AbortCuts();
  cuts_->TrainingAgain();
  state_.set_generation(state_.generation() + 1);
  state_.set_rollbacks(state_.rollbacks() + 1);
  const CheckpointRecord* from = cuts_->NewestOnDisk();
  Say("RolledBack",
      absl::StrCat(why, "; generation ", state_.generation(), " starts ",
                   from == nullptr ? std::string("from the beginning")
                                   : absl::StrCat("from checkpoint ", from->folder())),
      now);
  StartGeneration(from);
}

void JobMachine::StartGeneration(const CheckpointRecord* from) {
  const CheckpointRecord start = from == nullptr ? CheckpointRecord() : *from;
  state_.set_phase(OPENING);
  state_.set_restore_from(from == nullptr ? job().model().init_from() : start.folder());
  state_.set_start_step(start.step());
  if (bsp()) {  // else the ledger has them
    state_.mutable_base()->set_examples(start.examples());
    state_.mutable_base()->set_bad_lines(start.bad_lines());
  }
  state_.clear_gone();
  state_.set_trained_unix_ms(0);
  state_.set_stop_at_step(0);
  state_.set_best_step(0);
  state_.set_final_step(0);
  state_.set_all_tasks_done(false);
  state_.set_warm(false);
  while (bsp() && state_.evaluations_size() > 0 &&
         state_.evaluations(state_.evaluations_size() - 1).step() > start.step()) {
    state_.mutable_evaluations()->RemoveLast();
  }
  for (WorkerView& view : workers_) view = {};
  for (ServerView& view : servers_) view.last.Clear();
  recovery_.Begin(static_cast<uint32_t>(state_.servers_size()), start.step());
  if (bsp()) return;
  const uint64_t tasks =
      static_cast<uint64_t>(index_->train().tasks_size()) * job().training().epochs();
  ledger_ = from == nullptr ? TaskLedger::Begin(tasks, lanes())
                            : TaskLedger::Resume(tasks, lanes(), start);
  rate_closed_ = ledger_->closed_count();
}

void JobMachine::SayTroubles(absl::string_view node,
                             const google::protobuf::RepeatedPtrField<Trouble>& reported,
                             absl::Time now) {
  for (const TroubleNews& n :
       FollowTroubles(node, reported, absl::ToUnixMillis(now), *state_.mutable_troubles())) {
    Say(n.reason, n.message, now);
  }
}

void JobMachine::OnServerReport(const Node& node, const ServerJobReport& report, absl::Time now) {
  if (over() || report.generation() != state_.generation() || !cuts_) return;
  int slot = 0;
  while (slot < state_.servers_size() && state_.servers(slot).name() != node.record.name()) ++slot;
  if (slot == state_.servers_size() || servers_[slot].session != node.record.session()) return;
  ServerSlot& record = *state_.mutable_servers(slot);
  const bool opened = record.opened_generation() == state_.generation();
  const std::string what = absl::StrCat(node.record.name(), ": ", report.message());
  switch (report.state()) {
    case ServerJobReport::FAILED:
      return End(FAILED, "ServerFailed", what, now);
    case ServerJobReport::LOST:
      if (!opened && report.reopened() == 0 && cuts_->NewestOnDisk() != nullptr &&
          cuts_->NewestOnDisk()->folder() == state_.restore_from()) {
        // What could not be read was the checkpoint: the one before it is the newest now.
        Say("CheckpointDamaged", absl::StrCat(state_.restore_from(), " (", what, ")"), now);
        cuts_->Forget(state_.restore_from());
        if (spec_.resume() && cuts_->NewestOnDisk() == nullptr && state_.furthest_step() == 0 &&
            state_.started_unix_ms() == 0) {
          return End(FAILED, "CheckpointDamaged",
                     absl::StrCat("no checkpoint is left to resume from (", what, ")"), now);
        }
      }
      return RollBack(absl::StrCat("lost shards on ", what), now);
    case ServerJobReport::OPEN:
      break;
    case ServerJobReport::OPENING:  // with a message: it tries again, and this is why
      if (!report.message().empty()) SayAgain("ServerWaits", what, now);
      return;
    default:
      return;
  }
  if (report.reopened() > servers_[slot].last.reopened()) {
    ServerBeganAgain(slot);
    SayAgain("TierDamaged",
             absl::StrCat(node.record.name(), ": ", report.reopened_because(),
                          "; its shards were recovered from base images and log"),
             now);
  }
  record.set_opened_generation(state_.generation());
  record.set_opened_session(node.record.session());
  uint64_t refused = 0, clipped = 0;
  LifeCycleCounts life;
  servers_[slot].last = report;
  SayTroubles(node.record.name(), report.troubles(), now);
  for (const ServerView& view : servers_) {
    refused += view.last.refused_rows();
    clipped += view.last.clipped_rows();
    AddLifeCycle(view.last.life_cycle(), life);
  }
  state_.set_refused_rows(std::max(state_.refused_rows(), refused));
  state_.set_clipped_rows(std::max(state_.clipped_rows(), clipped));
  RaiseLifeCycle(life, *state_.mutable_life_cycle());
  for (const CutReport& cut : report.cuts()) cuts_->Report(static_cast<uint32_t>(slot), cut);
  if (!bsp()) return;
  if (!recovery_.Clocks(static_cast<uint32_t>(slot), report.min_clock(), report.max_clock())) {
    RollBack(absl::StrCat("server ", node.record.name(), " is at step ", report.min_clock(),
                          " but step ", recovery_.max_clock(), " was committed"),
             now);
  }
}

}  // namespace strata::scheduler
