// The verbs of `strata` that talk to a cluster, typed one after the other at one cluster of `up`:
// what they print on stdout, as JSON and for people.
#include <signal.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"

namespace strata::testing {
namespace {

using Json = nlohmann::json;

constexpr size_t kTrainRows = 600, kTestRows = 100;

size_t Lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What a program that reads stdout gets: one line, which is JSON, and nothing else.
Json OneLine(const std::string& out) {
  INFO(out);
  REQUIRE(Lines(out) == 1);
  REQUIRE(out.back() == '\n');
  return Json::parse(out);
}

// `strata ARGUMENTS`, which must succeed.
ProgramResult Do(const User& user, const std::string& arguments) {
  const ProgramResult r = user.Strata(arguments);
  INFO(arguments << "\n" << r.err);
  REQUIRE(r.exit_code == 0);
  return r;
}

Json Ask(const User& user, const std::string& arguments) {
  INFO(arguments);
  return OneLine(Do(user, arguments + " --json").out);
}

void CheckGenerate(const User& user) {
  const Json train =
      Ask(user, "generate criteo --rows " + std::to_string(kTrainRows) + " --output train.tsv");
  CHECK(train.at("output") == "train.tsv");
  CHECK(train.at("rows") == kTrainRows);
  CHECK(train.at("bytes") == std::filesystem::file_size(user.Path("train.tsv")));
  CHECK(Lines(user.Read("train.tsv")) == kTrainRows);
  CHECK(train.at("positives") > 0);
  CHECK(train.at("teacherAuc") > 0.6);
  CHECK(train.at("teacherLogloss") > 0);
  const ProgramResult test = Do(user, "generate criteo --first-row 600 --output test.tsv --rows " +
                                          std::to_string(kTestRows));
  CHECK(test.out.rfind("test.tsv: 100 rows, ", 0) == 0);
  CHECK(Lines(user.Read("test.tsv")) == kTestRows);
}

// The line that ends `train` and `submit --wait`.
void CheckEnd(const Json& end) {
  INFO(end);
  CHECK(end.at("state") == "succeeded");
  CHECK(end.at("auc") > 0);
  CHECK(end.at("auc") < 1);
  CHECK(end.at("logloss") > 0);
  CHECK(end.at("examples") == kTrainRows);
  CHECK(end.at("trainSeconds") > 0);
  CHECK(end.at("examplesPerSecond") > 0);
  CHECK(end.at("checkpointBytes") == 0);
  CHECK(end.at("refused").empty());
  const std::string hash = end.at("modelHash");
  CHECK(hash.size() == 32);
  CHECK(hash.find_first_not_of("0123456789abcdef") == std::string::npos);
}

void CheckUp(const Json& up, const User& user) {
  CHECK(up.at("scheduler") == user.Scheduler());
  std::map<std::string, std::string> roles;
  for (const Json& node : up.at("cluster").at("nodes")) {
    const std::string name = node.at("name");
    roles[name] = node.at("role").get<std::string>();
    CHECK(node.at("alive") == true);
    CHECK(node.at("pid") == user.PidOf(name));
  }
  CHECK(roles == std::map<std::string, std::string>{
                     {"server-0", "server"}, {"worker-0", "worker"}, {"worker-1", "worker"}});
}

// `logs -f`: of one process for people, of all as JSON; begun before the job `start` begins.
template <typename Start>
void CheckFollowedLogs(const User& user, const Start& start) {
  const std::string program = ProgramPath("tools/cli/strata");
  ChildProcess text({program, "logs", "-f", "server-0"}, user.Path("text"), user.folder());
  ChildProcess json({program, "logs", "-f", "--json"}, user.Path("json"), user.folder());
  const auto await = [&](const std::string& line) {
    AwaitThat(line, [&] { return Has(user.Read("text"), line) && Has(user.Read("json"), line); });
  };
  await("registered name=server-0");  // was there before
  CHECK_FALSE(Has(user.Read("text"), "job_opening"));
  start();
  await("job_opening job=1 ");
  for (ChildProcess* follower : {&text, &json}) {
    follower->Signal(SIGINT);
    CHECK(follower->Wait() == 0);
  }
  std::istringstream lines(user.Read("text"));
  for (std::string line; std::getline(lines, line);) CHECK(line.rfind("server-0 ", 0) == 0);
  std::set<std::string> processes;
  std::istringstream objects(user.Read("json"));
  for (std::string line; std::getline(objects, line);) {
    const Json said = Json::parse(line);
    CHECK(said.at("line").is_string());
    processes.insert(said.at("process").get<std::string>());
  }
  CHECK(processes.contains("scheduler"));
  CHECK(processes.contains("server-0"));
}

void CheckPredict(const User& user, const Json& end) {
  const Json scored = Ask(user, "predict --job job test.tsv --output scores");
  CHECK(scored.at("checkpoint") == end.at("checkpoint"));
  CHECK(scored.at("step") == end.at("step"));
  CHECK(scored.at("lines") == kTestRows);
  CHECK(scored.at("auc").get<double>() == Approx(end.at("auc").get<double>()));
  CHECK(scored.at("logloss").get<double>() == Approx(end.at("logloss").get<double>()));
  CHECK(Lines(user.Read("scores")) == kTestRows);
  const ProgramResult shown = Do(user, "predict --job 1 test.tsv");
  CHECK(shown.out == user.Read("scores"));
  CHECK(Has(shown.err, "scored 100 lines: AUC 0."));
  // Scores stay alone on stdout.
  const ProgramResult both = Do(user, "predict --job job test.tsv --json");
  CHECK(both.out == shown.out);
  CHECK(OneLine(both.err) == scored);
}

void CheckListed(const User& user, const Json& end) {
  CHECK(Ask(user, "list") == Json::array({end}));
  CHECK(Ask(user, "status job") == end);
  CHECK(Ask(user, "status").at("jobs") == Json::array({end}));
  CHECK(Ask(user, "status job --watch") == end);  // at its end already
  const ProgramResult list = Do(user, "list");
  CHECK(Lines(list.out) == 2);
  CHECK(Has(list.out, "\n1    job   succeeded  100%  600 "));
  const Json checkpoints = Ask(user, "checkpoint list --job job");
  REQUIRE(checkpoints.at("complete").size() == 1);
  CHECK(checkpoints.at("complete")[0] ==
        Json({{"step", end.at("step")}, {"directory", end.at("checkpoint")}}));
  CHECK(checkpoints.at("damaged").empty());
  CHECK(Do(user, "checkpoint list --job 1").out ==
        "step " + end.at("step").dump() + "  " + end.at("checkpoint").get<std::string>() + "\n");
  CHECK(Ask(user, "checkpoint verify c").at("modelHash") == end.at("modelHash"));
}

// A watcher sees the job run and stays until it is cancelled.
void CheckWatched(const User& user) {
  Do(user,
     "submit -f job.yaml --set spec.training.epochs=1000000 --set spec.checkpoint.directory=");
  Json cancelled;
  const ProgramResult watched = user.Interrupted(
      "status job --watch --json",
      "Training: ", [&](const User& u, pid_t) { cancelled = Ask(u, "cancel job"); });
  CHECK(watched.exit_code == 1);
  CHECK(cancelled.at("state") == "cancelled");
  const Json end = OneLine(watched.out);
  CHECK(end.at("state") == "cancelled");
  CHECK(end.at("job") == 2);
  CHECK(Has(watched.err, "job Cancelled: "));
  const ProgramResult text = user.Strata("status 2 --watch");
  CHECK(text.exit_code == 1);
  CHECK(text.out.rfind("job job cancelled", 0) == 0);
}

TEST_CASE("every verb prints what a program and a person can read", "[e2e]") {
  User user;
  const Json up = OneLine(user.Up("--servers 1 --workers 2 --json").out);
  CheckUp(up, user);
  CheckGenerate(user);
  CHECK(Ask(user, "list") == Json::array());
  CHECK(Do(user, "list").out == "no jobs\n");
  user.Write("job.yaml",
             "apiVersion: strata/v1\n"
             "kind: TrainingJob\n"
             "metadata: {name: job}\n"
             "spec:\n"
             "  data: {format: criteo, train: [train.tsv], eval: [test.tsv]}\n"
             "  model: {type: lr}\n"
             "  training: {lanes: 4, batchSize: 8}\n"
             "  checkpoint: {directory: c}\n");
  Json end;
  CheckFollowedLogs(user, [&] { end = Ask(user, "submit --wait -f job.yaml"); });
  CheckEnd(end);
  const Json alone = Ask(user, "train -f job.yaml --set spec.checkpoint.directory=d");
  CheckEnd(alone);
  for (const char* field : {"auc", "logloss", "modelHash"}) CHECK(alone.at(field) == end.at(field));
  CheckListed(user, end);
  CheckPredict(user, end);
  CheckWatched(user);
  const Json down = Ask(user, "down");
  CHECK(down.at("dir") == user.Path("run"));
  auto stopped = down.at("stopped").get<std::vector<std::string>>();
  std::sort(stopped.begin(), stopped.end());
  CHECK(stopped == std::vector<std::string>{"scheduler", "server-0", "worker-0", "worker-1"});
}

}  // namespace
}  // namespace strata::testing
