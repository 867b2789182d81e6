// Keys or positions that several owners share.
// Tested by tests/worker/step/router_test.cc, tests/worker/bsp/row_exchange_test.cc
#ifndef STRATA_WORKER_STEP_SHARED_KEYS_H_
#define STRATA_WORKER_STEP_SHARED_KEYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace strata {

// An array that does not change. A copy is the same memory: a batch's keys go with its pull, its
// gradient, sums of it that have the same ones, and its pushes, and are some MB of a large batch.
class SharedKeys {
 public:
  SharedKeys() = default;
  SharedKeys(std::vector<uint64_t> keys)  // NOLINT(google-explicit-constructor): takes them over
      : keys_(std::make_shared<const std::vector<uint64_t>>(std::move(keys))) {}

  size_t size() const { return keys_ == nullptr ? 0 : keys_->size(); }
  bool empty() const { return size() == 0; }
  const uint64_t* data() const { return keys_ == nullptr ? nullptr : keys_->data(); }
  const uint64_t* begin() const { return data(); }
  const uint64_t* end() const { return data() + size(); }
  uint64_t operator[](size_t i) const { return (*keys_)[i]; }

  // Of equal contents; those that share memory need not be read.
  friend bool operator==(const SharedKeys& a, const SharedKeys& b) {
    return a.keys_ == b.keys_ || std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::shared_ptr<const std::vector<uint64_t>> keys_;
};

}  // namespace strata

#endif  // STRATA_WORKER_STEP_SHARED_KEYS_H_
