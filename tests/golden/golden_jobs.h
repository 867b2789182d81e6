// The jobs of jobs.txt, and how one is trained.
#ifndef STRATA_TESTS_GOLDEN_GOLDEN_JOBS_H_
#define STRATA_TESTS_GOLDEN_GOLDEN_JOBS_H_

#include <string>
#include <vector>

#include "tests/bad_input/user.h"

namespace strata::golden {

struct GoldenJob {
  std::string name;
  std::string data;                 // as DataField knows it
  std::vector<std::string> fields;  // "model.type=lr", below spec
  std::string resume;               // "JOB/ck/step-...": the checkpoint that it goes on from, or ""

  // Of "storage.ssd" as in `fields`; "": the job does not give it.
  std::string Value(const std::string& field) const;
};

// In the order of the table.
std::vector<GoldenJob> ReadJobs();
// REQUIRES: there is one of that name.
GoldenJob JobNamed(const std::string& name);

// Writes NAME/job.yaml, and NAME/ck with the checkpoint that the job goes on from. The arguments
// that name the job to `strata`: "-f NAME/job.yaml --set ...", and --resume. REQUIRES: WriteData,
// and the jobs whose checkpoints are used were trained.
std::string PrepareJob(const User& user, const GoldenJob& job);

// `strata train ... --json` of the job, as one line of JSON. Fails the test where that fails, and
// is "" then.
std::string TrainJob(const User& user, const GoldenJob& job);

}  // namespace strata::golden

#endif  // STRATA_TESTS_GOLDEN_GOLDEN_JOBS_H_
