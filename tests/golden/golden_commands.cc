#include "tests/golden/golden_commands.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "proto/core/uid.h"
#include "proto/strata/checkpoint.pb.h"
#include "server/job/held_jobs.h"
#include "server/job/job_folder.h"
#include "tests/bad_input/user.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_jobs.h"
#include "tests/golden/golden_json.h"

namespace strata::golden {
namespace {

// Lines of the tables that type nothing at `strata`.
const std::set<std::string> kNoCommands = {"$", "await", "keep", "await_kept"};

struct Line {
  std::string name, rest;
};

std::vector<Line> ReadCommands(const std::string& file) {
  std::vector<Line> lines;
  std::istringstream in(ReadWhole(SourcePath(file)));
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t end = line.find(' ');
    lines.push_back({line.substr(0, end), line.substr(line.find_first_not_of(' ', end))});
  }
  return lines;
}

// With {JOB} replaced.
std::string Arguments(const User& user, std::string text) {
  const size_t from = text.find('{'), to = text.find('}');
  if (from == std::string::npos) return text;
  const std::string job = PrepareJob(user, JobNamed(text.substr(from + 1, to - from - 1)));
  return text.replace(from, to - from + 1, job);
}

nlohmann::json JsonOf(const User& user, const std::string& arguments) {
  const ProgramResult r = user.Strata(arguments + " --json");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return nlohmann::json::parse(r.out);
}

// Until the job's shards have rows, and two looks at all processes find counters: of workers and of
// servers with shards the clock, too.
void AwaitTraining(const User& user, const std::string& job) {
  std::set<std::string> servers;
  testing::AwaitThat("job " + job + " trains", [&] {
    const nlohmann::json json = JsonOf(user, "shards " + job);
    for (const auto& shard : json.at("shards")) {
      if (!shard.at("clock").is_number() || shard.at("clock") < 2) return false;
      servers.insert(shard.at("server").get<std::string>());
    }
    return !json.at("shards").empty();
  });
  testing::AwaitThat("all processes tell of " + job, [&] {
    const nlohmann::json json = JsonOf(user, "top --once --interval 0.1");
    for (const auto& process : json.at("processes")) {
      const bool works =
          process.at("role") == "worker" || servers.contains(process.at("name").get<std::string>());
      if (works && !process.at("clock").is_number()) return false;
      if (!process.at("memoryBytes").is_number()) return false;
    }
    return !json.at("processes").empty();
  });
}

constexpr JobIdentity kKept = {{1, 2}, {3, 4}};

// A job of that name, of another cluster, in the folder of server-0.
void Keep(const User& user, const std::string& name) {
  JobFolderRecord owner;
  owner.set_cluster_id(kKept.cluster.text());
  owner.set_job_uid(kKept.job.text());
  owner.set_job(7);
  owner.set_name(name);
  REQUIRE(server::TakeJobFolder(user.Path("kept"), owner).ok());
  HeldJob job;
  job.set_cluster_id(owner.cluster_id());
  job.set_job_uid(owner.job_uid());
  job.set_job(owner.job());
  job.set_name(name);
  job.set_root(user.Path("kept"));
  REQUIRE(server::HeldJobs(user.Path("run/server-0")).Put(job).ok());
}

void AwaitKept(const User& user, const std::string& name) {
  testing::AwaitThat("server-0 keeps " + name, [&] {
    const nlohmann::json kept = JsonOf(user, "nodes --quarantined").at("quarantined");
    return kept.size() == 1 && kept[0].at("name") == name;
  });
}

// What the command printed, masked; before it its exit code, where that is not 0.
std::string Said(const Masks& masks, const std::string& name, const ProgramResult& r) {
  INFO(name << "\n" << r.out << r.err);
  CHECK_FALSE(r.out.empty());
  const std::string json = masks.Apply(name, r.out);
  return r.exit_code == 0 ? json : "exit code " + std::to_string(r.exit_code) + "\n" + json;
}

}  // namespace

void CheckCommands(const std::string& table) {
  User user;
  WriteData(user);
  const Masks masks(user.folder());
  GoldenFile golden(table);
  for (const auto& [name, rest] : ReadCommands(table + ".txt")) {
    if (name == "$") {
      REQUIRE(std::system(("cd '" + user.folder() + "' && " + rest).c_str()) == 0);
    } else if (name == "await") {
      AwaitTraining(user, rest);
    } else if (name == "keep") {
      Keep(user, rest);
    } else if (name == "await_kept") {
      AwaitKept(user, rest);
    } else if (name == "up") {
      golden.Check(name, Said(masks, name, user.Up(rest.substr(3) + " --json")));
    } else {
      golden.Check(name, Said(masks, name, user.Strata(Arguments(user, rest) + " --json")));
    }
  }
  golden.Finish();
}

std::vector<std::string> TypedCommands() {
  std::vector<std::string> typed;
  for (const char* table : {"commands.txt", "cluster_commands.txt"}) {
    for (const auto& [name, rest] : ReadCommands(table)) {
      if (!kNoCommands.contains(name)) typed.push_back(rest);
    }
  }
  return typed;
}

}  // namespace strata::golden
