#include "proto/runtime/credentials/session_credential.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/runtime/credentials/certificate.h"

namespace strata {
namespace {

constexpr uint8_t kVersion = 1;
// Stands before the text in what is signed, so that no signature over anything else is one of a
// session; its zero byte ends it.
constexpr char kDomain[] = "strata session credential 1";
constexpr size_t kSignatureBytes = 64;
// With a name of one byte and no lane.
constexpr size_t kMinCredentialBytes = 1 + 16 + 16 + 8 + 8 + 8 + 1 + 1 + 2 + kSignatureBytes;
constexpr uint64_t kMaxExpires = 253402300799;  // the last second of 9999
constexpr char kRemedy[] = "; get one from the scheduler: register again";

static_assert(kMaxSessionLanes % 8 == 0);

absl::Status Refused(absl::string_view why) {
  return absl::UnauthenticatedError(absl::StrCat("credential of a session: ", why, kRemedy));
}

absl::Status Malformed() { return Refused("it is malformed"); }

absl::Status Unfit(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("credential of a session: ", why));
}

// Big-endian, `bytes` of them.
void Put(uint64_t value, size_t bytes, std::string& text) {
  for (size_t i = bytes; i-- > 0;) text.push_back(static_cast<char>(value >> (8 * i)));
}

// Takes numbers and bytes off the front of a text; once it is too short, nothing.
class Taker {
 public:
  explicit Taker(absl::string_view text) : rest_(text) {}

  uint64_t Number(size_t bytes) {
    uint64_t value = 0;
    for (const char c : Bytes(bytes)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  absl::string_view Bytes(size_t bytes) {
    short_ = short_ || rest_.size() < bytes;
    if (short_) return "";
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  // All was there, and nothing is behind it.
  bool whole() const { return !short_ && rest_.empty(); }

 private:
  absl::string_view rest_;
  bool short_ = false;
};

// A bit for each lane, the lowest first, as many bytes as the last one needs.
std::string LaneBits(const std::vector<uint32_t>& lanes) {
  std::string bits(lanes.empty() ? 0 : lanes.back() / 8 + 1, '\0');
  for (const uint32_t lane : lanes) {
    bits[lane / 8] = static_cast<char>(static_cast<uint8_t>(bits[lane / 8]) | 1u << lane % 8);
  }
  return bits;
}

std::vector<uint32_t> LanesOf(absl::string_view bits) {
  std::vector<uint32_t> lanes;
  for (uint32_t lane = 0; lane < 8 * bits.size(); ++lane) {
    if ((static_cast<uint8_t>(bits[lane / 8]) >> lane % 8 & 1) != 0) lanes.push_back(lane);
  }
  return lanes;
}

absl::Status CheckVersion(absl::string_view text) {
  if (text.empty()) return Malformed();
  const int version = static_cast<uint8_t>(text.front());
  if (version == kVersion) return absl::OkStatus();
  return Refused(absl::StrCat("it is of version ", version, ", and this program reads version ",
                              static_cast<int>(kVersion)));
}

absl::Status CheckContents(const SessionCredential& c) {
  if (c.cluster.nil() || c.job.nil()) return Unfit("it names no cluster or no job");
  if (c.worker.empty() || c.worker.size() > kMaxSessionWorkerBytes) {
    return Unfit(absl::StrCat("the worker's name has ", c.worker.size(),
                              " bytes; it must have 1 to ", kMaxSessionWorkerBytes));
  }
  for (size_t i = 0; i < c.lanes.size(); ++i) {
    if (c.lanes[i] >= kMaxSessionLanes) {
      return Unfit(absl::StrCat("lane ", c.lanes[i], " is none; a job has at most ",
                                kMaxSessionLanes, ", numbered from 0"));
    }
    if (i > 0 && c.lanes[i] <= c.lanes[i - 1]) {
      return Unfit(absl::StrCat("lane ", c.lanes[i], " follows lane ", c.lanes[i - 1],
                                "; lanes must ascend"));
    }
  }
  if (c.expires < absl::UnixEpoch() || c.expires > absl::FromUnixSeconds(kMaxExpires)) {
    return Unfit("it expires before 1970 or after 9999");
  }
  if (c.expires != absl::FromUnixSeconds(absl::ToUnixSeconds(c.expires))) {
    return Unfit("it expires within a second; name a whole one");
  }
  return absl::OkStatus();
}

const unsigned char* Unsigned(absl::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

std::string WhatIsSigned(absl::string_view text) {
  return absl::StrCat(absl::string_view(kDomain, sizeof kDomain), text);
}

using ContextPtr = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// Whether the key's holder signed it.
absl::StatusOr<bool> IsSignedBy(absl::string_view key_bytes, const std::string& message,
                                absl::string_view signature) {
  if (key_bytes.size() != kSessionKeyBytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("a public key for credentials of sessions has ", key_bytes.size(),
                     " bytes; it must have ", kSessionKeyBytes));
  }
  const KeyPtr key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Unsigned(key_bytes),
                                               key_bytes.size()));
  const ContextPtr context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (key == nullptr || context == nullptr ||
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1) {
    return OpenSslError("check the signature of a session");
  }
  const bool good = EVP_DigestVerify(context.get(), Unsigned(signature), signature.size(),
                                     Unsigned(message), message.size()) == 1;
  ERR_clear_error();
  return good || STRATA_MUTATION("sessions.signature_is_not_read");
}

}  // namespace

absl::StatusOr<std::string> EncodeSession(const SessionCredential& credential) {
  if (absl::Status s = CheckContents(credential); !s.ok()) return s;
  const std::string bits = LaneBits(credential.lanes);
  std::string text;
  Put(kVersion, 1, text);
  Put(credential.cluster.high, 8, text);
  Put(credential.cluster.low, 8, text);
  Put(credential.job.high, 8, text);
  Put(credential.job.low, 8, text);
  Put(credential.generation.value, 8, text);
  Put(credential.session.value, 8, text);
  Put(static_cast<uint64_t>(absl::ToUnixSeconds(credential.expires)), 8, text);
  Put(credential.worker.size(), 1, text);
  text += credential.worker;
  Put(bits.size(), 2, text);
  return text + bits;
}

absl::StatusOr<SessionCredential> DecodeSession(absl::string_view text) {
  if (absl::Status s = CheckVersion(text); !s.ok()) return s;
  Taker taker(text.substr(1));
  SessionCredential credential;
  credential.cluster.high = taker.Number(8);
  credential.cluster.low = taker.Number(8);
  credential.job.high = taker.Number(8);
  credential.job.low = taker.Number(8);
  credential.generation = Generation(taker.Number(8));
  credential.session = SessionId(taker.Number(8));
  const uint64_t expires = taker.Number(8);
  credential.worker = std::string(taker.Bytes(taker.Number(1)));
  const absl::string_view bits = taker.Bytes(taker.Number(2));
  const bool canonical = expires <= kMaxExpires && bits.size() <= kMaxSessionLanes / 8 &&
                         (bits.empty() || bits.back() != '\0');
  if (!taker.whole() || !canonical) return Malformed();
  credential.expires = absl::FromUnixSeconds(static_cast<int64_t>(expires));
  credential.lanes = LanesOf(bits);
  if (!CheckContents(credential).ok()) return Malformed();
  return credential;
}

SessionSigner::SessionSigner(KeyPtr key, std::string private_key, std::string public_key)
    : key_(std::move(key)), private_(std::move(private_key)), public_(std::move(public_key)) {}

absl::StatusOr<SessionSigner> SessionSigner::New() {
  const KeyPtr key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  std::string bytes(kSessionKeyBytes, '\0');
  size_t size = bytes.size();
  if (key == nullptr ||
      EVP_PKEY_get_raw_private_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()),
                                   &size) != 1) {
    return OpenSslError("make a key for credentials of sessions");
  }
  return FromPrivate(bytes);
}

