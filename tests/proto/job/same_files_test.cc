#include "proto/job/same_files.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata {
namespace {

// Of paths and fingerprints.
InputIndex Index(const std::vector<std::pair<std::string, uint64_t>>& files) {
  InputIndex index;
  for (const auto& [path, fingerprint] : files) {
    InputFile* file = index.add_files();
    file->set_path(path);
    file->set_bytes(10);
    file->set_fingerprint(fingerprint);
  }
  return index;
}

TEST_CASE("a file that is trained and evaluated on, or read by two names, is told",
          "[job][same_files]") {
  CHECK(SameFiles(Index({{"a", 1}, {"b", 2}}), Index({{"c", 3}})).empty());
  CHECK(SameFiles(Index({{"b", 2}, {"a", 1}, {"a", 1}}), Index({})) ==
        "spec.data.train: a is in the list twice, and read twice; name each file once");
  CHECK(SameFiles(Index({}), Index({{"a", 1}, {"a", 1}})) ==
        "spec.data.eval: a is in the list twice, and read twice; name each file once");
  CHECK(SameFiles(Index({{"a", 1}}), Index({{"a", 1}})) ==
        "spec.data.eval: a is in spec.data.train too, so its quality is that of lines that were "
        "trained on; name each file once");
  CHECK(SameFiles(Index({{"a", 1}, {"b", 2}}), Index({{"link", 2}})) ==
        "spec.data.eval: link seems to have the content of b of spec.data.train, so its quality is "
        "that of "
        "lines that were trained on; name each file once");
  CHECK(SameFiles(Index({{"a", 1}, {"b", 2}, {"link", 1}}), Index({})) ==
        "spec.data.train: link and a seem to have the same content, which is read twice; name each "
        "file "
        "once");
  CHECK(SameFiles(Index({{"a", 1}, {"link", 1}}), Index({{"a", 1}, {"c", 1}})) ==
        "spec.data.eval: a is in spec.data.train too, so its quality is that of lines that were "
        "trained on (and 3 more such files); name each file once");
  InputIndex longer = Index({{"b", 1}});
  longer.mutable_files(0)->set_bytes(11);
  CHECK(SameFiles(Index({{"a", 1}}), longer).empty());
}

}  // namespace
}  // namespace strata
