#include "proto/runtime/files/machine_id.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/plain_file.h"
#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr char kBoot[] = "/proc/sys/kernel/random/boot_id";
constexpr char kEtc[] = "/etc/machine-id";

// A machine whose files lie below a folder.
class MachineAt : public FileSystem {
 public:
  explicit MachineAt(std::string root) : root_(std::move(root)) {}
  int Open(const std::string& path, int flags) override {
    return FileSystem::Open(root_ + path, flags);
  }
  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

 private:
  const std::string root_;
};

TEST_CASE("a machine has an id, and the same one whenever it is asked", "[files]") {
  const std::string id = MachineId();
  CHECK(id.size() >= 32);  // of 128 bits
  CHECK(id.find_first_of(" \n") == std::string::npos);
  CHECK(MachineId() == id);
}

TEST_CASE("a machine's id is of its start, or of its installation, or there is none", "[files]") {
  const TempFolder folder;
  MachineAt machine(folder.path());
  CHECK(MachineId(machine).empty());
  machine.Write(kEtc, "installed\n");
  CHECK(MachineId(machine) == "installed");
  machine.Write(kBoot, "\n");
  CHECK(MachineId(machine) == "installed");
  machine.Write(kBoot, "  started\n");  // copies of one machine are installed alike
  CHECK(MachineId(machine) == "started");
}

constexpr uint64_t kPhysical = uint64_t{64} << 30;

// What a process sees of its machine and of its control groups.
class Seen : public FileSystem {
 public:
  Seen(const std::string& name, const std::map<std::string, std::string>& contents)
      : namespace_(name) {
    Write("/proc/sys/kernel/random/boot_id", "boot\n");
    for (const auto& [path, text] : contents) Write(path, text);
  }
  int Open(const std::string& path, int flags) override {
    return FileSystem::Open(folder_.path() + path, flags);
  }
  int Look(const std::string& path, FileInfo& out) override {
    return FileSystem::Look(folder_.path() + path, out);
  }
  int Space(const std::string& path, FileSpace& out) override {
    if (path != "/data") return -ENOENT;
    out = {.free = 1, .id = 255};
    return 0;
  }
  int ReadLink(const std::string& path, std::string& target) override {
    if (path != "/proc/self/ns/cgroup") return -ENOENT;
    target = namespace_;
    return 0;
  }

 private:
  void Write(const std::string& path, const std::string& text) {
    const std::string there = folder_.path() + path;
    REQUIRE(MakeFolders(there.substr(0, there.find_last_of('/'))).ok());
    REQUIRE(WritePlainFile(there, text).ok());
  }

  const TempFolder folder_;
  const std::string namespace_;
};

TEST_CASE("a machine that allows all of its memory is itself", "[files]") {
  Seen none("ns", {});
  CHECK(ThisMachine(kPhysical, none).id == "boot");
  CHECK(ThisMachine(kPhysical, none).memory_bytes == kPhysical);
  Seen unlimited("ns", {{"/proc/self/cgroup", "4:memory:/a\n0::/b\n"},
                        {"/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n"},
                        {"/sys/fs/cgroup/b/memory.max", "max\n"},
                        {"/sys/fs/cgroup/b/pids.max", "1\n"}});
  CHECK(ThisMachine(kPhysical, unlimited).id == "boot");
  CHECK(ThisMachine(kPhysical, unlimited).memory_bytes == kPhysical);
  Seen bad("ns", {{"/proc/self/cgroup", "\n:\n0:\n0::\n0::b\nnothing\n"}});
  CHECK(ThisMachine(kPhysical, bad).memory_bytes == kPhysical);
}

TEST_CASE("the lowest limit on the way up is what a process has, with all below it", "[files]") {
  const auto service = [](const std::string& name, const std::string& bytes) {
    return Seen("ns", {{"/proc/self/cgroup", "0::/slice/" + name + "\n"},
                       {"/sys/fs/cgroup/slice/memory.max", "4096\n"},
                       {"/sys/fs/cgroup/slice/" + name + "/memory.max", bytes + "\n"}});
  };
  Seen a = service("a", "max"), b = service("b", "8192"), c = service("c", "1024");
  CHECK(ThisMachine(kPhysical, a).memory_bytes == 4096);
  CHECK(ThisMachine(kPhysical, a).id == ThisMachine(kPhysical, b).id);
  CHECK(ThisMachine(kPhysical, c).memory_bytes == 1024);
  CHECK(ThisMachine(kPhysical, c).id != ThisMachine(kPhysical, a).id);
}

TEST_CASE("containers of one machine are machines of their own", "[files]") {
  // The second version: each sees its own group as the root, in a namespace of its own.
  const auto inside = [](const std::string& name) {
    return Seen(name, {{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "4096\n"}});
  };
  Seen a = inside("cgroup:[1]"), b = inside("cgroup:[2]");
  CHECK(ThisMachine(kPhysical, a).memory_bytes == 4096);
  CHECK(ThisMachine(kPhysical, a).id != ThisMachine(kPhysical, b).id);
  CHECK(ThisMachine(kPhysical, a).id == ThisMachine(kPhysical, a).id);
  // What limits their memory does not make them file systems of their own.
  CHECK(DiskId(ThisMachine(kPhysical, a).host, "/data", a) == "boot/ff");
  CHECK(DiskId(ThisMachine(kPhysical, b).host, "/data", b) == "boot/ff");
  CHECK(DiskId("other", "/data", a) == "other/ff");
  CHECK(DiskId("boot", "/none", a).empty());
  CHECK(DiskId("", "/data", a).empty());
  // The first: the host's name of the group, which is not there.
  const auto named = [](const std::string& name) {
    return Seen("ns", {{"/proc/self/cgroup", "9:cpu:/\n4:cpuset,memory:/docker/" + name + "\n"},
                       {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n"}});
  };
  Seen c = named("c"), d = named("d");
  CHECK(ThisMachine(kPhysical, c).memory_bytes == 4096);
  CHECK(ThisMachine(kPhysical, c).id != ThisMachine(kPhysical, d).id);
}

}  // namespace
}  // namespace strata
