#include "proto/runtime/files/may_pass.h"

namespace strata {

bool MayPass(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:  // a full disk or quota, no handle, no memory
    case absl::StatusCode::kUnavailable:        // EIO, ESTALE, what a mount says that is away
    case absl::StatusCode::kInternal:           // the same, of manifests (PlainFileError)
    case absl::StatusCode::kNotFound:           // a share that is not mounted, a folder that went
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kCancelled:
      return true;
    default:
      return false;
  }
}

}  // namespace strata
