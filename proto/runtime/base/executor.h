// Where work runs: a pool of threads, and serial queues on top of it.
#ifndef STRATA_PROTO_RUNTIME_BASE_EXECUTOR_H_
#define STRATA_PROTO_RUNTIME_BASE_EXECUTOR_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace strata {

// Runs closures. Thread-safe. A closure may post more. Queues have no bound of their own: who posts
// bounds what he posts (calls in flight, batches of a pipeline).
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Post(std::function<void()> work) = 0;
};

// Threads named `name`, of which `threads` run closures at a time; the destructor runs what was
// posted, then joins. `at_start`, where given, runs first in each of them.
std::unique_ptr<Executor> MakeThreadPool(size_t threads, std::string name,
                                         std::function<void()> at_start = nullptr);

// While it lives the calling thread waits for something outside (a disk): if it belongs to a pool,
// another thread of the pool may run closures in its place. For moments more than `threads` may run
// afterwards. Elsewhere it does nothing. Not to be nested.
class BlockingSection {
 public:
  BlockingSection();
  ~BlockingSection();
  BlockingSection(const BlockingSection&) = delete;
  BlockingSection& operator=(const BlockingSection&) = delete;
};

// Closures posted to one Serial run one at a time, in order, on `base` (which must outlive it; the
// destructor waits until nothing of this queue runs or waits, so it is not to be called from one of
// its own closures, nor where a ManualExecutor still has to run some). A shard's single writer.
std::unique_ptr<Executor> MakeSerial(Executor* base);

// Runs nothing by itself: tests call RunOne / RunAll from their own thread.
class ManualExecutor : public Executor {
 public:
  ManualExecutor();
  ~ManualExecutor() override;
  void Post(std::function<void()> work) override;
  bool RunOne();    // false when nothing waits
  size_t RunAll();  // until nothing waits; returns how many ran
  size_t waiting() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_BASE_EXECUTOR_H_
