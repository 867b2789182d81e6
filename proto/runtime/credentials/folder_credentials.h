// The certificate of a process in a folder that `strata certs` renews while the process runs.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_CREDENTIALS_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_CREDENTIALS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/runtime/base/clock.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

struct FolderCredentials {
  std::string folder;      // as LoadCredentials takes it: FOLDER/ROLE/NAME/current
  Clock* clock = nullptr;  // required; lives as long as the source
  // The first Current() after that long looks whether the files are others; no thread of its own
  // does (CertificateWatch has one). Files that are as they were are not read again.
  absl::Duration look_again = absl::Seconds(10);
  FileSystem* files = nullptr;  // null: FileSystem::Kernel(); lives as long as the source
};

// What is there must be good now: signed by the CA beside it, and neither expired nor early. Errors
// name the file: those of LoadCredentials and VerifyPeer.
// Later only what is good, and of the same identity, replaces what there is: whatever else lies in
// the folder is a problem(), and is looked at again.
//
//   auto source = OpenCredentials({.folder = "certs/server/alpha/current", .clock =
//   Clock::Real()});
absl::StatusOr<std::shared_ptr<CredentialSource>> OpenCredentials(const FolderCredentials& options);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_FOLDER_CREDENTIALS_H_
