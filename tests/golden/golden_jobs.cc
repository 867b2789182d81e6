#include "tests/golden/golden_jobs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <sstream>

#include "tests/golden/golden_data.h"
#include "tests/golden/golden_file.h"

namespace strata::golden {
namespace {

namespace fs = std::filesystem;

constexpr char kResume[] = "resume=";

}  // namespace

std::string GoldenJob::Value(const std::string& field) const {
  for (const std::string& given : fields) {
    if (given.rfind(field + '=', 0) == 0) return given.substr(field.size() + 1);
  }
  return "";
}

std::vector<GoldenJob> ReadJobs() {
  std::vector<GoldenJob> jobs;
  std::istringstream in(ReadWhole(SourcePath("jobs.txt")));
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    if (line[0] != ' ') {
      GoldenJob& job = jobs.emplace_back();
      words >> job.name >> job.data;
    }
    for (std::string word; words >> word;) {
      if (word.rfind(kResume, 0) == 0) {
        jobs.back().resume = word.substr(sizeof(kResume) - 1);
      } else {
        jobs.back().fields.push_back(word);
      }
    }
  }
  return jobs;
}

GoldenJob JobNamed(const std::string& name) {
  const std::vector<GoldenJob> jobs = ReadJobs();
  const auto it = std::find_if(jobs.begin(), jobs.end(),
                               [&name](const GoldenJob& job) { return job.name == name; });
  INFO("jobs.txt has no job " << name);
  REQUIRE(it != jobs.end());
  return *it;
}

std::string PrepareJob(const User& user, const GoldenJob& job) {
  fs::create_directory(user.Path(job.name));
  user.Write(job.name + "/job.yaml",
             "apiVersion: strata/v1\nkind: TrainingJob\nmetadata: {name: " + job.name +
                 "}\nspec:\n" + DataField(job.data) + ReadWhole(SourcePath("job.yaml")));
  std::string arguments = "-f " + job.name + "/job.yaml";
  for (const std::string& field : job.fields) arguments += " --set 'spec." + field + "'";
  if (job.resume.empty()) return arguments;
  const fs::path from = user.Path(job.resume);
  fs::create_directory(user.Path(job.name + "/ck"));
  std::error_code error;
  fs::copy(from, user.Path(job.name + "/ck/") + from.filename().string(),
           fs::copy_options::recursive, error);
  INFO(from << ": " << error.message());
  CHECK(!error);
  return arguments + " --resume";
}

std::string TrainJob(const User& user, const GoldenJob& job) {
  const ProgramResult r = user.Strata("train --json " + PrepareJob(user, job));
  INFO("job " << job.name << ", exit code " << r.exit_code << "\n" << r.out << r.err);
  CHECK(r.exit_code == 0);
  return r.exit_code == 0 ? r.out : "";
}

}  // namespace strata::golden
