#include "server/job/plan.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"

namespace strata::server {
namespace {

// An older scheduler accepted the job. Its server refused it after an upgrade, so that it failed
// though no line needs that default.
TEST_CASE("a job that was accepted goes on with a default that would be refused today",
          "[job_plan]") {
  ServerJobDirective directive;
  directive.set_cluster_id(std::string(32, '1'));
  directive.set_job_uid(std::string(32, '2'));
  directive.set_generation(2);
  directive.set_was_open(true);
  TrainingJob& job = *directive.mutable_spec();
  job.set_api_version("strata/v1");
  job.set_kind("TrainingJob");
  job.mutable_metadata()->set_name("j");
  job.mutable_spec()->mutable_data()->set_format("csv");
  job.mutable_spec()->mutable_data()->add_train("/a");
  job.mutable_spec()->mutable_model()->set_type("lr");
  LabelConfig& label = *job.mutable_spec()->add_labels();
  label.set_name("y");
  for (const char* name : {"user", "price"}) {
    FieldConfig& field = *job.mutable_spec()->add_fields();
    field.set_name(name);
    field.set_kind(name == std::string("user") ? "categorical" : "numeric");
  }
  job.mutable_spec()->mutable_fields(1)->set_default_value("1e39");
  directive.mutable_shape()->set_fields(1);
  directive.mutable_shape()->set_numeric(1);
  const auto plan = PlanJob(directive);
  INFO(plan.status());
  REQUIRE(plan.ok());
  CHECK(plan->note.spec().spec().fields(1).default_value() == "1e39");
  // What a job cannot be opened with is told by field, value and remedy.
  job.mutable_spec()->mutable_fields(1)->set_kind("number");
  const absl::Status refused = PlanJob(directive).status();
  INFO(refused);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "spec.fields[1].kind: 'number' is not one of: "));
}

}  // namespace
}  // namespace strata::server
