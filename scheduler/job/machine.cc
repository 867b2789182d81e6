#include "scheduler/job/machine.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/uid.h"
#include "scheduler/job/progress.h"
#include "scheduler/job/refused_rows.h"
#include "scheduler/nodes/placement.h"
#include "scheduler/nodes/troubles.h"

namespace strata::scheduler {
namespace {

// "; the first bad line is FILE:LINE:COLUMN: REASON", as a worker has told it (TrainingStats).
template <typename Views>
std::string FirstBadLine(const Views& workers) {
  for (const auto& view : workers) {
    for (const Trouble& trouble : view.last.troubles()) {
      if (trouble.reason() == kLinesAreBad) return absl::StrCat("; ", trouble.message());
    }
  }
  return "";
}

}  // namespace

JobMachine::JobMachine(JobSpecRecord spec, std::string cluster_id,
                       std::vector<CheckpointRecord> complete, absl::Time now)
    : spec_(std::move(spec)), cluster_id_(std::move(cluster_id)), kept_(now) {
  state_.set_phase(WAITING);
  state_.set_state(PENDING);
  state_.set_generation(1);
  state_.set_map_epoch(1);
  uint64_t next_cut = 1;
  for (CheckpointRecord& c : complete) {
    next_cut = std::max({next_cut, c.step() + 1, c.of_cut() + 1});
    *state_.mutable_cuts()->add_complete() = std::move(c);
  }
  state_.mutable_cuts()->set_next_cut(next_cut);
  if (spec_.resume() && complete.empty()) {
    Say("NothingToResume", "there is no complete checkpoint yet; the job starts anew", now);
  }
}

JobMachine::JobMachine(JobSpecRecord spec, std::string cluster_id, JobStateRecord state,
                       std::optional<JobIndexRecord> index, std::optional<LedgerRecord> ledger,
                       absl::Time now)
    : spec_(std::move(spec)),
      cluster_id_(std::move(cluster_id)),
      state_(std::move(state)),
      index_(std::move(index)) {
  if (ledger) ledger_.emplace(*std::move(ledger));
  CompleteSchemas();
  events_.Begin(state_);
  // A server that is another process now than the one that opened the shards lost what it was told
  // of cuts, also where nobody looked while it was replaced.
  for (const ServerSlot& slot : state_.servers()) {
    ServerView& view = servers_.emplace_back(ServerView{.session = slot.opened_session()});
    for (const CopyRecord& copy : slot.chain().members()) {
      view.chain.copies[copy.server()].session = copy.opened_session();
    }
  }
  workers_.resize(state_.workers_size());
  recovery_.Begin(static_cast<uint32_t>(state_.servers_size()), state_.start_step());
  for (StandingTrouble& trouble : *state_.mutable_troubles()) {
    trouble.set_since_unix_ms(absl::ToUnixMillis(now) - trouble.stood_ms());
  }
  KeepTimes(now);
  rate_since_ = now;
  if (ledger_) rate_closed_ = ledger_->closed_count();
  if (index_) MakeParts();
  for (const RemovalRecord& removal : state_.removing()) work_.push_back(WorkOf(removal));
  if (over()) DropBulk();
  if (!cuts_) return;
  for (const CutRecord& cut : cuts_->book().pending()) {
    if (!cut.has_manifest()) continue;
    work_.push_back(WriteManifestWork{id(), cut.cut(), cut.folder(), cut.manifest()});
  }
}

void JobMachine::MakeParts() {
  if (!over()) {
    FindNewFiles();
    state_.set_total_steps(TotalSteps(job(), Reads()));
    MakeJobSchema();
  }
  cuts_.emplace(CutConfig{.bsp = bsp(),
                          .every_steps = job().checkpoint().every_steps(),
                          .directory = job().checkpoint().directory(),
                          .keep = job().checkpoint().keep(),
                          .full_every = job().checkpoint().full_every(),
                          .total_steps = state_.total_steps(),
                          .servers = job().replicas().servers(),
                          .partitions = job().storage().partitions(),
                          .spread = JobUid::Parse(spec_.job_uid()).value_or(JobUid{0, id()}).low},
                state_.cuts());
}

// What resumes may have been given less to do than was done already. Asynchronous shards know the
// windows of what was done, and would take those of later input with the same numbers for them.
void JobMachine::CheckEnd(absl::Time now) {
  const CheckpointRecord* from = cuts_->NewestOnDisk();
  if (from == nullptr) return;
  const absl::string_view unit = bsp() ? "step" : "task";
  const uint64_t all = bsp() ? state_.total_steps() : TotalTasks(job(), Reads());
  const uint64_t done = bsp() ? from->step() : TaskLedger::EndOf(*from);
  if (done <= all) return;
  End(FAILED, "NothingToTrain",
      absl::StrCat("spec.training.epochs: ", job().training().epochs(),
                   " epochs of this input are ", all, " ", unit, "s, but checkpoint ",
                   from->folder(), bsp() ? " is of step " : " has begun ", done,
                   bsp() ? "" : " tasks", "; give more epochs, or start anew with --overwrite"),
      now);
}

JobStateRecord JobMachine::StateRecord() const {
  JobStateRecord record = state_;
  if (cuts_) *record.mutable_cuts() = cuts_->book();
  return record;
}

std::vector<FileWork> JobMachine::TakeFileWork() { return std::exchange(work_, {}); }

std::vector<JobEvent> JobMachine::TakeEvents() {
  return events_.Take(state_, cuts_ ? cuts_->book() : state_.cuts());
}

void JobMachine::Say(absl::string_view reason, absl::string_view message, absl::Time now) {
  while (state_.conditions_size() >= kMaxConditions) {
    state_.mutable_conditions()->erase(state_.conditions().begin());
  }
  JobCondition* condition = state_.add_conditions();
  condition->set_reason(std::string(reason));
  condition->set_message(std::string(message));
  condition->set_time_unix_ms(absl::ToUnixMillis(now));
  events_.Condition(reason, message);
}

void JobMachine::SayAgain(absl::string_view reason, absl::string_view message, absl::Time now) {
  const int last = state_.conditions_size() - 1;
  if (last >= 0 && state_.conditions(last).reason() == std::string(reason)) {
    if (state_.conditions(last).message() == std::string(message)) return;
    state_.mutable_conditions()->RemoveLast();
  }
  Say(reason, message, now);
}

bool JobMachine::Hosts(absl::string_view node) const {
  const std::vector<std::string> holders = Holders();
  if (std::find(holders.begin(), holders.end(), node) != holders.end()) return true;
  for (const WorkerSlot& slot : state_.workers()) {
    if (slot.name() == node) return true;
  }
  return false;
}

void JobMachine::PlaceOnServers(const ClusterView& cluster, absl::Time now) {
  auto chosen = FreeChains(cluster);
  if (!chosen.ok()) return WaitForServers(cluster, chosen.status(), now);
  uint32_t cores = 0;
  servers_.assign(chosen->size(), {});
  for (const std::vector<std::string>& chain : *chosen) {
    const Node* node = cluster.members->Find(chain.front());
    cores = std::max(cores, node->record.cores());
    state_.add_servers();
    BeginChain(cluster, chain, state_.servers_size() - 1, now);
  }
  for (ShardAssignment& shard : PlaceShards(job(), static_cast<uint32_t>(chosen->size()), cores)) {
    *state_.add_shards() = std::move(shard);
  }
  SayGuess(cluster, now);
  const CheckpointRecord* from = cuts_->NewestOnDisk();
  SayAgain("Opening",
           from == nullptr ? "servers open their shards"
                           : absl::StrCat("servers load checkpoint ", from->folder()),
           now);
  StartGeneration(from);
}

bool JobMachine::TrainingFinished() const {
  const std::vector<uint64_t> hosts = HostsOfLanes();
  if (std::find(hosts.begin(), hosts.end(), 0) != hosts.end()) return false;  // one is between two
  const auto held = LanesOfSlots();
  bool any = false;
  for (size_t slot = 0; slot < held.size(); ++slot) {
    if (held[slot].empty()) continue;
    any = true;
    // Async: it is the host of lane 0 that evaluates the end result.
    const bool counts = bsp() || held[slot].front() == 0;
    if (counts && !workers_[slot].finished) return false;
  }
  return any && (bsp() || state_.all_tasks_done());
}

void JobMachine::Run(const ClusterView& cluster, absl::Time now) {
  if (WatchServers(cluster, now) || WatchReads(cluster, now) || over()) return;
  FillWorkers(cluster, now);
  SettleHosts();
  if (state_.phase() == OPENING) {
    if (!ServersOpen(*cluster.members) || !EarlierAreReplaced()) return;
    state_.set_phase(TRAINING);
    state_.set_state(RUNNING);
    state_.clear_doubted_checkpoint();
    state_.clear_doubted_by();
    if (state_.started_unix_ms() == 0) state_.set_started_unix_ms(absl::ToUnixMillis(now));
    KeepTimes(now);
    rate_since_ = now;
    SayAgain("Training",
             absl::StrCat("generation ", state_.generation(), " trains after step ",
                          state_.start_step()),
             now);
  }
  if (state_.phase() == TRAINING) {
    HandOutTasks(now);
    if (TrainingFinished()) {
      state_.set_phase(CUTTING);
      KeepTimes(now);
      const bool best = job().evaluation().patience() > 0 && state_.best_step() > 0;
      state_.set_final_step(best                    ? state_.best_step()
                            : state_.stop_at_step() ? state_.stop_at_step()
                                                    : state_.total_steps());
      cuts_->WantLast(state_.final_step());
    }
  }
  TakeCuts(now);
  if (!over() && state_.phase() == CUTTING && cuts_->Idle()) Succeed(now);
}

void JobMachine::Advance(const ClusterView& cluster, absl::Time now) {
  if (over()) return;
  if (now - kept_ >= kKeepTimes) KeepTimes(now);
  if (state_.phase() == WAITING && !held_up_.empty()) {
    return SayAgain("WaitingForCheckpointDirectory", held_up_, now);
  }
  if (state_.phase() == WAITING) ChooseFirstWorkers(cluster, now);
  if (state_.phase() == INDEXING) {
    FillWorkers(cluster, now);
    if (index_ && !held_up_.empty()) {
      SayAgain("WaitingForCheckpointDirectory", held_up_, now);
    } else if (index_ && GoesOnWithServers()) {
      GoOnWithServers(cluster, now);
    } else if (index_) {
      PlaceOnServers(cluster, now);
    }
  }
  if (state_.phase() == OPENING || state_.phase() == TRAINING || state_.phase() == CUTTING) {
    Run(cluster, now);
  }
  LookAround(cluster, now);
}

void JobMachine::OnWorkerReport(const Node& node, const WorkerJobReport& report, bool seen_all_done,
                                absl::Time now) {
  if (over() || report.generation() != state_.generation()) return;
  int slot = 0;
  while (slot < state_.workers_size() && state_.workers(slot).session() != node.record.session()) {
    ++slot;
  }
  if (slot == state_.workers_size()) return;
  if (!report.fatal().empty()) {
    return End(FAILED, "WorkerFailed", absl::StrCat(node.record.name(), ": ", report.fatal()), now);
  }
  if (state_.phase() == INDEXING && !index_ && report.has_train_index() &&
      (job().data().eval_size() == 0 || report.has_eval_index())) {
    if (report.train_index().lines() == 0 || report.train_index().tasks_size() == 0) {
      return End(FAILED, "NoData", "the training files hold no line", now);
    }
    // What the one who read them found wrong is told by nobody else.
    SayTroubles(node.record.name(), report.troubles(), now);
    index_.emplace();
    *index_->mutable_train() = report.train_index();
    *index_->mutable_eval() = report.eval_index();
    MakeParts();
    CheckInput(now);
    if (!over()) CheckStart(now);
    if (!over()) CheckEnd(now);
    return;
  }
  if (state_.phase() == OPENING) workers_[slot].ready = report.ready();
  if (state_.phase() != TRAINING && state_.phase() != CUTTING) return;
  WorkerView& view = workers_[slot];
  view.last = report;
  slow_workers_.OnReport(node.record.name(), report.examples(), report.working_seconds(), now);
  SayTroubles(node.record.name(), report.troubles(), now);
  NameFields(report.not_finite(), *state_.mutable_refused());
  view.finished = report.finished() && (bsp() || (state_.all_tasks_done() && seen_all_done));
  for (const EvaluationResult& e : report.evaluations()) {
    AddEvaluation(e, *state_.mutable_evaluations());
  }
  if (report.stop_at_step() != 0) state_.set_stop_at_step(report.stop_at_step());
  if (report.best_step() != 0) state_.set_best_step(report.best_step());
  DropEvaluations(std::max<uint64_t>(kMaxEvaluations, uint64_t{job().evaluation().patience()} + 2),
                  state_.best_step(), *state_.mutable_evaluations());
  if (state_.phase() == TRAINING) cuts_->WantAt(report.wants_cut_at());
  if (!report.predictions().empty()) state_.set_predictions(report.predictions());
  if (ledger_) CloseTasks(report);
  const uint64_t all = Counted().bad_lines();
  const uint64_t bad = all - std::min(all, Reads().before().bad_lines());
  if (bad > job().data().max_bad_lines()) {
    End(FAILED, "TooManyBadLines",
        absl::StrCat(bad, " bad lines; spec.data.maxBadLines is ", job().data().max_bad_lines(),
                     FirstBadLine(workers_), "; mend such lines, or raise the limit"),
        now);
  }
}

void JobMachine::End(JobState state, absl::string_view reason, absl::string_view message,
                     absl::Time now) {
  JobStatus rates;
  FillRates(rates);
  state_.set_final_training_loss(rates.training_loss());
  state_.set_final_training_auc(rates.training_auc());
  state_.set_final_examples_per_second(rates.examples_per_second());
  const WorkerCounters counted = Counted();
  const uint64_t step = state == SUCCEEDED ? state_.final_step() : Progress();
  state_.set_final_step(step);
  state_.set_final_examples(bsp() ? ExamplesAt(step, counted.bad_lines()) : counted.examples());
  if (!bsp() && state == SUCCEEDED) {
    const uint64_t lines = TotalLines(job(), Reads());
    state_.set_final_examples(lines - std::min(lines, counted.bad_lines()));
  }
  state_.set_final_bad_lines(counted.bad_lines());
  state_.set_refused_rows(state_.refused_rows() + counted.refused_rows());
  state_.set_clipped_rows(state_.clipped_rows() + counted.clipped_rows());
  if (cuts_) {
    cuts_->Abort();
    state_.set_leftovers(!job().checkpoint().directory().empty());
    if (state_.final_checkpoint().empty() && cuts_->NewestOnDisk() != nullptr) {
      state_.set_final_checkpoint(cuts_->NewestOnDisk()->folder());
    }
  }
  if (JustAdopted()) {
    state_.mutable_adoption()->set_given_back(true);
  } else {
    const std::vector<std::string> holders = Holders();
    for (const std::string& name : std::set<std::string>(holders.begin(), holders.end())) {
      state_.add_closing(name);
    }
  }
  for (const WorkerSlot& slot : state_.workers()) {
    if (!slot.name().empty()) state_.add_closing(slot.name());
  }
  Say(reason, message, now);
  state_.set_phase(OVER);
  state_.set_state(state);
  KeepTimes(now);
  AnswerManual(absl::FailedPreconditionError(absl::StrCat("the job is over: ", message)));
  DropBulk();
}

void JobMachine::Cancel(absl::Time now) {
  if (!over()) End(CANCELLED, "Cancelled", "cancelled by a user", now);
}

void JobMachine::ConfirmClosed(absl::string_view node) {
  auto& closing = *state_.mutable_closing();
  for (int i = 0; i < closing.size(); ++i) {
    if (closing[i] != node) continue;
    closing.erase(closing.begin() + i);
    return;
  }
}

}  // namespace strata::scheduler
