// A list of distinct keys of several tables: which of them are of which table.
// Tested by tests/worker/step/router_test.cc, tests/worker/client/exchange_test.cc
#ifndef STRATA_WORKER_STEP_KEY_RUNS_H_
#define STRATA_WORKER_STEP_KEY_RUNS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strata {

// Keys first .. first + count - 1 of a list are of one table, ascending by position there.
struct KeyRun {
  uint32_t table = 0;  // its number in the job
  size_t first = 0;
  size_t count = 0;

  size_t end() const { return first + count; }
  friend bool operator==(const KeyRun&, const KeyRun&) = default;
};

// All of a list, in order: ascending by table, none empty. A list of table 0 alone has one, or none
// when it is empty.
using KeyRuns = std::vector<KeyRun>;

// Floats of a list's rows, which lie behind each other: of run r, count rows of widths[r.table].
inline size_t FloatsOf(std::span<const KeyRun> runs, std::span<const uint32_t> widths) {
  size_t floats = 0;
  for (const KeyRun& run : runs) floats += run.count * widths[run.table];
  return floats;
}

// Calls body(run, begin), where `begin` is the first float of the run's rows.
template <typename Body>
void ForRuns(std::span<const KeyRun> runs, std::span<const uint32_t> widths, Body body) {
  size_t begin = 0;
  for (const KeyRun& run : runs) {
    body(run, begin);
    begin += run.count * widths[run.table];
  }
}

}  // namespace strata

#endif  // STRATA_WORKER_STEP_KEY_RUNS_H_
