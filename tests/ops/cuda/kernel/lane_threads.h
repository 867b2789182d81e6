// A group of lanes (ops/cuda/kernel/group.h) made of host threads that wait for each other wherever
// they exchange: what a warp's threads do, for functors that spread an item over several lanes.
// Slow.
#ifndef STRATA_TESTS_OPS_CUDA_KERNEL_LANE_THREADS_H_
#define STRATA_TESTS_OPS_CUDA_KERNEL_LANE_THREADS_H_

#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace strata::ops::gpu::testing {

template <uint32_t kWidth>
class LaneThread {
 public:
  static constexpr uint32_t kLanes = kWidth;
  struct Exchange {
    std::barrier<> barrier{kWidth};
    uint32_t words[kWidth] = {};
    float floats[kWidth] = {};
  };
  LaneThread(uint32_t lane, Exchange* exchange) : lane_(lane), exchange_(exchange) {}

  uint32_t lane() const { return lane_; }
  uint32_t lanes() const { return kWidth; }
  void* shared() const { return nullptr; }
  void Sync() const { exchange_->barrier.arrive_and_wait(); }
  uint32_t Max(uint32_t x) const {
    return Fold(x, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
  }
  uint32_t Sum(uint32_t x) const {
    return Fold(x, [](uint32_t a, uint32_t b) { return a + b; });
  }
  uint32_t InclusiveSum(uint32_t x) const {
    exchange_->words[lane_] = x;
    Sync();
    uint32_t sum = 0;
    for (uint32_t l = 0; l <= lane_; ++l) sum += exchange_->words[l];
    Sync();
    return sum;
  }
  uint32_t FromLast(uint32_t x) const { return From(exchange_->words, x, kWidth - 1); }
  float FromXor(float x, uint32_t mask) const { return From(exchange_->floats, x, lane_ ^ mask); }
  uint32_t FromXor(uint32_t x, uint32_t mask) const {
    return From(exchange_->words, x, lane_ ^ mask);
  }

 private:
  template <typename T>
  T From(T* slots, T x, uint32_t lane) const {
    slots[lane_] = x;
    Sync();
    const T got = slots[lane];
    Sync();
    return got;
  }
  template <typename Combine>
  uint32_t Fold(uint32_t x, const Combine& combine) const {
    exchange_->words[lane_] = x;
    Sync();
    uint32_t all = exchange_->words[0];
    for (uint32_t l = 1; l < kWidth; ++l) all = combine(all, exchange_->words[l]);
    Sync();
    return all;
  }

  const uint32_t lane_;
  Exchange* const exchange_;
};

// Calls body(group) on kWidth threads that are one group.
template <uint32_t kWidth, typename Body>
void ForEachLane(const Body& body) {
  typename LaneThread<kWidth>::Exchange exchange;
  std::vector<std::thread> threads;
  for (uint32_t lane = 0; lane < kWidth; ++lane) {
    threads.emplace_back([&, lane] { body(LaneThread<kWidth>(lane, &exchange)); });
  }
  for (std::thread& thread : threads) thread.join();
}

// All items of a functor by its own number of lanes.
template <typename Functor>
void RunByLanes(const Functor& functor) {
  ForEachLane<Functor::kLanes>([&](const LaneThread<Functor::kLanes>& group) {
    const uint64_t items = functor.items();
    for (uint64_t item = 0; item < items; ++item) functor(group, item);
  });
}

}  // namespace strata::ops::gpu::testing

#endif  // STRATA_TESTS_OPS_CUDA_KERNEL_LANE_THREADS_H_
