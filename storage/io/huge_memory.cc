#include "storage/io/huge_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/base/failpoints.h"
#include "storage/io/out_of_memory.h"

namespace strata::storage {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHuge = HugeMemory::kHugePage;
constexpr int kAdviceCollapse = 25;  // MADV_COLLAPSE, which older headers do not name

// Copies full regions of small pages into huge ones, one at a time. It knows addresses only: one
// that was unmapped meanwhile is refused by the kernel, and one that was mapped anew merely gets a
// huge page. Never destroyed.
class Collapser {
 public:
  // Never waits: false when the thread is behind or has the lock.
  bool Add(uint8_t* region) {
    std::unique_lock<std::mutex> lock(mu_, std::try_to_lock);
    if (!lock.owns_lock() || queue_.size() >= kMostRegions) return false;
    if (!started_) std::thread([this] { Run(); }).detach();
    started_ = true;
    queue_.push_back(region);
    enough_ = enough_ || queue_.size() >= kFirstRegions;
    if (enough_) wake_.notify_one();
    return true;
  }

 private:
  static constexpr size_t kMostRegions = 4096;  // 8 GiB of rows
  // A page that is being warmed is resident, too: little beside so many regions (384 MiB), but 2
  // bytes a row of a small table.
  static constexpr size_t kFirstRegions = 192;
  // A collapse has the address space for itself, and every page fault of the process waits for it:
  // so it has that for at most a fifth of the time. 2 MiB in some 2.5 ms is still faster than
  // tables fill.
  static constexpr int kPause = 4;

  void Run() {
    for (;;) {
      uint8_t* region;
      {
        std::unique_lock<std::mutex> lock(mu_);
        while (!enough_ || queue_.empty()) wake_.wait(lock);
        region = queue_.front();
        queue_.pop_front();
      }
      WarmPage();
      const auto begin = std::chrono::steady_clock::now();
      if (madvise(region, kHuge, kAdviceCollapse) != 0) (void)madvise(region, kHuge, MADV_HUGEPAGE);
      std::this_thread::sleep_for((std::chrono::steady_clock::now() - begin) * kPause);
    }
  }

  // In a virtual machine the first touch of memory may wait for the host, 5 ms a huge page
  // measured, and a collapse would do that waiting while it holds up whoever reads the region. So a
  // huge page is touched and freed here first: the collapse gets the same one again.
  static void WarmPage() {
    void* base = mmap(nullptr, 2 * kHuge, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(base) + kHuge - 1) / kHuge * kHuge;
    auto* page = reinterpret_cast<uint8_t*>(start);
    if (madvise(page, kHuge, MADV_HUGEPAGE) == 0) *page = 1;
    munmap(base, 2 * kHuge);
  }

  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<uint8_t*> queue_;  // guarded by mu_
  bool started_ = false;        // guarded by mu_
  bool enough_ = false;         // guarded by mu_; from the first kFirstRegions on
};

Collapser& TheCollapser() {
  static auto* collapser = new Collapser;
  return *collapser;
}

// Bytes that the process has mapped; 0 where the kernel does not say. Allocates nothing.
uint64_t MappedBytes() {
  char text[32] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t n = read(file, text, sizeof(text) - 1);
  close(file);
  return n <= 0 ? 0 : std::strtoull(text, nullptr, 10) * static_cast<uint64_t>(getpagesize());
}

// For messages: what the process's limit leaves, or else what the machine has.
uint64_t FreeBytes() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, MappedBytes());
  }
  struct sysinfo machine = {};
  return sysinfo(&machine) != 0 ? 0 : uint64_t{machine.freeram} * machine.mem_unit;
}

}  // namespace

absl::StatusOr<HugeMemory> HugeMemory::Allocate(size_t bytes, PageUse use) {
  const bool aligned = bytes >= kHuge;
  HugeMemory memory;
  memory.size_ = bytes;
  memory.mapped_ = (bytes + kPage - 1) / kPage * kPage + (aligned ? kHuge : 0);
  // MAP_NORESERVE: tables reserve slabs and fill them row by row.
  void* base = MAP_FAILED;
  if (Failpoint("huge_memory.allocate").ok()) {
    base = mmap(nullptr, memory.mapped_, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  if (base == MAP_FAILED) {
    return OutOfMemory(absl::StrCat(
        "the system has no ", memory.mapped_, " bytes of memory for rows (", FreeBytes(),
        " are free); give the job a smaller spec.storage.dramBytesPerServer or the machine more "
        "memory"));
  }
  memory.base_ = base;
  uintptr_t start = reinterpret_cast<uintptr_t>(base);
  if (aligned) start = (start + kHuge - 1) / kHuge * kHuge;
  memory.data_ = reinterpret_cast<uint8_t*>(start);
  // Only advice: without huge pages everything works, slower. Where the system gives huge pages to
  // everybody, gradual memory has to decline.
  if (aligned) {
    (void)madvise(memory.data_, bytes, use == PageUse::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  }
  return memory;
}

void HugeMemory::Release(size_t offset, size_t bytes) {
  if (madvise(data_ + offset, bytes, MADV_DONTNEED) == 0) return;
  std::memset(data_ + offset, 0, bytes);  // locked in memory (mlockall)
}

void HugeMemory::Collapse(size_t offset, size_t bytes) {
  const size_t end = (offset + bytes) / kHuge * kHuge;
  for (size_t at = (offset + kHuge - 1) / kHuge * kHuge; at < end; at += kHuge) {
    (void)madvise(data_ + at, kHuge, MADV_HUGEPAGE);  // ends that decline
    (void)TheCollapser().Add(data_ + at);
  }
}

HugeMemory::~HugeMemory() {
  if (base_ != nullptr) munmap(base_, mapped_);
}

}  // namespace strata::storage
