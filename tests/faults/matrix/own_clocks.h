// A wall clock for each process of a cluster (libfaketime): one of them is set, and the others
// stay.
#ifndef STRATA_TESTS_FAULTS_MATRIX_OWN_CLOCKS_H_
#define STRATA_TESTS_FAULTS_MATRIX_OWN_CLOCKS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/cluster/process_cluster.h"
#include "tests/e2e/cluster/shown_clock.h"

namespace strata::testing {

// Outlives the cluster.
class OwnClocks {
 public:
  // One for each name; its file lies in `folder`.
  OwnClocks(const std::string& folder, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      clocks_[name] = std::make_unique<ShownClock>(folder + "/clock-" + name);
    }
  }
  ~OwnClocks() {
    for (const pid_t pid : pids_) RemoveFakeTimeOf(pid);
  }

  // Has each process see its own.
  std::map<std::string, ProcessPlace> places() const {
    std::map<std::string, ProcessPlace> places;
    for (const auto& [name, clock] : clocks_) {
      std::vector<std::string> launcher = {"/usr/bin/env"};
      for (const std::string& variable : clock->variables()) launcher.push_back(variable);
      places[name] = {.launcher = launcher};
    }
    return places;
  }

  void Set(const std::string& name, int hours) { clocks_.at(name)->Set(hours); }
  // Call it when processes were started. What libfaketime leaves of them is removed at the end.
  void Remember(ProcessCluster& cluster) {
    for (const auto& [name, clock] : clocks_) pids_.insert(cluster.process(name).pid());
  }
  // Of whom Set would meet nobody: processes that do not see their clock.
  std::vector<std::string> Blind(ProcessCluster& cluster) const {
    std::vector<std::string> blind;
    for (const auto& [name, clock] : clocks_) {
      const pid_t pid = cluster.process(name).pid();
      const std::string maps = ReadFile(absl::StrCat("/proc/", pid, "/maps"));
      if (!absl::StrContains(maps, kFakeTimeLibrary)) blind.push_back(name);
    }
    return blind;
  }

 private:
  std::map<std::string, std::unique_ptr<ShownClock>> clocks_;
  std::set<pid_t> pids_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_MATRIX_OWN_CLOCKS_H_
