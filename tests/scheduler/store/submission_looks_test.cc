// Folders of submissions that hang: who asked is told so in time, and nobody else waits.
#include "scheduler/store/submission_looks.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/runtime/base/manual_timer.h"
#include "proto/runtime/files/plain_file.h"
#include "proto/strata/control.pb.h"
#include "tests/proto/runtime/files/hung_files.h"
#include "tests/proto/runtime/files/one_failure.h"
#include "tests/proto/runtime/files/other_format.h"
#include "tests/scheduler/store/written_checkpoints.h"
#include "tests/temp_folder.h"

namespace strata::scheduler {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(4);

SubmitRequest Request(const std::string& directory, const std::string& init_from = "") {
  SubmitRequest request;
  JobSpec& spec = *request.mutable_job()->mutable_spec();
  spec.mutable_checkpoint()->set_directory(directory);
  spec.mutable_model()->mutable_init_from()->set_checkpoint(init_from);
  return request;
}

// A look from a thread of its own: its caller waits.
class Caller {
 public:
  Caller(SubmissionLooks& looks, ManualTimer& timer, const SubmitRequest& request)
      : thread_([this, &looks, request, deadline = timer.Now() + kPatience] {
          status_ = looks.Look(request, deadline).status();
        }) {}
  const absl::Status& Join() {
    thread_.join();
    return status_;
  }

 private:
  absl::Status status_;
  std::thread thread_;
};

TEST_CASE("a place that hangs is named to its caller, and holds up no other", "[submission]") {
  TempFolder folder;
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  const std::string away = folder.path() + "/away";
  testing::Hang files(away);
  const bool init = GENERATE(false, true);
  const std::string mine = folder.path() + "/mine";
  Caller caller(looks, timer, init ? Request(mine, away + "/a") : Request(away + "/a"));
  files->AwaitHung(1);
  timer.AwaitAlarms(1);
  CHECK(looks.Look(Request(folder.path() + "/other"), timer.Now() + kPatience).ok());
  timer.Advance(kPatience);
  const absl::Status told = caller.Join();
  INFO(told);
  CHECK(absl::IsDeadlineExceeded(told));
  CHECK(absl::StrContains(told.message(),
                          absl::StrCat(init ? "spec.model.initFrom " : "spec.checkpoint.directory ",
                                       away, "/a did not answer for 4s")));
}

TEST_CASE("who asks again for a place that hangs takes no other thread, and finds it back",
          "[submission]") {
  TempFolder folder;
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  const std::string away = folder.path() + "/away";
  testing::Hang files(away);
  for (int i = 0; i < 3; ++i) {
    Caller caller(looks, timer, Request(away));
    files->AwaitHung(1);
    timer.AwaitAlarms(1);
    timer.Advance(kPatience);
    CHECK(absl::IsDeadlineExceeded(caller.Join()));
    CHECK(files->hung() == 1);
  }
  Caller last(looks, timer, Request(away));
  files->Release();
  CHECK(last.Join().ok());
}

TEST_CASE("more places that hang than there are threads for are refused at once", "[submission]") {
  TempFolder folder;
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  testing::Hang files(folder.path() + "/away");
  std::vector<std::unique_ptr<Caller>> callers;
  for (size_t i = 0; i < SubmissionLooks::kMostLooks; ++i) {
    callers.push_back(
        std::make_unique<Caller>(looks, timer, Request(absl::StrCat(folder.path(), "/away/", i))));
  }
  files->AwaitHung(SubmissionLooks::kMostLooks);
  CHECK(absl::IsResourceExhausted(
      looks.Look(Request(folder.path() + "/mine"), timer.Now() + kPatience).status()));
  files->Release();
  for (auto& caller : callers) CHECK(caller->Join().ok());
  CHECK(looks.Look(Request(folder.path() + "/mine"), timer.Now() + kPatience).ok());
}

TEST_CASE("a job's own checkpoints that cannot be read once are no older ones", "[submission]") {
  TempFolder folder;
  WriteCheckpoints(folder.path(), kIdentity);
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  using testing::OneFailure;
  for (const auto& [call, end] : {std::pair(OneFailure::Call::kOpen, kNewestManifest),
                                  std::pair(OneFailure::Call::kLook, kNewestFile)}) {
    const OneFailure files(call, end, EIO);
    const auto look = [&] {
      return looks.LookForOwn(Request(folder.path()), kIdentity, absl::InfiniteFuture());
    };
    const auto failed = look();
    INFO(failed.status());
    CHECK(absl::IsInternal(failed.status()));
    CHECK(absl::StrContains(failed.status().message(), end));
    const auto found = look();
    REQUIRE(found.ok());
    CHECK(found->complete.size() == 2);
  }
}

TEST_CASE("what a job cannot go on from is not left out of a look for its own", "[submission]") {
  TempFolder folder;
  WriteCheckpoints(folder.path(), kIdentity);
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  const auto look = [&] {
    return looks.LookForOwn(Request(folder.path()), kIdentity, absl::InfiniteFuture());
  };
  testing::PutOtherFormat(folder.path() + kNewest);
  const auto of_another = look();
  REQUIRE(of_another.ok());
  CHECK(of_another->complete.size() == 1);
  INFO(of_another->other_format);
  CHECK(absl::IsFailedPrecondition(of_another->other_format));
  CHECK(absl::StrContains(of_another->other_format.message(), kNewestManifest));
  REQUIRE(WritePlainFile(folder.path() + kNewestManifest, "x").ok());
  const auto found = look();
  REQUIRE(found.ok());
  CHECK(found->complete.size() == 1);
  CHECK(absl::StrContains(found->damaged, kNewestManifest));
}

TEST_CASE("a name and a directory have one turn at a time; Stop ends all waits", "[submission]") {
  TempFolder folder;
  ManualTimer timer;
  SubmissionLooks looks(&timer, {});
  auto turn = looks.AwaitTurn("a", "/a", timer.Now());
  REQUIRE(turn.ok());
  CHECK(looks.AwaitTurn("b", "/b", timer.Now()).ok());
  CHECK(looks.AwaitTurn("b", "", timer.Now()).ok());
  CHECK(absl::IsDeadlineExceeded(looks.AwaitTurn("a", "/b", timer.Now()).status()));
  CHECK(absl::IsDeadlineExceeded(looks.AwaitTurn("b", "/a", timer.Now()).status()));
  turn->reset();
  CHECK(looks.AwaitTurn("a", "/b", timer.Now()).ok());
  CHECK(looks.AwaitTurn("b", "/a", timer.Now()).ok());

  testing::Hang files(folder.path() + "/away");
  Caller caller(looks, timer, Request(folder.path() + "/away"));
  files->AwaitHung(1);
  looks.Stop();
  CHECK(absl::IsUnavailable(caller.Join()));
}

}  // namespace
}  // namespace strata::scheduler
