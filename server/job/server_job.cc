#include "server/job/server_job.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "server/shard/disk_stall.h"
#include "server/shard/tidier.h"
#include "server/snapshot/image_files.h"
#include "storage/io/out_of_memory.h"

namespace strata::server {
namespace {

// 0 if there is none.
uint64_t NewestImageBytes(const std::string& folder, ShardId shard) {
  const auto images = ListImages(folder);
  if (!images.ok()) return 0;
  for (const ImageName& name : *images) {
    if (name.shard != shard) continue;
    return FileBytes(absl::StrCat(folder, "/", ImageFileName(name))).value_or(0);
  }
  return 0;
}

// Empty: they do not all have rows on one device.
std::string DeviceOfAll(const std::vector<std::unique_ptr<Shard>>& shards) {
  const std::string device = shards.empty() ? std::string() : shards[0]->values_device();
  for (const auto& shard : shards) {
    if (shard->values_device() != device) return std::string();
  }
  return device;
}

}  // namespace

ServerJob::ServerJob(JobPlan plan, OpenedJob opened, const Options& options)
    : plan_(std::move(plan)),
      options_(options),
      folder_(opened.folder),
      root_(opened.root),
      lock_(std::move(opened.lock)),
      tier_(std::move(opened.tier)),
      log_(std::move(opened.log)),
      pace_(plan_.snapshot_bytes_per_second),
      device_(DeviceOfAll(opened.shards)),
      map_epoch_(plan_.map_epoch.value),
      link_(MakeLink(opened)),
      watch_(plan_.copy ? std::make_shared<PeerWatch>(options_.transport, options_.timer)
                        : nullptr),
      tickets_(options.incarnation, plan_.generation,
               {TicketBook::PerSession(plan_.lanes), options.memory->limit() / 8}),
      images_({.log_bytes = plan_.log_bytes, .cores = std::thread::hardware_concurrency()},
              opened.images),
      wanted_images_(opened.shards.size(), false) {
  for (std::unique_ptr<Shard>& shard : opened.shards) {
    const ShardId id = shard->options().id;
    ShardRunner::Options runner;
    runner.timer = options_.timer;
    runner.tidy_bytes_per_second =
        Tidier::kJobBytesPerSecond / static_cast<double>(opened.shards.size());
    runner.disk = options_.disk;
    runner.pace = &pace_;
    runner.committed = [this] { OnCommitted(); };
    runner.cut_begun = [this, id](CutNumber cut, std::shared_ptr<const SnapshotProgress> file) {
      OnCutBegun(id, cut, std::move(file));
    };
    runner.cut_done = [this, id](CutNumber cut, const ShardCut& result) { OnCut(id, cut, result); };
    runners_.push_back(std::make_unique<ShardRunner>(std::move(shard), std::move(runner)));
    executors_.push_back(MakeSerial(options_.pool));
    runners_.back()->SetExecutor(executors_.back().get());
  }
}

absl::Status ServerJob::Closed() const {
  return absl::UnavailableError(absl::StrCat("job ", plan_.job.value, ", generation ",
                                             plan_.generation.value,
                                             " is being closed on this server"));
}

ServerJob::~ServerJob() {
  {
    absl::MutexLock lock(&posting_);
    closed_ = true;
  }
  if (watch_ != nullptr) watch_->Close();
  if (link_ != nullptr) link_->Close();
  for (const auto& runner : runners_) {
    runner->Close(Closed());
    runner->SetExecutor(nullptr);
  }
  executors_.clear();  // waits
}

void ServerJob::Follow(const ServerJobDirective& directive) {
  if (map_epoch_.exchange(directive.map_epoch()) != directive.map_epoch()) {
    std::vector<TicketBook::KeysPtr> ended;
    {
      absl::MutexLock lock(&mu_);
      ended = tickets_.Clear();
    }
    Drop(ended);
  }
  if (link_ == nullptr) return FollowOrders(directive);
  {
    absl::MutexLock lock(&mu_);
    newest_ = directive;
  }
  FollowChain(directive);
  FollowNewest();
}

void ServerJob::FollowNewest() {
  absl::MutexLock following(&following_);
  ServerJobDirective directive;
  {
    absl::MutexLock lock(&mu_);
    directive = newest_;
  }
  FollowOrders(directive);
}

void ServerJob::FollowOrders(const ServerJobDirective& directive) {
  if (!head_) {  // cuts and sessions are the head's
    for (const auto& runner : runners_) {
      if (!plan_.synchronous) runner->CloseBelow(TaskId(directive.closed_below()));
    }
    return;
  }
  FollowSessions(directive);
  std::vector<CutOrder> orders;
  for (const CutDirective& cut : directive.cuts()) {
    orders.push_back({cut.cut(), Step(cut.step()), cut.directory(), cut.base(), cut.follow()});
  }
  bool changed = false;
  {
    absl::MutexLock lock(&mu_);
    std::map<CutNumber, Cut> cuts;
    for (const CutOrder& order : orders) {
      auto node = cuts_.extract(order.cut);
      changed |= node.empty();
      cuts[order.cut] = node.empty() ? Cut{order, {}, {}} : std::move(node.mapped());
    }
    changed |= !cuts_.empty();
    cuts_ = std::move(cuts);
    changed |= given_up_ < directive.given_up_through();
    given_up_ = std::max(given_up_, directive.given_up_through());
  }
  for (const auto& runner : runners_) {
    if (changed) runner->SetCuts(orders, directive.given_up_through());
    if (!plan_.synchronous) runner->CloseBelow(TaskId(directive.closed_below()));
  }
}

void ServerJob::OnCutBegun(ShardId shard, CutNumber cut,
                           std::shared_ptr<const SnapshotProgress> file) {
  absl::MutexLock lock(&mu_);
  const auto it = cuts_.find(cut);
  if (it != cuts_.end()) it->second.files[shard] = std::move(file);
}

void ServerJob::OnCut(ShardId shard, CutNumber cut, const ShardCut& result) {
  absl::MutexLock lock(&mu_);
  const auto it = cuts_.find(cut);
  if (it != cuts_.end()) it->second.shards[shard] = result;
}

ServerJob::CutBytes ServerJob::cut_bytes() const {
  CutBytes sum;
  absl::MutexLock lock(&mu_);
  for (const auto& [number, cut] : cuts_) {
    if (cut.shards.size() == runners_.size()) continue;
    const CutReport report = ReportCut(plan_, cut, runners_.size());
    sum.written += report.written_bytes();
    sum.total += report.total_bytes();
  }
  return sum;
}

CutReport ServerJob::ReportCut(const JobPlan& plan, const Cut& cut, size_t shards) {
  CutReport report;
  report.set_cut(cut.order.cut);
  for (const auto& [id, file] : cut.files) {
    const uint64_t written = file->written_bytes;
    report.set_written_bytes(report.written_bytes() + written);
    report.set_total_bytes(report.total_bytes() + std::max<uint64_t>(written, file->total_bytes));
  }
  bool refused = false, failed = false;
  const std::pair<const ShardId, ShardCut>* first = nullptr;  // of those that are done
  for (const auto& entry : cut.shards) {
    const auto& [id, shard] = entry;
    report.set_step(std::max(report.step(), shard.step.value));
    if (shard.outcome != ShardCut::Outcome::kDone) {
      // What no try can mend is told before what may pass, and either before a refusal.
      const bool fails = shard.outcome == ShardCut::Outcome::kFailed;
      const bool known = MayPass(static_cast<absl::StatusCode>(report.code()));
      const bool told = fails ? !failed || (known && !MayPass(shard.code)) : !failed;
      refused |= !fails;
      failed |= fails;
      if (!told) continue;
      report.set_message(shard.message);
      report.set_code(static_cast<uint32_t>(shard.code));
      continue;
    }
    if (first == nullptr) first = &entry;
    if (shard.marks != first->second.marks) {
      failed = true;
      report.set_code(static_cast<uint32_t>(absl::StatusCode::kDataLoss));
      report.set_message(absl::StrCat("cut ", cut.order.cut, ": shards ", first->first.value,
                                      " and ", id.value, " disagree on where lanes stand"));
    }
    const auto plan_of = std::find_if(plan.shards.begin(), plan.shards.end(),
                                      [id = id](const ShardPlan& p) { return p.id == id; });
    for (const CutFile& written : shard.files) {
      CheckpointFile* file = report.add_files();
      file->set_name(written.name);
      file->set_bytes(written.summary.bytes);
      file->set_crc32c(written.summary.crc32c);
      file->set_first_partition(plan_of->range.first.value);
      file->set_last_partition(plan_of->range.last.value);
      file->set_rows(written.summary.rows);
      file->set_hash_low(written.hash.low);
      file->set_hash_high(written.hash.high);
      file->set_sequence(written.sequence);
      file->set_row_change(written.row_change);
      SetWriter(written.writer, file);
    }
  }
  if (failed) {
    report.set_state(CutReport::FAILED);
  } else if (refused) {
    report.set_state(CutReport::REFUSED);
  } else if (cut.shards.size() == shards) {
    report.set_state(CutReport::DONE);
    for (const auto& [lane, mark] :
         first == nullptr ? decltype(ShardCut::marks)() : first->second.marks) {
      LanePosition* position = report.add_lanes();
      position->set_lane(lane);
      position->set_task(mark.task.value);
      position->set_next_window(mark.next_window);
    }
  }
  return report;
}

// One trouble for all shards: they share the disk. A log that was removed ends the job: no later
// try can mend it, and what is not on disk would be lost with this process.
void ServerJob::ReportStalls(ServerJobReport& report) const {
  const absl::Time now = options_.timer->Now();
  std::optional<DiskStall::Info> first;
  const auto stalled = [&](const DiskStall& stall) {
    auto info = stall.info(now);
    if (!info) return false;
    if (!first || info->since < first->since) first = std::move(info);
    return true;
  };
  size_t commits = 0, reads = 0;
  for (const auto& runner : runners_) {
    commits += stalled(runner->stalled_commits());
    reads += stalled(runner->stalled_reads());
  }
  if (!first) return;
  if (commits > 0 && absl::IsNotFound(first->why)) {
    report.set_state(ServerJobReport::FAILED);
    report.set_message(absl::StrCat(
        first->why.message(), "; what was committed since the last checkpoint is lost. Leave this ",
        "folder alone while the job runs, or set spec.storage.directory to one that nobody ",
        "cleans up, and submit the job again: with --resume it goes on from the newest checkpoint ",
        "in spec.checkpoint.directory"));
    return;
  }
  Trouble* trouble = report.add_troubles();
  trouble->set_reason(storage::IsOutOfMemory(first->why)      ? "MemoryFull"
                      : absl::IsResourceExhausted(first->why) ? "DiskFull"
                                                              : "DiskFailing");
  const bool own =
      !plan_.directory.empty() && absl::StrContains(first->why.message(), plan_.directory);
  trouble->set_message(absl::StrCat(own ? "spec.storage.directory: " : "",
                                    commits > 0 ? "commits" : "reads", " of ",
                                    commits > 0 ? commits : reads, " of ", runners_.size(),
                                    " shards wait and are tried again: ", first->why.message()));
  trouble->set_since_unix_ms(absl::ToUnixMillis(first->since));
}

// What a dense row belongs to; empty: a key of the data, whose field only the readers know.
static std::string TensorOf(const std::vector<TableSpec>& tables, const RefusedRowCount& row) {
  for (const TableSpec& table : tables) {
    if (table.id != row.table) continue;
    for (const TensorSpec& t : table.tensors) {
      const bool in =
          row.key.value >= t.first.value && row.key.value - t.first.value < t.Rows(table.dim());
      if (in) return t.name;
    }
  }
  return std::string();
}

void ServerJob::ReportRefused(ServerJobReport& report) const {
  for (const auto& runner : runners_) {
    if (runner->view().refused_rows == 0) continue;
    for (const RefusedRowCount& row : runner->first_refused()) {
      if (report.refused_size() == static_cast<int>(FirstRefusedRows::kMost)) return;
      RefusedRow* out = report.add_refused();
      out->set_table(row.table.value);
      out->set_key(row.key.value);
      out->set_field(TensorOf(plan_.tables, row));
      out->set_refused(row.refused);
    }
  }
}

// Adds what a shard's life cycle did.
static void Count(const ShardView& view, LifeCycleCounts& sum) {
  const auto removed = [&](RemovalRule rule) {
    return view.removed_rows[static_cast<size_t>(rule)].load();
  };
  sum.set_admitted(sum.admitted() + view.admitted_keys);
  sum.set_refused(sum.refused() + view.refused_keys);
  sum.set_removed_by_ttl(sum.removed_by_ttl() + removed(RemovalRule::kTtl));
  sum.set_removed_by_count(sum.removed_by_count() + removed(RemovalRule::kCount));
  sum.set_removed_by_score(sum.removed_by_score() + removed(RemovalRule::kScore));
  sum.set_removed_by_norm(sum.removed_by_norm() + removed(RemovalRule::kNorm));
  sum.set_removed_by_bytes(sum.removed_by_bytes() + removed(RemovalRule::kBytes));
}

ServerJobReport ServerJob::Report() const {
  ServerJobReport report;
  report.set_job(plan_.job.value);
  report.set_job_uid(plan_.identity.job.text());
  report.set_generation(plan_.generation.value);
  report.set_server_index(plan_.server_index);
  report.set_state(ServerJobReport::OPEN);
  uint64_t least = runners_.empty() ? 0 : ~uint64_t{0}, most = 0, sum = 0, refused = 0;
  uint64_t clipped = 0, rows = 0, dram_bytes = 0, over = ~uint64_t{0};
  for (const auto& runner : runners_) {
    const ShardView& view = runner->view();
    const uint64_t clock = view.clock;
    least = std::min(least, clock);
    most = std::max(most, clock);
    sum += clock;
    over = std::min<uint64_t>(over, view.cuts_over);
    refused += view.refused_rows;
    clipped += view.clipped_rows;
    if (plan_.life_cycle) Count(view, *report.mutable_life_cycle());
    rows += view.rows;
    dram_bytes += view.dram_bytes;
    ShardReport* shard = report.add_shards();
    shard->set_shard(runner->id().value);
    shard->set_clock(clock);
    shard->set_rows(view.rows);
    shard->set_dram_bytes(view.dram_bytes);
    shard->set_ssd_reads(view.ssd_reads);
    shard->set_hbm_bytes(view.hbm_bytes);
    shard->set_hbm_hits(view.hbm_hits);
    for (size_t t = 0; t < view.table_rows.size(); ++t) {
      TableRows* table = shard->add_tables();
      table->set_table(plan_.tables[t].name);
      table->set_rows(view.table_rows[t]);
    }
  }
  report.set_min_clock(least);
  report.set_max_clock(most);
  report.set_refused_rows(refused);
  report.set_clipped_rows(clipped);
  report.set_rows(rows);
  report.set_dram_bytes(dram_bytes);
  if (!plan_.synchronous) report.set_windows(sum);
  report.set_lane_epoch(LaneEpoch());
  ReportStalls(report);
  ReportRefused(report);
  ReportCopy(report);
  absl::MutexLock lock(&mu_);
  // What the scheduler said was handed to the shards before any request that comes from now on.
  if (!plan_.synchronous) {
    report.set_given_up_through(std::max(given_up_, runners_.empty() ? 0 : over));
  }
  for (const auto& [number, cut] : cuts_) {
    CutReport done = ReportCut(plan_, cut, runners_.size());
    const bool told = done.state() != CutReport::STATE_UNSPECIFIED || done.total_bytes() > 0;
    if (told) *report.add_cuts() = std::move(done);
  }
  return report;
}

// 1 a shard's image is due; 2 a new segment begins; 3 the shard writes its image (in the
// background); 4 the log that no shard needs and the shard's older images go (OnImage).
void ServerJob::OnCommitted() {
  if (plan_.synchronous) EndTickets();
  BeginImage();
}

void ServerJob::WriteImage(size_t shard) {
  {
    absl::MutexLock lock(&mu_);
    wanted_images_[shard] = true;
  }
  BeginImage();
}

void ServerJob::BeginImage() {
  if (log_ == nullptr || receiving_ > 0) return;
  const uint64_t appended = log_->stats().appended_bytes;
  size_t shard = 0;
  {
    absl::MutexLock lock(&mu_);
    std::optional<size_t> due;
    for (size_t i = 0; i < wanted_images_.size() && !due; ++i) {
      if (wanted_images_[i] && !images_.running()) due = i;
    }
    if (!due) due = images_.Due(appended);
    if (!due) return;
    shard = *due;
    wanted_images_[shard] = false;
    images_.Begin(shard, appended);
  }
  auto boundary = log_->Rotate();
  if (!boundary.ok()) return OnImage(shard, boundary.status());
  {
    absl::MutexLock lock(&mu_);
    images_.Boundary(*boundary);
  }
  runners_[shard]->WriteImage(folder_, *boundary,
                              [this, shard](absl::Status s) { OnImage(shard, std::move(s)); });
}

void ServerJob::OnImage(size_t shard, absl::Status status) {
  const uint64_t bytes = status.ok() ? NewestImageBytes(folder_, runners_[shard]->id()) : 0;
  const uint64_t appended = log_->stats().appended_bytes;
  uint64_t trim = 0;
  {
    absl::MutexLock lock(&mu_);
    if (status.ok()) {
      images_.Done(bytes);
      trim = images_.TrimBefore();
    } else {
      images_.Failed(appended);
    }
  }
  if (status.ok()) {
    ++images_written_;
    // What the copy after this one lacks stays.
    if (link_ != nullptr) trim = std::min(trim, link_->TrimBefore());
    status = log_->Trim(trim);
    RemoveOldImages(folder_);
  }
  LOG_IF(ERROR, !status.ok()) << "image_failed job=" << plan_.job.value
                              << " shard=" << runners_[shard]->id().value << " error=\"" << status
                              << '"';
}

}  // namespace strata::server
