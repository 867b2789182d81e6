#include "tools/cli/context/choice.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/temp_folder.h"
#include "tools/cli/base/options.h"
#include "tools/cli/context/connection.h"
#include "tools/cli/context/context_file.h"
#include "tools/cli/context/contexts.h"

namespace strata {
namespace {

// An empty folder of contexts, for the rest of the case.
class Config {
 public:
  Config() { setenv("XDG_CONFIG_HOME", folder_.path().c_str(), 1); }

 private:
  const TempFolder folder_;
};

void Fill() {
  REQUIRE(ChangeContexts([](Contexts& contexts) {
            absl::Status s = AddContext({"prod", "10.0.0.5:7400", "/certs/ann", ""}, contexts);
            if (s.ok()) s = AddContext({"here", "127.0.0.1:7401", "", "/clusters/here"}, contexts);
            return s;
          }).ok());
}

ChosenCluster Choose(const ClusterOptions& given) {
  const auto chosen = ChooseCluster(given);
  INFO(chosen.status().message());
  REQUIRE(chosen.ok());
  return *chosen;
}

TEST_CASE("a flag counts before --context, and that before the current context", "[choice]") {
  const Config config;
  Fill();
  const ChosenCluster current = Choose({});
  CHECK(current.scheduler == "10.0.0.5:7400");
  CHECK(current.certs == "/certs/ann");
  CHECK(current.named_by == absl::StrCat("context 'prod' of ", ContextsPath()));
  const ChosenCluster named = Choose({.context = "here"});
  CHECK(named.scheduler == "127.0.0.1:7401");
  CHECK(named.certs.empty());
  CHECK(named.named_by == absl::StrCat("context 'here' of ", ContextsPath()));
  const ChosenCluster flag = Choose({.scheduler = "other:1"});
  CHECK(flag.scheduler == "other:1");
  CHECK(flag.certs.empty());
  CHECK(flag.named_by == "--scheduler");
}

TEST_CASE("--certs and --insecure count before what the context has", "[choice]") {
  const Config config;
  Fill();
  CHECK(Choose({.certs = "mine"}).certs == "mine");
  CHECK(Choose({.certs = "mine"}).scheduler == "10.0.0.5:7400");
  CHECK(Choose({.insecure = true}).certs.empty());
  CHECK(Choose({.context = "here", .certs = "mine"}).certs == "mine");
  CHECK(Choose({.scheduler = "other:1", .certs = "mine"}).certs == "mine");
}

TEST_CASE("a --scheduler needs no file of contexts", "[choice]") {
  const Config config;
  Fill();
  REQUIRE(chmod(ContextsPath().c_str(), 0666) == 0);
  CHECK(Choose({.scheduler = "other:1"}).scheduler == "other:1");
  CHECK(absl::IsPermissionDenied(ChooseCluster({}).status()));
  CHECK(FolderOfContext().empty());
}

TEST_CASE("a --scheduler that is no address is wrong usage", "[choice]") {
  const Config config;
  for (const char* wrong : {"host:99999", "host:0", "host", "host:", ":7400", "host:x", "a b:1"}) {
    INFO(wrong);
    const absl::Status s = ChooseCluster({.scheduler = wrong}).status();
    INFO(s);
    CHECK(absl::IsInvalidArgument(s));
    CHECK(absl::StrContains(s.message(), "--scheduler: address \""));
    CHECK(absl::StrContains(s.message(), wrong));
  }
  for (const char* right : {"[::1]:7400", "localhost:65535", "my-host:1"}) {
    CHECK(Choose({.scheduler = right}).scheduler == right);
  }
}

TEST_CASE("where no cluster is chosen the message says what to do", "[choice]") {
  const Config config;
  CHECK(ChooseCluster({}).status() ==
        absl::NotFoundError(
            "no cluster is known here; start one with 'strata up', or name one with --scheduler "
            "HOST:PORT, or for good with 'strata context add'"));
  CHECK(ChooseCluster({.scheduler = "localhost"}).status() ==
        absl::InvalidArgumentError("--scheduler: address \"localhost\" has no port; expected "
                                   "host:port, as in 127.0.0.1:7000"));
  Fill();
  CHECK(ChooseCluster({.context = "pro"}).status() ==
        absl::NotFoundError("--context pro: there is no such context; there are: prod, here"));
  REQUIRE(ChangeContexts([](Contexts& all) { return RemoveContext("prod", all); }).ok());
  CHECK(ChooseCluster({}).status() ==
        absl::NotFoundError("no context is the current one; choose one with 'strata context use "
                            "NAME', or name one with --context; there are: here"));
}

TEST_CASE("the folder of a cluster of `up` is known while it is the current one", "[choice]") {
  const Config config;
  CHECK(FolderOfContext().empty());
  Fill();
  CHECK(FolderOfContext().empty());
  REQUIRE(ChangeContexts([](Contexts& all) { return UseContext("here", all); }).ok());
  CHECK(FolderOfContext() == "/clusters/here");
}

TEST_CASE("errors that a wrong choice may be the reason of say how it was made", "[choice]") {
  const ChosenCluster plain{"h:1", "", "--scheduler"}, tls{"h:1", "/c", "context 'a' of F"};
  CHECK(WithChoice(absl::UnavailableError("no scheduler answers at h:1"), plain).message() ==
        "no scheduler answers at h:1 (--scheduler, without TLS)");
  CHECK(WithChoice(absl::UnauthenticatedError("expired"), tls) ==
        absl::UnauthenticatedError("expired (context 'a' of F, as the certificate in /c)"));
  CHECK(WithChoice(absl::NotFoundError("no job 7"), tls) == absl::NotFoundError("no job 7"));
}

}  // namespace
}  // namespace strata
