// Jobs whose held-out quality is judged.
#ifndef STRATA_TESTS_QUALITY_TRAIN_JOB_H_
#define STRATA_TESTS_QUALITY_TRAIN_JOB_H_

#include <cstdint>
#include <string>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// A job of the given model on one server and one worker; optimizers as the quality bars name them:
// sparse adagrad of the given rate, dense adam 0.001.
TrainingJob QualityJob(const std::string& format, const std::string& train, const std::string& eval,
                       const std::string& model, float sparse_rate, uint32_t epochs);

// Sets mode, lanes, batch size of a lane and seed.
void SetTraining(TrainingJob& job, const std::string& mode, uint32_t lanes, uint32_t batch_size,
                 uint64_t seed);

// Trains embedded and returns what was measured on the eval file. Fails the test where the job
// fails or counts other examples than it was given. Prints one line of figures.
EvaluationResult TrainAndEvaluate(const TrainingJob& job, uint64_t train_lines);

}  // namespace strata::testing

#endif  // STRATA_TESTS_QUALITY_TRAIN_JOB_H_
