#include "tools/cli/context/my_credentials.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/folder_credentials.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/files/file_system.h"

namespace strata {
namespace {

// For who names DIR/ROLE/NAME, where `strata certs` keeps several certificates and a link to one.
std::string MeantLink(const std::string& folder) {
  const std::string current = absl::StrCat(folder, "/current");
  FileInfo info;
  const bool there =
      FileSystem::Kernel().Look(absl::StrCat(current, "/", kCertificateFile), info) == 0;
  return there ? absl::StrCat("; did you mean ", current, "?") : "";
}

}  // namespace

absl::StatusOr<std::shared_ptr<CredentialSource>> OpenMyCredentials(const std::string& folder,
                                                                    Clock& clock) {
  auto opened = OpenCredentials({.folder = folder, .clock = &clock});
  if (opened.ok()) return opened;
  const absl::Status& s = opened.status();
  return absl::UnauthenticatedError(
      absl::StrCat(s.message(), absl::IsNotFound(s) ? MeantLink(folder) : ""));
}

}  // namespace strata
