// A fixed team of threads for loops inside one step.
// Tested by tests/ops/nn/parallel_test.cc
#ifndef STRATA_OPS_PARALLEL_H_
#define STRATA_OPS_PARALLEL_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace strata::ops {

// Runs loop bodies on `threads` threads, the caller's among them; the others keep denormals and
// round to nearest (ops/mxcsr.h), whatever the caller does. One loop at a time, from one thread.
// What a body computes must depend on its index alone; then results do not depend on the team's
// size.
class Parallel {
 public:
  virtual ~Parallel() = default;
  virtual size_t threads() const = 0;
  // Calls body(i) once for each i < n, in any order, on any thread of the team; returns when all
  // are done. Work is taken index by index, so bodies may differ in length.
  virtual void For(size_t n, const std::function<void(size_t)>& body) = 0;
};

// threads >= 1; 1 runs everything on the caller's thread. Idle helpers spin briefly (a step has
// many short loops), then sleep.
std::unique_ptr<Parallel> MakeParallel(size_t threads);

}  // namespace strata::ops

#endif  // STRATA_OPS_PARALLEL_H_
