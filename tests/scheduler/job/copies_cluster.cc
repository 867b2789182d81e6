#include "tests/scheduler/job/copies_cluster.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/scheduler/store/stored_records.h"

namespace strata::scheduler {
namespace {

bool IsMember(const ServerJobDirective& d) {
  return static_cast<int>(d.chain().place()) < d.chain().members_size();
}

const ChainMember* After(const ServerJobDirective& d) {
  const int next = static_cast<int>(d.chain().place()) + 1;
  if (next < d.chain().members_size()) return &d.chain().members(next);
  const bool last = next == d.chain().members_size();
  return last && d.chain().has_joining() ? &d.chain().joining() : nullptr;
}

}  // namespace

void CopiesCluster::REQUIRE_OK(const absl::Status& status) {
  INFO(status);
  REQUIRE(status.ok());
}

CopiesCluster::CopiesCluster(const std::string& zones, uint32_t servers, const Change& change) {
  for (size_t i = 0; i < zones.size(); ++i) {
    AddServer(absl::StrCat("s", i), std::string(1, zones[i]));
  }
  worker_.Start(++incarnation_);
  worker_.index_lines = static_cast<uint32_t>(sim_.steps);
  REQUIRE_OK(state_->Restore({}, now_));
  state_->Started(now_, StartId{7, ++starts_});
  for (const std::string& name : names()) Sync(name);
  SyncWorker();
  ClusterState::Submission s;
  s.uid = {0, 1};
  s.job.mutable_metadata()->set_name("job");
  JobSpec& spec = *s.job.mutable_spec();
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(sim_.lanes);
  spec.mutable_training()->set_batch_size(1);
  spec.mutable_training()->set_epochs(1);
  spec.mutable_replicas()->set_servers(servers);
  spec.mutable_replicas()->set_workers(1);
  spec.mutable_storage()->set_partitions(16);
  spec.mutable_storage()->set_shards_per_server(2);
  spec.mutable_storage()->set_durability("replicated");
  spec.mutable_storage()->set_replicas(2);
  spec.mutable_storage()->set_min_replicas(1);
  spec.mutable_checkpoint()->set_directory("/c");
  spec.mutable_checkpoint()->set_keep(5);
  if (change) change(spec);
  REQUIRE(state_->Submit(std::move(s), now_).ok());
}

void CopiesCluster::AddServer(const std::string& name, const std::string& zone) {
  servers_[name].zone = zone;
  Start(name);
}

void CopiesCluster::Kill(const std::string& name) {
  servers_.at(name).alive = false;
  servers_.at(name).copies.clear();
}

void CopiesCluster::Start(const std::string& name) {
  Process& p = servers_.at(name);
  p.alive = true;
  p.incarnation = ++incarnation_;
  p.session = p.seen = 0;
  p.copies.clear();
  p.peers.clear();
}

void CopiesCluster::Lose(const std::string& name) {
  for (auto& [slot, copy] : servers_.at(name).copies) copy.lost = true;
  Wipe(name);
}

void CopiesCluster::Fail(const std::string& name, const std::string& why) {
  Lose(name);
  for (auto& [slot, copy] : servers_.at(name).copies) copy.fails = why;
}

bool CopiesCluster::HoldsAll(const std::string& name) const {
  const Process& p = servers_.at(name);
  return p.alive && std::none_of(p.copies.begin(), p.copies.end(), [](const auto& copy) {
           return copy.second.lost || copy.second.opening || copy.second.empty;
         });
}

void CopiesCluster::SetSlow(const std::string& name, bool slow) {
  Process& p = servers_.at(name);
  p.slow = slow;
  if (slow) return;
  for (auto& [slot, copy] : p.copies) copy.opening = false;
}

void CopiesCluster::Reopen(const std::string& name, const std::string& why) {
  Process& p = servers_.at(name);
  p.slow = true;
  for (auto& [slot, copy] : p.copies) copy.opening = true, copy.waits = why;
}

void CopiesCluster::Accuse(const std::string& name, const std::string& other, bool accuses) {
  servers_.at(name).accuses = accuses ? other : "";
}

void CopiesCluster::RestartScheduler() {
  Record();
  state_ = std::make_unique<ClusterState>(kLease, kCluster);
  REQUIRE_OK(state_->Restore(store_, now_));
  state_->Started(now_, StartId{7, ++starts_});
  Record();
}

void CopiesCluster::RestartFrom(const std::map<std::string, std::string>& records, bool restored) {
  store_ = records;
  state_ = std::make_unique<ClusterState>(kLease, kCluster);
  REQUIRE_OK(state_->Restore(store_, now_));
  if (!restored) return state_->Started(now_, StartId{7, ++starts_});
  state_->Hear(now_);
  for (const std::string& name : names()) {
    if (!servers_.at(name).alive) continue;
    CHECK(absl::IsUnavailable(TryToDeliver(Report(name))));  // it only hears
  }
  now_ += kLease;
  state_->GoOn({}, now_, StartId{7, ++starts_});
  Record();
  // Sessions of records that are gone: all register again.
  for (auto& [name, process] : servers_) process.session = process.seen = 0;
  worker_.Start(++incarnation_);
}

void CopiesCluster::Record() {
  ApplyChanges(state_->TakeChanges(), store_);
  for (const FileWork& work : state_->TakeFileWork()) {
    const auto* write = std::get_if<WriteManifestWork>(&work);
    if (write == nullptr) continue;
    state_->ManifestWritten(write->job, write->cut, absl::OkStatus(), now_);
  }
}

std::vector<std::string> CopiesCluster::names() const {
  std::vector<std::string> names;
  for (const auto& [name, process] : servers_) names.push_back(name);
  return names;
}

std::string CopiesCluster::chain(int slot) const {
  const ChainRecord chain = job().servers(slot).chain();
  std::string text;
  for (int i = 0; i < chain.members_size(); ++i) {
    if (i > 0) text += i == static_cast<int>(chain.full()) ? "|" : ",";
    text += chain.members(i).server();
  }
  return chain.has_joining() ? text + "+" + chain.joining().server() : text;
}

uint64_t CopiesCluster::committed(int slot) const {
  const auto found = committed_.find({job().generation(), static_cast<uint32_t>(slot)});
  return found == committed_.end() ? 0 : found->second;
}

std::string CopiesCluster::Says(const std::string& reason) const {
  const JobStateRecord record = job();
  for (int i = record.conditions_size() - 1; i >= 0; --i) {
    if (record.conditions(i).reason() == reason) return record.conditions(i).message();
  }
  return "";
}

size_t CopiesCluster::Events(const std::string& reason) const {
  const GetEventsReply all = state_->Events(0, 1, 0);
  return static_cast<size_t>(std::count_if(all.events().begin(), all.events().end(),
                                           [&](const Event& e) { return e.reason() == reason; }));
}

// The copy after `of`, where both know the same configuration.
SimCopy* CopiesCluster::Neighbour(const ChainMember& member, uint32_t slot, const SimCopy& of) {
  const auto process = servers_.find(member.server());
  if (process == servers_.end() || !process->second.alive || process->second.stalls) return nullptr;
  const auto copy = process->second.copies.find(slot);
  if (copy == process->second.copies.end()) return nullptr;
  SimCopy& next = copy->second;
  const bool same = next.log_id == member.log_id() && next.generation == of.generation &&
                    next.told.chain().chain_epoch() == of.told.chain().chain_epoch() &&
                    !next.lost && !next.opening;
  return same ? &next : nullptr;
}

void CopiesCluster::Connect(Process& from, const std::string& to) {
  const auto it = servers_.find(to);
  if (it != servers_.end() && it->second.alive) from.peers[to] = it->second.incarnation;
}

// A lane pushes a step when all shards have answered its pull.
bool CopiesCluster::AllCommitted(uint64_t generation, uint64_t step) const {
  for (uint32_t slot = 0; slot < static_cast<uint32_t>(job().servers_size()); ++slot) {
    const auto found = committed_.find({generation, slot});
    if ((found == committed_.end() ? 0 : found->second) < step) return false;
  }
  return true;
}

// Appends at the head one step behind the last commit (R6), and forwards a step or an image.
void CopiesCluster::WorkCopy(const std::string& name, uint32_t slot, SimCopy& copy) {
  if (copy.lost || copy.empty || copy.opening || !IsMember(copy.told)) return;
  const ChainDirective& chain = copy.told.chain();
  const bool head = chain.place() == 0;
  const bool may_commit = chain.full() >= chain.min_replicas();
  if (head && copy.committed == copy.end && AllCommitted(copy.generation, copy.end)) ++copy.end;
  const ChainMember* const after = After(copy.told);
  const bool tail = static_cast<int>(chain.place()) + 1 == chain.members_size();
  SimCopy* const next = after == nullptr ? nullptr : Neighbour(*after, slot, copy);
  if (next != nullptr) {
    Connect(servers_.at(name), after->server());
    Connect(servers_.at(after->server()), name);
    if (copy.known_epoch != chain.chain_epoch()) {
      copy.known_epoch = chain.chain_epoch();
      copy.mark = copy.end;
    }
    REQUIRE((next->empty || next->end <= copy.end || tail));  // each log is a prefix
    if (next->empty) {
      next->end = copy.end - std::min<uint64_t>(copy.end, 6);
      next->empty = false;
    } else if (next->end < copy.end) {
      next->end = std::min(copy.end, next->end + 3);
    }
    servers_.at(after->server()).disk[slot] = {next->log_id, next->generation, next->end};
  }
  if (tail) {
    copy.committed = copy.end;
  } else if (next != nullptr) {
    copy.committed = std::max(copy.committed, next->committed);
  }
  if (head && !may_commit)
    copy.committed = std::min(copy.committed, committed(static_cast<int>(slot)));
  servers_.at(name).disk[slot] = {copy.log_id, copy.generation, copy.end};
  if (!head) return;
  uint64_t& seen = committed_[{copy.generation, slot}];
  seen = std::max(seen, copy.committed);
}

void CopiesCluster::Work() {
  // The tail first: what it has is committed for those before it.
  for (auto& [name, process] : servers_) {
    if (!process.alive || process.stalls) continue;
    for (auto& [slot, copy] : process.copies) WorkCopy(name, slot, copy);
  }
}

void CopiesCluster::Open(const std::string& name, const ServerJobDirective& d) {
  Process& p = servers_.at(name);
  const uint32_t slot = d.server_index();
  const ChainDirective& chain = d.chain();
  const int place = static_cast<int>(chain.place());
  const std::string& log_id =
      place < chain.members_size() ? chain.members(place).log_id() : chain.joining().log_id();
  SimCopy& copy = p.copies[slot] = {};
  copy.log_id = log_id;
  copy.generation = d.generation();
  const auto kept = p.disk.find(slot);
  if (kept != p.disk.end() && kept->second.log_id == log_id &&
      kept->second.generation == d.generation()) {
    copy.end = kept->second.end;  // what of it is committed it does not know (R10)
    copy.opening = p.slow;
    return;
  }
  p.disk.erase(slot);
  if (d.was_open()) {
    copy.lost = true;
  } else if (place >= static_cast<int>(chain.full())) {
    copy.empty = true;
  } else {
    copy.end = copy.committed = d.start_step();
    p.disk[slot] = {log_id, d.generation(), copy.end};
  }
}

void CopiesCluster::Act(const std::string& name, const NodeDirective& directive) {
  Process& p = servers_.at(name);
  p.session = directive.session();
  p.seen = directive.version();
  std::set<uint32_t> listed;
  for (const ServerJobDirective& d : directive.server_jobs()) {
    if (d.close()) continue;
    const uint32_t slot = d.server_index();
    REQUIRE(listed.insert(slot).second);
    const ChainDirective& chain = d.chain();
    const int place = static_cast<int>(chain.place());
    const ChainMember& own = place < chain.members_size() ? chain.members(place) : chain.joining();
    REQUIRE(own.server() == name);
    const auto found = p.copies.find(slot);
    if (found == p.copies.end() || found->second.log_id != own.log_id() ||
        found->second.generation != d.generation()) {
      Open(name, d);
    }
    SimCopy& copy = p.copies[slot];
    copy.told = d;
    if (place != 0 || copy.lost) continue;
    // Whoever leads has all that was committed.
    CHECK(d.lane_sessions_known());
    INFO(name << " leads slot " << slot);
    REQUIRE(copy.end >= committed(static_cast<int>(slot)));
  }
  for (auto it = p.copies.begin(); it != p.copies.end();) {
    if (listed.contains(it->first)) {
      ++it;
      continue;
    }
    p.disk.erase(it->first);
    it = p.copies.erase(it);
  }
}

void CopiesCluster::AddCopyReport(const std::string& name, uint32_t slot, const SimCopy& copy,
                                  NodeReport& report) const {
  ServerJobReport& j = *report.add_server_jobs();
  j.set_job(1);
  j.set_job_uid(JobUid{0, 1}.text());
  j.set_generation(copy.generation);
  j.set_server_index(slot);
  const bool opens = copy.empty || copy.opening;
  j.set_state(!copy.fails.empty() ? ServerJobReport::FAILED
              : copy.lost         ? ServerJobReport::LOST
              : opens             ? ServerJobReport::OPENING
                                  : ServerJobReport::OPEN);
  if (copy.lost) j.set_message(copy.fails.empty() ? "its files are gone" : copy.fails);
  if (copy.opening) j.set_message(copy.waits);
  j.set_min_clock(copy.committed);
  j.set_max_clock(copy.committed);
  j.set_lane_epoch(copy.told.lane_epoch());
  j.set_given_up_through(copy.told.given_up_through());
  j.set_windows(copy.committed);
  CopyReport& c = *j.mutable_copy();
  c.set_log_id(copy.log_id);
  c.set_place(copy.told.chain().place());
  if (copy.opening) return;
  c.set_chain_epoch(copy.told.chain().chain_epoch());
  if (!copy.empty) c.add_ends()->set_step(copy.end);
  const ChainMember* const after = After(copy.told);
  SimCopy* const next =
      after == nullptr ? nullptr : const_cast<CopiesCluster*>(this)->Neighbour(*after, slot, copy);
  if (next == nullptr || name.empty()) return;
  if (!next->empty) c.add_next_ends()->set_step(next->end);
  c.set_next_has_all(copy.known_epoch == c.chain_epoch() && !next->empty && next->end >= copy.mark);
}

NodeReport CopiesCluster::Report(const std::string& name) const {
  const Process& p = servers_.at(name);
  NodeReport report;
  report.set_session(p.session);
  report.set_name(name);
  report.set_role(SERVER);
  report.set_incarnation(p.incarnation);
  report.set_data_address(name);
  report.set_zone(p.zone);
  report.set_cores(1);
  report.set_seen_version(p.seen);
  for (const auto& [slot, copy] : p.copies) AddCopyReport(name, slot, copy, report);
  for (const auto& [other, incarnation] : p.peers) {
    const Process& peer = servers_.at(other);
    const bool accused = p.accuses == other;
    if (!accused && (!ends_seen_ || (peer.alive && peer.incarnation == incarnation))) {
      continue;
    }
    PeerTrouble& trouble = *report.add_peers();
    trouble.set_name(other);
    trouble.set_role(SERVER);
    trouble.set_kind(PeerTrouble::CLOSED);
    trouble.set_incarnation(incarnation);
  }
  return report;
}

absl::Status CopiesCluster::TryToDeliver(const NodeReport& report) {
  return state_->Report(report, now_).status();
}

void CopiesCluster::Deliver(const NodeReport& report) {
  const auto session = state_->Report(report, now_);
  REQUIRE_OK(session.status());
  Record();
}

void CopiesCluster::Sync(const std::string& name) {
  const Process& p = servers_.at(name);
  if (!p.alive || p.stalls) return;
  const auto session = state_->Report(Report(name), now_);
  REQUIRE_OK(session.status());
  Record();
  const auto directive = state_->Directive(name, *session, false);
  REQUIRE_OK(directive.status());
  Act(name, *directive);
}

void CopiesCluster::SyncWorker() {
  const auto session = state_->Report(worker_.Report(), now_);
  REQUIRE_OK(session.status());
  Record();
  const auto directive = state_->Directive("w0", *session, false);
  REQUIRE_OK(directive.status());
  worker_.Act(*directive);
}

void CopiesCluster::SyncServers(const std::vector<std::string>& order) {
  for (const std::string& name : order) Sync(name);
}

void CopiesCluster::Round() {
  SyncServers(names());
  SyncWorker();
  Work();
}

void CopiesCluster::Until(const std::function<bool()>& done) {
  for (int round = 0; !done(); ++round) {
    INFO(state_->Status(1, now_).DebugString() << job().DebugString());
    REQUIRE(round < 100);
    Round();
  }
}

void CopiesCluster::Pass(absl::Duration time) {
  for (const absl::Time end = now_ + time; now_ < end;) {
    now_ = std::min(end, now_ + kLease / 16);
    Round();
    state_->Tick(now_);
    Record();
  }
}

NodeDirective CopiesCluster::Directive(const std::string& name) {
  const auto session = state_->Report(Report(name), now_);
  REQUIRE_OK(session.status());
  Record();
  const auto directive = state_->Directive(name, *session, false);
  REQUIRE_OK(directive.status());
  return *directive;
}

NodeDirective CopiesCluster::WorkerDirective() {
  NodeReport report = worker_.Report();
  report.set_seen_version(0);
  const auto session = state_->Report(report, now_);
  REQUIRE_OK(session.status());
  const auto directive = state_->Directive("w0", *session, false);
  REQUIRE_OK(directive.status());
  return *directive;
}

}  // namespace strata::scheduler
