#include "ops/parallel.h"

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "ops/mxcsr.h"

namespace strata::ops {
namespace {

using Body = std::function<void(size_t)>;

// How long an idle helper watches for the next loop before it sleeps: longer than the gaps inside a
// step, shorter than a time slice.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kPausesPerClockRead = 16;

class SerialTeam : public Parallel {
 public:
  size_t threads() const override { return 1; }
  void For(size_t n, const Body& body) override {
    for (size_t i = 0; i < n; ++i) body(i);
  }
};

// A loop is published as one word, (round, next index), and its indices are taken by
// compare-exchange on that word. A helper that wakes late cannot take an index of a loop that is
// over: the round has changed. So the caller waits for work that was taken, never for a helper that
// sleeps.
//
// The order that makes this safe: the caller closes the word (a new round, no index left), writes
// n_ and body_, then opens the next round. Who takes index i of round r with success has read n_
// and body_ of round r, because they cannot be rewritten before i has been run.
class Team : public Parallel {
 public:
  explicit Team(size_t threads) {
    helpers_.reserve(threads - 1);
    for (size_t i = 1; i < threads; ++i) helpers_.emplace_back([this] { HelperMain(); });
  }

  ~Team() override {
    stop_.store(true, std::memory_order_relaxed);
    wake_.fetch_add(1);
    wake_.notify_all();
    for (std::thread& t : helpers_) t.join();
  }

  size_t threads() const override { return helpers_.size() + 1; }

  void For(size_t n, const Body& body) override {
    if (n == 1) {
      body(0);
      return;
    }
    for (size_t begin = 0; begin < n; begin += kMaxIndices) {
      const size_t count = std::min<size_t>(n - begin, kMaxIndices);
      if (begin == 0) {
        Loop(count, body);
      } else {
        Loop(count, [&](size_t i) { body(begin + i); });
      }
    }
  }

 private:
  static constexpr int kIndexBits = 24;
  static constexpr uint64_t kIndexMask = (1ull << kIndexBits) - 1;
  static constexpr uint64_t kMaxIndices = kIndexMask - 1;

  void Loop(size_t n, const Body& body) {
    round_ += 2;
    word_.store(((round_ - 1) << kIndexBits) | kIndexMask);  // closed
    n_.store(n);
    body_.store(&body);
    done_.store(0);
    word_.store(round_ << kIndexBits);
    wake_.fetch_add(1);
    wake_.notify_all();
    TakeIndices();
    for (int spins = 0; done_.load(std::memory_order_acquire) != n; ++spins) {
      if (spins < 4000) {
        _mm_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

  // Runs bodies of the current round until none is left to take.
  void TakeIndices() {
    uint64_t word = word_.load();
    for (;;) {
      const uint64_t index = word & kIndexMask;
      if (index == kIndexMask || index >= n_.load()) return;
      const Body* body = body_.load();
      if (!word_.compare_exchange_weak(word, word + 1)) continue;
      (*body)(index);
      done_.fetch_add(1, std::memory_order_release);
      word = word_.load();
    }
  }

  void HelperMain() {
    RestoreExactFloatState();
    uint32_t seen = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      const uint32_t now = wake_.load();
      if (now != seen) {
        seen = now;
        TakeIndices();
        continue;
      }
      const auto sleep_at = std::chrono::steady_clock::now() + kSpin;
      while (wake_.load(std::memory_order_relaxed) == seen) {
        for (int i = 0; i < kPausesPerClockRead; ++i) _mm_pause();
        if (std::chrono::steady_clock::now() >= sleep_at) {
          wake_.wait(seen);
          break;
        }
      }
    }
  }

  alignas(64) std::atomic<uint64_t> word_{kIndexMask};
  std::atomic<size_t> n_{0};
  std::atomic<const Body*> body_{nullptr};
  alignas(64) std::atomic<size_t> done_{0};
  alignas(64) std::atomic<uint32_t> wake_{0};  // counts loops; helpers sleep on it
  std::atomic<bool> stop_{false};
  uint64_t round_ = 0;  // touched by the thread that calls For only
  std::vector<std::thread> helpers_;
};

}  // namespace

std::unique_ptr<Parallel> MakeParallel(size_t threads) {
  if (threads <= 1) return std::make_unique<SerialTeam>();
  return std::make_unique<Team>(threads);
}

}  // namespace strata::ops
