// The peer program of the benchmark `ssd`: rocks/rb.cc of the folder of baselines.
#ifndef STRATA_TOOLS_BENCH_SSD_PEER_H_
#define STRATA_TOOLS_BENCH_SSD_PEER_H_

#include <cstdint>
#include <optional>
#include <string>

namespace strata::bench {

// RocksDB as a store of 8 + 128 byte rows, direct IO, a block cache of 256 MiB that holds index and
// filters too; batches of 4096 keys. Its best settings of those tried (RESULTS.md). Its memtables
// (four of 128 MiB) and, beyond 256 MiB, what its threads read into are not held against it.
class SsdPeer {
 public:
  // Builds the program in `scratch` and ingests the rows. Without baselines, or where it cannot be
  // built, there are no rates.
  SsdPeer(const std::string& baselines, const std::string& scratch, uint64_t rows);

  // Keys per second, the median of three windows of `seconds` each: MultiGet of batches of distinct
  // keys by Zipf 1.05 from 16 threads, after some seconds that fill the cache.
  std::optional<double> Reads(double seconds) const;
  // WriteBatches of uniform keys without WAL from two threads.
  std::optional<double> Updates(double seconds) const;

 private:
  std::optional<double> Rate(const std::string& arguments, const std::string& unit,
                             double scale) const;

  const std::string folder_;
  const std::string common_;
  std::string binary_;  // empty: none
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_SSD_PEER_H_
