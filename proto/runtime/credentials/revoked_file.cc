#include "proto/runtime/credentials/revoked_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/credentials/revocations.h"
#include "proto/runtime/files/plain_file.h"

namespace strata {

absl::StatusOr<std::unique_ptr<RevokedFile>> RevokedFile::Open(RevokedFileOptions options) {
  std::unique_ptr<RevokedFile> file(new RevokedFile(std::move(options)));
  if (absl::Status s = file->Look(); !s.ok()) return s;
  file->thread_ = std::thread([of = file.get()] { of->Run(); });
  return file;
}

RevokedFile::~RevokedFile() {
  {
    MutexLock lock(&mu_);
    stopped_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

std::string RevokedFile::Text() const {
  MutexLock lock(&mu_);
  return text_;
}

absl::Status RevokedFile::problem() const {
  MutexLock lock(&mu_);
  return problem_;
}

void RevokedFile::Run() {
  while (true) {
    {
      MutexLock lock(&mu_);
      const absl::Time next = o_.timer->Now() + o_.look_again;
      if (AwaitUntil(o_.timer, &mu_, absl::Condition(&stopped_), next)) return;
    }
    const absl::Status before = problem();
    const absl::Status now = Look();
    if (o_.changed && before != now) o_.changed(now);
  }
}

absl::Status RevokedFile::Look() {
  auto text = ReadPlainFile(o_.path, kMaxListBytes, files_);
  auto list = text.ok() ? Revocations::Parse(*text) : text.status();
  const bool other = list.ok() && Text() != *text;
  if (other && o_.source != nullptr) o_.source->SetRevoked(*list);
  MutexLock lock(&mu_);
  problem_ = absl::OkStatus();
  if (!list.ok()) {
    problem_ = absl::Status(list.status().code(),
                            absl::StrCat("--revoked ", o_.path, ": ", list.status().message()));
  }
  if (other) text_ = *std::move(text);
  ++looks_;
  return problem_;
}

void RevokedFile::AwaitLooks(uint64_t count) const {
  MutexLock lock(&mu_);
  const auto enough = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return looks_ >= count; };
  mu_.Await(absl::Condition(&enough));
}

}  // namespace strata
