#include "proto/runtime/credentials/role_folders.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/files/folders.h"

namespace strata {

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder, FileSystem& files) {
  auto names = ListFolder(folder, files);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

absl::StatusOr<std::vector<std::string>> IdentitiesIn(const std::string& folder,
                                                      FileSystem& files) {
  std::vector<std::string> identities;
  for (const Role role : kRoles) {
    const auto names = NamesIn(RoleFolder(folder, role), files);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (!CheckIdentityName(name).ok()) continue;
      identities.push_back(absl::StrCat(RoleName(role), "/", name));
    }
  }
  return identities;
}

}  // namespace strata
