// Physical limits of the machine, measured where a benchmark runs.
#ifndef STRATA_TOOLS_BENCH_BASE_LIMITS_H_
#define STRATA_TOOLS_BENCH_BASE_LIMITS_H_

#include <cstddef>
#include <memory>
#include <string>

namespace strata::bench {

// GFLOP/s of fused multiply-adds in registers, all `threads` together, over about `seconds`.
double FmaPeak(size_t threads, double seconds);

// GB/s (read + written counted once, as bytes copied) of memcpy over 256 MiB.
double CopyRate(size_t threads, double seconds);

// Million rows of 64 bytes per second gathered at random from `rows` rows, with prefetch: what any
// table of that size can reach.
double GatherRate(size_t threads, size_t rows, double seconds);

// A bare table in memory: open addressing, nothing but hash, probe and copy of rows of 64 bytes,
// with prefetch; no growth, no removal, no limits. What a server's table could reach at best.
class BareTable {
 public:
  explicit BareTable(size_t rows);
  // Million rows per second copied out for keys drawn at random, all `threads` together.
  double ReadRate(size_t threads, double seconds) const;

 private:
  struct Memory;
  std::shared_ptr<Memory> memory_;
  size_t rows_;
};

// GB/s of write(2) appending `chunk` bytes at a time to a new file, which is removed: what any log
// can reach whose records only have to be in the operating system's hands. 0: the file cannot be
// written. At most 2 GiB are written.
double AppendRate(const std::string& path, size_t chunk, double seconds);

// GB/s that one core seals by AES-128-GCM in pieces of 16 KiB, as TLS 1.3 does.
double AesGcmRate(double seconds);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_BASE_LIMITS_H_
