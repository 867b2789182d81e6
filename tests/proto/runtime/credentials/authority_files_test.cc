#include "proto/runtime/credentials/authority_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/credentials/folder_lock.h"
#include "proto/runtime/credentials/places.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/plain_file.h"
#include "tests/proto/runtime/credentials/made_certificates.h"
#include "tests/skip.h"
#include "tests/small_disk.h"
#include "tests/storage/io/scripted_files.h"
#include "tests/temp_folder.h"
#include "tests/without_privileges.h"

namespace strata {
namespace {

namespace fs = std::filesystem;
using storage::ScriptedFiles;
using Call = ScriptedFiles::Call;
using testing::CheckText;
using testing::kCluster;
using testing::kClusterText;
using testing::kOtherCluster;
using testing::TestTime;

unsigned ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

absl::StatusOr<KeyedCertificate> Signing(const std::string& folder, absl::Time now, int days) {
  const auto authority = ReadAuthority(folder);
  REQUIRE(authority.ok());
  return ReadSigningAuthority(folder, *authority, now, now + days * absl::Hours(24));
}

TEST_CASE("an authority is made whole, private, and able to sign", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/a/certs";
  const auto made = InitAuthority(folder, kCluster, 3650, TestTime());
  REQUIRE(made.ok());
  CHECK(made->file == folder + "/ca/ca.crt");
  CHECK(made->cluster == kCluster);
  CHECK(made->facts.valid.from == TestTime() - absl::Hours(1));
  CHECK(made->facts.valid.until == TestTime() + 3650 * absl::Hours(24));
  CHECK(ModeOf(folder) == 0700);
  CHECK(ModeOf(folder + "/ca") == 0700);
  CHECK(ModeOf(folder + "/ca/ca.key") == 0600);
  CHECK(ReadRevocations(folder)->all().empty());
  CHECK(Signing(folder, TestTime(), 90).ok());
  CHECK_FALSE(fs::exists(folder + "/ca.new"));
}

TEST_CASE("the folder of an authority is private, however it is spelled", "[credentials]") {
  const TempFolder temp;
  for (const char* spelled : {"a/", "b//", "c/.", "d/e/", "./f/./"}) {
    const std::string folder = absl::StrCat(temp.path(), "/", spelled);
    INFO(spelled);
    REQUIRE(InitAuthority(folder, kCluster, 10, TestTime()).ok());
    CHECK(ModeOf(fs::canonical(folder).string()) == 0700);
    CHECK(Signing(folder, TestTime(), 1).ok());
  }
}

TEST_CASE("no authority is made beside certificates of another one", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  for (const char* whose : {"server/alpha", "server/beta", "reader/r", "worker/w", "worker/x"}) {
    fs::create_directories(absl::StrCat(folder, "/", whose));
  }
  const auto made = InitAuthority(folder, kCluster, 30, TestTime());
  CHECK(absl::IsFailedPrecondition(made.status()));
  CheckText(made.status().message(),
            {folder + " has certificates of another CA (server/alpha, server/beta, worker/w and 2 "
                      "more)",
             folder + "/ca back from a copy",
             "strata certs init --dir " + folder + "-new) and issue every certificate there"});
  CHECK_FALSE(fs::exists(folder + "/ca"));
  // Empty ones are nobody's.
  for (const char* role : {"server", "worker", "reader"}) {
    fs::remove_all(absl::StrCat(folder, "/", role));
    fs::create_directories(absl::StrCat(folder, "/", role));
  }
  CHECK(InitAuthority(folder, kCluster, 30, TestTime()).ok());
}

TEST_CASE("an authority that is there stays, and is named", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  REQUIRE(InitAuthority(folder, kCluster, 10, TestTime()).ok());
  const std::string before = ReadAuthority(folder)->pem;
  const auto twice = InitAuthority(folder, kOtherCluster, 10, TestTime());
  CHECK(absl::IsAlreadyExists(twice.status()));
  CheckText(twice.status().message(), {folder + "/ca is there already", kClusterText,
                                       "expires 2026-01-11T00:00:00Z", "--dir"});
  CHECK(ReadAuthority(folder)->pem == before);
  // Damaged, it is still somebody's.
  std::ofstream(folder + "/ca/ca.crt") << "hello";
  const auto damaged = InitAuthority(folder, kOtherCluster, 10, TestTime());
  CHECK(absl::IsAlreadyExists(damaged.status()));
  CheckText(damaged.status().message(), {"is there already", "no certificate"});
}

TEST_CASE("days that no certificate lasts are refused", "[credentials]") {
  const TempFolder temp;
  for (const int days : {0, -1, kMaxValidDays + 1}) {
    const auto made = InitAuthority(temp.path() + "/certs", kCluster, days, TestTime());
    CHECK(absl::IsInvalidArgument(made.status()));
    CheckText(made.status().message(), {absl::StrCat(days, " days"), "name 1 to 36500"});
  }
  CHECK_FALSE(fs::exists(temp.path() + "/certs"));
  CHECK(InitAuthority(temp.path() + "/certs", kCluster, kMaxValidDays, TestTime()).ok());
}

TEST_CASE("an authority that cannot sign says why", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs", key = folder + "/ca/ca.key";
  CHECK(absl::IsNotFound(ReadAuthority(folder).status()));
  CheckText(ReadAuthority(folder).status().message(),
            {folder + "/ca/ca.crt", "strata certs init --dir " + folder});
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());

