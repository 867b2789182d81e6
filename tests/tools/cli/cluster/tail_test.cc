#include "tools/cli/cluster/tail.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace strata {
namespace {

void Append(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
}

std::string Printed(Tail& tail) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  tail.Print(out);
  std::fclose(out);
  std::string printed(text, size);
  std::free(text);
  return printed;
}

TEST_CASE("the last lines come first, then what is new, whole lines only", "[tail]") {
  const TempFolder scratch;
  const std::string& folder = scratch.path();
  Append(folder + "/a.log", "1\n2\n3\n");
  Append(folder + "/server-0.log", "x\n");
  REQUIRE(*LogNames(folder) == std::vector<std::string>{"a", "server-0"});
  Tail tail(folder, {"a", "server-0"}, 2, Tail::Format::kText);
  CHECK(Printed(tail) == "a        2\na        3\nserver-0 x\n");
  CHECK(Printed(tail).empty());
  Append(folder + "/a.log", "4\nhalf");
  CHECK(Printed(tail) == "a        4\n");
  Append(folder + "/a.log", " whole\n\n");
  CHECK(Printed(tail) == "a        half whole\na        \n");
}

TEST_CASE("a log that is begun anew is read from its start", "[tail]") {
  const TempFolder scratch;
  const std::string& folder = scratch.path();
  Append(folder + "/a.log", "a long first line\n");
  Tail tail(folder, {"a"}, 10, Tail::Format::kText);
  CHECK(Printed(tail) == "a a long first line\n");
  std::ofstream(folder + "/a.log") << "new\n";
  CHECK(Printed(tail) == "a new\n");
}

TEST_CASE("as JSON each line is an object, whatever bytes it has", "[tail]") {
  const TempFolder scratch;
  const std::string& folder = scratch.path();
  Append(folder + "/a.log", "say \"x\"\t1\n\xff.\n");
  Append(folder + "/server-0.log", "\n");
  Tail tail(folder, {"a", "server-0"}, 9, Tail::Format::kJson);
  CHECK(Printed(tail) ==
        "{\"process\":\"a\",\"line\":\"say \\\"x\\\"\\t1\"}\n"
        "{\"process\":\"a\",\"line\":\"\xef\xbf\xbd.\"}\n"
        "{\"process\":\"server-0\",\"line\":\"\"}\n");
}

TEST_CASE("last lines of files short, long and missing", "[tail]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/x.log";
  CHECK(LastLines(path, 3).empty());
  Append(path, "one\ntwo\n");
  CHECK(LastLines(path, 0).empty());
  CHECK(LastLines(path, 1) == "two\n");
  CHECK(LastLines(path, 2) == "one\ntwo\n");
  CHECK(LastLines(path, 9) == "one\ntwo\n");
  CHECK(LastLines(path, 9, 4) == "two\n");
  CHECK(LastLines(path, 9, 8).empty());
  Append(path, std::string(200000, 'z') + "\nend\n");
  CHECK(LastLines(path, 1) == "end\n");
}

}  // namespace
}  // namespace strata
