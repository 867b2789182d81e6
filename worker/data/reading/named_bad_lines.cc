#include "worker/data/reading/named_bad_lines.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace strata {
namespace {

class Naming : public BatchSource {
 public:
  Naming(std::unique_ptr<BatchSource> source, std::function<void(const std::string&)> tell)
      : source_(std::move(source)), tell_(std::move(tell)) {}

  absl::Status Read(Step step, LaneId lane, Batch* out) override {
    absl::Status s = source_->Read(step, lane, out);
    if (s.ok()) Look(*out);
    return s;
  }
  absl::Status ReadWindow(TaskId task, uint64_t window, Batch* out) override {
    absl::Status s = source_->ReadWindow(task, window, out);
    if (s.ok()) Look(*out);
    return s;
  }
  absl::StatusOr<uint64_t> ReadLines(uint64_t first, const BatchLimit& most, Batch* out) override {
    absl::StatusOr<uint64_t> read = source_->ReadLines(first, most, out);
    if (read.ok()) Look(*out);
    return read;
  }
  std::string first_bad_line() const override { return source_->first_bad_line(); }

 private:
  // Another thread that meets a bad line meanwhile waits until the first one is told.
  void Look(const Batch& batch) ABSL_LOCKS_EXCLUDED(mu_) {
    if (batch.bad_lines == 0) return;
    absl::MutexLock lock(&mu_);
    if (!std::exchange(told_, true)) tell_(source_->first_bad_line());
  }

  const std::unique_ptr<BatchSource> source_;
  const std::function<void(const std::string&)> tell_;
  absl::Mutex mu_;
  bool told_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

std::unique_ptr<BatchSource> NameBadLines(std::unique_ptr<BatchSource> source,
                                          std::function<void(const std::string&)> tell) {
  return std::make_unique<Naming>(std::move(source), std::move(tell));
}

}  // namespace strata
