#include "proto/runtime/credentials/folder_credentials.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/core/mutation.h"
#include "proto/core/mutex.h"
#include "proto/runtime/credentials/certificate.h"
#include "proto/runtime/credentials/certs_command.h"
#include "proto/runtime/credentials/places.h"

namespace strata {
namespace {

// What tells one state of a folder's files from another.
struct Stamp {
  struct File {
    int error = 0;
    uint64_t device = 0;
    uint64_t inode = 0;
    uint64_t bytes = 0;
    int64_t changed_ns = 0;

    friend bool operator==(const File&, const File&) = default;
  };
  std::array<File, 3> of;

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Stamp Look(const std::string& folder, FileSystem& files) {
  Stamp stamp;
  size_t i = 0;
  for (const char* name : {kAuthorityCertificateFile, kCertificateFile, kKeyFile}) {
    FileInfo info;
    Stamp::File& file = stamp.of[i++];
    file.error = files.Look(absl::StrCat(folder, "/", name), info);
    if (file.error == 0) {
      file = {0, info.device, info.inode, info.bytes, info.changed_ns};
    }
  }
  return stamp;
}

absl::Status InFile(const std::string& file, const absl::Status& s) {
  return absl::Status(s.code(), absl::StrCat(file, ": ", s.message()));
}

class Source : public CredentialSource {
 public:
  Source(const FolderCredentials& options, FileSystem& files, Identity self)
      : o_(options), files_(files), self_(std::move(self)) {}

  // Whether there is something to show.
  absl::Status Begin() {
    LookAgain();
    MutexLock lock(&mu_);
    return current_ == nullptr ? problem_ : absl::OkStatus();
  }

  std::shared_ptr<const Credentials> Current() override {
    {
      MutexLock lock(&mu_);
      // A folder that does not answer holds up the one who looks, and no other.
      if (looking_ || o_.clock->Now() < next_look_) return current_;
      looking_ = true;
    }
    LookAgain();
    MutexLock lock(&mu_);
    return current_;
  }

  std::shared_ptr<const Credentials> Last() const override {
    MutexLock lock(&mu_);
    return current_;
  }

  std::shared_ptr<const Revocations> Revoked() const override {
    MutexLock lock(&mu_);
    return revoked_;
  }
  void SetRevoked(Revocations revoked) override {
    auto next = std::make_shared<const Revocations>(std::move(revoked));
    MutexLock lock(&mu_);
    revoked_ = std::move(next);
  }

  const Identity& self() const override { return self_; }

  absl::Status problem() const override {
    MutexLock lock(&mu_);
    if (!problem_.ok()) return problem_;
    const CertificateFacts& facts = current_->certificate.facts;
    if (WallNow() <= facts.valid.until) return absl::OkStatus();
    return absl::UnauthenticatedError(absl::StrCat(
        current_->certificate.file, ": certificate of ", Describe(facts),
        ": it has expired; renew it: ", RenewCommand(current_->certificate.file, self_, files_)));
  }

  absl::Time WallNow() const override { return o_.clock->Wall(o_.clock->Now()); }

 private:
  // One thread at a time.
  void LookAgain() {
    const Stamp stamp = Look(o_.folder, files_);
    std::optional<Stamp> before;
    {
      MutexLock lock(&mu_);
      before = stamp_;
    }
    std::optional<absl::StatusOr<Credentials>> read;
    if (stamp != before) read = Read();
    MutexLock lock(&mu_);
    looking_ = false;
    next_look_ = o_.clock->Now() + o_.look_again;
    if (!read.has_value()) return;
    // Read again, the same files are told of in the same words: these name the time.
    const bool same = !read->ok() && stamp == unfit_ && read->status().code() == problem_.code();
    if (!same) problem_ = read->status();
    unfit_ = read->ok() ? std::nullopt : std::optional<Stamp>(stamp);
    // What is no good is read again: the reason may pass and leave the files as they are.
    stamp_ = read->ok() ? std::optional<Stamp>(stamp) : std::nullopt;
    if (read->ok()) current_ = std::make_shared<const Credentials>(**std::move(read));
  }

  absl::StatusOr<Credentials> Read() const {
    auto read = LoadCredentials(o_.folder, files_);
    if (!read.ok() || STRATA_MUTATION("certs.unfit_replaces_good")) return read;
    // By the eyes of a peer.
    const auto seen = VerifyPeer(read->certificate.pem,
                                 {.authorities = read->authorities,
                                  .cluster = self_.cluster,
                                  .roles = {self_.role},
                                  .name = self_.name},
                                 WallNow(), Revocations());
    if (!seen.ok()) return InFile(read->certificate.file, seen.status());
    return read;
  }

  const FolderCredentials o_;
  FileSystem& files_;
  const Identity self_;

  mutable Mutex mu_;
  std::shared_ptr<const Credentials> current_ ABSL_GUARDED_BY(mu_);  // set by Begin
  std::shared_ptr<const Revocations> revoked_ ABSL_GUARDED_BY(mu_) =
      std::make_shared<const Revocations>();
  absl::Status problem_ ABSL_GUARDED_BY(mu_);
  std::optional<Stamp> stamp_ ABSL_GUARDED_BY(mu_);  // of the files that current_ was read from
  std::optional<Stamp> unfit_ ABSL_GUARDED_BY(mu_);  // of those that problem_ is of
  absl::Time next_look_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool looking_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace

absl::StatusOr<std::shared_ptr<CredentialSource>> OpenCredentials(
    const FolderCredentials& options) {
  FileSystem& files = options.files == nullptr ? FileSystem::Kernel() : *options.files;
  const auto mine = ReadIdentityCertificate(options.folder, files);
  if (!mine.ok()) return mine.status();
  auto source = std::make_shared<Source>(options, files, mine->identity);
  if (absl::Status s = source->Begin(); !s.ok()) return s;
  return std::shared_ptr<CredentialSource>(std::move(source));
}

}  // namespace strata
