// The floating point state that exact results need (EXACT.md rule 1).
#ifndef STRATA_OPS_MXCSR_H_
#define STRATA_OPS_MXCSR_H_

#include <cstdint>

namespace strata::ops {

// True when the calling thread rounds to nearest, keeps denormals (neither flush-to-zero nor
// denormals-are-zero) and traps nothing: the state a thread is born with. Libraries built with
// -ffast-math change it when they are loaded. Called at the start of every thread that computes.
bool FloatStateIsExact();

// Sets that state in the calling thread; returns what FloatStateIsExact() was before.
bool RestoreExactFloatState();

}  // namespace strata::ops

#endif  // STRATA_OPS_MXCSR_H_
