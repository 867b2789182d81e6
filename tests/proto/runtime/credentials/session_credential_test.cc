#include "proto/runtime/credentials/session_credential.h"

#include <openssl/evp.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/core/ids.h"
#include "proto/core/uid.h"
#include "tests/proto/runtime/credentials/made_certificates.h"

namespace strata {
namespace {

using testing::CheckText;
using testing::kCluster;
using testing::TestTime;

constexpr size_t kSignatureBytes = 64;

SessionCredential Small() {
  return {.cluster = kCluster,
          .job = {0x1122334455667788, 0x99aabbccddeeff00},
          .generation = Generation(3),
          .session = SessionId(0x0102030405060708),
          .worker = "w-1",
          .lanes = {0, 2, 9},
          .expires = TestTime()};
}

SessionCredential Largest() {
  SessionCredential c = Small();
  c.worker = std::string(kMaxSessionWorkerBytes, '\xff');
  c.lanes.clear();
  for (uint32_t lane = 0; lane < kMaxSessionLanes; ++lane) c.lanes.push_back(lane);
  c.generation = Generation(UINT64_MAX);
  c.session = SessionId(UINT64_MAX);
  c.expires = absl::FromUnixSeconds(253402300799);
  return c;
}

// The private key of the first example of RFC 8032, section 7.1, and its public key there.
SessionSigner Known() {
  auto signer = SessionSigner::FromPrivate(
      absl::HexStringToBytes("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"));
  REQUIRE(signer.ok());
  return *std::move(signer);
}
constexpr char kKnownPublic[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

std::vector<std::string> KeysOf(const SessionSigner& signer) { return {signer.Public()}; }

std::string Signed(const SessionSigner& signer, const SessionCredential& credential) {
  const auto made = signer.Sign(credential);
  REQUIRE(made.ok());
  return *made;
}

// Any text under a signature of this key over it, behind whatever prefix.
std::string SignedText(const SessionSigner& signer, const std::string& prefix,
                       const std::string& text) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(signer.Private().data());
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes, signer.Private().size()),
      &EVP_PKEY_free);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  REQUIRE(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1);
  const std::string message = prefix + text;
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  REQUIRE(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                         reinterpret_cast<const unsigned char*>(message.data()),
                         message.size()) == 1);
  return text + signature;
}

const std::string kPrefix("strata session credential 1\0", 28);

void CheckRefused(const absl::StatusOr<SessionCredential>& read, absl::string_view says) {
  CHECK(absl::IsUnauthenticated(read.status()));
  CheckText(read.status().message(), {"credential of a session: ", says, "from the scheduler"});
}

TEST_CASE("what the scheduler signs, a server reads with the public key alone", "[credentials]") {
  const auto drawn = SessionSigner::New(), other = SessionSigner::New();
  REQUIRE(drawn.ok());
  REQUIRE(other.ok());
  CHECK(drawn->Private() != other->Private());
  CHECK(drawn->Private().size() == kSessionKeyBytes);
  CHECK(drawn->Public().size() == kSessionKeyBytes);
  SessionCredential bare = Small();
  bare.lanes.clear();
  bare.worker = std::string(1, '\0');
  bare.expires = absl::UnixEpoch();
  for (const SessionCredential& c : {Small(), bare, Largest()}) {
    const std::string bytes = Signed(*drawn, c);
    const auto read = VerifySession(bytes, KeysOf(*drawn));
    REQUIRE(read.ok());
    CHECK(*read == c);
    // From the stored key it is the same.
    const auto again = SessionSigner::FromPrivate(drawn->Private());
    REQUIRE(again.ok());
    CHECK(again->Public() == drawn->Public());
    CHECK(Signed(*again, c) == bytes);
    // While keys change, either counts.
    const std::vector<std::string> both = {other->Public(), drawn->Public()};
    CHECK(VerifySession(bytes, both).ok());
  }
  CHECK(Signed(*drawn, Largest()).size() == kMaxSessionCredentialBytes);
}

