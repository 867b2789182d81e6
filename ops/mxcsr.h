// The floating point state that exact results need (EXACT.md rule 1).
#ifndef STRATA_OPS_MXCSR_H_
#define STRATA_OPS_MXCSR_H_

#include <cstdint>

namespace strata::ops {

// True when the calling thread rounds to nearest, keeps denormals (neither flush-to-zero nor
// denormals-are-zero) and traps nothing: the state a process is born with. A thread begins with the
// state of the one that started it, and a program that embeds Strata, or a library built with
// -ffast-math, may have changed that.
bool FloatStateIsExact();

// Sets that state in the calling thread; returns what FloatStateIsExact() was before. Every thread
// of ours that computes begins with it.
bool RestoreExactFloatState();

// The exact state in the calling thread while it lives, then the thread's own again: for functions
// that compute on a thread of somebody else's.
class ExactFloatScope {
 public:
  ExactFloatScope();
  ~ExactFloatScope();
  ExactFloatScope(const ExactFloatScope&) = delete;
  ExactFloatScope& operator=(const ExactFloatScope&) = delete;

 private:
  const uint32_t before_;
};

}  // namespace strata::ops

#endif  // STRATA_OPS_MXCSR_H_
