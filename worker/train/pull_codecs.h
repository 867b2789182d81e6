// How a job has the values of pulls written: spec.training.pullCodec and spec.tables[].pullCodec.
// Tested by tests/e2e/wire_estimate_test.cc
#ifndef STRATA_WORKER_TRAIN_PULL_CODECS_H_
#define STRATA_WORKER_TRAIN_PULL_CODECS_H_

#include "proto/strata/job.pb.h"
#include "proto/wire/value_codec.h"

namespace strata {

// `spec` has its defaults resolved.
wire::PullCodecs PullCodecsOf(const JobSpec& spec);

}  // namespace strata

#endif  // STRATA_WORKER_TRAIN_PULL_CODECS_H_
