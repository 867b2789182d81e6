#include "worker/data/prefetch_source.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace strata {
namespace {

struct ReadyBatch {
  Step step;
  absl::Status status;
  Batch batch;
};

struct LaneQueue {
  LaneId lane;
  Step next;             // that a thread will read
  bool reading = false;  // a thread reads the step before `next`
  bool failed = false;   // the last ready batch is an error: nothing more until a restart
  uint64_t restarts = 0;
  std::deque<ReadyBatch> ready;
};

class PrefetchSource : public BatchSource {
 public:
  PrefetchSource(std::unique_ptr<BatchSource> source, PrefetchOptions options);
  ~PrefetchSource() override;

  absl::Status Read(Step step, LaneId lane, Batch* out) override ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) override {
    return source_->ReadWindow(task, window, out);
  }
  absl::Status ReadLines(uint64_t first, uint64_t count, Batch* out) override {
    return source_->ReadLines(first, count, out);
  }
  std::string first_bad_line() const override { return source_->first_bad_line(); }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // The lane whose next step is earliest among those with room; nullptr: nothing to do.
  LaneQueue* NextWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WorkOrStop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || NextWork() != nullptr;
  }
  // Makes the lane continue at `step`.
  static void Restart(Step step, LaneQueue* queue);

  const std::unique_ptr<BatchSource> source_;
  const PrefetchOptions options_;
  absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<LaneQueue> queues_ ABSL_GUARDED_BY(mu_);  // as options_.lanes
  // Batches given back by Read, for their memory: at most lanes x depth.
  std::vector<Batch> spare_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
};

PrefetchSource::PrefetchSource(std::unique_ptr<BatchSource> source, PrefetchOptions options)
    : source_(std::move(source)), options_(std::move(options)) {
  {
    absl::MutexLock lock(&mu_);
    for (const LaneId lane : options_.lanes) {
      queues_.push_back({lane, options_.first, false, false, 0, {}});
    }
  }
  for (size_t i = 0; i < std::max<size_t>(1, options_.threads); ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

PrefetchSource::~PrefetchSource() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

LaneQueue* PrefetchSource::NextWork() {
  LaneQueue* best = nullptr;
  for (LaneQueue& q : queues_) {
    if (q.reading || q.failed || q.next > options_.last) continue;
    if (q.ready.size() >= std::max<size_t>(1, options_.depth)) continue;
    if (best == nullptr || q.next < best->next) best = &q;
  }
  return best;
}

void PrefetchSource::Run() {
  absl::MutexLock lock(&mu_);
  while (true) {
    mu_.Await(absl::Condition(this, &PrefetchSource::WorkOrStop));
    if (stopping_) return;
    LaneQueue* queue = NextWork();
    const Step step = queue->next;
    const LaneId lane = queue->lane;
    const uint64_t restarts = queue->restarts;
    queue->reading = true;
    queue->next = step.Next();
    ReadyBatch made{step, absl::OkStatus(), {}};
    if (!spare_.empty()) {
      made.batch = std::move(spare_.back());
      spare_.pop_back();
    }
    mu_.Unlock();
    made.status = source_->Read(step, lane, &made.batch);
    mu_.Lock();
    queue->reading = false;
    if (queue->restarts != restarts) continue;  // nobody wants it any more
    queue->failed = !made.status.ok();
    queue->ready.push_back(std::move(made));
  }
}

void PrefetchSource::Restart(Step step, LaneQueue* queue) {
  queue->ready.clear();
  queue->next = step;
  queue->failed = false;
  ++queue->restarts;
}

absl::Status PrefetchSource::Read(Step step, LaneId lane, Batch* out) {
  absl::MutexLock lock(&mu_);
  const auto found = std::find_if(queues_.begin(), queues_.end(),
                                  [&](const LaneQueue& q) { return q.lane == lane; });
  if (found == queues_.end() || step > options_.last) {
    mu_.Unlock();
    absl::Status s = source_->Read(step, lane, out);
    mu_.Lock();
    return s;
  }
  LaneQueue& queue = *found;
  // What comes out next: the first ready batch, else the one being read, else `next`.
  Step coming = queue.next;
  if (queue.reading) coming = Step(queue.next.value - 1);
  if (!queue.ready.empty()) coming = queue.ready.front().step;
  const bool abandoned = queue.ready.empty() && queue.failed;
  if (coming != step || abandoned) Restart(step, &queue);
  mu_.Await(absl::Condition(
      +[](LaneQueue* q) { return !q->ready.empty(); }, &queue));
  ReadyBatch ready = std::move(queue.ready.front());
  queue.ready.pop_front();
  std::swap(*out, ready.batch);
  if (spare_.size() < options_.lanes.size() * options_.depth) {
    spare_.push_back(std::move(ready.batch));
  }
  return ready.status;
}

}  // namespace

std::unique_ptr<BatchSource> MakePrefetchSource(std::unique_ptr<BatchSource> source,
                                                PrefetchOptions options) {
  return std::make_unique<PrefetchSource>(std::move(source), std::move(options));
}

}  // namespace strata
