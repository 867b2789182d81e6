// Which machine this process runs on.
#ifndef STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_
#define STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_

#include <string>

#include "proto/runtime/files/file_system.h"

namespace strata {

// The same for all processes on one machine, and another one elsewhere: the kernel's boot id, which
// containers of a machine share and copies of its disk do not; where that cannot be read, the
// machine id of /etc. Empty: neither can.
std::string MachineId(FileSystem& files = FileSystem::Kernel());

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_MACHINE_ID_H_
