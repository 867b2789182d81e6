// What a process shows on its connections, and whom it lets in: as of now, since both change while
// the process runs. Every port asks the same source.
// Tested by tests/proto/runtime/credentials/folder_credentials_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CREDENTIAL_SOURCE_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CREDENTIAL_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/identity_files.h"
#include "proto/runtime/credentials/peer_verifier.h"
#include "proto/runtime/credentials/revocations.h"

namespace strata {

// Thread-safe. The process and its ports share one (std::shared_ptr).
//
//   const auto caller = source->Verify(chain, {Role::kServer, Role::kWorker});
class CredentialSource {
 public:
  virtual ~CredentialSource() = default;

  // For a connection that begins now. Never null; a value that does not change. May read files
  // first, in the caller's thread; of several callers at once one reads.
  virtual std::shared_ptr<const Credentials> Current() = 0;

  // What Current() found last; reads no files, for who may not wait. Never null.
  virtual std::shared_ptr<const Credentials> Last() const = 0;

  // Which certificates count no more, as the process was last told. Never null.
  virtual std::shared_ptr<const Revocations> Revoked() const = 0;
  // The whole list; connections that begin later, and whoever asks again, go by it.
  virtual void SetRevoked(Revocations revoked) = 0;

  // Whose the certificates are; a source keeps to one identity, and so to one cluster.
  virtual const Identity& self() const = 0;
  const ClusterId& cluster() const { return self().cluster; }

  // Why Current() is not what it should be: what has replaced it is no good, or it has expired.
  // One line that names the file and what to do, for logs and `status`; nothing of a key.
  virtual absl::Status problem() const = 0;

  // What the machine's clock shows, by which certificates are judged.
  virtual absl::Time WallNow() const = 0;

  // Who showed `chain`: VerifyPeer, by the CA's certificates of Current(), Revoked() and WallNow().
  absl::StatusOr<Caller> Verify(absl::string_view chain, std::vector<Role> roles,
                                std::optional<std::string> name = std::nullopt);
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CREDENTIAL_SOURCE_H_
