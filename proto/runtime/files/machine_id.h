// Which machine this process runs on, and how much memory it has there.
#ifndef STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_
#define STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// The same for all processes on one machine, and another one elsewhere: the kernel's boot id, which
// containers of a machine share and copies of its disk do not; where that cannot be read, the
// machine id of /etc. Empty: neither can.
std::string MachineId(FileSystem& files = FileSystem::Kernel());

struct Machine {
  std::string id;
  std::string host;  // MachineId: of all its control groups
  uint64_t memory_bytes = 0;
};

// The machine of this process, which has `physical_bytes` in all. Where a control group (that of a
// container, or of a service) allows the process less, that group is the machine: whatever else is
// in the group shares its memory, and what is beside it does not. Groups are told apart by where
// they are and by the namespace that they are seen in.
Machine ThisMachine(uint64_t physical_bytes, FileSystem& files = FileSystem::Kernel());
// The same, with what the kernel says of the machine's memory.
Machine ThisMachine();

// Which file system a folder is on: the same for all processes of a host, whatever control groups
// limit them. Empty: not known.
std::string DiskId(absl::string_view host, const std::string& folder,
                   FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_
