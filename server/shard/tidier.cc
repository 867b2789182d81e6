#include "server/shard/tidier.h"

#include <algorithm>
#include <utility>

namespace strata::server {

Tidier::Tidier(Options options) : options_(std::move(options)) {}

void Tidier::Wake() {
  if (!due_) Later(not_before_);
}

void Tidier::Later(absl::Time when) {
  due_ = true;
  if (when <= options_.timer->Now()) return options_.post([this] { Slice(); });
  options_.timer->At(when, options_.owner, [this] { options_.post([this] { Slice(); }); });
}

void Tidier::Slice() {
  due_ = false;
  const absl::Time start = options_.timer->Now();
  const absl::StatusOr<uint64_t> bytes = options_.tidy(kSliceRows);
  if (!bytes.ok()) return options_.failed();
  if (*bytes == 0) return;
  const absl::Time end = options_.timer->Now();
  const absl::Duration written =
      absl::Seconds(static_cast<double>(*bytes) / options_.bytes_per_second);
  not_before_ = std::max(end + (end - start) * (1 / kShare - 1), start + written);
  Later(not_before_);
}

}  // namespace strata::server
