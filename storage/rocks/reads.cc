#include "storage/rocks/reads.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strata::storage {
namespace {

using rocksdb::FSReadRequest;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

thread_local int reader_scopes = 0;

// A file of RocksDB's own.
class BufferedFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  BufferedFile(std::unique_ptr<rocksdb::FSRandomAccessFile> file,
               std::shared_ptr<ReadQueues> queues)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), queues_(std::move(queues)) {}

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    queues_->Count(bytes);
    return FSRandomAccessFileOwnerWrapper::Read(offset, bytes, options, result, scratch, debug);
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    for (size_t i = 0; i < count; ++i) queues_->Count(requests[i].len);
    return FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, debug);
  }

 private:
  const std::shared_ptr<ReadQueues> queues_;
};

class DirectFile final : public rocksdb::FSRandomAccessFile {
 public:
  DirectFile(int fd, std::string path, std::shared_ptr<ReadQueues> queues)
      : fd_(fd), path_(std::move(path)), queues_(std::move(queues)) {}
  ~DirectFile() override { close(fd_); }

  IOStatus Read(uint64_t offset, size_t bytes, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    queues_->Count(bytes);
    return ReadAt(offset, bytes, result, scratch);
  }

  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions&,
                     IODebugContext*) override {
    for (size_t i = 0; i < count; ++i) queues_->Count(requests[i].len);
    if (count == 1) {
      FSReadRequest& r = requests[0];
      r.status = ReadAt(r.offset, r.len, &r.result, r.scratch);
      return IOStatus::OK();
    }
    std::unique_ptr<AsyncReads> reads = queues_->Take();
    std::vector<AsyncReads::Done> done;
    for (size_t asked = 0, answered = 0; answered < count;) {
      for (; asked < count && asked - answered < reads->depth(); ++asked) {
        FSReadRequest& r = requests[asked];
        reads->Submit(fd_, r.offset, {reinterpret_cast<uint8_t*>(r.scratch), r.len}, asked);
      }
      done.clear();
      reads->Wait(done);
      for (const AsyncReads::Done& d : done) {
        FSReadRequest& r = requests[d.tag];
        r.status = IOStatus::OK();
        r.result = Slice(r.scratch, r.len);
        // What was interrupted or cut short is tried again; what fails again is the error.
        if (d.result < static_cast<int64_t>(r.len)) {
          r.status = ReadAt(r.offset, r.len, &r.result, r.scratch);
        }
      }
      answered += done.size();
    }
    queues_->Return(std::move(reads));
    return IOStatus::OK();
  }

  IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("Prefetch");
  }
  bool use_direct_io() const override { return true; }

 private:
  // Fewer bytes at the file's end only.
  IOStatus ReadAt(uint64_t offset, size_t bytes, Slice* result, char* scratch) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(fd_, scratch + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        const int error = errno;
        *result = Slice(scratch, 0);
        return IOStatus::IOError(
            absl::StrCat("cannot read ", path_, " at offset ", offset, ": ", std::strerror(error)));
      }
      done += static_cast<size_t>(n);
      // A direct read that was cut short ends in the file's last block.
      if (n == 0 || done % GetRequiredBufferAlignment() != 0) break;
    }
    *result = Slice(scratch, done);
    return IOStatus::OK();
  }

  const int fd_;
  const std::string path_;
  const std::shared_ptr<ReadQueues> queues_;
};

}  // namespace

std::unique_ptr<AsyncReads> ReadQueues::Take() {
  {
    const MutexLock lock(&mu_);
    if (!idle_.empty()) {
      std::unique_ptr<AsyncReads> reads = std::move(idle_.back());
      idle_.pop_back();
      return reads;
    }
  }
  return MakeAsyncReads(kDepth);
}

void ReadQueues::Return(std::unique_ptr<AsyncReads> reads) {
  const MutexLock lock(&mu_);
  idle_.push_back(std::move(reads));
}

void ReadQueues::Count(size_t bytes) {
  if (reader_scopes > 0) bytes_read_.fetch_add(bytes, std::memory_order_relaxed);
}

ReaderScope::ReaderScope() { ++reader_scopes; }
ReaderScope::~ReaderScope() { --reader_scopes; }
bool ReaderScope::OnThisThread() { return reader_scopes > 0; }

IOStatus OpenForReads(rocksdb::FileSystem* base, const std::string& path,
                      const rocksdb::FileOptions& options, std::shared_ptr<ReadQueues> queues,
                      std::unique_ptr<rocksdb::FSRandomAccessFile>* out) {
  while (options.use_direct_reads) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    if (fd >= 0) {
      *out = std::make_unique<DirectFile>(fd, path, std::move(queues));
      return IOStatus::OK();
    }
    const int error = errno;
    if (error == EINTR) continue;
    if (error == EINVAL) break;
    const std::string trouble = absl::StrCat("cannot open ", path, ": ", std::strerror(error));
    return error == ENOENT ? IOStatus::PathNotFound(trouble) : IOStatus::IOError(trouble);
  }
  rocksdb::FileOptions buffered = options;
  buffered.use_direct_reads = false;
  const IOStatus s = base->NewRandomAccessFile(path, buffered, out, nullptr);
  if (s.ok()) *out = std::make_unique<BufferedFile>(std::move(*out), std::move(queues));
  return s;
}

}  // namespace strata::storage
