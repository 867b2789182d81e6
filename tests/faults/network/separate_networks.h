// Networks of their own for processes of this machine, with this process as the router between
// them. What passes from one to the other is lost where a test says so: the routes are those of a
// real network, and nothing of it is in a program. Tested by tests/faults/partition_test.cc
#ifndef STRATA_TESTS_FAULTS_NETWORK_SEPARATE_NETWORKS_H_
#define STRATA_TESTS_FAULTS_NETWORK_SEPARATE_NETWORKS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strata::testing {

class SeparateNetworks {
 public:
  // Takes the calling thread, and all threads and processes that it starts from now on, out of the
  // machine's network and mounts: once in a process, before anything speaks to anybody.
  // UNAVAILABLE: the machine does not allow it, or lacks a program; says which.
  static absl::StatusOr<std::unique_ptr<SeparateNetworks>> Make(
      const std::vector<std::string>& names);

  // What a command line in the network of that name begins with.
  std::vector<std::string> Launcher(const std::string& name) const;
  // Of who is in that network, as all others see it; of this process.
  std::string AddressOf(const std::string& name) const;
  std::string router_address() const;

  // From now on nothing that the one sends reaches the other, until Heal; nobody is told. Throws
  // where the machine refuses.
  void Cut(const std::string& from, const std::string& to);
  void Heal(const std::string& from, const std::string& to);
  // Takes the cable out, and puts it in again.
  void Unplug(const std::string& name);
  void Plug(const std::string& name);

 private:
  SeparateNetworks() = default;

  std::map<std::string, int> numbers_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_FAULTS_NETWORK_SEPARATE_NETWORKS_H_
