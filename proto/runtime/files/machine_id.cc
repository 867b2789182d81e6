#include "proto/runtime/files/machine_id.h"

#include "absl/strings/ascii.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {

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

}  // namespace strata
