// A job over csv whose columns spec.fields says.
#ifndef STRATA_TESTS_PROTO_JOB_FIELDS_FIELDS_JOB_H_
#define STRATA_TESTS_PROTO_JOB_FIELDS_FIELDS_JOB_H_

#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>

#include "proto/strata/job.pb.h"

namespace strata {

// Defaults are not resolved.
inline TrainingJob FieldsJob() {
  TrainingJob job;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(R"(
    api_version: "strata/v1" kind: "TrainingJob" metadata { name: "j" }
    spec {
      data { format: "csv" train: "t.csv" }
      model { type: "deepfm" }
      fields { name: "user" column: "user_id" kind: "categorical" }
      fields { name: "item" column: "item_id" kind: "categorical" }
      fields { name: "tags" kind: "multiValued" }
      fields { name: "price" kind: "numeric" transform { type: "log" } }
      labels { name: "click" column: "clicked" }
    })",
                                                        &job));
  return job;
}

}  // namespace strata

#endif  // STRATA_TESTS_PROTO_JOB_FIELDS_FIELDS_JOB_H_
