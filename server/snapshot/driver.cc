#include "server/snapshot/driver.h"

#include <algorithm>
#include <utility>

namespace strata::server {

SnapshotDriver::SnapshotDriver(Options options) : options_(std::move(options)) {}

SnapshotDriver::~SnapshotDriver() {
  options_.timer->Cancel(this);
  DropAll();
}

SnapshotDriver::Running* SnapshotDriver::Find(uint64_t id) {
  for (const auto& r : running_) {
    if (r->id == id) return r.get();
  }
  return nullptr;
}

uint64_t SnapshotDriver::Begin(std::unique_ptr<ShardSnapshot> snapshot, std::string path, Done done,
                               std::shared_ptr<SnapshotProgress> progress) {
  auto r = std::make_unique<Running>();
  r->id = next_id_++;
  r->done = std::move(done);
  r->hash_before = snapshot->hash_before();
  r->rows_before = static_cast<int64_t>(snapshot->rows_before());
  if (progress != nullptr) progress->total_bytes = snapshot->expected_bytes();
  r->file = std::make_unique<SnapshotFile>(options_.disk, std::move(path), snapshot->TakeState(),
                                           std::move(progress));
  r->snapshot = std::move(snapshot);
  const uint64_t id = r->id;
  running_.push_back(std::move(r));
  Post(id);
  return id;
}

void SnapshotDriver::Post(uint64_t id) {
  options_.post([this, id] { Step(id); });
}

void SnapshotDriver::Step(uint64_t id) {
  SnapshotTurn turn = SnapshotTurn::kAtOnce;
  for (size_t piece = 0; piece < kPiecesAtOnce && turn == SnapshotTurn::kAtOnce; ++piece) {
    turn = StepOnce(id);
  }
  if (turn != SnapshotTurn::kLater) Post(id);
}

// 1 read a piece  2 hand it to the file  3 go on when pace and disk allow; after the last piece the
// file is finished (End).
SnapshotTurn SnapshotDriver::StepOnce(uint64_t id) {
  Running* r = Find(id);
  if (r == nullptr || r->snapshot == nullptr) return SnapshotTurn::kLater;
  if (r->in_flight >= kQueuePieces) {
    r->starved = true;
    return SnapshotTurn::kLater;
  }
  size_t bytes = 0;
  if (!r->snapshot->done()) {
    std::shared_ptr<RowBlock> block;
    if (free_.empty()) {
      block = std::make_shared<RowBlock>();
    } else {
      block = std::move(free_.back());
      free_.pop_back();
    }
    if (absl::Status s = r->snapshot->Next(*block); !s.ok()) {
      End(id, s);
      return SnapshotTurn::kLater;
    }
    bytes = block->bytes();
    if (!block->empty()) {
      ++r->in_flight;
      r->file->Write(block, [this, id, block](absl::Status s) {
        options_.post([this, id, block, s] { Wrote(id, block, s); });
      });
    }
  }
  SnapshotTurn turn = SnapshotTurn::kLater;
  if (!r->snapshot->done()) {
    turn = NextTurn(id, bytes);
  } else {
    r->snapshot = nullptr;
    r->file->Finish([this, id](absl::StatusOr<storage::ShardFileSummary> s) {
      options_.post([this, id, s = std::move(s)] { End(id, s); });
    });
  }
  TellCaughtUp();
  return turn;
}

// kLater: the timer goes on when the pace allows it.
SnapshotTurn SnapshotDriver::NextTurn(uint64_t id, size_t bytes) {
  const absl::Time now = options_.timer->Now();
  if (options_.pace == nullptr || !KeepsPace(now, served_, Behind())) {
    return SnapshotTurn::kAtOnce;
  }
  const absl::Time next = options_.pace->Took(now, bytes);
  const SnapshotTurn turn = TurnFor(now, next);
  if (turn == SnapshotTurn::kLater) options_.timer->At(next, this, [this, id] { Post(id); });
  return turn;
}

void SnapshotDriver::Wrote(uint64_t id, std::shared_ptr<RowBlock> block,
                           const absl::Status& status) {
  if (free_.size() < kQueuePieces) free_.push_back(std::move(block));
  Running* r = Find(id);
  if (r == nullptr) return;
  --r->in_flight;
  if (!status.ok()) return End(id, status);
  if (!std::exchange(r->starved, false)) return;
  Post(id);
}

void SnapshotDriver::End(uint64_t id, absl::StatusOr<storage::ShardFileSummary> summary) {
  const auto it =
      std::find_if(running_.begin(), running_.end(), [id](const auto& r) { return r->id == id; });
  if (it == running_.end()) return;
  const std::unique_ptr<Running> r = std::move(*it);
  running_.erase(it);
  if (summary.ok()) r->file->Keep();
  Leave(std::move(r->file));
  if (running_.empty()) free_.clear();
  absl::StatusOr<Result> result;
  if (summary.ok()) {
    result = Result{*summary, summary->hash, static_cast<int64_t>(summary->rows) - r->rows_before};
    result->hash -= r->hash_before;
  } else {
    result = summary.status();
  }
  r->done(std::move(result));
  TellCaughtUp();
}

// A file that something of still runs must not be waited for here.
void SnapshotDriver::Leave(std::unique_ptr<SnapshotFile> file) {
  std::erase_if(leaving_, [](const auto& f) { return f->Idle(); });
  file->Drop();
  if (!file->Idle()) leaving_.push_back(std::move(file));
}

void SnapshotDriver::Drop(uint64_t id) {
  const auto it =
      std::find_if(running_.begin(), running_.end(), [id](const auto& r) { return r->id == id; });
  if (it == running_.end()) return;
  Leave(std::move((*it)->file));
  running_.erase(it);
  TellCaughtUp();
}

void SnapshotDriver::DropAll() {
  for (const auto& r : running_) Leave(std::move(r->file));
  running_.clear();
}

bool SnapshotDriver::Behind() const {
  size_t held = 0;
  for (const auto& r : running_) held += r->snapshot == nullptr ? 0 : r->snapshot->held();
  return CommitsMustWait(held, running_.size());
}

bool SnapshotDriver::NeedsPriority() {
  const bool needs = Behind();
  pressed_ |= needs;
  return needs;
}

void SnapshotDriver::TellCaughtUp() {
  if (!pressed_ || Behind()) return;
  pressed_ = false;
  options_.caught_up();
}

}  // namespace strata::server
