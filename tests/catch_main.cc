// Catch2's main, compiled once (it takes eight seconds). Case counts and reasons for skipped cases
// reach tools/test through the JUnit file that Bazel names in XML_OUTPUT_FILE.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  Catch::Session session;
  int rc = session.applyCommandLine(argc, argv);
  if (rc != 0) return rc;
  const char* xml = std::getenv("XML_OUTPUT_FILE");
  const bool chosen = session.configData().reporterName != "console" ||
                      !session.configData().outputFilename.empty();
  if (xml == nullptr || chosen || session.configData().listTests) return session.run();
  // Under Bazel: the XML report goes to its file. Console output of failures is on stderr of the
  // assertion macros themselves, so print the report when something failed.
  session.configData().reporterName = "junit";
  session.configData().outputFilename = xml;
  rc = session.run();
  if (rc != 0) {
    const std::string show = std::string("cat '") + xml + "'";
    if (std::system(show.c_str()) != 0) return rc;
  }
  return rc;
}
