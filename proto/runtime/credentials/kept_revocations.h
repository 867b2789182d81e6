// The list of revoked certificates that a node was told last, in its own folder: it goes by it from
// its first connection on when it starts again, before it has heard a scheduler.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_KEPT_REVOCATIONS_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_KEPT_REVOCATIONS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/runtime/credentials/credential_source.h"
#include "proto/runtime/credentials/revocations.h"

namespace strata {

// One thread at a time.
class KeptRevocations {
 public:
  using Say = std::function<void(const std::string& line)>;  // "event key=value ..." of a log

  // Gives `source` the list that the file REVOKED of `folder` has. Where that cannot be read, or is
  // damaged, the source lets nobody in but a scheduler (Revocations::Unknown) until Follow is given
  // a list. A list of another cluster says nothing. Empty folder: nothing is kept. Null source:
  // nobody is asked who he is, and nothing is done. `say` is told of what goes wrong, once for each
  // reason in turn.
  KeptRevocations(const std::string& folder, std::shared_ptr<CredentialSource> source, Say say);

  // What a directive has: a whole list, or nothing, by which nothing was said. What it has is in
  // force from now on, beside what was before: an older list ends no revocation. It is kept as
  // well; the next call tries again what failed.
  void Follow(absl::string_view told);

 private:
  void Read();
  absl::Status Take(absl::string_view told);
  absl::Status Keep();

  const std::string folder_;  // empty: nothing is kept
  const std::shared_ptr<CredentialSource> source_;
  const Say say_;
  Revocations in_force_;
  std::string told_;  // by the last Follow
  bool kept_ = true;  // `in_force_` is what the file has
  std::string said_;  // the last line
};

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_KEPT_REVOCATIONS_H_
