// A client that is newer than its scheduler.
#include <catch2/catch.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "google/protobuf/unknown_field_set.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/transport/grpc_scheduler_client.h"
#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/scheduler.h"
#include "scheduler/scheduler_service.h"
#include "scheduler/store/memory_metadata_store.h"
#include "tests/scheduler/one_job.h"

namespace strata::scheduler {
namespace {

void AddLater(google::protobuf::Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddFixed32(12345, 1);
}

TEST_CASE("a job that says what the scheduler does not know is refused, and nothing dropped of it",
          "[scheduler]") {
  ManualTimer timer;
  auto scheduler = Start(MakeMemoryMetadataStore(), &timer);
  auto service = SchedulerService::Start({.scheduler = scheduler.get()});
  REQUIRE(service.ok());
  auto client = MakeGrpcSchedulerClient((*service)->address(), nullptr);
  const auto says = [&](const SubmitRequest& request) {
    const absl::Status refused = client->Submit(request, kTimeout).status();
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(client->ListJobs(kTimeout)->jobs_size() == 0);
    return std::string(refused.message());
  };
  const std::string after =
      "; run the version of strata there that knows it, or leave out of the job what is new in it";
  SubmitRequest request = Job("a", "");
  LabelConfig& label = *request.mutable_job()->mutable_spec()->add_labels();
  AddLater(&label);
  CHECK(says(request) ==
        absl::StrCat("the scheduler is older than this client: it does not know field 12345 of "
                     "spec.labels[0]",
                     after));
  label.Clear();
  AddLater(&request);
  CHECK(
      says(request) ==
      absl::StrCat("the scheduler is older than this client: it does not know field 12345", after));
  CHECK(client->Submit(Job("a", ""), kTimeout).ok());
  scheduler->Stop();
}

}  // namespace
}  // namespace strata::scheduler
