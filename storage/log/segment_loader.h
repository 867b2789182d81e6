// Whole files in memory, shared by the threads that go through them at about the same time.
// Tested by tests/storage/log/update_log_test.cc
#ifndef STRATA_STORAGE_LOG_SEGMENT_LOADER_H_
#define STRATA_STORAGE_LOG_SEGMENT_LOADER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/core/mutex.h"
#include "proto/runtime/files/file_system.h"
#include "storage/io/huge_memory.h"

namespace strata::storage {

// Thread-safe. A file is read by the first that asks and kept while somebody has it: n threads that
// each hold one file take at most n files of memory. Read, not mapped: a disk that cannot read a
// page is an error then, not a signal.
class SegmentLoader {
 public:
  class Loaded {
   public:
    std::span<const uint8_t> bytes() const { return {memory_.data(), size_}; }

   private:
    friend class SegmentLoader;
    Mutex mu_;
    bool read_ ABSL_GUARDED_BY(mu_) = false;
    absl::Status status_ ABSL_GUARDED_BY(mu_);
    HugeMemory memory_;  // fixed once read
    uint64_t size_ = 0;
  };

  explicit SegmentLoader(FileSystem& files) : files_(files) {}

  // The file's bytes, at an address that is a multiple of 4096. `next`, unless empty, is the file
  // that will be asked for after this one: the kernel is told to read it meanwhile.
  absl::StatusOr<std::shared_ptr<const Loaded>> Load(const std::string& path,
                                                     const std::string& next);

 private:
  absl::Status Read(const std::string& path, Loaded& loaded) const;

  FileSystem& files_;
  Mutex mu_;
  std::map<std::string, std::weak_ptr<Loaded>> loaded_ ABSL_GUARDED_BY(mu_);
};

}  // namespace strata::storage

#endif  // STRATA_STORAGE_LOG_SEGMENT_LOADER_H_
