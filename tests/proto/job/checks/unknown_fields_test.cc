#include "proto/job/checks/unknown_fields.h"

#include <catch2/catch.hpp>
#include <string>

#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/strata/job.pb.h"

namespace strata {
namespace {

constexpr int kLater = 12345;  // a number that no field has

void Add(google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddVarint(kLater, 1);
}

// As it arrives from another program.
std::string Sent(const TrainingJob& job) {
  TrainingJob there;
  REQUIRE(there.ParseFromString(job.SerializeAsString()));
  return UnknownField(there);
}

TEST_CASE("a field that this program does not know is told by its place and number",
          "[unknown_fields]") {
  TrainingJob job;
  JobSpec& spec = *job.mutable_spec();
  for (const char* name : {"click", "buy"}) spec.add_labels()->set_name(name);
  InitFromSpec& init = *spec.mutable_model()->mutable_init_from();
  (*init.mutable_rename())["old"] = "new";
  spec.mutable_data()->add_train("t");
  CHECK(Sent(job) == "");
  SECTION("of the job") {
    Add(&job);
    CHECK(Sent(job) == "field 12345");
  }
  SECTION("of a part, by its name in job files") {
    Add(&init);
    CHECK(Sent(job) == "field 12345 of spec.model.initFrom");
  }
  SECTION("of one of many") {
    Add(spec.mutable_labels(1));
    CHECK(Sent(job) == "field 12345 of spec.labels[1]");
  }
  SECTION("where nothing else is set") {
    Add(spec.mutable_evaluation());
    CHECK(Sent(job) == "field 12345 of spec.evaluation");
  }
}

}  // namespace
}  // namespace strata
