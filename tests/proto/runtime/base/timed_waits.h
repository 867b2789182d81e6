// Which clock the timed waits of Abseil in this process go by. To link it is enough: its `syscall`
// takes the place of the C library's, for the shared libraries as well.
#ifndef STRATA_TESTS_PROTO_RUNTIME_BASE_TIMED_WAITS_H_
#define STRATA_TESTS_PROTO_RUNTIME_BASE_TIMED_WAITS_H_

namespace strata::testing {

// Waits for a time that were begun so far, of all threads.
struct TimedWaits {
  int monotonic = 0;
  int wall = 0;
};
TimedWaits TimedWaitsSoFar();

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_BASE_TIMED_WAITS_H_
