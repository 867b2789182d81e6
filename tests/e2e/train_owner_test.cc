// One checkpoint folder and several runs of `strata train`: as checkpoint_owner_test, and beside
// it, since both mostly wait.
#include <signal.h>
#include <sys/types.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/bad_input/user.h"

namespace strata::testing {
namespace {

TEST_CASE("`strata train` twice in one folder: the second is refused by name",
          "[e2e][checkpoint]") {
  const User user;
  user.Write("train.libfm", GoodLines(64));
  user.WriteJob(
      "  checkpoint: {directory: c, everySteps: 10}\n"
      "  evaluation: {everySteps: 5}\n"
      "  output: {predictions: p.csv}\n");
  const std::string train =
      "train -f job.yaml --set spec.training.epochs=1000000 --set spec.data.eval=[train.libfm]";
  const auto interrupt = [](const User&, pid_t pid) { kill(pid, SIGINT); };
  const ProgramResult first = user.Interrupted(train, "Training: ", [&](const User& u, pid_t pid) {
    CheckSays(u.Strata(train + " --resume"), 2,
              {"spec.checkpoint.directory " + u.Path("c") + " is written by job job (",
               "which is alive"});
    interrupt(u, pid);
  });
  CheckSays(first, 130, {"Interrupted at step", "--resume"});
  // What was given back is free at once.
  const ProgramResult next = user.Interrupted(train + " --resume", "Training: ", interrupt);
  CheckSays(next, 130, {"Interrupted at step"});
  CHECK(next.err.find("WaitingForCheckpointDirectory") == std::string::npos);
}

}  // namespace
}  // namespace strata::testing
