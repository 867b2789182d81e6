#include "server/job/server_job.h"

#include <glog/logging.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/may_pass.h"
#include "server/job/boot_note.h"
#include "server/shard/tidier.h"
#include "server/snapshot/image_files.h"

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
      wanted_images_(opened.shards.size(), false),
      handover_(opened.shards.size()) {
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
  // Nothing is appended from here on.
  if (!plan_.copy || plan_.synced || log_ == nullptr || receiving_ > 0) return;
  const absl::Status closed = NoteLogClosed(folder_, plan_.boot_id);
  const bool removed = absl::IsNotFound(closed);
  LOG_IF(WARNING, !closed.ok() && !removed)
      << "copy_not_closed job=" << plan_.job.value << " server=" << plan_.server_index
      << " error=\"" << closed << '"';
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
    // Windows of closed tasks are in the log of every full copy; another one's has them later.
    if (plan_.synchronous || !ChainLink::ConfigurationOf(directive.chain()).has_all()) return;
    for (const auto& runner : runners_) runner->CloseBelow(TaskId(directive.closed_below()));
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
    if (link_ != nullptr) link_->ImageWritten(shard);
    // What the copy after this one lacks stays.
    if (link_ != nullptr) trim = link_->TrimBefore(trim);
    status = log_->Trim(trim);
    RemoveOldImages(folder_);
  }
  LOG_IF(ERROR, !status.ok()) << "image_failed job=" << plan_.job.value
                              << " shard=" << runners_[shard]->id().value << " error=\"" << status
                              << '"';
}

}  // namespace strata::server
