#include "tools/cli/context/context_file.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/file_system.h"
#include "proto/runtime/files/locked_file.h"
#include "tests/skip.h"
#include "tests/temp_folder.h"
#include "tools/cli/base/text_file.h"

namespace strata {
namespace {

void UseConfig(const TempFolder& folder) { setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1); }

absl::Status Add(const std::string& name) {
  return ChangeContexts([&](Contexts& contexts) {
    return AddContext({name, "h:1", "", ""}, contexts);
  });
}

mode_t ModeOf(const std::string& path) {
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

// Both refuse, in one line that says this.
void CheckDenied(const std::string& says) {
  const absl::Status read = ReadContexts().status(), added = Add("late");
  for (const absl::Status& s : {read, added}) {
    INFO(s.message());
    CHECK(absl::IsPermissionDenied(s));
    CHECK(absl::StrContains(s.message(), says));
    CHECK_FALSE(absl::StrContains(s.message(), "\n"));
  }
}

TEST_CASE("contexts are kept in a private file of a private folder", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  CHECK(ContextsPath() == folder.path() + "/strata/contexts.yaml");
  CHECK(*ReadContexts() == Contexts{});
  CHECK(access((folder.path() + "/strata").c_str(), F_OK) != 0);
  const mode_t old = umask(0);
  REQUIRE(Add("a").ok());
  umask(old);
  REQUIRE(Add("b").ok());
  CHECK(ModeOf(ContextsPath()) == 0600);
  CHECK(ModeOf(folder.path() + "/strata") == 0700);
  CHECK(ContextNames(*ReadContexts()) == "a, b");
  CHECK(ReadContexts()->current == "a");
}

TEST_CASE("without XDG_CONFIG_HOME contexts lie below the home, and without both nowhere",
          "[context]") {
  const TempFolder folder;
  unsetenv("XDG_CONFIG_HOME");
  setenv("HOME", folder.path().c_str(), 1);
  CHECK(ContextsPath() == folder.path() + "/.config/strata/contexts.yaml");
  REQUIRE(Add("a").ok());
  CHECK(ContextNames(*ReadContexts()) == "a");
  unsetenv("HOME");
  CHECK(*ReadContexts() == Contexts{});
  CHECK(absl::IsFailedPrecondition(Add("b")));
  CHECK(absl::StrContains(Add("b").message(), "neither HOME nor XDG_CONFIG_HOME is set"));
}

TEST_CASE("a change that is refused leaves the file as it was", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(Add("a").ok());
  const std::string before = *ReadTextFile(ContextsPath());
  CHECK(absl::IsAlreadyExists(Add("a")));
  CHECK(absl::IsInvalidArgument(Add("a/b")));
  CHECK(*ReadTextFile(ContextsPath()) == before);
  // What cannot be read is not written over.
  REQUIRE(WriteTextFile(ContextsPath(), "contexts: [{name: a}]").ok());
  REQUIRE(chmod(ContextsPath().c_str(), 0600) == 0);
  CHECK(absl::IsInvalidArgument(Add("b")));
  CHECK(*ReadTextFile(ContextsPath()) == "contexts: [{name: a}]");
}

TEST_CASE("a file or folder that is open to others is not believed", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(Add("a").ok());
  const std::string path = ContextsPath(), above = folder.path() + "/strata";
  for (const mode_t mode : {0640, 0604, 0620, 0660}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    CheckDenied(absl::StrCat(path, " is open to others (mode 0"));
    CheckDenied(absl::StrCat("then: chmod 600 ", path));
  }
  REQUIRE(chmod(path.c_str(), 0600) == 0);
  for (const mode_t mode : {0720, 0702, 0777}) {
    REQUIRE(chmod(above.c_str(), mode) == 0);
    CheckDenied(absl::StrCat("then: chmod 700 ", above));
  }
  // A folder that others can read alone is closed with the next change: nothing in it was theirs.
  REQUIRE(chmod(above.c_str(), 0755) == 0);
  CHECK(ContextNames(*ReadContexts()) == "a");
  REQUIRE(Add("b").ok());
  CHECK(ModeOf(above) == 0700);
}

TEST_CASE("what belongs to somebody else is not believed", "[context]") {
  if (geteuid() != 0) STRATA_SKIP("only root can give files away");
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(Add("a").ok());
  REQUIRE(chown(ContextsPath().c_str(), 1234, 1234) == 0);
  CheckDenied(absl::StrCat(ContextsPath(), " belongs to user 1234, and this is user 0; move it"));
  REQUIRE(chown(ContextsPath().c_str(), 0, 0) == 0);
  REQUIRE(chown((folder.path() + "/strata").c_str(), 1234, 1234) == 0);
  CheckDenied("/strata belongs to user 1234");
}

TEST_CASE("what is no file is told", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(WriteTextFile(folder.path() + "/strata", "x").ok());
  CHECK(*ReadContexts() == Contexts{});
  CHECK(absl::StrContains(Add("a").message(), folder.path() + "/strata"));
  REQUIRE(unlink((folder.path() + "/strata").c_str()) == 0);
  REQUIRE(mkdir((folder.path() + "/strata").c_str(), 0700) == 0);
  // Nobody writes to the pipe: whoever waited for it would wait for ever.
  REQUIRE(mkfifo(ContextsPath().c_str(), 0600) == 0);
  CHECK_FALSE(ReadContexts().ok());
  CHECK(absl::StrContains(ReadContexts().status().message(), ContextsPath()));
  CHECK_FALSE(Add("a").ok());
  REQUIRE(unlink(ContextsPath().c_str()) == 0);
  REQUIRE(WriteTextFile(ContextsPath(), std::string(2 << 20, '#')).ok());
  REQUIRE(chmod(ContextsPath().c_str(), 0600) == 0);
  CHECK(absl::IsDataLoss(ReadContexts().status()));
}

TEST_CASE("what a killed writer left is in nobody's way", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(Add("a").ok());
  REQUIRE(WriteTextFile(ContextsPath() + ".tmp", "half of it").ok());
  REQUIRE(Add("b").ok());
  CHECK(ContextNames(*ReadContexts()) == "a, b");
  CHECK(access((ContextsPath() + ".tmp").c_str(), F_OK) != 0);
}

TEST_CASE("of many processes that add at once each has its context", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  constexpr int kProcesses = 12;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(Add(absl::StrCat("c", i)).ok() ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const auto contexts = ReadContexts();
  REQUIRE(contexts.ok());
  CHECK(contexts->all.size() == kProcesses);
  CHECK(FindContext(*contexts, contexts->current) != nullptr);
}

TEST_CASE("a change waits for the one that has the folder", "[context]") {
  const TempFolder folder;
  UseConfig(folder);
  REQUIRE(Add("a").ok());
  const int held = LockFolder(folder.path() + "/strata");
  REQUIRE(held >= 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // The lock is the description's, which the child has too.
    FileSystem::Kernel().Close(held);
    _exit(Add("b").ok() ? 0 : 1);
  }
  CHECK(ContextNames(*ReadContexts()) == "a");
  FileSystem::Kernel().Close(held);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(ContextNames(*ReadContexts()) == "a, b");
}

}  // namespace
}  // namespace strata
