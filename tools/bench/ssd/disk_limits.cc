#include "tools/bench/ssd/disk_limits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "storage/io/async_reads.h"

namespace strata::bench {
namespace {

constexpr size_t kPage = 4096;

struct FreeMemory {
  void operator()(uint8_t* p) const { std::free(p); }
};
using Pages = std::unique_ptr<uint8_t[], FreeMemory>;

Pages Allocate(size_t bytes) {
  return Pages(static_cast<uint8_t*>(std::aligned_alloc(kPage, bytes)));
}

}  // namespace

double RandomReadRate(const std::string& path, size_t bytes, size_t depth, double seconds) {
  using Clock = std::chrono::steady_clock;
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECT);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0 || static_cast<size_t>(info.st_size) < bytes) {
    if (fd >= 0) close(fd);
    return 0;
  }
  const uint64_t places = static_cast<uint64_t>(info.st_size) / bytes;
  const std::unique_ptr<storage::AsyncReads> reads = storage::MakeAsyncReads(depth);
  const Pages memory = Allocate(depth * bytes);
  std::mt19937_64 random(1);
  const auto submit = [&](uint64_t slot) {
    reads->Submit(fd, random() % places * bytes, {memory.get() + slot * bytes, bytes}, slot);
  };
  for (size_t i = 0; i < depth; ++i) submit(i);
  std::vector<storage::AsyncReads::Done> done;
  const auto begin = Clock::now();
  const auto end =
      begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  uint64_t count = 0;
  size_t in_flight = depth;
  double took = 0;
  bool failed = false;
  while (in_flight > 0) {
    done.clear();
    reads->Wait(done);
    const auto now = Clock::now();
    for (const auto& d : done) {
      failed = failed || d.result != static_cast<int64_t>(bytes);
      if (now < end && !failed) {
        ++count;
        submit(d.tag);
      } else {
        --in_flight;
      }
    }
    if (took == 0 && now >= end) took = std::chrono::duration<double>(now - begin).count();
  }
  close(fd);
  return failed ? 0 : static_cast<double>(count) / took;
}

bool WriteProbe(const std::string& path, size_t bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
  if (fd < 0) return false;
  constexpr size_t kPart = size_t{1} << 20;
  const Pages part = Allocate(kPart);
  std::mt19937_64 random(2);
  size_t written = 0;
  while (written < bytes) {
    for (size_t i = 0; i < kPart; i += 8) {
      const uint64_t v = random();
      std::memcpy(&part[i], &v, 8);
    }
    const ssize_t n = write(fd, part.get(), kPart);
    if (n != static_cast<ssize_t>(kPart)) break;
    written += kPart;
  }
  const bool synced = fsync(fd) == 0;
  close(fd);
  return synced && written >= bytes;
}

}  // namespace strata::bench
