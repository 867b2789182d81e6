#include "proto/runtime/files/machine_id.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {
namespace {

// The lowest limit on the way from a process's group up.
struct Limit {
  uint64_t bytes = 0;
  std::string group;
};

std::optional<uint64_t> ReadLimit(const std::string& path, FileSystem& files) {
  constexpr uint64_t kMostBytes = 64;
  const auto text = ReadPlainFile(path, kMostBytes, files);
  uint64_t bytes = 0;
  if (!text.ok() || !absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &bytes)) {
    return std::nullopt;  // "max": none
  }
  return bytes;
}

// Of the groups below `mount`, from `own` up. In a container `own` may be the host's name of it,
// which is not there: the container's group is what is mounted.
std::optional<Limit> LowestLimit(const std::string& mount, const std::string& own,
                                 absl::string_view name, FileSystem& files) {
  std::optional<Limit> lowest;
  FileInfo info;
  const bool seen = files.Look(mount + own, info) == 0;
  std::string at = own;
  while (true) {
    if (const auto bytes = ReadLimit(absl::StrCat(mount, at, "/", name), files);
        bytes && (!lowest || *bytes <= lowest->bytes)) {
      lowest = Limit{*bytes, at.empty() && !seen ? own : at};
    }
    if (at.empty()) return lowest;
    at.resize(at.find_last_of('/'));
  }
}

}  // namespace

std::string MachineId(FileSystem& files) {
  constexpr uint64_t kMostBytes = 256;
  for (const char* path : {"/proc/sys/kernel/random/boot_id", "/etc/machine-id"}) {
    const auto text = ReadPlainFile(path, kMostBytes, files);
    if (!text.ok()) continue;
    const std::string id(absl::StripAsciiWhitespace(*text));
    if (!id.empty()) return id;
  }
  return "";
}

Machine ThisMachine(uint64_t physical_bytes, FileSystem& files) {
  const std::string host = MachineId(files);
  Machine machine{.id = host, .host = host, .memory_bytes = physical_bytes};
  constexpr uint64_t kMostBytes = 64 << 10;
  const auto groups = ReadPlainFile("/proc/self/cgroup", kMostBytes, files);
  if (!groups.ok()) return machine;
  for (const absl::string_view line : absl::StrSplit(*groups, '\n', absl::SkipEmpty())) {
    // number:controllers:/path; the second version of groups has no controllers here.
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || parts[2].empty() || parts[2][0] != '/') continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool first = std::count(controllers.begin(), controllers.end(), "memory") > 0;
    if (!first && !parts[1].empty()) continue;
    const std::string own = parts[2] == "/" ? "" : parts[2];
    const auto limit =
        first ? LowestLimit("/sys/fs/cgroup/memory", own, "memory.limit_in_bytes", files)
              : LowestLimit("/sys/fs/cgroup", own, "memory.max", files);
    if (!limit || limit->bytes == 0 || limit->bytes >= machine.memory_bytes) continue;
    std::string seen_in;
    files.ReadLink("/proc/self/ns/cgroup", seen_in);
    machine.memory_bytes = limit->bytes;
    machine.id = absl::StrCat(host, "/", seen_in, limit->group);
  }
  return machine;
}

std::string DiskId(absl::string_view host, const std::string& folder, FileSystem& files) {
  FileSpace space;
  if (host.empty() || files.Space(folder, space) < 0) return "";
  return absl::StrCat(host, "/", absl::Hex(space.id));
}

Machine ThisMachine() {
  return ThisMachine(static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                     static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE)));
}

}  // namespace strata
