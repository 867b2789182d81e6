// JobMachine: what nodes are told, and what users see.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/job/job_plan.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/job/tables/life_cycle_spec.h"
#include "scheduler/job/chains/chain_words.h"
#include "scheduler/job/input_listing.h"
#include "scheduler/job/machine.h"
#include "scheduler/job/progress.h"
#include "scheduler/nodes/placement.h"

namespace strata::scheduler {
namespace {

// Predictions of the first label are no numbers. With such a loss alone it may be another label's.
bool HasDiverged(const WorkerJobReport& last) {
  return last.training_weight() > 0 && !std::isfinite(last.training_loss()) &&
         last.training_auc_weight() == 0;
}

// Of a server in a chain, as ChainDirective has it; -1: it has none.
int PlaceOf(const ServerSlot& slot, const std::string& server) {
  if (!slot.has_chain()) return slot.name() == server ? 0 : -1;
  const ChainRecord& chain = slot.chain();
  for (int i = 0; i < chain.members_size(); ++i) {
    if (chain.members(i).server() == server) return i;
  }
  const bool joins = chain.has_joining() && chain.joining().server() == server;
  return joins ? chain.members_size() : -1;
}

uint64_t OpenedGeneration(const ServerSlot& slot, int place) {
  if (!slot.has_chain()) return slot.opened_generation();
  const ChainRecord& chain = slot.chain();
  return (place < chain.members_size() ? chain.members(place) : chain.joining())
      .opened_generation();
}

}  // namespace

WorkerCounters JobMachine::Counted() const {
  WorkerCounters sum;
  uint64_t examples = state_.base().examples() + state_.gone().examples();
  uint64_t bad_lines = state_.base().bad_lines() + state_.gone().bad_lines();
  uint64_t refused_rows = state_.gone().refused_rows();
  uint64_t clipped_rows = state_.gone().clipped_rows();
  for (const WorkerView& view : workers_) {
    if (bsp()) examples += view.last.examples();
    if (bsp()) bad_lines += view.last.bad_lines();
    refused_rows += view.last.refused_rows();
    clipped_rows += view.last.clipped_rows();
  }
  if (ledger_) {
    const TaskCounts lines = CountedLines();
    examples = lines.examples();
    bad_lines = lines.bad_lines();
  }
  sum.set_examples(examples);
  sum.set_bad_lines(bad_lines);
  sum.set_refused_rows(refused_rows);
  sum.set_clipped_rows(clipped_rows);
  return sum;
}

uint64_t JobMachine::Progress() const {
  if (over()) return state_.final_step();
  if (bsp()) return std::max(state_.start_step(), recovery_.min_clock());
  uint64_t windows = 0;
  for (const ServerView& view : servers_) windows += view.last.windows();
  return windows / std::max(1, state_.shards_size());
}

uint64_t JobMachine::KnownStep() const {
  if (over() || !bsp() || !cuts_ || cuts_->book().complete().empty()) return Progress();
  return std::max(Progress(), cuts_->book().complete().rbegin()->step());
}

uint64_t JobMachine::ExamplesAt(uint64_t step, uint64_t bad_lines) const {
  if (!index_) return 0;
  const uint64_t lines = LinesBy(job(), Reads(), step);
  return lines - std::min(lines, bad_lines);
}

void JobMachine::FillRates(JobStatus& out) const {
  double weight = 0, loss = 0, auc = 0, auc_weight = 0, rate = 0;
  bool numbers = true;  // of all workers
  for (const WorkerView& view : workers_) {
    const WorkerJobReport& last = view.last;
    rate += last.examples_per_second();
    if (last.training_weight() > 0) {
      weight += last.training_weight();
      loss += last.training_weight() * last.training_loss();
    }
    numbers &= !HasDiverged(last);
    if (last.training_auc_weight() > 0 && std::isfinite(last.training_auc())) {
      auc_weight += last.training_auc_weight();
      auc += last.training_auc_weight() * last.training_auc();
    }
  }
  // Lanes of bsp go together. The host of lane 0 knows when they stand and wait for an evaluation,
  // which to the others is a slow step.
  const std::vector<std::vector<uint32_t>> held = LanesOfSlots();
  for (size_t slot = 0; bsp() && slot < held.size(); ++slot) {
    if (held[slot].empty() || held[slot].front() != 0) continue;
    const double of_host = workers_[slot].last.examples_per_second();
    if (of_host > 0) rate = of_host * lanes() / static_cast<double>(held[slot].size());
  }
  out.set_examples_per_second(rate);
  // No number where no worker has one (the first label is not binary, or one class was missing),
  // and where a worker has diverged: the others' would look like the job's.
  out.set_training_auc(auc_weight > 0 && numbers ? auc / auc_weight
                                                 : std::numeric_limits<double>::quiet_NaN());
  if (weight > 0) out.set_training_loss(loss / weight);
}

std::string JobMachine::OpenAddress(const Membership& members, const ServerSlot& slot) const {
  const Node* server = members.Find(slot.name(), SERVER);
  const bool open = server != nullptr && slot.opened_generation() == state_.generation() &&
                    slot.opened_session() == server->record.session();
  return open ? server->record.data_address() : "";
}

bool JobMachine::Trains() const {
  return state_.started_unix_ms() != 0 && (state_.phase() == OPENING || state_.phase() == TRAINING);
}

int64_t JobMachine::TrainMs(absl::Time now) const {
  return state_.train_ms() + (train_since_ ? absl::ToInt64Milliseconds(now - *train_since_) : 0);
}

// A time of this run says nothing to the next one, whose clock may be another: so what has passed
// is stored instead.
void JobMachine::KeepTimes(absl::Time now) {
  state_.set_train_ms(TrainMs(now));
  train_since_ = Trains() ? std::optional<absl::Time>(now) : std::nullopt;
  for (StandingTrouble& trouble : *state_.mutable_troubles()) {
    trouble.set_stood_ms(absl::ToUnixMillis(now) - trouble.since_unix_ms());
  }
  kept_ = now;
}

void JobMachine::ClearTimes(JobStateRecord& record) {
  record.clear_train_ms();
  for (StandingTrouble& trouble : *record.mutable_troubles()) trouble.clear_stood_ms();
}

std::set<std::string> JobMachine::Owners() const {
  // In a cluster without certificates nobody is anybody.
  if (spec_.owner().empty()) return {};
  const auto& named = spec_.spec().metadata().owners();
  std::set<std::string> owners(named.begin(), named.end());
  owners.insert(spec_.owner());
  return owners;
}

JobStatus JobMachine::Status(absl::Time now) const {
  JobStatus out;
  out.set_job(id());
  out.set_cluster_id(cluster_id_);
  out.set_job_uid(spec_.job_uid());
  if (over()) *out.mutable_closing() = state_.closing();
  out.set_name(spec_.spec().metadata().name());
  for (const std::string& owner : Owners()) out.add_owners(owner);
  out.set_state(state_.state());
  *out.mutable_conditions() = state_.conditions();
  out.set_generation(state_.generation());
  out.set_step(KnownStep());
  out.set_total_steps(state_.total_steps());
  const WorkerCounters counted = Counted();
  if (over()) {
    out.set_examples(state_.final_examples());
    out.set_bad_lines(state_.final_bad_lines());
    out.set_training_loss(state_.final_training_loss());
    out.set_training_auc(state_.final_training_auc());
    out.set_examples_per_second(state_.final_examples_per_second());
  } else {
    out.set_examples(bsp() ? ExamplesAt(KnownStep(), counted.bad_lines()) : counted.examples());
    out.set_bad_lines(counted.bad_lines());
    FillRates(out);
  }
  if (index_) {
    out.set_total_examples(TotalLines(job(), Reads()));
    JobIndexRecord listed = over() ? JobIndexRecord() : ListingsOf(job().data(), *index_);
    const JobIndexRecord& input = over() ? *index_ : listed;
    if (input.has_train_input()) *out.mutable_train_input() = input.train_input();
    if (input.has_eval_input()) *out.mutable_eval_input() = input.eval_input();
  }
  *out.mutable_evaluations() = state_.evaluations();
  for (const EvaluationResult& e : state_.evaluations()) {
    const bool patience = job().evaluation().patience() > 0 && state_.best_step() > 0;
    if (!patience || e.step() == state_.best_step()) *out.mutable_result() = e;
  }
  out.set_checkpoint(state_.final_checkpoint());
  if (!over() && cuts_ && cuts_->NewestOnDisk() != nullptr) {
    out.set_checkpoint(cuts_->NewestOnDisk()->folder());
  }
  out.set_model_hash(state_.model_hash());
  out.set_train_seconds(static_cast<double>(TrainMs(now)) / 1000);
  // What servers refused, and (easgd) lanes in their own copies.
  out.set_refused_rows(state_.refused_rows() + (over() ? 0 : counted.refused_rows()));
  out.set_clipped_rows(state_.clipped_rows() + (over() ? 0 : counted.clipped_rows()));
  if (spec::HasLifeCycle(spec_.spec().spec())) *out.mutable_life_cycle() = state_.life_cycle();
  out.set_lost_local_steps(state_.lost_local_steps());
  *out.mutable_refused() = state_.refused();
  if (state_.phase() == TRAINING || state_.phase() == CUTTING) {
    const CutProgress::View writing = writing_.At(now);
    out.set_checkpoint_written_bytes(writing.written);
    out.set_checkpoint_bytes(writing.total);
    out.set_checkpoint_seconds_left(writing.seconds_left.value_or(0));
  }
  out.set_predictions(state_.predictions());
  out.set_servers(static_cast<uint32_t>(state_.servers_size()));
  out.set_workers(static_cast<uint32_t>(state_.workers_size()));
  out.set_rollbacks(state_.rollbacks());
  out.set_submitted_unix_ms(spec_.submitted_unix_ms());
  *out.mutable_concerns() = concerns_.all();
  return out;
}

JobShards JobMachine::Shards(const Membership& members) const {
  JobShards out;
  out.set_job(id());
  out.set_cluster_id(cluster_id_);
  out.set_job_uid(spec_.job_uid());
  out.set_name(spec_.spec().metadata().name());
  out.set_state(state_.state());
  out.set_generation(state_.generation());
  out.set_map_epoch(RoutingEpoch());
  *out.mutable_spec() = spec_.spec();
  if (index_) {
    *out.mutable_shape() = index_->train().shape();
    *out.mutable_schema() = schema_;
  }
  if (over()) return out;
  std::map<uint32_t, const ShardReport*> reports;
  for (size_t i = 0; i < servers_.size(); ++i) {
    const ServerSlot& slot = state_.servers(static_cast<int>(i));
    ShardServer* server = out.add_servers();
    server->set_name(slot.name());
    server->set_data_address(OpenAddress(members, slot));
    if (slot.has_chain()) ShowCopies(members, slot.chain(), servers_[i].chain, *server);
    for (const ShardReport& r : servers_[i].last.shards()) reports[r.shard()] = &r;
  }
  for (const ShardAssignment& place : state_.shards()) {
    ShardStatus* shard = out.add_shards();
    *shard->mutable_place() = place;
    const auto report = reports.find(place.shard());
    if (report != reports.end()) *shard->mutable_report() = *report->second;
  }
  return out;
}

template <typename Directive>
void JobMachine::Name(Directive* d) const {
  d->set_job(id());
  d->set_cluster_id(cluster_id_);
  d->set_job_uid(spec_.job_uid());
  d->set_generation(state_.generation());
}

void JobMachine::AddServerDirective(const Membership& members, const Node& node, bool bulk,
                                    NodeDirective& out) const {
  if (over()) {
    const auto& closing = state_.closing();
    if (std::find(closing.begin(), closing.end(), node.record.name()) == closing.end()) return;
    ServerJobDirective* d = out.add_server_jobs();
    Name(d);
    d->set_storage_directory(job().storage().directory());
    d->set_close(true);
    return;
  }
  if (state_.phase() < OPENING) return;
  for (int i = 0; i < state_.servers_size(); ++i) {
    const ServerSlot& slot = state_.servers(i);
    const int place = PlaceOf(slot, node.record.name());
    if (place >= 0) AddSlotDirective(members, i, place, bulk, out);
  }
}

// To the head, or to another copy: sessions and cuts are the head's business.
void JobMachine::AddSlotDirective(const Membership& members, int slot, int place, bool bulk,
                                  NodeDirective& out) const {
  const ServerSlot& record = state_.servers(slot);
  ServerJobDirective* d = out.add_server_jobs();
  Name(d);
  d->set_map_epoch(RoutingEpoch());
  d->set_server_index(static_cast<uint32_t>(slot));
  d->set_restore_from(state_.restore_from());
  d->set_start_step(state_.start_step());
  if (state_.has_restore()) *d->mutable_restore() = state_.restore();
  d->set_was_open(OpenedGeneration(record, place) == state_.generation());
  d->set_index_fingerprint(index_fingerprint_);
  if (ledger_) d->set_closed_below(ledger_->closed_below());
  if (ledger_) d->set_given_up_through(cuts_->OverThrough());
  if (record.has_chain()) {
    *d->mutable_chain() = TellChain(members, record.chain(), place, job().storage().min_replicas());
  }
  if (place == 0) AddHeadDirective(*d);
  if (!bulk) return;
  *d->mutable_spec() = spec_.spec();
  *d->mutable_shape() = index_->train().shape();
  *d->mutable_shards() = state_.shards();
  if (spec_.has_init_schema() && !state_.restore_from().empty() && !state_.has_restore()) {
    *d->mutable_restore_plan() = restore_plan_;
  }
}

void JobMachine::AddHeadDirective(ServerJobDirective& d) const {
  *d.mutable_lane_sessions() = state_.lane_sessions();
  d.set_lane_sessions_known(true);
  d.set_lane_epoch(state_.lane_epoch());
  for (const CutRecord& cut : cuts_->book().pending()) {
    if (cut.has_manifest()) continue;
    CutDirective* c = d.add_cuts();
    c->set_cut(cut.cut());
    c->set_step(cut.step());
    c->set_directory(cut.folder());
    if (cut.folder().empty()) continue;
    c->set_base(cuts_->BaseCut(state_.generation()));
    c->set_follow(cuts_->config().full_every > 1);
  }
}

void JobMachine::AddWorkerDirective(const Membership& members, const Node& node, bool bulk,
                                    NodeDirective& out) const {
  if (over()) {
    const auto& closing = state_.closing();
    if (std::find(closing.begin(), closing.end(), node.record.name()) == closing.end()) return;
    WorkerJobDirective* d = out.add_worker_jobs();
    Name(d);
    d->set_close(true);
    return;
  }
  int first = -1, mine = -1;
  for (int i = 0; i < state_.workers_size(); ++i) {
    if (state_.workers(i).name().empty()) continue;
    if (first < 0) first = i;
    if (state_.workers(i).session() == node.record.session()) mine = i;
  }
  if (mine < 0 || (state_.phase() == INDEXING && (mine != first || index_))) return;
  WorkerJobDirective* d = out.add_worker_jobs();
  Name(d);
  if (bulk) *d->mutable_spec() = spec_.spec();
  if (state_.phase() == INDEXING) {
    d->set_make_index(true);
    const std::vector<uint64_t> counts =
        VocabularyCounts({&spec_.init_schema(), &spec_.resume_schema()});
    d->mutable_vocabulary_beginnings()->Assign(counts.begin(), counts.end());
    return;
  }
  d->set_map_epoch(RoutingEpoch());
  d->set_start_step(state_.start_step());
  for (const ServerSlot& slot : state_.servers()) {
    d->add_server_addresses(OpenAddress(members, slot));
    d->add_server_names(slot.name());
  }
  for (const CheckpointRecord& c : cuts_->book().complete()) d->add_checkpoint_steps(c.step());
  *d->mutable_evaluations() = state_.evaluations();
  d->set_stop_at_step(state_.stop_at_step());
  if (bulk) {
    *d->mutable_train_index() = Reads();
    *d->mutable_eval_index() = index_->eval();
    *d->mutable_shards() = state_.shards();
  }
  if (state_.phase() == OPENING) return;
  const std::vector<uint32_t> lanes = LanesOfSlots()[mine];
  d->mutable_lanes()->Assign(lanes.begin(), lanes.end());
  if (!ledger_) return;
  d->set_all_tasks_done(state_.all_tasks_done());
  d->set_given_up_through(cuts_->OverThrough());
  for (uint32_t lane : lanes) {
    for (const LedgerTask& task : ledger_->held(lane)) {
      TaskAssignment* t = d->add_tasks();
      t->set_task(task.task());
      t->set_lane(lane);
      t->set_first_window(task.first_window());
    }
  }
  for (const CutRecord& cut : cuts_->book().pending()) {
    if (!cut.has_manifest()) d->set_cut(cut.cut());
  }
}

}  // namespace strata::scheduler