TEST_CASE("a credential has the bytes that every version of the program reads", "[credentials]") {
  const SessionSigner signer = Known();
  CHECK(absl::BytesToHexString(signer.Public()) == kKnownPublic);
  const auto text = EncodeSession(Small());
  REQUIRE(text.ok());
  CHECK(absl::BytesToHexString(*text) ==
        "01"
        "0123456789abcdef0011223344556677"
        "112233445566778899aabbccddeeff00"
        "0000000000000003"
        "0102030405060708"
        "000000006955b900"
        "03772d31"
        "0002"
        "0502");
  CHECK(Signed(signer, Small()) == SignedText(signer, kPrefix, *text));
}

TEST_CASE("every flipped bit and every cut is refused", "[credentials]") {
  const SessionSigner signer = Known();
  const auto keys = KeysOf(signer);
  // Every one of a small credential, every 7th of the largest one.
  for (const auto& [c, step] : {std::pair(Small(), size_t{1}), std::pair(Largest(), size_t{7})}) {
    std::string bytes = Signed(signer, c);
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += step) {
      const char was = bytes[bit / 8];
      bytes[bit / 8] = static_cast<char>(was ^ (1 << bit % 8));
      INFO("bit " << bit);
      REQUIRE(absl::IsUnauthenticated(VerifySession(bytes, keys).status()));
      bytes[bit / 8] = was;
    }
    for (size_t size = 0; size < bytes.size(); size += step) {
      INFO(size << " bytes");
      REQUIRE(absl::IsUnauthenticated(VerifySession(bytes.substr(0, size), keys).status()));
      REQUIRE(absl::IsUnauthenticated(VerifySession(bytes.substr(size + 1), keys).status()));
    }
    REQUIRE(absl::IsUnauthenticated(VerifySession(bytes + '\0', keys).status()));
    REQUIRE(absl::IsUnauthenticated(VerifySession(bytes + bytes, keys).status()));
    REQUIRE(VerifySession(bytes, keys).ok());
  }
}

TEST_CASE("texts that are no credential's are refused, well signed or not", "[credentials]") {
  const SessionSigner signer = Known();
  const auto text = EncodeSession(Small());
  REQUIRE(text.ok());
  // Whatever is read is written as the same: no two texts are one credential.
  size_t read = 0;
  for (size_t at = 0; at < text->size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = *text;
      changed[at] = static_cast<char>(value);
      const auto decoded = DecodeSession(changed);
      if (!decoded.ok()) {
        REQUIRE(absl::IsUnauthenticated(decoded.status()));
        continue;
      }
      ++read;
      INFO("byte " << at << " is " << value);
      const auto encoded = EncodeSession(*decoded);
      REQUIRE(encoded.ok());
      REQUIRE(*encoded == changed);
    }
  }
  CHECK(read > 1000);
  for (size_t size = 0; size < text->size(); ++size) {
    REQUIRE(absl::IsUnauthenticated(DecodeSession(text->substr(0, size)).status()));
  }
  // The scheduler's key signs them all the same.
  const auto keys = KeysOf(signer);
  const auto verify = [&](const std::string& odd) {
    return VerifySession(SignedText(signer, kPrefix, odd), keys);
  };
  REQUIRE(verify(*text).ok());
  CheckRefused(verify(*text + "x"), "malformed");
  std::string changed = *text;
  changed[0] = 2;
  CheckRefused(verify(changed), "of version 2, and this program reads version 1");
  changed = *text;
  changed.back() = '\0';  // lanes with a byte too many
  CheckRefused(verify(changed), "malformed");
  changed = *text;
  changed.replace(1, 16, std::string(16, '\0'));
  CheckRefused(verify(changed), "malformed");
  changed = *text;
  changed.replace(49, 8, std::string(8, '\x7f'));
  CheckRefused(verify(changed), "malformed");
}

