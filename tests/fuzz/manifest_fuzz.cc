// libFuzzer target of the reader of manifests: no crash; what it accepts is written and read again
// as the same. The first byte says whether the checksum line is added.
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>

#include "absl/strings/str_format.h"
#include "proto/core/checksum.h"
#include "proto/runtime/files/manifest_io.h"

namespace {

std::string MakeFolder() {
  char name[] = "/dev/shm/strata-manifest-XXXXXX";
  const char* made = mkdtemp(name);
  if (made == nullptr) std::abort();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string* const folder = new std::string(MakeFolder());
  if (size == 0) return 0;
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const uint32_t crc =
        strata::Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
    text += absl::StrFormat("\ncrc32c %08x\n", crc);
  }
  std::ofstream(*folder + "/" + strata::kManifestName, std::ios::binary | std::ios::trunc) << text;
  const auto manifest = strata::ReadManifest(*folder);
  if (!manifest.ok()) return 0;
  if (!strata::WriteManifest(*folder, *manifest).ok()) return 0;
  const auto again = strata::ReadManifest(*folder);
  strata::Manifest expected = *manifest;
  if (again.ok()) expected.set_format(again->format());
  if (!again.ok() || again->SerializeAsString() != expected.SerializeAsString()) {
    std::fprintf(stderr, "another manifest when written again\n");
    std::abort();
  }
  return 0;
}
