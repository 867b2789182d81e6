// As prelude.h, for what sees the messages of jobs (cc.bzl): nearly a second of parsing.
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "tools/bazel/prelude.h"