absl::StatusOr<SessionSigner> SessionSigner::FromPrivate(absl::string_view bytes) {
  if (bytes.size() != kSessionKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a private key for credentials of sessions has ",
                                                   bytes.size(), " bytes; it must have ",
                                                   kSessionKeyBytes));
  }
  KeyPtr key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Unsigned(bytes), bytes.size()));
  std::string public_key(kSessionKeyBytes, '\0');
  size_t size = public_key.size();
  if (key == nullptr ||
      EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(public_key.data()),
                                  &size) != 1) {
    return OpenSslError("read a key for credentials of sessions");
  }
  return SessionSigner(std::move(key), std::string(bytes), std::move(public_key));
}

absl::StatusOr<std::string> SessionSigner::Sign(const SessionCredential& credential) const {
  auto text = EncodeSession(credential);
  if (!text.ok()) return text.status();
  const std::string message = WhatIsSigned(*text);
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  const ContextPtr context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     Unsigned(message), message.size()) != 1) {
    return OpenSslError("sign a credential of a session");
  }
  return absl::StrCat(*text, signature);
}

absl::StatusOr<SessionCredential> VerifySession(absl::string_view credential,
                                                std::span<const std::string> public_keys) {
  if (credential.size() < kMinCredentialBytes || credential.size() > kMaxSessionCredentialBytes) {
    return Refused(credential.empty()
                       ? std::string("none was sent")
                       : absl::StrCat("it has ", credential.size(), " bytes; one has ",
                                      kMinCredentialBytes, " to ", kMaxSessionCredentialBytes));
  }
  const absl::string_view text = credential.substr(0, credential.size() - kSignatureBytes);
  // First, since those of other versions may be signed in another way.
  if (absl::Status s = CheckVersion(text); !s.ok()) return s;
  const std::string message = WhatIsSigned(text);
  bool signed_by_one = false;
  for (const std::string& key : public_keys) {
    const auto by_this = IsSignedBy(key, message, credential.substr(text.size()));
    if (!by_this.ok()) return by_this.status();
    signed_by_one = signed_by_one || *by_this;
  }
  if (!signed_by_one) return Refused("this cluster's scheduler has not signed it");
  return DecodeSession(text);
}

absl::Status CheckSessionTime(const SessionCredential& credential, absl::Time now) {
  if (now < credential.expires || STRATA_MUTATION("sessions.expired_is_taken")) {
    return absl::OkStatus();
  }
  return Refused(absl::StrCat("it expired at ", TimeText(credential.expires), " (it is ",
                              TimeText(now), " here)"));
}

}  // namespace strata