  const auto outlived = Signing(folder, TestTime() + absl::Hours(25), 29);
  CHECK(absl::IsFailedPrecondition(outlived.status()));
  CheckText(outlived.status().message(), {folder + "/ca/ca.crt", "expires 2026-01-31T00:00:00Z",
                                          "would outlive it", "give --days 28 or fewer"});
  CHECK(Signing(folder, TestTime() + absl::Hours(25), 28).ok());
  const auto last_day = Signing(folder, TestTime() + absl::Hours(24 * 30 - 1), 1);
  CheckText(last_day.status().message(), {"would outlive it; make a new CA"});
  const auto expired = Signing(folder, TestTime() + absl::Hours(24 * 30), 1);
  CHECK(absl::IsFailedPrecondition(expired.status()));
  CheckText(expired.status().message(),
            {folder + "/ca/ca.crt", "O=strata,OU=ca", "expires 2026-01-31T00:00:00Z", "has expired",
             absl::StrCat("--cluster ", kClusterText)});

  for (const mode_t mode : {0644, 0640, 0604}) {
    REQUIRE(chmod(key.c_str(), mode) == 0);
    const auto open = Signing(folder, TestTime(), 1);
    CHECK(absl::IsPermissionDenied(open.status()));
    CheckText(open.status().message(), {"mode 06", "chmod 600 " + key});
  }
  REQUIRE(chmod(key.c_str(), 0600) == 0);
  std::ofstream(key) << testing::MadeAuthority().key;
  const auto other = Signing(folder, TestTime(), 1);
  CHECK(absl::IsDataLoss(other.status()));
  CheckText(other.status().message(), {key, "does not belong to the certificate",
                                       "expires 2026-01-31T00:00:00Z", "put ca.crt and ca.key"});
  fs::remove(key);
  const auto gone = Signing(folder, TestTime(), 1);
  CHECK(absl::IsNotFound(gone.status()));
  CheckText(gone.status().message(), {key, "not here"});
}

TEST_CASE("what is no authority's certificate is refused with its file", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  const KeyedCertificate authority = testing::MadeAuthority();
  const std::string leaf =
      testing::Issued(authority, {kCluster, Role::kServer, "alpha"}).certificate;
  for (const std::string& bad : {std::string("hello"), leaf, authority.key}) {
    std::ofstream(folder + "/ca/ca.crt") << bad;
    const auto read = ReadAuthority(folder);
    CHECK(absl::IsDataLoss(read.status()));
    CheckText(read.status().message(), {folder + "/ca/ca.crt", "put ca.crt and ca.key back"});
  }
}

TEST_CASE("the list of revoked ones is never taken for empty", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs", file = folder + "/ca/revoked";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  Revocations revocations;
  revocations.Add(std::string(32, '7'), {"server/alpha", TestTime()});
  REQUIRE(WriteRevocations(folder, revocations).ok());
  CHECK(ReadRevocations(folder)->Text() == revocations.Text());
  const std::string remedy = absl::StrCat(
      "put it back from a copy, or make a new CA in another "
      "folder (strata certs init --cluster ",
      kClusterText, " --dir ", folder, "-new)");
  for (const char* text : {"", "strata revocations 1\n", "hello\n"}) {
    std::ofstream(file) << text;
    const auto read = ReadRevocations(folder);
    CHECK(absl::IsDataLoss(read.status()));
    CheckText(read.status().message(), {file, "damaged", remedy});
  }
  fs::remove(file);
  CHECK(absl::IsDataLoss(ReadRevocations(folder).status()));
  CheckText(ReadRevocations(folder).status().message(), {file, "missing", remedy});
}

TEST_CASE("the list of issued ones is never taken for empty", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs", file = folder + "/ca/issued";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  CHECK(ReadIssued(folder)->all().empty());
  IssuedCertificates issued;
  issued.Add(std::string(32, '7'), {"server/alpha", TestTime()});
  REQUIRE(WriteIssued(folder, issued).ok());
  CHECK(ReadIssued(folder)->Text() == issued.Text());
  std::ofstream(file) << "hello";
  CHECK(absl::IsDataLoss(ReadIssued(folder).status()));
  CheckText(ReadIssued(folder).status().message(), {file, "issued certificates is damaged"});
  fs::remove(file);
  CHECK(absl::IsDataLoss(ReadIssued(folder).status()));
  CheckText(ReadIssued(folder).status().message(), {file, "missing", "put it back"});
}

TEST_CASE("a list that could not be read is not written", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  const std::string before = ReadRevocations(folder)->Text();
  Revocations long_list;
  const std::string who(kMaxListBytes / 8, 'n');
  for (int i = 0; i < 8; ++i)
    long_list.Add(absl::StrCat(std::string(31, '7'), i), {who, TestTime()});
  const absl::Status full = WriteRevocations(folder, long_list);
  CHECK(absl::IsResourceExhausted(full));
  CheckText(full.message(), {folder + "/ca/revoked would have", absl::StrCat(kMaxListBytes)});
  CHECK(ReadRevocations(folder)->Text() == before);
}

// Folders are opened so that flock fails: with EBADF; or they cannot be opened at all.
class UnlockableFiles : public FileSystem {
 public:
  explicit UnlockableFiles(int error) : error_(error) {}
  int Open(const std::string& path, int) override {
    return error_ != 0 ? -error_ : ::open(path.c_str(), O_PATH | O_CLOEXEC);
  }

