// Jobs as programs read them, their schemas, and what a comparison of two schemas says.
#ifndef STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_
#define STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job/schema/schema_vocabulary.h"
#include "proto/strata/checkpoint.pb.h"
#include "proto/strata/job.pb.h"

namespace strata {

// By what the checkpoint calls a part: what the job does.
using Renames = std::map<std::string, std::string>;

// `spec` over csv, in mode bsp; defaults resolved.
JobSpec Resolved(JobSpec spec);

// Over these columns and one label, y. Deep models have one layer of eight.
JobSpec CsvJob(const std::string& model,
               const std::vector<std::string>& categories = {"user", "item"},
               const std::vector<std::string>& numbers = {"price"});

// CsvJob with these labels.
JobSpec OfLabels(const std::string& model, const std::vector<std::string>& labels,
                 const std::vector<std::string>& numbers = {"price"});

// Two tables, two fields of the first one, one of the second one, and a number.
JobSpec OfTables(const std::string& first, const std::string& second);

// Of a resolved spec whose data do not decide how many fields there are.
Schema SchemaOf(const JobSpec& spec);

// The schema of `spec` after `change`.
template <typename Change>
Schema Changed(const JobSpec& spec, const Change& change) {
  JobSpec other = spec;
  change(other);
  return SchemaOf(other);
}

// An `initFrom` that allows new and dropped tensors, or refuses them.
InitFromSpec Allow(bool new_tensors, bool dropped_tensors, const Renames& rename = {});

InitFromSpec AllowAll();

// With both kinds allowed or refused.
InitFromSpec Init(const Renames& rename, bool allow = false);

// Its message, or "OK".
std::string Lines(const absl::Status& status);

// What is wrong with `now` on a checkpoint of `saved`, where its vocabularies are `files`.
std::string ResumeProblem(const Schema& saved, const Schema& now,
                          const VocabularyContents& files = {});
std::string InitProblem(const Schema& saved, const Schema& now, const InitFromSpec& init = {},
                        const VocabularyContents& files = {});

// The mapping in words.
std::string Text(const Schema& saved, const Schema& now, const Renames& rename = {});

}  // namespace strata

#endif  // STRATA_TESTS_PROTO_JOB_SCHEMA_MADE_SCHEMA_H_
