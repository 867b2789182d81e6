#include "scheduler/own_concerns.h"

#include <catch2/catch.hpp>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/strata/job.pb.h"

namespace strata::scheduler {
namespace {

JobStatus Told(const OwnConcerns& own, JobState state) {
  JobStatus job;
  job.set_state(state);
  own.AddTo(job);
  return job;
}

TEST_CASE("what is wrong with the scheduler's files is told while it lasts, with its beginning",
          "[concerns]") {
  OwnConcerns own;
  CHECK(Told(own, RUNNING).concerns().empty());
  own.Note("RevokedUnreadable", absl::DataLossError("--revoked list: line 2"),
           absl::FromUnixMillis(5000));
  own.Note("RevokedUnreadable", absl::DataLossError("--revoked list: line 3"),
           absl::FromUnixMillis(6000));
  own.Note("CertificateUnfit", absl::UnauthenticatedError("tls.crt: it has expired"),
           absl::FromUnixMillis(7000));
  const JobStatus job = Told(own, PENDING);
  REQUIRE(job.concerns_size() == 2);
  CHECK(job.concerns(0).reason() == "CertificateUnfit");
  CHECK(job.concerns(1).reason() == "RevokedUnreadable");
  CHECK(job.concerns(1).who() == "scheduler");
  CHECK(job.concerns(1).since_unix_ms() == 5000);
  CHECK(job.concerns(1).known_by() == "--revoked list: line 3");
  CHECK(Told(own, SUCCEEDED).concerns().empty());
  own.Note("RevokedUnreadable", absl::OkStatus(), absl::FromUnixMillis(8000));
  CHECK(Told(own, RUNNING).concerns_size() == 1);
}

}  // namespace
}  // namespace strata::scheduler
