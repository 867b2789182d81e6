#include "tools/cli/plot/svg_text.h"

#include <catch2/catch.hpp>
#include <string>

namespace strata {
namespace {

TEST_CASE("text cannot leave its place in an SVG", "[plot]") {
  CHECK(SvgText("a<b>&\"c'") == "a&lt;b&gt;&amp;&quot;c&apos;");
  CHECK(SvgText("two\tlines\nhere\r") == "two lines here ");
  CHECK(SvgText("é日本🙂") == "é日本🙂");
}

TEST_CASE("what is no text for XML is replaced", "[plot]") {
  const std::string replaced = "\xEF\xBF\xBD";
  CHECK(SvgText(std::string("a\0b", 3)) == "a" + replaced + "b");
  CHECK(SvgText("\x1B[31m") == replaced + "[31m");
  CHECK(SvgText("\xFF") == replaced);
  CHECK(SvgText("\xC3") == replaced);                      // cut
  CHECK(SvgText("\xC0\xAF") == replaced + replaced);       // longer than it must be
  CHECK(SvgText("\xED\xA0\x80").find(replaced) == 0);      // a surrogate
  CHECK(SvgText("\xEF\xBF\xBF").find(replaced) == 0);      // no character
  CHECK(SvgText("\xF4\x90\x80\x80").find(replaced) == 0);  // beyond the last one
}

TEST_CASE("long text keeps its two ends, and fits", "[plot]") {
  const std::string path = "/data/experiments/2026/november/easgd_tau_8/metrics.jsonl";
  CHECK(Shortened(path, TextWidth(path)) == path);
  const std::string shorter = Shortened(path, 20);
  CHECK(TextWidth(shorter) <= 20);
  CHECK(shorter.starts_with("/data"));
  CHECK(shorter.ends_with("jsonl"));
  CHECK(shorter.find("\xE2\x80\xA6") != std::string::npos);
  CHECK(TextWidth(Shortened("日本語日本語日本語", 4)) <= 4);
  CHECK(Shortened("", 1).empty());
}

}  // namespace
}  // namespace strata
