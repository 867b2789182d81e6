// What the wire's benchmarks send: keys over a full table, and calls kept in flight.
#ifndef STRATA_TOOLS_BENCH_WIRE_LOAD_H_
#define STRATA_TOOLS_BENCH_WIRE_LOAD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/position.h"
#include "proto/core/table_spec.h"
#include "proto/runtime/transport/transport.h"
#include "proto/wire/buffer.h"

namespace strata::bench {

inline constexpr size_t kRows = 10'000'000;
inline constexpr size_t kKeys = 100'000;  // of a request
inline constexpr uint32_t kDim = 16;
inline constexpr size_t kSets = 16;  // distinct requests, taken in turn
inline constexpr int kInFlight = 4;
inline constexpr absl::Duration kTimeout = absl::Seconds(60);

// Keeps kInFlight exchanges going: a request from make(i), its reply through check; or, as a pair,
// a pull from make(i), the push that follow(i, reply) makes of its reply, and that one's reply
// through check.
class Pump {
 public:
  using Make = std::function<absl::StatusOr<Buffer>(uint64_t index)>;
  using Check = std::function<absl::Status(uint64_t index, const Buffer& reply)>;
  using Follow = std::function<absl::StatusOr<Buffer>(uint64_t index, const Buffer& reply)>;

  Pump(DataChannel* channel, DataMethod method, Make make, Check check)
      : channel_(channel), method_(method), make_(std::move(make)), check_(std::move(check)) {}
  Pump(DataChannel* channel, Make pull, Follow follow, Check check)
      : Pump(channel, DataMethod::kPull, std::move(pull), std::move(check)) {
    follow_ = std::move(follow);
  }

  // Until `seconds` have passed and `calls` exchanges are done. Returns exchanges per second.
  absl::StatusOr<double> Run(double seconds, uint64_t calls) {
    const absl::Time from = absl::Now();
    const absl::Time until = from + absl::Seconds(seconds);
    uint64_t sent = 0, done = 0;
    while (true) {
      const bool more = sent < calls || absl::Now() < until;
      while (more && sent - done < kInFlight) {
        auto request = make_(next_);
        if (!request.ok()) return request.status();
        Send(method_, next_++, *std::move(request));
        ++sent;
      }
      if (sent == done) break;
      for (auto& [first, index, reply] : TakeReplies()) {
        if (!reply.ok()) return reply.status();
        bytes_ += reply->size();
        if (first && follow_ != nullptr) {
          auto second = follow_(index, *reply);
          if (!second.ok()) return second.status();
          Send(DataMethod::kPush, index, *std::move(second));
          continue;
        }
        ++done;
        if (absl::Status s = check_(index, *reply); !s.ok()) return s;
      }
    }
    done_ += done;
    return static_cast<double>(done) / absl::ToDoubleSeconds(absl::Now() - from);
  }

  // Of all messages of an exchange, both ways, so far.
  double BytesPerExchange() const {
    return done_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(done_);
  }

 private:
  struct Reply {
    bool first;  // to make's request
    uint64_t index;
    absl::StatusOr<Buffer> reply;
  };
  struct State {
    absl::Mutex mu;
    std::vector<Reply> replies ABSL_GUARDED_BY(mu);
  };

  void Send(DataMethod method, uint64_t index, Buffer request) {
    auto state = state_;
    bytes_ += request.size();
    const bool first = method == method_;
    channel_->Call(method, std::move(request), kTimeout,
                   [state, first, index](absl::StatusOr<Buffer> reply) {
                     absl::MutexLock lock(&state->mu);
                     state->replies.push_back({first, index, std::move(reply)});
                   });
  }

  std::vector<Reply> TakeReplies() {
    State& s = *state_;
    absl::MutexLock lock(&s.mu);
    const auto some = [&s]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(s.mu) { return !s.replies.empty(); };
    s.mu.Await(absl::Condition(&some));
    return std::exchange(s.replies, {});
  }

  DataChannel* const channel_;
  const DataMethod method_;
  const Make make_;
  const Check check_;
  Follow follow_;
  uint64_t next_ = 0;
  uint64_t done_ = 0;
  uint64_t bytes_ = 0;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Keys by position, and how to take requests from them.
class Keys {
 public:
  // REQUIRES: `rows` is a multiple of `keys`, those of a request.
  Keys(const TableSpec& table, size_t rows, size_t keys) : rows_(rows), batches_(rows / keys) {
    std::vector<std::pair<uint64_t, uint64_t>> all(rows);
    for (size_t i = 0; i < rows; ++i) {
      const Key key(Mix64(i * 0x9e3779b97f4a7c15ull + 1));
      all[i] = {table.PositionOfKey(key).value, key.value};
    }
    std::sort(all.begin(), all.end());
    for (const auto& [position, key] : all) {
      positions_.push_back(position);
      keys_.emplace_back(key);
    }
    std::mt19937_64 random(3);
    for (auto& set : sets_) {
      for (size_t k = 0; k < keys; ++k) {
        set.push_back(static_cast<uint32_t>(k * batches_ + random() % batches_));
      }
    }
  }

  struct Request {
    std::vector<Key> keys;
    std::vector<uint64_t> positions;
  };
  // A batch is every batches()-th key: all of them together are all rows.
  size_t batches() const { return batches_; }
  Request Batch(size_t b) const {
    Request r;
    for (size_t i = b; i < rows_; i += batches_) Add(i, r);
    return r;
  }
  // Set s of random keys, ascending.
  Request Random(size_t s) const {
    Request r;
    for (uint32_t i : sets_[s]) Add(i, r);
    return r;
  }

 private:
  void Add(size_t i, Request& r) const {
    r.keys.push_back(keys_[i]);
    r.positions.push_back(positions_[i]);
  }
  const size_t rows_;
  const size_t batches_;
  std::vector<uint64_t> positions_;
  std::vector<Key> keys_;
  std::vector<uint32_t> sets_[kSets];
};

}  // namespace strata::bench

#endif  // STRATA_TOOLS_BENCH_WIRE_LOAD_H_
