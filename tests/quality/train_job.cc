#include "tests/quality/train_job.h"

#include <catch2/catch.hpp>
#include <cstdio>

#include "tools/cluster/embedded/embedded.h"

namespace strata::testing {

TrainingJob QualityJob(const std::string& format, const std::string& train, const std::string& eval,
                       const std::string& model, float sparse_rate, uint32_t epochs) {
  TrainingJob job;
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name(model + "-quality");
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_format(format);
  spec.mutable_data()->add_train(train);
  spec.mutable_data()->add_eval(eval);
  spec.mutable_model()->set_type(model);
  spec.mutable_model()->set_embedding_dim(16);
  spec.mutable_optimizer()->mutable_sparse()->set_type("adagrad");
  spec.mutable_optimizer()->mutable_sparse()->set_learning_rate(sparse_rate);
  spec.mutable_optimizer()->mutable_dense()->set_type("adam");
  spec.mutable_optimizer()->mutable_dense()->set_learning_rate(0.001f);
  spec.mutable_training()->set_epochs(epochs);
  return job;
}

void SetTraining(TrainingJob& job, const std::string& mode, uint32_t lanes, uint32_t batch_size,
                 uint64_t seed) {
  TrainingSpec& training = *job.mutable_spec()->mutable_training();
  training.set_mode(mode);
  training.set_lanes(lanes);
  training.set_batch_size(batch_size);
  training.set_seed(seed);
}

EvaluationResult TrainAndEvaluate(const TrainingJob& job, uint64_t train_lines) {
  EmbeddedOptions options;
  options.job = job;
  const auto status = RunEmbedded(options);
  REQUIRE(status.ok());
  for (const JobCondition& c : status->conditions()) {
    UNSCOPED_INFO(c.reason() << ": " << c.message());
  }
  REQUIRE(status->state() == SUCCEEDED);
  const TrainingSpec& training = job.spec().training();
  REQUIRE(status->examples() == train_lines * training.epochs());
  std::fprintf(stderr, "%s %s %u x %u seed %d: AUC %.4f logloss %.4f (%.1f s)\n",
               job.spec().model().type().c_str(), training.mode().c_str(), training.lanes(),
               training.batch_size(), static_cast<int>(training.seed()), status->result().auc(),
               status->result().logloss(), status->train_seconds());
  return status->result();
}

}  // namespace strata::testing