TEST_CASE("who has not the scheduler's key signs nothing", "[credentials]") {
  const SessionSigner signer = Known();
  const auto other = SessionSigner::New();
  REQUIRE(other.ok());
  const auto keys = KeysOf(signer);
  CheckRefused(VerifySession(Signed(*other, Small()), keys), "scheduler has not signed it");
  CheckRefused(VerifySession(Signed(signer, Small()), {}), "scheduler has not signed it");
  CheckRefused(VerifySession("", keys), "none was sent");
  CheckRefused(VerifySession(std::string(100000, 'x'), keys),
               "it has 100000 bytes; one has 125 to");
  // Nor is what that key signs for another purpose a credential.
  const auto text = EncodeSession(Small());
  REQUIRE(text.ok());
  for (const std::string& prefix :
       {std::string(), std::string("strata session credential 1"), kPrefix + kPrefix}) {
    CheckRefused(VerifySession(SignedText(signer, prefix, *text), keys), "has not signed it");
  }
  const std::vector<std::string> bad = {std::string(31, 'k')};
  const auto no_key = VerifySession(Signed(signer, Small()), bad);
  CHECK(absl::IsFailedPrecondition(no_key.status()));
  CheckText(no_key.status().message(), {"public key", "has 31 bytes; it must have 32"});
}

TEST_CASE("no error tells a byte of a key or a credential", "[credentials]") {
  const SessionSigner signer = Known();
  SessionCredential c = Small();
  c.worker = "hush-hush";
  std::string bytes = Signed(signer, c);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  const std::string message(VerifySession(bytes, KeysOf(signer)).status().message());
  CHECK_FALSE(absl::StrContains(message, "hush"));
  const auto key = SessionSigner::FromPrivate("hush-hush");
  CHECK(absl::IsInvalidArgument(key.status()));
  CheckText(key.status().message(), {"has 9 bytes; it must have 32"});
  CHECK_FALSE(absl::StrContains(key.status().message(), "hush"));
}

TEST_CASE("what no credential says is not signed", "[credentials]") {
  const SessionSigner signer = Known();
  const auto refused = [&](SessionCredential c, absl::string_view says) {
    const auto made = signer.Sign(c);
    CHECK(absl::IsInvalidArgument(made.status()));
    CheckText(made.status().message(), {says});
  };
  SessionCredential c = Small();
  c.cluster = {};
  refused(c, "names no cluster or no job");
  c = Small();
  c.job = {};
  refused(c, "names no cluster or no job");
  c = Small();
  c.worker = "";
  refused(c, "has 0 bytes; it must have 1 to 253");
  c.worker = std::string(254, 'w');
  refused(c, "has 254 bytes");
  c = Small();
  c.lanes = {4096};
  refused(c, "lane 4096 is none; a job has at most 4096");
  c.lanes = {3, 2};
  refused(c, "lane 2 follows lane 3");
  c.lanes = {3, 3};
  refused(c, "lane 3 follows lane 3");
  c = Small();
  for (const absl::Time expires :
       {absl::InfiniteFuture(), absl::InfinitePast(), absl::FromUnixSeconds(-1)}) {
    c.expires = expires;
    refused(c, "before 1970 or after 9999");
  }
  c.expires = TestTime() + absl::Milliseconds(1);
  refused(c, "name a whole one");
}

TEST_CASE("a credential counts until its second", "[credentials]") {
  CHECK(CheckSessionTime(Small(), TestTime() - absl::Nanoseconds(1)).ok());
  for (const absl::Time now : {TestTime(), TestTime() + absl::Hours(1)}) {
    const absl::Status s = CheckSessionTime(Small(), now);
    CHECK(absl::IsUnauthenticated(s));
    CheckText(s.message(), {"expired at 2026-01-01T00:00:00Z", "it is 2026-01-01T0", "scheduler"});
  }
}

}  // namespace
}  // namespace strata
