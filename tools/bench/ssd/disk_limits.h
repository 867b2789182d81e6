// Limits of the disk, measured where a benchmark runs.
#ifndef STRATA_TOOLS_BENCH_SSD_DISK_LIMITS_H_
#define STRATA_TOOLS_BENCH_SSD_DISK_LIMITS_H_

#include <cstddef>
#include <string>

namespace strata::bench {

// Reads per second of `bytes` (whole pages) at random aligned places of a file, `depth` at once,
// direct IO, one thread; through io_uring where the kernel has it. 0: the file cannot be read.
double RandomReadRate(const std::string& path, size_t bytes, size_t depth, double seconds);

// Writes a file of at least `bytes` bytes of noise around the page cache, for RandomReadRate.
// False: it cannot be written.
bool WriteProbe(const std::string& path, size_t bytes);

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_SSD_DISK_LIMITS_H_
