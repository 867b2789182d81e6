// Credentials of sessions: the scheduler says with its signature (Ed25519) which session may work
// for a job, as which worker and for which lanes; servers verify that by the scheduler's public key
// alone. Pure values: no clock, no files.
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_SESSION_CREDENTIAL_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_SESSION_CREDENTIAL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/openssl_objects.h"

namespace strata {

struct SessionCredential {
  ClusterId cluster;
  JobUid job;
  Generation generation;
  SessionId session;
  std::string worker;           // its name: 1 to kMaxSessionWorkerBytes bytes, any
  std::vector<uint32_t> lanes;  // ascending, each below kMaxSessionLanes; none: a session without
  absl::Time expires;           // of whole seconds, from 1970 to the end of 9999

  friend bool operator==(const SessionCredential&, const SessionCredential&) = default;
};

// As long as the scheduler lets a node's name be.
inline constexpr size_t kMaxSessionWorkerBytes = 253;
// As many lanes as a job may have (spec.training.lanes).
inline constexpr uint32_t kMaxSessionLanes = 4096;
inline constexpr size_t kSessionKeyBytes = 32;  // of a private key, and of a public one
// Of any credential: version, cluster, job, generation, session, expiry, the name with its length,
// a bit for each lane with their length, signature. So it fits into a call's metadata.
inline constexpr size_t kMaxSessionCredentialBytes =
    1 + 16 + 16 + 8 + 8 + 8 + 1 + kMaxSessionWorkerBytes + 2 + kMaxSessionLanes / 8 + 64;

// What is signed, without the signature; each credential has one text, and no other text is it.
// INVALID_ARGUMENT: the credential is none: see its fields, and neither id may be nil.
absl::StatusOr<std::string> EncodeSession(const SessionCredential& credential);
// UNAUTHENTICATED: EncodeSession makes no such text. Who signed it is not asked: VerifySession is
// what servers call.
absl::StatusOr<SessionCredential> DecodeSession(absl::string_view text);

// Signs with one private key. A value that moves; threads may share it to sign.
class SessionSigner {
 public:
  // With a new key, drawn at random.
  static absl::StatusOr<SessionSigner> New();
  // With that of an earlier one. INVALID_ARGUMENT: it has not kSessionKeyBytes bytes.
  static absl::StatusOr<SessionSigner> FromPrivate(absl::string_view key);

  // A secret: it goes into private files and nowhere else.
  const std::string& Private() const { return private_; }
  // What servers verify with.
  const std::string& Public() const { return public_; }

  // INVALID_ARGUMENT as of EncodeSession.
  absl::StatusOr<std::string> Sign(const SessionCredential& credential) const;

 private:
  SessionSigner(KeyPtr key, std::string private_key, std::string public_key);

  KeyPtr key_;
  std::string private_;
  std::string public_;
};

// The contents of a credential that one of the keys' holders signed: those of the scheduler, the
// old and the new one while they change. Each call checks a signature; the same bytes have the same
// answer for the same keys. Texts of errors have nothing of the bytes.
// UNAUTHENTICATED: nobody of them has, or it is malformed, or of another version.
// FAILED_PRECONDITION: a key has not kSessionKeyBytes bytes.
// The caller compares the fields with what it is asked, and the time (CheckSessionTime).
//
//   const auto session = VerifySession(bytes, keys);
//   if (!session.ok()) return session.status();
//   if (absl::Status s = CheckSessionTime(*session, timer.Now()); !s.ok()) return s;
absl::StatusOr<SessionCredential> VerifySession(absl::string_view credential,
                                                std::span<const std::string> public_keys);

// UNAUTHENTICATED from the moment on at which it expires.
absl::Status CheckSessionTime(const SessionCredential& credential, absl::Time now);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_SESSION_CREDENTIAL_H_
