#include "storage/io/async_reads.h"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

#include "proto/core/mutex.h"

namespace strata::storage {
namespace {

// io_uring(7): two rings shared with the kernel, read and written with acquire and release.
class UringReads final : public AsyncReads {
 public:
  ~UringReads() override {
    if (sqes_ != MAP_FAILED) munmap(sqes_, params_.sq_entries * sizeof(io_uring_sqe));
    if (cq_ != MAP_FAILED && cq_ != sq_) munmap(cq_, cq_bytes_);
    if (sq_ != MAP_FAILED) munmap(sq_, sq_bytes_);
    if (fd_ >= 0) close(fd_);
  }

  bool Open(size_t depth) {
    depth_ = depth;
    fd_ = static_cast<int>(syscall(__NR_io_uring_setup, static_cast<unsigned>(depth), &params_));
    if (fd_ < 0) return false;
    sq_bytes_ = params_.sq_off.array + params_.sq_entries * sizeof(uint32_t);
    cq_bytes_ = params_.cq_off.cqes + params_.cq_entries * sizeof(io_uring_cqe);
    const bool one_map = (params_.features & IORING_FEAT_SINGLE_MMAP) != 0;
    if (one_map) sq_bytes_ = cq_bytes_ = std::max(sq_bytes_, cq_bytes_);
    sq_ = Map(sq_bytes_, IORING_OFF_SQ_RING);
    cq_ = one_map ? sq_ : Map(cq_bytes_, IORING_OFF_CQ_RING);
    sqes_ = Map(params_.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
    return sq_ != MAP_FAILED && cq_ != MAP_FAILED && sqes_ != MAP_FAILED && ReadsWork();
  }

  void Submit(int fd, uint64_t offset, std::span<uint8_t> out, uint64_t tag) override {
    const uint32_t tail = *At(sq_, params_.sq_off.tail);
    const uint32_t slot = tail & *At(sq_, params_.sq_off.ring_mask);
    io_uring_sqe& entry = static_cast<io_uring_sqe*>(sqes_)[slot];
    entry = {};
    entry.opcode = IORING_OP_READ;
    entry.fd = fd;
    entry.off = offset;
    entry.addr = reinterpret_cast<uint64_t>(out.data());
    entry.len = static_cast<uint32_t>(out.size());
    entry.user_data = tag;
    At(sq_, params_.sq_off.array)[slot] = slot;
    std::atomic_ref<uint32_t>(*At(sq_, params_.sq_off.tail))
        .store(tail + 1, std::memory_order_release);
    ++unsubmitted_;
    ++in_flight_;
  }

  void Wait(std::vector<Done>& done) override {
    for (;;) {
      const size_t before = done.size();
      Reap(done);
      if (done.size() > before && unsubmitted_ == 0) return;
      // An eighth of what is in flight at a time: fewer switches, and the disk keeps its queue.
      const size_t least = done.size() > before ? 0 : std::max<size_t>(1, in_flight_ / 8);
      const long n = syscall(__NR_io_uring_enter, fd_, static_cast<unsigned>(unsubmitted_),
                             static_cast<unsigned>(least), IORING_ENTER_GETEVENTS, nullptr, 0);
      if (n >= 0) unsubmitted_ -= static_cast<size_t>(n);
      if (done.size() > before) return;
    }
  }

  size_t depth() const override { return depth_; }

 private:
  void* Map(size_t bytes, uint64_t what) const {
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_,
                static_cast<off_t>(what));
  }
  static uint32_t* At(void* ring, uint32_t offset) {
    return reinterpret_cast<uint32_t*>(static_cast<uint8_t*>(ring) + offset);
  }

  // Kernels before 5.6 have io_uring, but not this operation.
  bool ReadsWork() {
    uint8_t byte;
    std::vector<Done> done;
    Submit(-1, 0, {&byte, 1}, 0);
    Wait(done);
    return done.size() == 1 && done[0].result == -EBADF;
  }

  void Reap(std::vector<Done>& done) {
    uint32_t head = *At(cq_, params_.cq_off.head);
    const uint32_t tail =
        std::atomic_ref<uint32_t>(*At(cq_, params_.cq_off.tail)).load(std::memory_order_acquire);
    const uint32_t mask = *At(cq_, params_.cq_off.ring_mask);
    const auto* entries = reinterpret_cast<const io_uring_cqe*>(At(cq_, params_.cq_off.cqes));
    for (; head != tail; ++head) {
      done.push_back({entries[head & mask].user_data, entries[head & mask].res});
      --in_flight_;
    }
    std::atomic_ref<uint32_t>(*At(cq_, params_.cq_off.head)).store(head, std::memory_order_release);
  }

  io_uring_params params_{};
  int fd_ = -1;
  size_t depth_ = 0;
  size_t sq_bytes_ = 0;
  size_t cq_bytes_ = 0;
  void* sq_ = MAP_FAILED;
  void* cq_ = MAP_FAILED;
  void* sqes_ = MAP_FAILED;
  size_t unsubmitted_ = 0;
  size_t in_flight_ = 0;
};

class ThreadReads final : public AsyncReads {
 public:
  explicit ThreadReads(size_t depth) : depth_(depth) {
    const size_t threads = std::clamp<size_t>(depth, 1, 32);
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  ~ThreadReads() override {
    {
      MutexLock lock(&mu_);
      closing_ = true;
    }
    for (std::thread& t : threads_) t.join();
  }

  void Submit(int fd, uint64_t offset, std::span<uint8_t> out, uint64_t tag) override {
    MutexLock lock(&mu_);
    asked_.push_back({fd, offset, out, tag});
  }
  void Wait(std::vector<Done>& done) override {
    MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &ThreadReads::HasDone));
    done.insert(done.end(), done_.begin(), done_.end());
    done_.clear();
  }
  size_t depth() const override { return depth_; }

 private:
  struct Asked {
    int fd;
    uint64_t offset;
    std::span<uint8_t> out;
    uint64_t tag;
  };

  bool HasDone() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !done_.empty(); }
  bool HasWork() const ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !asked_.empty() || closing_; }

  void Run() {
    MutexLock lock(&mu_);
    for (;;) {
      mu_.Await(absl::Condition(this, &ThreadReads::HasWork));
      if (asked_.empty()) return;
      const Asked read = asked_.front();
      asked_.pop_front();
      mu_.Unlock();
      ssize_t n;
      do {
        n = pread(read.fd, read.out.data(), read.out.size(), static_cast<off_t>(read.offset));
      } while (n < 0 && errno == EINTR);
      const int64_t result = n < 0 ? -errno : n;
      mu_.Lock();
      done_.push_back({read.tag, result});
    }
  }

  const size_t depth_;
  Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  std::deque<Asked> asked_ ABSL_GUARDED_BY(mu_);
  std::vector<Done> done_ ABSL_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<AsyncReads> MakeUringReads(size_t depth) {
  auto reads = std::make_unique<UringReads>();
  if (!reads->Open(depth)) return nullptr;
  return reads;
}

std::unique_ptr<AsyncReads> MakeThreadReads(size_t depth) {
  return std::make_unique<ThreadReads>(depth);
}

std::unique_ptr<AsyncReads> MakeAsyncReads(size_t depth) {
  std::unique_ptr<AsyncReads> reads = MakeUringReads(depth);
  return reads != nullptr ? std::move(reads) : MakeThreadReads(depth);
}

}  // namespace strata::storage
