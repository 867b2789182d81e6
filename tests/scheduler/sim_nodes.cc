#include "tests/scheduler/sim_nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "server/job/job_note.h"

namespace strata::scheduler {

namespace {

server::LaneSessions Hosts(const ServerJobDirective& d) {
  if (!d.lane_sessions_known()) return {};
  std::vector<SessionId> sessions;
  for (const uint64_t session : d.lane_sessions()) sessions.emplace_back(session);
  return {d.lane_epoch(), std::move(sessions)};
}

}  // namespace

bool SimShard::EachOnce() const {
  return std::all_of(applied.begin(), applied.end(), [](const auto& w) { return w.second == 1; });
}

TaskCounts SimJob::CountLines(uint64_t task, uint64_t end, uint64_t tasks) const {
  TaskCounts counts;
  counts.set_task(task);
  const uint64_t first = task % tasks * windows_per_task;
  for (uint64_t line = first; line < first + end; ++line) {
    const bool bad = bad_every > 0 && line % bad_every == bad_every - 1;
    counts.set_bad_lines(counts.bad_lines() + (bad ? 1 : 0));
    counts.set_examples(counts.examples() + (bad ? 0 : 1));
  }
  return counts;
}

void SimServer::Start(uint64_t incarnation) {
  alive_ = true;
  incarnation_ = incarnation;
  session_ = seen_ = 0;
  open_.clear();
}

void SimServer::Kill() {
  alive_ = false;
  open_.clear();
}

void SimServer::Reopen() {
  std::vector<uint64_t> ids;  // OpenShard makes each entry anew
  for (const auto& [id, open] : open_) {
    if (open.state == ServerJobReport::OPEN) ids.push_back(id);
  }
  for (const uint64_t id : ids) {
    const uint32_t before = open_[id].reopened;
    ServerJobDirective again = open_[id].told;
    again.set_was_open(true);
    OpenShard(again);
    open_[id].told = again;
    open_[id].sessions = Hosts(again);
    open_[id].reopened = before + 1;
  }
}

NodeReport SimServer::Report() const {
  NodeReport report;
  report.set_session(session_);
  report.set_name(name_);
  report.set_role(SERVER);
  report.set_incarnation(incarnation_);
  report.set_data_address(name_);
  report.set_machine_id(machine_id_);
  report.set_disk_id(disk_id_);
  report.set_cores(1);
  report.set_seen_version(seen_);
  for (const auto& [id, open] : open_) {
    ServerJobReport* j = report.add_server_jobs();
    j->set_job(id);
    j->set_job_uid(uids_.at(id));
    j->set_generation(open.shard.generation);
    j->set_state(open.state);
    j->set_message(open.message);
    j->set_min_clock(open.shard.clock);
    j->set_max_clock(open.shard.clock);
    j->set_windows(open.shard.applied.size());
    j->set_reopened(open.reopened);
    j->set_lane_epoch(open.sessions.epoch());
    if (open.barrier) j->set_given_up_through(open.barrier->over());
    for (const auto& [number, cut] : open.cuts) *j->add_cuts() = cut;
  }
  for (const auto& [id, shard] : logged_) {
    if (open_.count(id) > 0) continue;
    ServerJobReport* j = report.add_server_jobs();
    j->set_job(id);
    j->set_job_uid(uids_.at(id));
    j->set_state(quarantined_.count(id) > 0 ? ServerJobReport::QUARANTINED : ServerJobReport::KEPT);
    const auto note = notes_.find(id);
    if (quarantined_.count(id) == 0 || note == notes_.end()) continue;
    j->set_name(note->second.spec().metadata().name());
    *j->mutable_kept() = note->second;
  }
  return report;
}

void SimServer::Keep(uint64_t job, const Open& open) {
  if (!job_.memory) logged_[job] = open.shard;
}

void SimServer::OpenShard(const ServerJobDirective& d) {
  open_.erase(d.job());
  Open& open = open_[d.job()];
  notes_[d.job()] = server::NoteOf(d);
  open.shard.generation = d.generation();
  if (job_.windows_per_task > 0) open.barrier.emplace(job_.lanes, 0);  // it remembers no cut
  const auto kept = logged_.find(d.job());
  if (kept != logged_.end() && kept->second.generation == d.generation()) {
    open.shard = kept->second;
    open.state = ServerJobReport::OPEN;
    return;
  }
  if (d.was_open()) {
    open.state = ServerJobReport::LOST;
    return;
  }
  if (!d.restore_from().empty()) {
    const auto folder = disk_->find(d.restore_from());
    if (folder == disk_->end()) {  // tried again
      open.message = d.restore_from() + " is not there";
      return;
    }
    const bool whole =
        folder->second.complete && !folder->second.damaged && !folder->second.files.empty();
    if (!whole || bad_reads_ > 0) {
      bad_reads_ -= bad_reads_ > 0;
      open.state = ServerJobReport::LOST;
      open.message = d.restore_from() + " is damaged";
      return;
    }
    // Every server's file says the same here: all apply everything.
    open.shard = folder->second.files.begin()->second;
    open.shard.generation = d.generation();
  }
  open.state = ServerJobReport::OPEN;
  Keep(d.job(), open);
}

void SimServer::Act(const NodeDirective& directive) {
  session_ = directive.session();
  seen_ = directive.version();
  for (const ServerJobDirective& d : directive.server_jobs()) {
    if (d.close()) {
      open_.erase(d.job());
      if (d.quarantine()) {
        quarantined_.insert(d.job());
      } else {
        logged_.erase(d.job());
      }
      continue;
    }
    uids_[d.job()] = d.job_uid();
    quarantined_.erase(d.job());
    auto it = open_.find(d.job());
    if (it == open_.end() || it->second.shard.generation < d.generation() ||
        it->second.state == ServerJobReport::OPENING) {
      OpenShard(d);
    }
    Open& open = open_[d.job()];
    if (open.shard.generation != d.generation()) continue;
    open.told = d;
    open.sessions = Hosts(d);
    open.shard.ledger.CloseBelow(TaskId(d.closed_below()));
    std::set<uint64_t> listed;
    for (const CutDirective& cut : d.cuts()) listed.insert(cut.cut());
    for (auto c = open.cuts.begin(); c != open.cuts.end();) {
      c = listed.count(c->first) > 0 ? std::next(c) : open.cuts.erase(c);
    }
    if (open.barrier) {
      open.barrier->End(d.given_up_through());
      for (const uint64_t cut : listed) open.barrier->Begin(cut);
    }
    TakeCuts(open);
  }
}

const SimShard* SimServer::Find(uint64_t job, uint64_t generation) const {
  auto it = open_.find(job);
  const bool open = alive_ && it != open_.end() && it->second.state == ServerJobReport::OPEN &&
                    it->second.shard.generation == generation;
  return open ? &it->second.shard : nullptr;
}

bool SimServer::Takes(uint64_t job, const SimSender& by) const {
  return Find(job, by.generation) != nullptr &&
         open_.at(job).sessions.Check(SessionId(by.session)).ok();
}

bool SimServer::Push(uint64_t job, const SimSender& by, uint64_t step, uint32_t lane) {
  if (!Takes(job, by)) return false;
  Open& open = open_[job];
  if (step <= open.shard.clock) return true;
  if (step > open.shard.clock + 1) return false;
  open.pushed.insert(lane);
  if (open.pushed.size() < job_.lanes) return true;
  open.pushed.clear();
  ++open.shard.clock;
  Keep(job, open);
  TakeCuts(open);
  return true;
}

bool SimServer::Apply(uint64_t job, const SimSender& by, Window window, uint64_t cut) {
  if (!Takes(job, by)) return false;
  Open& open = open_[job];
  const TaskId task(window.first);
  // Done before, perhaps by somebody else.
  if (open.shard.ledger.Check(task, window.second) != server::WindowVerdict::kNew) return true;
  if (!MayExist(open, cut)) return false;
  if (!open.barrier->Push(cut, 1, absl::Time())) {
    open.barrier->Forget(1);  // the lane asks again
    return false;
  }
  open.shard.ledger.Record(task, window.second);
  ++open.shard.applied[window];
  Keep(job, open);
  return true;
}

bool SimServer::Mark(uint64_t job, const SimSender& by, uint64_t cut, LanePosition position) {
  if (!Takes(job, by)) return false;
  Open& open = open_[job];
  if (!MayExist(open, cut)) return false;
  open.barrier->Mark(position.lane(), cut, {TaskId(position.task()), position.next_window()});
  TakeCuts(open);
  return true;
}

namespace {

// A vocabulary's name is its values, a letter each, and their fingerprint.
void AddVocabularies(const WorkerJobDirective& directive, InputIndex* index) {
  for (const FieldConfig& field : directive.spec().spec().fields()) {
    if (!field.has_vocabulary()) continue;
    const std::string& values = field.vocabulary().file();
    InputFile& file = *index->add_vocabularies();
    file.set_path(values);
    const auto add = [&](uint64_t count) {
      VocabularyValues& first = *file.add_values();
      first.set_count(count);
      first.set_fingerprint(values.substr(0, count));
    };
    add(values.size());
    for (const uint64_t count : directive.vocabulary_beginnings()) {
      if (count < values.size()) add(count);
    }
  }
}

}  // namespace

void SimWorker::Start(uint64_t incarnation) {
  alive_ = true;
  incarnation_ = incarnation;
  session_ = seen_ = 0;
  jobs_.clear();
}

InputIndex SimWorker::Index(uint64_t tasks, uint32_t lines, uint64_t files) {
  InputIndex index;
  for (uint64_t i = 0; i < files; ++i) {
    InputFile& file = *index.add_files();
    file.set_path(i == 0 ? "train" : "train." + std::to_string(i));
    file.set_fingerprint(i);
  }
  for (uint64_t i = 0; i < tasks; ++i) {
    InputTask& task = *index.add_tasks();
    task.set_lines(lines);
    task.set_file(static_cast<uint32_t>(i * files / tasks));
  }
  index.set_lines(tasks * lines);
  index.mutable_shape()->set_fields(3);
  return index;
}

NodeReport SimWorker::Report() const {
  NodeReport report;
  report.set_session(session_);
  report.set_name(name_);
  report.set_role(WORKER);
  report.set_incarnation(incarnation_);
  report.set_seen_version(seen_);
  for (const auto& [id, held] : jobs_) *report.add_worker_jobs() = held.report;
  return report;
}

void SimWorker::Act(const NodeDirective& directive) {
  session_ = directive.session();
  seen_ = directive.version();
  if (directive.unchanged()) return;
  std::set<uint64_t> listed;
  for (const WorkerJobDirective& d : directive.worker_jobs()) {
    if (d.close()) continue;
    listed.insert(d.job());
    Held& held = jobs_[d.job()];
    if (held.report.generation() != d.generation()) held = {};
    held.told = d;
    held.report.set_job(d.job());
    held.report.set_job_uid(d.job_uid());
    held.report.set_generation(d.generation());
    if (d.make_index()) {
      *held.report.mutable_train_index() = Index(index_tasks, index_lines, index_files);
      AddVocabularies(d, held.report.mutable_train_index());
    }
    held.report.set_ready(!d.make_index());
    std::set<uint64_t> tasks;
    for (const TaskAssignment& t : d.tasks()) tasks.insert(t.task());
    auto& done = *held.report.mutable_done_tasks();
    done.erase(
        std::remove_if(done.begin(), done.end(), [&](uint64_t t) { return tasks.count(t) == 0; }),
        done.end());
    auto& counts = *held.report.mutable_task_counts();
    counts.erase(std::remove_if(counts.begin(), counts.end(),
                                [&](const TaskCounts& c) { return tasks.count(c.task()) == 0; }),
                 counts.end());
    for (auto& [id, lane] : held.lanes) {
      if (lane.busy && tasks.count(lane.task) == 0) lane = {.marked = lane.marked};
    }
    // What is reported as finished is so under this directive only.
    if (!d.all_tasks_done() && job_.windows_per_task > 0) held.report.set_finished(false);
  }
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    it = listed.count(it->first) > 0 ? std::next(it) : jobs_.erase(it);
  }
}

