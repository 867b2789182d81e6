#include "tools/bench/table/flat_table.h"

#include <sys/mman.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace strata::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAhead = 32;
constexpr float kRate = .01f, kEpsilon = 1e-10f;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Zeroed memory in huge pages where the kernel gives them, touched.
class Pages {
 public:
  explicit Pages(size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) std::abort();
    madvise(data_, bytes, MADV_HUGEPAGE);
    std::memset(data_, 0, bytes);
  }
  ~Pages() { munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  size_t bytes_;
  void* data_;
};

uint64_t KeyOf(uint64_t i) {
  i += 0x9e3779b97f4a7c15ull;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ull;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebull;
  return (i ^ (i >> 31)) | 1;  // 0 says "free"
}

template <TableWork kWork>
inline void Touch(float* row, float* other) {
  for (size_t k = 0; k < kTableDim; ++k) {
    if (kWork == TableWork::kGather) other[k] = row[k];
    if (kWork == TableWork::kSgd) row[k] -= kRate * other[k];
    if (kWork == TableWork::kAdagrad) {
      const float g = other[k];
      const float sum = row[kTableDim + k] += g * g;
      row[k] -= kRate * g / (std::sqrt(sum) + kEpsilon);
    }
  }
}

}  // namespace

struct FlatTable::Memory {
  Memory(size_t rows_in, size_t floats_in)
      : rows(rows_in),
        floats(floats_in),
        bits(std::bit_width(rows * 3 / 2)),
        mask((size_t{1} << bits) - 1),
        keys((mask + 1) * sizeof(uint64_t)),
        values((mask + 1) * floats * sizeof(float)) {}
  size_t Home(uint64_t key) const { return (key * 0x9e3779b97f4a7c15ull) >> (64 - bits); }

  template <TableWork kWork>
  void Batch(const uint64_t* batch, float* out) const {
    const auto* all = keys.as<uint64_t>();
    auto* row = values.as<float>();
    for (size_t i = 0; i < kTableBatch; ++i) {
      const size_t ahead = Home(batch[i + kAhead]);
      __builtin_prefetch(&all[ahead]);
      __builtin_prefetch(row + ahead * floats);
      if (kWork == TableWork::kAdagrad) __builtin_prefetch(row + ahead * floats + kTableDim);
      size_t at = Home(batch[i]);
      while (all[at] != batch[i]) at = (at + 1) & mask;
      Touch<kWork>(row + at * floats, out + i * kTableDim);
    }
  }

  const size_t rows, floats;
  const int bits;
  const size_t mask;
  const Pages keys, values;
};

FlatTable::FlatTable(size_t rows, TableWork widest)
    : memory_(std::make_unique<Memory>(rows,
                                       widest == TableWork::kAdagrad ? 2 * kTableDim : kTableDim)) {
  auto* keys = memory_->keys.as<uint64_t>();
  for (size_t i = 0; i < rows; ++i) {
    size_t at = memory_->Home(KeyOf(i));
    while (keys[at] != 0 && keys[at] != KeyOf(i)) at = (at + 1) & memory_->mask;
    keys[at] = KeyOf(i);
  }
}

FlatTable::~FlatTable() = default;

double FlatTable::Rate(TableWork work, size_t threads, double seconds) const {
  std::vector<double> rates(threads);
  std::vector<std::thread> team;
  for (size_t t = 0; t < threads; ++t) {
    team.emplace_back([&, t] {
      std::vector<std::vector<uint64_t>> sets(kTableSets,
                                              std::vector<uint64_t>(kTableBatch + kAhead, 1));
      uint64_t x = 88172645463325252ull + t * 977;
      for (auto& set : sets) {
        for (size_t i = 0; i < kTableBatch; ++i) {
          x ^= x << 13, x ^= x >> 7, x ^= x << 17;
          set[i] = KeyOf(x % memory_->rows);
        }
      }
      const Pages out(kTableBatch * kTableDim * sizeof(float));
      uint64_t batches = 0;
      const auto start = Clock::now();
      for (; Since(start) < seconds; ++batches) {
        const uint64_t* set = sets[batches % kTableSets].data();
        if (work == TableWork::kGather) memory_->Batch<TableWork::kGather>(set, out.as<float>());
        if (work == TableWork::kSgd) memory_->Batch<TableWork::kSgd>(set, out.as<float>());
        if (work == TableWork::kAdagrad) memory_->Batch<TableWork::kAdagrad>(set, out.as<float>());
      }
      rates[t] = static_cast<double>(batches * kTableBatch) / Since(start) / 1e6;
    });
  }
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (double rate : rates) sum += rate;
  return sum;
}

}  // namespace strata::bench
