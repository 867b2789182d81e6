#include "proto/runtime/files/machine_id.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

#include "proto/runtime/files/file_system.h"

namespace strata {
namespace {

// A machine whose files of such a name cannot be read.
class Without : public FileSystem {
 public:
  explicit Without(std::string part) : part_(std::move(part)) {}
  int Open(const std::string& path, int flags) override {
    return path.find(part_) == std::string::npos ? FileSystem::Open(path, flags) : -EACCES;
  }

 private:
  const std::string part_;
};

TEST_CASE("a machine has an id, and the same one whenever it is asked", "[files]") {
  const std::string id = MachineId();
  CHECK(id.size() >= 32);  // of 128 bits
  CHECK(id.find_first_of(" \n") == std::string::npos);
  CHECK(MachineId() == id);
}

TEST_CASE("a machine whose ids cannot be read has none", "[files]") {
  Without proc("/proc/"), all("/");
  CHECK(MachineId(proc) != MachineId());
  CHECK(MachineId(all).empty());
}

}  // namespace
}  // namespace strata
