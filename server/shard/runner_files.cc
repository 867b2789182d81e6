// ShardRunner: cuts and base images, from the order to the durable file.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/core/cut_file_name.h"
#include "proto/core/mutation.h"
#include "proto/runtime/base/failpoints.h"
#include "proto/runtime/files/file_system.h"
#include "server/shard/runner.h"
#include "server/snapshot/image_files.h"
#include "storage/io/file_io.h"

namespace strata::server {
namespace {

std::string NameOf(ShardId shard, const CutFile& file, CutNumber link = 0) {
  return CutFileName{.shard = shard,
                     .sequence = file.sequence,
                     .generation = file.writer.generation,
                     .cut = file.writer.cut,
                     .epoch = STRATA_MUTATION("cut.heads_share_names") ? 0 : file.epoch,
                     .link = link,
                     .begun = std::nullopt}
      .text();
}

// A second name of a file in the folder of `order`, which says that this cut made it: who drops a
// cut removes what that cut made, and nothing else.
std::optional<std::string> LinkInto(const CutOrder& order, const std::string& from,
                                    const std::string& name) {
  FileSystem& files = FileSystem::Kernel();
  const std::string path = absl::StrCat(order.directory, "/", name);
  files.Remove(path);  // of this very cut, which another process of the server began
  if (files.Link(from, path) < 0) return std::nullopt;
  return name;
}

void RemoveFiles(const std::string& folder, const std::vector<CutFile>& named) {
  for (const CutFile& file : named) {
    FileSystem::Kernel().Remove(absl::StrCat(folder, "/", file.name));
  }
}

}  // namespace

void ShardRunner::SetCuts(std::vector<CutOrder> orders, CutNumber given_up) {
  Post([this, orders = std::move(orders), given_up] {
    std::map<CutNumber, bool> still;
    std::map<CutNumber, Taking> taking;
    orders_.clear();
    for (const CutOrder& order : orders) {
      if (answered_.contains(order.cut)) {
        still[order.cut] = true;
      } else if (const auto it = taking_.find(order.cut); it != taking_.end()) {
        taking.insert(taking_.extract(it));
      } else {
        orders_.push_back(order);
      }
    }
    for (const auto& [cut, dropped] : taking_) DropCut(dropped);
    taking_ = std::move(taking);
    answered_ = std::move(still);
    if (!closed_.ok()) return;
    if (!shard_->options().synchronous) {
      shard_->barrier().End(given_up);
      for (const CutOrder& order : orders_) shard_->barrier().Begin(order.cut);
    }
    TakeCuts();
    BeginImages();
    if (!shard_->options().synchronous) ApplyReleased();
    Publish();
  });
}

bool ShardRunner::TakeCuts() {
  const size_t before = orders_.size();
  std::erase_if(orders_, [&](const CutOrder& order) { return TakeCut(order); });
  return orders_.size() != before;
}

// True when the cut is begun or answered.
bool ShardRunner::TakeCut(const CutOrder& order) {
  // Its rows are those of no clock. Advance comes back when they are.
  if (shard_->behind() && !STRATA_MUTATION("cut.of_half_a_step")) return false;
  if (shard_->options().synchronous) {
    if (shard_->committed() < order.step) return false;
    if (shard_->clock() == order.step) {
      BeginCut(order);
      return true;
    }
  } else {
    CutBarrier& barrier = shard_->barrier();
    if (order.cut > barrier.pending()) return false;
    if (order.cut == barrier.pending() && order.cut > barrier.over()) {
      if (absl::Status s = Failpoint("server.cut"); !s.ok()) {
        barrier.End(order.cut);
        CutWritten(order, {}, s);
        return true;
      }
      if (!barrier.Ready()) return false;
      BeginCut(order);
      return true;
    }
  }
  ShardCut cut;
  cut.outcome = ShardCut::Outcome::kRefused;
  cut.message = shard_->options().synchronous
                    ? absl::StrCat("shard ", id_.value, " is already at clock ",
                                   shard_->clock().value, ", past step ", order.step.value)
                    : absl::StrCat("cut ", order.cut, " is over at shard ", id_.value,
                                   ", where all lanes did not mark it in time, or it was given up");
  cut.step = shard_->clock();
  AnswerCut(order, std::move(cut));
  return true;
}

// 1 the base's files get names in the cut's folder, if it may be an increment  2 the shard is
// frozen  3 async: the barrier opens, also where the cut has failed: what the lanes pushed after
// the cut is applied while the file is written. The file is written in the background and ends in
// CutWritten.
void ShardRunner::BeginCut(const CutOrder& order) {
  ShardCut cut;
  cut.step = shard_->clock();
  const bool synchronous = shard_->options().synchronous;
  if (!synchronous) cut.marks = shard_->barrier().marks();
  absl::StatusOr<std::unique_ptr<ShardSnapshot>> snapshot;
  std::vector<CutFile> base;
  if (order.directory.empty()) {
    snapshot = shard_->SnapshotSums();
  } else {
    // All servers write into one folder; whoever comes first makes it.
    const absl::Status folder = storage::MakeFolder(order.directory);
    Shard::CheckpointOptions options{.cut = synchronous ? shard_->clock() : Step(order.cut),
                                     .base = std::nullopt,
                                     .follow = order.follow,
                                     .number = order.cut};
    if (folder.ok()) base = LinkBase(order);
    if (!base.empty()) {
      options.base_number = last_cut_.cut;
      options.base = synchronous ? last_cut_.step : Step(last_cut_.cut);
    }
    snapshot = folder.ok() ? shard_->SnapshotCheckpoint(options)
                           : absl::StatusOr<std::unique_ptr<ShardSnapshot>>(folder);
  }
  if (!synchronous) {
    if (absl::Status s = shard_->CutTaken(); !s.ok() && snapshot.ok()) snapshot = s;
  }
  if (!snapshot.ok() || !(*snapshot)->is_increment()) RemoveFiles(order.directory, base);
  if (!snapshot.ok()) return CutWritten(order, std::move(cut), snapshot.status());
  std::string path;
  Taking taking;
  std::shared_ptr<SnapshotProgress> progress;  // of a file
  if (!order.directory.empty()) {
    CutFile file;
    file.writer = (*snapshot)->state().header.writer();
    file.epoch = chain_epoch_;
    if ((*snapshot)->is_increment()) {
      for (const CutFile& f : base) {
        taking.links.push_back(absl::StrCat(order.directory, "/", f.name));
      }
      file.sequence = base.back().sequence + 1;
      cut.files = std::move(base);
    }
    file.name = NameOf(id_, file);
    path = absl::StrCat(order.directory, "/", file.name);
    cut.files.push_back(std::move(file));
    progress = std::make_shared<SnapshotProgress>();
  } else {
    cut.files.emplace_back();
  }
  const auto written = [this, order, cut](absl::StatusOr<SnapshotDriver::Result> result) {
    auto taken = taking_.extract(order.cut);
    if (!result.ok() && !taken.empty()) DropCut(taken.mapped());
    CutWritten(order, cut, std::move(result));
    BeginImages();
  };
  taking.id = driver_.Begin(*std::move(snapshot), std::move(path), written, progress);
  taking_[order.cut] = std::move(taking);
  if (progress != nullptr && options_.cut_begun) options_.cut_begun(order.cut, progress);
}

// Only what was made here: names that others made stay.
void ShardRunner::DropCut(const Taking& taking) {
  driver_.Drop(taking.id);
  for (const std::string& link : taking.links) FileSystem::Kernel().Remove(link);
}

// The files that an increment follows become part of its folder: names cost nothing, and every
// checkpoint is whole by itself. Nothing: it cannot be an increment (another base, no hard links).
std::vector<CutFile> ShardRunner::LinkBase(const CutOrder& order) {
  if (order.base == 0 || order.base != last_cut_.cut) return {};
  const BlockingSection disk;
  std::vector<CutFile> linked;
  for (CutFile file : last_files_) {
    const std::string from = absl::StrCat(last_cut_.directory, "/", file.name);
    const auto name = LinkInto(order, from, NameOf(id_, file, order.cut));
    if (!name) {
      RemoveFiles(order.directory, linked);
      return {};
    }
    file.name = *name;
    linked.push_back(std::move(file));
  }
  return linked;  // the names are durable with the increment's own
}

void ShardRunner::CutWritten(const CutOrder& order, ShardCut cut,
                             absl::StatusOr<SnapshotDriver::Result> result) {
  if (result.ok()) {
    cut.files.back().summary = result->summary;
    cut.files.back().hash = result->hash;
    cut.files.back().row_change = result->row_change;
    if (!order.directory.empty()) {
      last_cut_ = order;
      last_files_ = cut.files;
    }
  } else {
    ++view_.disk_errors;
    cut.outcome = ShardCut::Outcome::kFailed;
    cut.message = std::string(result.status().message());
    cut.code = result.status().code();
    cut.files.clear();
  }
  AnswerCut(order, std::move(cut));
}

void ShardRunner::AnswerCut(const CutOrder& order, ShardCut cut) {
  answered_[order.cut] = true;
  Publish();
  options_.cut_done(order.cut, cut);
}

void ShardRunner::WriteImage(std::string folder, uint64_t log_segment,
                             std::function<void(absl::Status)> done) {
  Post([this, folder = std::move(folder), log_segment, done = std::move(done)] {
    images_.push_back({folder, log_segment, done});
    BeginImages();
  });
}

// One at a time, and none beside a cut: a cut cannot wait, an image can.
void ShardRunner::BeginImages() {
  while (!images_.empty() && !driver_.busy()) {
    ImageOrder image = std::move(images_.front());
    images_.pop_front();
    auto snapshot = shard_->SnapshotImage(image.log_segment);
    if (!snapshot.ok()) {
      image.done(snapshot.status());
      continue;
    }
    const ImageName name = {id_, shard_->clock()};
    driver_.Begin(*std::move(snapshot), absl::StrCat(image.folder, "/", ImageFileName(name)),
                  [this, done = image.done](absl::StatusOr<SnapshotDriver::Result> result) {
                    done(result.status());
                    BeginImages();
                  });
  }
}

}  // namespace strata::server
