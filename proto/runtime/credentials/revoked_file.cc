#include "proto/runtime/credentials/revoked_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {

absl::StatusOr<std::unique_ptr<RevokedFile>> RevokedFile::Open(RevokedFileOptions options) {
  std::unique_ptr<RevokedFile> file(new RevokedFile(std::move(options)));
  if (absl::Status s = file->Look(); !s.ok()) return s;
  return file;
}

std::string RevokedFile::Text() {
  {
    MutexLock lock(&mu_);
    if (looking_ || o_.clock->Now() < next_look_) return text_;
    looking_ = true;
  }
  const absl::Status looked = Look();
  if (!looked.ok() && o_.problem) o_.problem(looked);
  MutexLock lock(&mu_);
  return text_;
}

absl::Status RevokedFile::Look() {
  auto text = ReadPlainFile(o_.path, kMaxListBytes, files_);
  auto list = text.ok() ? Revocations::Parse(*text) : text.status();
  if (list.ok() && o_.source != nullptr) o_.source->SetRevoked(*list);
  MutexLock lock(&mu_);
  looking_ = false;
  next_look_ = o_.clock->Now() + o_.look_again;
  if (!list.ok()) {
    return absl::Status(list.status().code(),
                        absl::StrCat("--revoked ", o_.path, ": ", list.status().message()));
  }
  if (text_ != *text) text_ = *std::move(text);
  return absl::OkStatus();
}

}  // namespace strata