std::vector<SimServer*> SimWorker::Servers(const Held& held) const {
  std::vector<SimServer*> servers;
  for (const std::string& address : held.told.server_addresses()) {
    auto it = servers_->find(address);
    if (it == servers_->end()) return {};
    servers.push_back(&it->second);
  }
  return servers;
}

void SimWorker::Work() {
  ++turn_;
  for (auto& [id, held] : jobs_) {
    if (job_.windows_per_task == 0) {
      WorkBsp(held);
    } else if (held.told.all_tasks_done() && held.told.cut() == 0) {
      held.report.set_finished(true);
    } else if (held.told.lanes_size() > 0) {
      const int lane = static_cast<int>(turn_ % held.told.lanes_size());
      WorkAsync(held, held.told.lanes(lane));
    }
  }
}

void SimWorker::WorkBsp(Held& held) {
  const std::vector<SimServer*> servers = Servers(held);
  if (servers.empty() || held.told.lanes_size() == 0) return;
  const uint64_t job = held.told.job(), generation = held.told.generation();
  uint64_t clock = ~uint64_t{0};
  for (SimServer* server : servers) {
    const SimShard* shard = server->Find(job, generation);
    if (shard == nullptr) return;
    clock = std::min(clock, shard->clock);
  }
  if (clock == job_.steps) {
    held.report.set_finished(true);
    return;
  }
  for (uint32_t lane : held.told.lanes()) {
    for (SimServer* server : servers) server->Push(job, {generation, session_}, clock + 1, lane);
  }
}

