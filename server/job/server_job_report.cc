// ServerJob: what the scheduler is told of it.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "proto/core/table_spec.h"
#include "server/job/server_job.h"
#include "server/shard/disk_stall.h"
#include "storage/io/out_of_memory.h"

namespace strata::server {

// Where there are copies, nothing is lost with one of them: whether others have all of it, the
// scheduler knows.
static std::string DescribeRemovedLog(absl::string_view why, bool copies) {
  constexpr char kLeave[] = "eave this folder alone while the job runs, or set ";
  constexpr char kDirectory[] = "spec.storage.directory to one that nobody cleans up";
  if (copies) return absl::StrCat(why, "; l", kLeave, kDirectory);
  return absl::StrCat(why, "; what was committed since the last checkpoint is lost. L", kLeave,
                      kDirectory, ", and submit the job again: with --resume it goes on from the ",
                      "newest checkpoint in spec.checkpoint.directory");
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
    report.set_message(DescribeRemovedLog(first->why.message(), plan_.copy.has_value()));
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

void ServerJob::ReportSlowDisk(ServerJobReport& report) const {
  const absl::Time now = options_.timer->Now();
  const auto slow = log_ == nullptr ? std::nullopt : log_->slow(now);
  if (!slow) return;
  const auto ms = [](absl::Duration d) {
    return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(d));
  };
  Trouble* trouble = report.add_troubles();
  trouble->set_reason("SlowDisk");
  trouble->set_message(absl::StrCat("an append to the update log in ", folder_, " takes ",
                                    ms(slow->now), ", usually ", ms(slow->usual)));
  trouble->set_since_unix_ms(absl::ToUnixMillis(slow->since));
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
  ReportSlowDisk(report);
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

}  // namespace strata::server