 private:
  const int error_;
};

TEST_CASE("one command at a time changes a folder", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  {
    const FolderLock first(folder, FileSystem::Kernel());
    REQUIRE(first.status().ok());
    const FolderLock second(folder, FileSystem::Kernel());
    CHECK(absl::IsAborted(second.status()));
    CheckText(second.status().message(), {folder, "another `strata certs`", "try again"});
  }
  CHECK(FolderLock(folder, FileSystem::Kernel()).status().ok());
  UnlockableFiles unlockable(0);
  const FolderLock odd(folder, unlockable);
  CHECK(absl::IsInternal(odd.status()));
  CheckText(odd.status().message(), {"cannot lock " + folder, "Bad file descriptor"});
  UnlockableFiles without_locks(ENOLCK);
  const FolderLock lockless(folder, without_locks);
  CHECK(absl::IsFailedPrecondition(lockless.status()));
  CheckText(lockless.status().message(),
            {"cannot lock " + folder, "No locks available", "that locks folders", "--dir"});
  const FolderLock none(folder + "/none", FileSystem::Kernel());
  CHECK(absl::IsNotFound(none.status()));
  CheckText(none.status().message(), {folder + "/none", "strata certs init"});
}

TEST_CASE("an authority is made whole or not at all, whatever call fails", "[credentials]") {
  for (const Call call : {Call::kOpen, Call::kWrite, Call::kSync, Call::kRename}) {
    bool failed = true;
    for (uint64_t nth = 1; failed; ++nth) {
      REQUIRE(nth < 60);
      const TempFolder temp;
      const std::string folder = temp.path() + "/certs";
      ScriptedFiles files(1);
      files.Fail(call, call == Call::kRename ? EIO : ENOSPC, nth);
      const auto made = InitAuthority(folder, kCluster, 30, TestTime(), files);
      failed = files.calls(call) >= nth;
      INFO("call " << static_cast<int>(call) << ", " << nth);
      if (made.ok()) continue;
      CheckText(made.status().message(), {temp.path()});
      CHECK_FALSE(fs::exists(folder + "/ca.new"));
      // Either it is there whole, though nobody knows for how long, or the next try makes it.
      if (fs::exists(folder + "/ca")) {
        CHECK(Signing(folder, TestTime(), 1).ok());
        CHECK(ReadRevocations(folder).ok());
      } else {
        CHECK(InitAuthority(folder, kCluster, 30, TestTime()).ok());
      }
    }
  }
}

TEST_CASE("what a killed command left is begun anew", "[credentials]") {
  const TempFolder temp;
  const std::string folder = temp.path() + "/certs";
  fs::create_directories(folder + "/ca.new");
  std::ofstream(folder + "/ca.new/ca.key") << "half";
  REQUIRE(InitAuthority(folder, kCluster, 30, TestTime()).ok());
  CHECK(Signing(folder, TestTime(), 1).ok());
  CHECK_FALSE(fs::exists(folder + "/ca.new"));
}

TEST_CASE("a full disk and a folder that is closed are told in one line", "[credentials]") {
  const TempFolder temp;
  {
    const std::string folder = temp.path() + "/closed";
    fs::create_directories(folder);
    REQUIRE(chmod(folder.c_str(), 0500) == 0);
    const WithoutPrivileges nobody;
    const auto made = InitAuthority(folder + "/certs", kCluster, 30, TestTime());
    CHECK(absl::IsPermissionDenied(made.status()));
    CheckText(made.status().message(), {folder + "/certs", "the right to write there"});
  }
  SmallDisk disk(temp.path() + "/small", 64 << 10);
  if (!disk.mounted()) STRATA_SKIP(disk.reason());
  disk.Fill();
  const auto made = InitAuthority(disk.path() + "/certs", kCluster, 30, TestTime());
  CHECK(absl::IsResourceExhausted(made.status()));
  CheckText(made.status().message(), {disk.path(), "free disk space"});
  CHECK_FALSE(fs::exists(disk.path() + "/certs/ca"));
  disk.Free();
  CHECK(InitAuthority(disk.path() + "/certs", kCluster, 30, TestTime()).ok());
}

}  // namespace
}  // namespace strata
