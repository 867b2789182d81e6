#include "tools/bench/daemons/small_job.h"

#include "tools/bench/job/train_case.h"
#include "tools/generate/criteo_generator.h"

namespace strata::bench {

absl::StatusOr<TrainingJob> MakeSmallJob(const std::string& directory) {
  const std::string file = directory + "/small.tsv";
  CriteoGeneratorOptions generate;
  generate.rows = 40 * kSmallBatch;
  generate.vocabulary = 100'000;
  auto generated = GenerateCriteo(generate, file, {});
  if (!generated.ok()) return generated.status();
  TrainingJob job = MakeTrainJob({"lr", "adagrad", 0});
  JobSpec& spec = *job.mutable_spec();
  spec.mutable_data()->set_train(0, file);
  spec.mutable_training()->set_epochs(1'000'000);
  spec.mutable_training()->set_lanes(2);
  spec.mutable_training()->set_batch_size(kSmallBatch);
  spec.mutable_training()->set_threads(1);
  spec.mutable_replicas()->set_servers(1);
  spec.mutable_replicas()->set_workers(2);
  return job;
}

}  // namespace strata::bench
