// libFuzzer target of credentials of sessions: no crash; a text that is read is what its contents
// are written as, byte for byte; nobody's signature is taken for the scheduler's; and what is
// written and signed is read as the same.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "proto/runtime/credentials/session_credential.h"

namespace {

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const signer =
      new auto(strata::SessionSigner::FromPrivate(std::string(strata::kSessionKeyBytes, '7')));
  Check(signer->ok(), "no key");
  const std::vector<std::string> keys = {(*signer)->Public()};
  const std::string text(reinterpret_cast<const char*>(data), size);
  Check(!strata::VerifySession(text, keys).ok(), "a forged credential is taken");
  const auto decoded = strata::DecodeSession(text);
  if (!decoded.ok()) return 0;
  const auto encoded = strata::EncodeSession(*decoded);
  Check(encoded.ok() && *encoded == text, "another text when written again");
  const auto made = (*signer)->Sign(*decoded);
  Check(made.ok(), "what was read cannot be signed");
  const auto verified = strata::VerifySession(*made, keys);
  Check(verified.ok() && *verified == *decoded, "another credential when verified");
  return 0;
}
