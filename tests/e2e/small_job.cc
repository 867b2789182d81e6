#include "tests/e2e/small_job.h"

#include <cmath>
#include <fstream>
#include <random>
#include <vector>

namespace strata::testing {

void WriteLibfm(const std::string& path, uint64_t seed, int lines, int fields, int ids) {
  std::mt19937_64 weights(7);
  std::normal_distribution<double> normal(0, 1);
  constexpr int kRank = 3;
  std::vector<double> linear(static_cast<size_t>(fields * ids));
  std::vector<double> latent(static_cast<size_t>(fields * ids * kRank));
  for (double& w : linear) w = normal(weights);
  for (double& v : latent) v = normal(weights);
  std::mt19937_64 random(seed);
  std::ofstream out(path);
  for (int l = 0; l < lines; ++l) {
    double logit = -0.3;
    std::vector<double> sum(kRank, 0.0);
    std::string features;
    for (int f = 0; f < fields; ++f) {
      const int id = static_cast<int>(random() % static_cast<uint64_t>(ids));
      const size_t at = static_cast<size_t>(f * ids + id);
      logit += linear[at] * 1.2;
      for (int k = 0; k < kRank; ++k) {
        logit += 0.4 * sum[k] * latent[at * kRank + k];
        sum[k] += latent[at * kRank + k];
      }
      features += ' ' + std::to_string(f * 1000 + id) + ":1";
    }
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    out << (u < 1 / (1 + std::exp(-logit)) ? "1" : "-1") << features << '\n';
  }
}

TrainingJob SmallJob(const std::string& folder) {
  WriteLibfm(folder + "/train.libfm", 1, 600, 6, 40);
  WriteLibfm(folder + "/eval.libfm", 2, 200, 6, 40);
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("small");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format("libfm");
  spec.mutable_data()->add_train(folder + "/train.libfm");
  spec.mutable_data()->add_eval(folder + "/eval.libfm");
  spec.mutable_data()->mutable_shuffle()->set_buffer_lines(64);
  spec.mutable_model()->set_type("deepfm");
  spec.mutable_model()->set_embedding_dim(8);
  spec.mutable_model()->add_hidden(16);
  spec.mutable_model()->add_hidden(8);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adagrad");
  spec.mutable_optimizer()->mutable_dense()->set_type("adam");
  spec.mutable_training()->set_mode("bsp");
  spec.mutable_training()->set_lanes(4);
  spec.mutable_training()->set_batch_size(16);
  spec.mutable_training()->set_epochs(2);
  spec.mutable_training()->set_threads(1);
  spec.mutable_storage()->set_partitions(256);
  spec.mutable_storage()->set_shards_per_server(4);
  return job;
}

TrainingJob ManyFeaturesJob(const std::string& folder, uint32_t dim, uint32_t epochs) {
  TrainingJob job = SmallJob(folder);
  WriteLibfm(folder + "/train.libfm", 1, 1280, 6, 1000);
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_model()->set_type("fm");
  spec.mutable_model()->clear_hidden();
  spec.mutable_model()->set_embedding_dim(dim);
  spec.mutable_training()->set_epochs(epochs);
  return job;
}

}  // namespace strata::testing
