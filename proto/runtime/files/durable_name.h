// Gives a finished file its name, so that a loss of power leaves the whole file under it or what
// was there before.
#ifndef STRATA_PROTO_RUNTIME_FILES_DURABLE_NAME_H_
#define STRATA_PROTO_RUNTIME_FILES_DURABLE_NAME_H_

#include <string>

#include "proto/runtime/files/file_system.h"

namespace strata {

// Of the file at `temporary`, which is open as `fd`: 1 its bytes are brought to the device, 2 it is
// renamed to `path`, 3 the folder of that is brought there, as far as this process may open it. 0,
// or the negative errno of what failed; after 3 the file has its name, and nobody knows for how
// long.
int NameDurably(int fd, const std::string& temporary, const std::string& path, FileSystem& files);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_FILES_DURABLE_NAME_H_
