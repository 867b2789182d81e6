// Jobs that start from another one's checkpoint, and what of it they have.
#ifndef STRATA_TESTS_E2E_CLUSTER_STARTED_JOB_H_
#define STRATA_TESTS_E2E_CLUSTER_STARTED_JOB_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// Over 400 lines, written to `path`, of csv with these columns: y is the label, price a number, any
// other a category. Deepfm has hidden layers of 8 and 8.
TrainingJob CsvJob(const std::string& path, const std::string& type,
                   const std::vector<std::string>& columns);

// Deepfm over user, item and price with these labels, of y, z and v.
TrainingJob LabelledJob(const std::string& path, const std::vector<std::string>& labels);

// The job, starting from the checkpoint, with rates of nothing: what it has at the end is what it
// began with.
TrainingJob From(TrainingJob job, const std::string& checkpoint);

// Trains the job in `folder`, and returns its last checkpoint.
std::string Train(TrainingJob job, const std::string& folder);

// Of a hashed table, by key. A weight that began as 0 and has moved by nothing is 0, here and
// below.
std::map<uint64_t, std::vector<float>> Rows(const std::string& checkpoint,
                                            const std::string& table);

// Of a dense tensor, with the padding behind it.
std::vector<float> Tensor(const std::string& checkpoint, const std::string& name);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_STARTED_JOB_H_
