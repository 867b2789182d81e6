// What tests of two clusters have in common: their folders exchanged, and a job of each.
#ifndef STRATA_TESTS_FAULTS_SWAPPED_H_
#define STRATA_TESTS_FAULTS_SWAPPED_H_

#include <filesystem>
#include <string>

#include "proto/strata/job.pb.h"
#include "tests/e2e/cluster/small_job.h"

namespace strata::testing {

inline void SwapFolders(const std::string& a, const std::string& b) {
  std::filesystem::rename(a, a + ".aside");
  std::filesystem::rename(b, a);
  std::filesystem::rename(a + ".aside", b);
}

// A small job in a folder of its own; of another rate, another model.
inline TrainingJob JobOf(const std::string& folder, double rate, uint32_t epochs) {
  std::filesystem::create_directories(folder);
  TrainingJob job = SmallJob(folder);
  job.mutable_spec()->mutable_optimizer()->mutable_sparse()->set_learning_rate(rate);
  job.mutable_spec()->mutable_training()->set_epochs(epochs);
  return job;
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_SWAPPED_H_
