#include "proto/runtime/credentials/certs_command.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/runtime/credentials/places.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr char kWhereItsAuthorityIs[] = ", where its CA is";

std::string Quoted(absl::string_view text) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
           absl::string_view("_./@%+=:,-").find(c) != absl::string_view::npos;
  };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string InFolder(absl::string_view folder) { return absl::StrCat(" --dir ", Quoted(folder)); }

std::string WhoseIn(absl::string_view folder, Role role, absl::string_view name) {
  return absl::StrCat(RoleName(role), " ", name, InFolder(folder));
}

std::string FolderBeside(absl::string_view folder) {
  while (absl::ConsumeSuffix(&folder, "/")) {
  }
  return absl::StrCat(folder, "-new");
}

std::string NewAuthorityBeside(absl::string_view folder, const ClusterId& cluster) {
  const std::string id = cluster.nil() ? "" : absl::StrCat(" --cluster ", cluster.text());
  return absl::StrCat("make a new CA in another folder (strata certs init", id,
                      InFolder(FolderBeside(folder)), ") and issue every certificate there");
}

std::string AuthorityAbove(const std::string& certificate_folder, FileSystem& files) {
  const fs::path folder =
      fs::path(BareFolder(certificate_folder)).parent_path().parent_path().parent_path();
  const std::string above = folder.empty() ? "." : folder.string();
  FileInfo info;
  const std::string file = absl::StrCat(AuthorityFolder(above), "/", kAuthorityCertificateFile);
  return files.Look(file, info) == 0 ? above : "";
}

std::string RenewCommand(const std::string& certificate_file, const Identity& identity,
                         FileSystem& files) {
  const std::string above =
      AuthorityAbove(fs::path(certificate_file).parent_path().string(), files);
  return absl::StrCat("strata certs renew ", RoleName(identity.role), " ", identity.name,
                      above.empty() ? kWhereItsAuthorityIs : InFolder(above));
}

std::string RenewAllCommand(absl::string_view folder) {
  return absl::StrCat("strata certs renew --all",
                      folder.empty() ? kWhereItsAuthorityIs : InFolder(folder));
}

}  // namespace strata
