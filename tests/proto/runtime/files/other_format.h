// A checkpoint of another version of Strata.
#ifndef STRATA_TESTS_PROTO_RUNTIME_FILES_OTHER_FORMAT_H_
#define STRATA_TESTS_PROTO_RUNTIME_FILES_OTHER_FORMAT_H_

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/runtime/files/manifest_io.h"
#include "proto/runtime/files/record_file.h"
#include "proto/strata/checkpoint.pb.h"

namespace strata::testing {

inline constexpr uint32_t kOtherFormat = kManifestFormat + 1;

// The manifest of the checkpoint in `folder` becomes one of kOtherFormat.
inline void PutOtherFormat(const std::string& folder) {
  auto manifest = ReadManifest(folder);
  INFO(manifest.status());
  REQUIRE(manifest.ok());
  manifest->set_format(kOtherFormat);
  REQUIRE(WriteRecordFile(absl::StrCat(folder, "/", kManifestName), *manifest).ok());
}

}  // namespace strata::testing

#endif  // STRATA_TESTS_PROTO_RUNTIME_FILES_OTHER_FORMAT_H_
