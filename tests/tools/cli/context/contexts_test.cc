#include "tools/cli/context/contexts.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strata {
namespace {

Contexts Two() {
  Contexts contexts;
  REQUIRE(AddContext({"prod", "10.0.0.5:7400", "/certs/ann/current", ""}, contexts).ok());
  REQUIRE(AddContext({"here", "127.0.0.1:7401", "", "/clusters/here"}, contexts).ok());
  return contexts;
}

void CheckRefused(const std::string& text, const std::vector<std::string>& says) {
  INFO(text);
  const auto read = ParseContexts(text, "F");
  REQUIRE(absl::IsInvalidArgument(read.status()));
  const std::string message(read.status().message());
  INFO(message);
  CHECK(message.find('\n') == std::string::npos);
  for (const std::string& part : says) {
    INFO(part);
    CHECK(absl::StrContains(message, part));
  }
}

TEST_CASE("the first context is the current one, and others when they are used", "[contexts]") {
  Contexts contexts = Two();
  CHECK(contexts.current == "prod");
  CHECK(ContextNames(contexts) == "prod, here");
  REQUIRE(UseContext("here", contexts).ok());
  CHECK(contexts.current == "here");
  REQUIRE(RemoveContext("prod", contexts).ok());
  CHECK(contexts.current == "here");
  REQUIRE(RemoveContext("here", contexts).ok());
  CHECK(contexts == Contexts{});
  REQUIRE(AddContext({"again", "a:1", "", ""}, contexts).ok());
  CHECK(contexts.current == "again");
}

TEST_CASE("where the current one is removed none is, until one is used", "[contexts]") {
  Contexts contexts = Two();
  REQUIRE(RemoveContext("prod", contexts).ok());
  CHECK(contexts.current.empty());
  // Commands go nowhere else unasked.
  REQUIRE(AddContext({"third", "a:1", "", ""}, contexts).ok());
  CHECK(contexts.current.empty());
}

TEST_CASE("what is wrong with a context is told, and nothing changes", "[contexts]") {
  Contexts contexts = Two();
  const auto check = [&](const Context& context, const char* says) {
    const absl::Status s = AddContext(context, contexts);
    INFO(s.message());
    CHECK(absl::IsInvalidArgument(s));
    CHECK(absl::StrContains(s.message(), says));
  };
  check({"a/b", "h:1", "", ""}, "has '/' at byte 2");
  check({"", "h:1", "", ""}, "the name is empty");
  check({"../up", "h:1", "", ""}, "has '.' at byte 1");
  check({"a\nb", "h:1", "", ""}, "has '\\n' at byte 2");
  check({"c", "h", "", ""}, "scheduler: address \"h\" has no port");
  check({"c", "h:70000", "", ""}, "not 0..65535");
  check({"c", "h:0", "", ""}, "port 0");
  check({"c", "h h:1", "", ""}, "has a blank");
  check({"c", "h\033[2J:1", "", ""}, "has a blank or a control character");
  check({"c", "h:1", "certs", ""}, "certs: 'certs' is no absolute path");
  check({"c", "h:1", "", "run"}, "folder: 'run' is no absolute path");
  const absl::Status taken = AddContext({"prod", "h:1", "", ""}, contexts);
  CHECK(absl::IsAlreadyExists(taken));
  CHECK(taken.message() ==
        "there is a context 'prod' already (scheduler 10.0.0.5:7400); name another one, or remove "
        "it first: strata context remove prod");
  CHECK(contexts == Two());
  for (const absl::Status& s : {UseContext("pro", contexts), RemoveContext("pro", contexts)}) {
    CHECK(absl::IsNotFound(s));
    CHECK(s.message() ==
          "there is no context 'pro'; there are: prod, here (make one: strata context add)");
  }
  CHECK(contexts == Two());
}

TEST_CASE("a cluster of `up` gets a name of its own, and keeps it", "[contexts]") {
  Contexts contexts = Two();
  REQUIRE(UseContextOfFolder("/a/strata-run", "127.0.0.1:1", "", contexts).ok());
  CHECK(contexts.current == "strata-run");
  REQUIRE(UseContextOfFolder("/b/strata-run", "127.0.0.1:2", "/b/certs", contexts).ok());
  CHECK(contexts.current == "strata-run-2");
  REQUIRE(UseContextOfFolder("/a/strata-run", "127.0.0.1:3", "/a/certs", contexts).ok());
  CHECK(contexts.current == "strata-run");
  CHECK(*FindContext(contexts, "strata-run") ==
        Context{"strata-run", "127.0.0.1:3", "/a/certs", "/a/strata-run"});
  CHECK(contexts.all.size() == 4);
  REQUIRE(UseContextOfFolder("/a/mein Ordner", "127.0.0.1:4", "", contexts).ok());
  CHECK(contexts.current == "mein-Ordner");
  REQUIRE(UseContextOfFolder("/", "127.0.0.1:5", "", contexts).ok());
  CHECK(contexts.current == "local");
  CHECK(HasContextOfFolder(contexts, "/b/strata-run"));
  RemoveContextOfFolder("/b/strata-run", contexts);
  CHECK_FALSE(HasContextOfFolder(contexts, "/b/strata-run"));
  CHECK(contexts.current == "local");
  RemoveContextOfFolder("/", contexts);
  CHECK(contexts.current == "mein-Ordner");
  CHECK(FindContext(contexts, "prod") != nullptr);
}

TEST_CASE("who was current before a cluster of `up` is so again when it goes", "[contexts]") {
  Contexts contexts = Two();
  const auto up = [&](const std::string& folder) {
    REQUIRE(UseContextOfFolder(folder, "127.0.0.1:1", "", contexts).ok());
  };
  const Contexts before = contexts;
  up("/a");
  up("/a");
  RemoveContextOfFolder("/a", contexts);
  CHECK(contexts == before);
  // Of several the one before, whichever goes first.
  up("/a");
  up("/b");
  up("/c");
  RemoveContextOfFolder("/b", contexts);
  CHECK(contexts.current == "c");
  // What is written has it, too.
  const auto text = ContextsText(contexts);
  REQUIRE(text.ok());
  REQUIRE(*ParseContexts(*text, "F") == contexts);
  RemoveContextOfFolder("/c", contexts);
  CHECK(contexts.current == "a");
  RemoveContextOfFolder("/a", contexts);
  CHECK(contexts == before);
  // What is gone is not given back, and what a user chose stays.
  up("/a");
  REQUIRE(RemoveContext("prod", contexts).ok());
  RemoveContextOfFolder("/a", contexts);
  CHECK(contexts.current.empty());
  up("/a");
  REQUIRE(UseContext("here", contexts).ok());
  RemoveContextOfFolder("/a", contexts);
  CHECK(contexts.current == "here");
}

TEST_CASE("what is written is read again", "[contexts]") {
  Contexts contexts = Two();
  REQUIRE(AddContext({"odd", "[::1]:7400", "/a: b#\"'\\ \n\t/ä", "/~ null"}, contexts).ok());
  contexts.current = "odd";
  const auto text = ContextsText(contexts);
  REQUIRE(text.ok());
  CHECK(absl::StrContains(*text, "\n    scheduler: \"10.0.0.5:7400\"\n"));
  const auto read = ParseContexts(*text, "F");
  REQUIRE(read.ok());
  CHECK(*read == contexts);
  CHECK(*ParseContexts(*ContextsText({}), "F") == Contexts{});
  CHECK(*ParseContexts("", "F") == Contexts{});
  CHECK(*ParseContexts("# nothing\n", "F") == Contexts{});
  CHECK(*ParseContexts("contexts:\n", "F") == Contexts{});
  // No UTF-8: YAML would hold other bytes.
  REQUIRE(AddContext({"bytes", "h:1", "/\xff", ""}, contexts).ok());
  const auto bytes = ContextsText(contexts);
  CHECK(absl::IsInvalidArgument(bytes.status()));
  CHECK(absl::StrContains(bytes.status().message(), "no UTF-8"));
}

TEST_CASE("a text that is none is told by line and field", "[contexts]") {
  CheckRefused("before: [a]\ncontexts:\n", {"F:1:10: before[0]: there is no context 'a'"});
  CheckRefused("before: a\ncontexts:\n", {"F:1:9: before: is no list"});
  const std::string good = "contexts:\n  - name: a\n    scheduler: h:1\n    insecure: true\n";
  REQUIRE(ParseContexts(good, "F").ok());
  CheckRefused("contexts:\n  - name: a\n    schedular: h:1\n",
               {"F:3:5: contexts[0]: has no field 'schedular'; did you mean 'scheduler'?",
                "fields are name, scheduler, certs, insecure, folder"});
  CheckRefused("clusters: []\n", {"F:1:1: the file: has no field 'clusters'; fields are current, "
                                  "before, contexts"});
  CheckRefused(absl::StrCat(good, "    name: b\n"), {"F:5:5: contexts[0]: has 'name' twice"});
  CheckRefused(absl::StrCat("current: b\n", good),
               {"F:1:10: current: there is no context 'b'; there are: a", "remove the line"});
  CheckRefused(absl::StrCat(good, "  - name: a\n    scheduler: h:2\n    insecure: true\n"),
               {"F:5:5: contexts[1]: there is a context 'a' already"});
  CheckRefused("contexts:\n  - name: a\n    scheduler: h:1\n",
               {"F:2:5: contexts[0]: has neither certs nor insecure; write one of them"});
  CheckRefused(absl::StrCat(good, "    certs: /c\n"), {"contexts[0]: has both certs and insecure"});
  CheckRefused("contexts: [{name: a, scheduler: h:1, insecure: false}]",
               {"contexts[0].insecure: 'false' is not true"});
  CheckRefused("contexts: [{name: a, insecure: true}]", {"contexts[0]: scheduler: address \"\""});
  CheckRefused("contexts: [{name: [a], insecure: true}]", {"contexts[0].name: is no text"});
  CheckRefused("contexts: [{name: '', insecure: true}]", {"contexts[0].name: is no text"});
  CheckRefused("contexts: [{name: a/b, scheduler: h:1, insecure: true}]", {"has '/' at byte 2"});
  CheckRefused("contexts: [{name: a, scheduler: h:1, certs: certs}]", {"no absolute path"});
  CheckRefused("contexts: {a: {}}", {"F:1:11: contexts: is no list"});
  CheckRefused("contexts: [a]", {"F:1:12: contexts[0]: is no mapping of name"});
  CheckRefused("[a]", {"F:1:1: the file: is no mapping of current, before, contexts"});
  CheckRefused("contexts: [{[a]: b}]", {"has a field without a name"});
  CheckRefused("contexts: [\n", {"F:2:1: is no YAML", "mend the line"});
  CheckRefused("a: b: c\n", {"F:1:5: is no YAML"});
  CheckRefused("contexts: []\n---\ncontexts: []\n", {"has 2 YAML documents"});
  CheckRefused(std::string("a\0b", 3), {"F: byte 2 is zero"});
  CheckRefused(std::string(100000, '['), {"is no YAML"});
  CheckRefused("\033[2J: 1", {"has no field"});
}

}  // namespace
}  // namespace strata
