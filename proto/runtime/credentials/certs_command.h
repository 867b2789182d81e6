// Commands of `strata certs`, as errors name them: fit to be typed into a shell as they stand.
// Tested by tests/proto/runtime/credentials/certificate_list_test.cc
#ifndef STRATA_PROTO_RUNTIME_CREDENTIALS_CERTS_COMMAND_H_
#define STRATA_PROTO_RUNTIME_CREDENTIALS_CERTS_COMMAND_H_

#include <string>

#include "absl/strings/string_view.h"
#include "proto/core/uid.h"
#include "proto/runtime/credentials/identity.h"
#include "proto/runtime/files/file_system.h"

namespace strata {

// "server alpha --dir ./strata-certs".
std::string WhoseIn(absl::string_view folder, Role role, absl::string_view name);
// " --dir ./strata-certs", in quotes where a shell needs them.
std::string InFolder(absl::string_view folder);
// "./strata-certs-new", for what cannot be in "./strata-certs".
std::string FolderBeside(absl::string_view folder);
// "make a new CA in another folder (strata certs init --cluster ID --dir ./strata-certs-new) and
// issue every certificate there", since none is made where one was.
std::string NewAuthorityBeside(absl::string_view folder, const ClusterId& cluster);

// The folder of `strata certs` that FOLDER/ROLE/NAME/current (or what that leads to) lies in, where
// its CA is there; empty: its CA is elsewhere.
std::string AuthorityAbove(const std::string& certificate_folder,
                           FileSystem& files = FileSystem::Kernel());
// "strata certs renew server alpha --dir ./strata-certs", of a certificate by its file; or
// "strata certs renew server alpha, where its CA is".
std::string RenewCommand(const std::string& certificate_file, const Identity& identity,
                         FileSystem& files = FileSystem::Kernel());
// The same of all that a CA has issued: "strata certs renew --all --dir ./strata-certs". `folder`:
// AuthorityAbove's.
std::string RenewAllCommand(absl::string_view folder);

}  // namespace strata

#endif  // STRATA_PROTO_RUNTIME_CREDENTIALS_CERTS_COMMAND_H_