// The lane's next window; counts what the task holds up to there.
void SimWorker::Read(Held& held, Lane& lane) {
  const uint64_t end = std::min(lane.next_window + 1, job_.windows_per_task);
  const TaskCounts counts = job_.CountLines(lane.task, end, index_tasks);
  if (lane.read < end) {  // what this process has read, ever
    const TaskCounts before = job_.CountLines(lane.task, lane.read, index_tasks);
    held.report.set_examples(held.report.examples() + counts.examples() - before.examples());
    held.report.set_bad_lines(held.report.bad_lines() + counts.bad_lines() - before.bad_lines());
    lane.read = end;
  }
  auto& all = *held.report.mutable_task_counts();
  const auto at = std::find_if(all.begin(), all.end(),
                               [&](const TaskCounts& c) { return c.task() == lane.task; });
  if (at == all.end()) {
    *all.Add() = counts;
  } else if (at->examples() + at->bad_lines() < counts.examples() + counts.bad_lines()) {
    *at = counts;  // else another lane of this process was further (as in TrainingStats)
  }
}

// At every server, with one position; false: some are missing yet.
bool SimWorker::Mark(Held& held, uint32_t lane_id, const std::vector<SimServer*>& servers) {
  Lane& lane = held.lanes[lane_id];
  const uint64_t cut = held.told.cut();
  if (lane.marking != cut) {
    lane.marking = cut;
    lane.position.set_lane(lane_id);
    lane.position.set_task(lane.task);
    lane.position.set_next_window(lane.next_window);
  }
  for (SimServer* server : servers) {
    const SimSender by = {held.told.generation(), session_};
    if (!server->Mark(held.told.job(), by, cut, lane.position)) return false;
  }
  lane.marked = cut;
  return true;
}

void SimWorker::WorkAsync(Held& held, uint32_t lane_id) {
  const std::vector<SimServer*> servers = Servers(held);
  if (servers.empty()) return;
  const uint64_t job = held.told.job(), generation = held.told.generation();
  Lane& lane = held.lanes[lane_id];
  const auto& done = held.report.done_tasks();
  if (!lane.busy) {
    for (const TaskAssignment& t : held.told.tasks()) {
      if (t.lane() != lane_id || std::find(done.begin(), done.end(), t.task()) != done.end()) {
        continue;
      }
      lane.task = t.task();
      lane.next_window = lane.read = t.first_window();
      lane.busy = true;
      break;
    }
  }
  if (held.told.cut() > lane.marked && !Mark(held, lane_id, servers)) return;
  if (!lane.busy) return;
  Read(held, lane);
  if (lane.next_window < job_.windows_per_task) {
    for (SimServer* server : servers) {
      const SimSender by = {generation, session_};
      if (!server->Apply(job, by, {lane.task, lane.next_window}, lane.marked)) return;
    }
    ++lane.next_window;
  }
  if (lane.next_window >= job_.windows_per_task) {
    held.report.add_done_tasks(lane.task);
    lane.busy = false;
  }
}

}  // namespace strata::scheduler
