// A small job with data of its own, for end-to-end tests.
#ifndef STRATA_TESTS_E2E_CLUSTER_SMALL_JOB_H_
#define STRATA_TESTS_E2E_CLUSTER_SMALL_JOB_H_

#include <cstdint>
#include <string>

#include "proto/strata/job.pb.h"

namespace strata::testing {

// Writes `lines` lines "label id:1 ..." with `fields` features each, ids of field f in
// [f * 1000, f * 1000 + ids), labels from a planted model with pairwise interactions.
// A pure function of its arguments.
void WriteLibfm(const std::string& path, uint64_t seed, int lines, int fields, int ids);

// The same examples as libffm: "label f:id:1 ...", where the id of field f has f * `key_step`
// added. With 0 all fields have the same ids.
void WriteLibffm(const std::string& path, uint64_t seed, int lines, int fields, int ids,
                 int key_step);

// Makes the job a din of six fields and a sequence, csv, in five tables of four widths, whose ids
// are the same numbers: `first` has fields 0 and 3 and the sequence, `second` to `fifth` a field
// each. They differ in all that a table may have of its own; `third` and `fourth` have life cycles.
void UseFiveTables(const std::string& folder, int lines, int ids, TrainingJob& job);

// Makes these tables four times as wide.
void WidenTables(TrainingJob& job);

// Leaves the job's model, and gives it the six fields as libffm in five tables of one width,
// without life cycles and codecs.
void UseFiveLikeTables(const std::string& folder, int lines, int ids, TrainingJob& job);

// DeepFM with a small perceptron on data written to `folder`, two passes, 4 lanes x 16.
// 600 training lines and 200 eval lines: 20 steps.
TrainingJob SmallJob(const std::string& folder);

// A factorization machine on 1280 lines of six features, of some 5000, one server: 20 steps an
// epoch.
TrainingJob ManyFeaturesJob(const std::string& folder, uint32_t dim, uint32_t epochs);

}  // namespace strata::testing

#endif  // STRATA_TESTS_E2E_CLUSTER_SMALL_JOB_H_
