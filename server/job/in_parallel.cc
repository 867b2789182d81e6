#include "server/job/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "ops/mxcsr.h"

namespace strata::server {

absl::Status InParallel(size_t n, const std::function<absl::Status(size_t)>& work) {
  std::vector<absl::Status> results(n);
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  const auto run = [&] {
    for (size_t i; !failed && (i = next++) < n;) {
      results[i] = work(i);
      if (!results[i].ok()) failed = true;
    }
  };
  const size_t cores = std::max<size_t>(1, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (size_t t = 1; t < std::min(cores, n); ++t) {
    threads.emplace_back([&run] {
      ops::RestoreExactFloatState();
      run();
    });
  }
  run();
  for (std::thread& thread : threads) thread.join();
  for (absl::Status& result : results) {
    if (!result.ok()) return std::move(result);
  }
  return absl::OkStatus();
}

}  // namespace strata::server
