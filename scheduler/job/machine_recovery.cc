// JobMachine: what happens when servers restart, vanish or lose what they held.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/core/mutation.h"
#include "scheduler/job/life_cycle_sums.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/progress.h"
#include "scheduler/job/refused_rows.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/troubles.h"
#include "scheduler/state/checkpoint_identity.h"

namespace strata::scheduler {
namespace {

// What several servers are waited for with is told in one text: in several, each would be news
// again and again behind the others.
std::string FirstOf(const std::vector<std::string>& lost) {
  constexpr size_t kMost = 4;
  const size_t told = std::min(kMost, lost.size());
  std::string text = absl::StrJoin(lost.begin(), lost.begin() + static_cast<int>(told), "; ");
  if (lost.size() > told) absl::StrAppend(&text, "; and ", lost.size() - told, " more");
  return text;
}

// A new head has a step in its log before it may count it as committed (R10): it is not lost.
uint64_t LeastEnd(const ServerJobReport& report) {
  if (report.copy().ends().empty()) return report.min_clock();
  uint64_t least = report.copy().ends(0).step();
  for (const CopyEnd& end : report.copy().ends()) least = std::min<uint64_t>(least, end.step());
  return std::max<uint64_t>(least, report.min_clock());
}

}  // namespace

bool JobMachine::ServersOpen(const Membership& members) const {
  bool worker = false;
  for (const WorkerSlot& slot : state_.workers()) worker |= !slot.name().empty();
  if (!worker) return false;
  for (const ServerSlot& slot : state_.servers()) {
    const bool head = slot.opened_generation() == state_.generation();
    if (!head || !IsOpen(members, slot.name(), slot.opened_session())) return false;
    for (const CopyRecord& copy : slot.chain().members()) {
      const bool opened = copy.opened_generation() == state_.generation();
      if (!opened || !IsOpen(members, copy.server(), copy.opened_session())) return false;
    }
  }
  return true;
}

bool JobMachine::IsOpen(const Membership& members, const std::string& server,
                        uint64_t opened_session) {
  const Node* const node = members.Find(server, SERVER);
  return node != nullptr && node->record.session() == opened_session;
}

bool JobMachine::WatchServers(const ClusterView& cluster, absl::Time now) {
  std::vector<std::string> lost;
  for (int i = 0; i < state_.servers_size(); ++i) {
    const ServerSlot& slot = state_.servers(i);
    ServerView& view = servers_[i];
    const Node* node = cluster.members->Find(slot.name(), SERVER);
    const uint64_t session = node == nullptr ? 0 : node->record.session();
    if (view.session != session) {
      // The first look after a start of the scheduler is no change.
      if (view.session != 0) ServerBeganAgain(i);
      view.session = session;
      view.last.Clear();
      view.unread.clear();
      view.waits.clear();
    }
    if (slot.has_chain()) {
      if (WatchCopies(cluster, i, now, lost)) return true;
      continue;
    }
    ServerFacts facts;
    facts.alive = node != nullptr && node->alive;
    facts.silent = node == nullptr ? absl::InfiniteDuration() : node->silence;
    facts.opened = slot.opened_generation() == state_.generation();
    facts.same_process = slot.opened_session() == session;
    facts.name_taken = node == nullptr && cluster.members->Find(slot.name()) != nullptr;
    facts.keeps_nothing = job().storage().durability() == "memory";
    const absl::Status spare = facts.alive ? absl::OkStatus() : FreeServers(cluster, 1).status();
    facts.replaceable = !facts.alive && spare.ok();
    facts.patience = Patience(cluster.members->lease());
    facts.from = DescribeStart();
    switch (JudgeServer(facts, cluster.members->lease())) {
      case ServerVerdict::kFine:
        break;
      case ServerVerdict::kWait:
        if (!facts.alive) {
          std::string text = DescribeSilentServer(
              slot.name(), node ? node->record.data_address() : "",
              node ? node->last_seen : absl::InfinitePast(), facts, cluster.members->lease());
          if (absl::IsResourceExhausted(spare)) absl::StrAppend(&text, "; ", spare.message());
          lost.push_back(std::move(text));
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
  if (!lost.empty()) SayAgain("ServerLost", FirstOf(lost), now);
  if (Replicated()) TellShort(cluster, now);
  return false;
}

// What it held was recovered, or is to be: clocks go on, marks of lanes and words on cuts are gone.
void JobMachine::ServerBeganAgain(int slot) {
  recovery_.ProcessChanged(static_cast<uint32_t>(slot));
  cuts_->ForgetServer(static_cast<uint32_t>(slot));
  writing_.ForgetServer(static_cast<uint32_t>(slot));
  if (!bsp() && !STRATA_MUTATION("cut.outlives_a_server")) AbortCuts();
}

void JobMachine::ReplaceServer(const ClusterView& cluster, int slot, absl::Time now) {
  auto chosen = FreeServers(cluster, 1);
  if (!chosen.ok()) return;
  const std::string old = state_.servers(slot).name();
  ForgetTroubles(old, *state_.mutable_troubles());
  state_.mutable_servers(slot)->Clear();
  state_.mutable_servers(slot)->set_name(chosen->front());
  state_.set_map_epoch(state_.map_epoch() + 1);
  state_.set_left_writers(true);
  servers_[slot] = {};
  RollBack(absl::StrCat("server ", old, " stayed away; ", chosen->front(), " takes its place"),
           now);
}

// Another live server of the job than that of `slot`; -1: none. `all_read`: whether every one of
// them has opened its shards.
int JobMachine::OtherServer(const Membership& members, int slot, bool* all_read) const {
  int other = -1;
  *all_read = true;
  for (int i = 1; i < state_.servers_size(); ++i) {
    const int at = (slot + i) % state_.servers_size();
    const Node* node = members.Find(state_.servers(at).name(), SERVER);
    if (node == nullptr || !node->alive) continue;
    if (other < 0) other = at;
    *all_read = *all_read && state_.servers(at).opened_generation() == state_.generation();
  }
  return other;
}

// Judges servers that could not read the checkpoint to start from. True: a generation began.
bool JobMachine::WatchReads(const ClusterView& cluster, absl::Time now) {
  const std::string folder = state_.restore_from();
  for (int i = 0; i < state_.servers_size(); ++i) {
    const std::string why = servers_[i].unread;
    if (why.empty()) continue;
    const CheckpointRecord* newest = cuts_->NewestOnDisk();
    if (newest != nullptr && newest->folder() != folder) {  // completed meanwhile
      RollBack(absl::StrCat("lost shards on ", why), now);
      return true;
    }
    const absl::Status room = FreeServers(cluster, 1).status();
    const bool spare = room.ok();
    ReadFacts facts;
    // Of copies each has read it.
    const bool all_copies = state_.servers(i).chain().full() > 1;
    facts.doubted = state_.doubted_checkpoint() == folder || all_copies;
    facts.same_reader = state_.doubted_by() == state_.servers(i).name() && !all_copies;
    facts.another = OtherServer(*cluster.members, i, &facts.others_read) >= 0 || spare;
    switch (JudgeRead(facts)) {
      case ReadVerdict::kWait:
        break;
      case ReadVerdict::kReadAgain:
        ReadAgain(cluster, i, now);
        return true;
      case ReadVerdict::kSetAside:
        Say("CheckpointDamaged",
            absl::StrCat(folder, " (", why, all_copies ? "" : "; ",
                         all_copies ? "" : state_.doubted_by(),
                         all_copies ? ")" : " found damage before)"),
            now);
        cuts_->Forget(folder);
        AddSetAside(folder, *state_.mutable_set_aside());
        RollBack(absl::StrCat("lost shards on ", why), now);
        return true;
      case ReadVerdict::kBadReader:
        if (spare || now >= reread_) {
          ReadAgain(cluster, i, now);
          return true;
        }
        SayAgain(
            "BadReader",
            DescribeBadReader(folder, why, absl::IsResourceExhausted(room) ? room.message() : ""),
            now);
    }
  }
  return false;
}

// Another server gets the shards whose rows this one could not read: one to spare, which takes its
// place in the job, else another one of the job, whose shards this one gets.
void JobMachine::ReadAgain(const ClusterView& cluster, int slot, absl::Time now) {
  const std::string reader = state_.servers(slot).name(), why = servers_[slot].unread;
  const bool chain = state_.servers(slot).has_chain();
  const auto spare = FreeServers(cluster, 1);
  bool all_read = false;
  // Copies have their places by zones: only a spare server takes one.
  const int other = chain ? -1 : OtherServer(*cluster.members, slot, &all_read);
  if (spare.ok() && chain) {
    ForgetTroubles(reader, *state_.mutable_troubles());
    state_.set_left_writers(true);
    BeginChain(cluster, *spare, slot, now);
    state_.mutable_servers(slot)->mutable_chain()->set_chain_epoch(state_.map_epoch() + 1);
  } else if (spare.ok()) {
    ForgetTroubles(reader, *state_.mutable_troubles());
    state_.mutable_servers(slot)->Clear();
    state_.mutable_servers(slot)->set_name(spare->front());
    state_.set_left_writers(true);
    servers_[slot] = {};
  } else if (other >= 0) {
    state_.mutable_servers()->SwapElements(slot, other);
    std::swap(servers_[slot], servers_[other]);
  }
  if (spare.ok() || other >= 0) state_.set_map_epoch(state_.map_epoch() + 1);
  state_.set_doubted_checkpoint(state_.restore_from());
  state_.set_doubted_by(reader);
  reread_ = now + kRereadLeases * cluster.members->lease();
  NextGeneration(cuts_->NewestOnDisk(), now);
  Say("CheckpointReadAgain",
      absl::StrCat(why, "; generation ", state_.generation(), " reads ", state_.restore_from(),
                   " again, server ", state_.servers(slot).name(), " what ", reader, " could not"),
      now);
}

void JobMachine::RollBack(absl::string_view why, absl::Time now) {
  const CheckpointRecord* from = cuts_->NewestOnDisk();
  if (from == nullptr && state_.set_aside_size() > 0 && !STRATA_MUTATION("reader.begins_anew")) {
    const bool init = state_.set_aside(0) == job().model().init_from().checkpoint();
    return End(FAILED, "CheckpointDamaged",
               DescribeNoCheckpoint({state_.set_aside().begin(), state_.set_aside().end()}, init),
               now);
  }
  if (from != nullptr && IsBeforeNewFiles(*from)) return EndBeforeNewFiles(*from, why, now);
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
  state_.set_rollbacks(state_.rollbacks() + 1);
  NextGeneration(from, now);
  Say("RolledBack",
      absl::StrCat(why, "; generation ", state_.generation(), " starts ",
                   from == nullptr
                       ? std::string("from the beginning, as no checkpoint was completed yet")
                       : absl::StrCat("from checkpoint ", from->folder())),
      now);
}

void JobMachine::NextGeneration(const CheckpointRecord* from, absl::Time now) {
  AbortCuts();
  cuts_->TrainingAgain();
  state_.set_generation(GenerationAfter());
  StartGeneration(from);
  KeepTimes(now);
}

void JobMachine::StartGeneration(const CheckpointRecord* from) {
  const CheckpointRecord start = from == nullptr ? CheckpointRecord() : *from;
  state_.set_phase(OPENING);
  state_.set_routing_epoch(state_.map_epoch());
  state_.set_restore_from(from == nullptr ? job().model().init_from().checkpoint()
                                          : start.folder());
  state_.clear_restore();
  if (from != nullptr) *state_.mutable_restore() = IdentityOf(start);
  state_.set_start_step(start.step());
  if (bsp()) {  // else the ledger has them
    state_.mutable_base()->set_examples(start.examples());
    state_.mutable_base()->set_bad_lines(start.bad_lines());
  }
  state_.clear_gone();
  state_.set_stop_at_step(0);
  state_.set_best_step(0);
  state_.set_final_step(0);
  end_ = {};
  state_.set_all_tasks_done(false);
  state_.set_warm(false);
  while (bsp() && state_.evaluations_size() > 0 &&
         state_.evaluations(state_.evaluations_size() - 1).step() > start.step()) {
    state_.mutable_evaluations()->RemoveLast();
  }
  for (WorkerView& view : workers_) view = {};
  for (int i = 0; i < state_.servers_size(); ++i) {
    ServerView fresh{.session = servers_[i].session};
    for (const auto& [name, copy] : servers_[i].chain.copies)
      fresh.chain.copies[name].session = copy.session;
    servers_[i] = std::move(fresh);
    if (!state_.servers(i).has_chain()) continue;
    BeginChainAnew(job().storage().replicas(), *state_.mutable_servers(i)->mutable_chain());
  }
  recovery_.Begin(static_cast<uint32_t>(state_.servers_size()), start.step());
  if (bsp()) return;
  const uint64_t tasks = TotalTasks(job(), Reads());
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
  // Of a generation that a scheduler began whose records are gone: its epochs are nobody's any
  // more.
  if (Replicated() && !over() && report.generation() < state_.generation()) {
    state_.set_map_epoch(std::max(state_.map_epoch(), report.copy().chain_epoch()));
  }
  if (over() || report.generation() != state_.generation() || !cuts_) return;
  const int slot = SlotOf(node, report);
  if (slot < 0) return;
  const bool copies = state_.servers(slot).has_chain();
  if (copies && !OnCopyReport(slot, node, report, now)) return;
  if (servers_[slot].session != node.record.session()) return;
  ServerSlot& record = *state_.mutable_servers(slot);
  const bool opened = record.opened_generation() == state_.generation();
  const std::string what = absl::StrCat(node.record.name(), ": ", report.message());
  switch (report.state()) {
    case ServerJobReport::FAILED:
      return End(FAILED, "ServerFailed", what, now);
    case ServerJobReport::LOST:
      if (!opened && report.reopened() == 0 && !state_.restore_from().empty()) {
        servers_[slot].unread = what;  // of the checkpoint; WatchReads judges it
        return;
      }
      return RollBack(absl::StrCat("lost shards on ", what), now);
    case ServerJobReport::OPEN:
      break;
    case ServerJobReport::OPENING:  // with a message: it tries again, and this is why
      // Several may wait, each with a text of its own: each is told once.
      if (report.message().empty() || servers_[slot].waits == what) return;
      servers_[slot].waits = what;
      return SayAgain("ServerWaits", what, now);
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
  SayTroubles(node.record.name(), copies ? TroublesOf(node.record.name()) : report.troubles(), now);
  for (const ServerView& view : servers_) {
    refused += view.last.refused_rows();
    clipped += view.last.clipped_rows();
    AddLifeCycle(view.last.life_cycle(), life);
  }
  state_.set_refused_rows(std::max(state_.refused_rows(), refused));
  RaiseRefused(report.refused(), *state_.mutable_refused());
  for (const WorkerView& view : workers_) {
    NameFields(view.last.not_finite(), *state_.mutable_refused());
  }
  state_.set_clipped_rows(std::max(state_.clipped_rows(), clipped));
  RaiseLifeCycle(life, *state_.mutable_life_cycle());
  const auto server = static_cast<uint32_t>(slot);
  for (const CutReport& cut : report.cuts()) {
    cuts_->Report(server, cut);
    writing_.Report(cut.cut(), server, cut.written_bytes(), cut.total_bytes(), now);
  }
  if (!bsp()) return;
  if (!recovery_.Clocks(server, report.min_clock(), report.max_clock(), LeastEnd(report))) {
    RollBack(absl::StrCat("server ", node.record.name(), " is at step ", report.min_clock(),
                          " but step ", recovery_.max_clock(), " was committed"),
             now);
  }
}

}  // namespace strata::scheduler
