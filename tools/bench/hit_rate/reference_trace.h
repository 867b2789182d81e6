// References to keys as training makes them, and what no tier of a size can beat on them.
#ifndef STRATA_TOOLS_BENCH_HIT_RATE_REFERENCE_TRACE_H_
#define STRATA_TOOLS_BENCH_HIT_RATE_REFERENCE_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strata::bench {

enum class TraceKind : uint8_t {
  kStationary,  // Zipf
  kDrifting,    // Zipf; for every 64 references a key drawn at random changes places with one drawn
                // by Zipf
  kScan,        // three references of four are Zipf's; the others go round as many further keys
};

struct TraceOptions {
  TraceKind kind = TraceKind::kStationary;
  uint32_t keys = 0;  // that Zipf chooses from; kScan: twice as many in all
  uint64_t references = 0;
  uint32_t batch = 0;  // references of a batch
  double zipf = 1.05;
  uint64_t seed = 1;
};

struct Trace {
  uint32_t keys = 0;  // all are below
  uint32_t batch_references = 0;
  std::vector<std::vector<uint32_t>> batches;  // distinct keys, ascending
  std::vector<uint32_t> by_rank;               // kStationary: the most popular first; else empty
};

Trace MakeTrace(const TraceOptions& options);

// Shares of the references from batch `from` on that need not be fetched into a tier of `rows`
// rows: a key that is missing is fetched once for all its references of a batch. Both know the
// trace, and may let a row pass by without keeping it.
//
// Belady's optimum (IBM Systems Journal 5, 1966): the row whose next reference is farthest gives
// way.
double BeladyHitRate(const Trace& trace, size_t rows, size_t from);
// The tier always holds the rows that are most popular: by the distribution where it stands still,
// else by all the references of the trace.
double PerfectLfuHitRate(const Trace& trace, size_t rows, size_t from);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_HIT_RATE_REFERENCE_TRACE_H_
