// A job of one shard, as a scheduler names it to a server.
#ifndef STRATA_TESTS_SERVER_ONE_SHARD_JOB_H_
#define STRATA_TESTS_SERVER_ONE_SHARD_JOB_H_

#include <string>

#include "proto/core/uid.h"
#include "proto/strata/control.pb.h"

namespace strata::server {

inline constexpr JobIdentity kIdentity = {{3, 1}, {4, 1}};

void Name(const JobIdentity& identity, ServerJobDirective* job);

// Job 1 with kIdentity, generation 1, map epoch 3 and five fields of a logistic regression.
ServerJobDirective* AddJob(NodeDirective& directive, const std::string& durability);

// The job with two shards, each with one copy, both here: servers 0 and 1 of the job, under the log
// ids `log` and "log-b".
NodeDirective TwoCopies(const std::string& log);

}  // namespace strata::server

#endif  // STRATA_TESTS_SERVER_ONE_SHARD_JOB_H_
