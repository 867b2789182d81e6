// Many reads of files in flight at once, for one thread.
// Tested by tests/storage/rocks/reads_test.cc
// Tested by tests/storage/row_file/tier_test.cc
#ifndef STRATA_STORAGE_IO_ASYNC_READS_H_
#define STRATA_STORAGE_IO_ASYNC_READS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace strata::storage {

// Not thread-safe. REQUIRES: nothing is in flight when it is destroyed.
class AsyncReads {
 public:
  struct Done {
    uint64_t tag;
    int64_t result;  // bytes read, or -errno
  };

  virtual ~AsyncReads() = default;
  // `out` stays until the read is done. REQUIRES: fewer than depth() in flight.
  virtual void Submit(int fd, uint64_t offset, std::span<uint8_t> out, uint64_t tag) = 0;
  // Waits for one or more and appends all that are done. REQUIRES: something is in flight.
  virtual void Wait(std::vector<Done>& done) = 0;
  virtual size_t depth() const = 0;
};

// Of io_uring, by system calls of our own. Null where the kernel refuses it.
std::unique_ptr<AsyncReads> MakeUringReads(size_t depth);
// Of pread in min(depth, 32) threads.
std::unique_ptr<AsyncReads> MakeThreadReads(size_t depth);
// The first that works.
std::unique_ptr<AsyncReads> MakeAsyncReads(size_t depth);

}  // namespace strata::storage

#endif  // STRATA_STORAGE_IO_ASYNC_READS_H_
