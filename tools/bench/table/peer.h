// The peer program of the benchmark `table`: limits/hash.cc of the folder of baselines.
#ifndef STRATA_TOOLS_BENCH_TABLE_PEER_H_
#define STRATA_TOOLS_BENCH_TABLE_PEER_H_

#include <cstddef>
#include <optional>
#include <string>

#include "tools/bench/table/flat_table.h"

namespace strata::bench {

struct TablePeer {
  // Million keys per second by TableWork and threads (1, 2); 0: not measured.
  double rates[3][2] = {};
  std::optional<double> Rate(TableWork work, size_t threads) const;
};

// Builds the program in `scratch` and runs it once, some 20 s; then with rows of 128 bytes and
// Adagrad for SGD. It is written for AVX-512; on other machines its five vector operations are done
// in two halves. No rates when it cannot be built.
TablePeer RunTablePeer(const std::string& baselines, const std::string& scratch);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_TABLE_PEER_H_
