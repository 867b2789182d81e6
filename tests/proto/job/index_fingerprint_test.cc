#include "proto/job/index_fingerprint.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <string>

#include "proto/strata/control.pb.h"

namespace strata {
namespace {

struct Indexes {
  InputIndex train, eval;
};

uint64_t Fingerprint(const Indexes& of) { return IndexFingerprint(of.train, of.eval); }

Indexes Index() {
  Indexes index;
  for (InputIndex* const part : {&index.train, &index.eval}) {
    for (const char* path : {"/a", "/b"}) {
      InputFile& file = *part->add_files();
      file.set_path(path);
      file.set_bytes(100);
      file.set_fingerprint(7);
      InputTask& task = *part->add_tasks();
      task.set_bytes(100);
      task.set_lines(5);
    }
    part->set_lines(10);
    part->mutable_shape()->set_fields(3);
  }
  return index;
}

TEST_CASE("indexes have one fingerprint when they are the same alone", "[job]") {
  // Servers keep it on disk: it is for good.
  CHECK(Fingerprint(Index()) == 0xe79dd7dc83028156);
  std::set<uint64_t> seen = {Fingerprint(Index())};
  const auto other = [&seen](const Indexes& index) {
    return seen.insert(Fingerprint(index)).second;
  };
  Indexes index = Index();
  index.train.mutable_files(1)->set_path("/c");
  CHECK(other(index));
  index = Index();
  index.train.mutable_files(0)->set_path("/a/b");
  index.train.mutable_files(1)->set_path("");
  CHECK(other(index));
  index = Index();
  index.train.mutable_files(0)->set_bytes(101);
  CHECK(other(index));
  index = Index();
  index.train.mutable_files(0)->set_fingerprint(8);
  CHECK(other(index));
  index = Index();
  index.train.mutable_tasks(1)->set_offset(1);
  CHECK(other(index));
  index = Index();
  index.train.mutable_tasks(1)->set_first_line(1);
  CHECK(other(index));
  index = Index();
  index.train.mutable_tasks()->SwapElements(0, 1);
  CHECK_FALSE(other(index));  // equal ones
  index.train.mutable_shape()->set_numeric(1);
  CHECK(other(index));
  index = Index();
  index.eval.set_lines(11);
  CHECK(other(index));
  index = Index();
  index.eval.Swap(&index.train);
  index.eval.clear_tasks();
  CHECK(other(index));
}

TEST_CASE("an index is of its vocabularies' values, which earlier versions did not tell", "[job]") {
  Indexes index = Index();
  InputFile& file = *index.train.add_vocabularies();
  file.set_path("/v");
  file.set_bytes(9);
  file.set_fingerprint(7);
  const uint64_t before = Fingerprint(index);
  CHECK(before == 0x3c3c300d343081c1);  // by storage/FORMAT.md, in Python
  const auto with = [&](const char* fingerprint) {
    file.clear_values();
    file.add_values()->set_fingerprint(fingerprint);
    return Fingerprint(index);
  };
  CHECK(with("ab") != before);
  CHECK(with("ab") != with("ba"));
  // What the job asked for beside says nothing of the data.
  const uint64_t all = with("ab");
  file.add_values()->set_fingerprint("a");
  CHECK(Fingerprint(index) == all);
}

TEST_CASE("data are known by sizes and fingerprints of their files, in order", "[job]") {
  InputIndex index = Index().train;
  const std::string data = DataFingerprint(index);
  CHECK(data.size() == 32);
  index.mutable_files(0)->set_path("/moved");
  CHECK(DataFingerprint(index) == data);
  index.mutable_files(0)->set_bytes(99);
  const std::string shorter = DataFingerprint(index);
  CHECK(shorter != data);
  index.mutable_files()->SwapElements(0, 1);
  CHECK(DataFingerprint(index) != shorter);
  index.mutable_files()->RemoveLast();
  CHECK(DataFingerprint(index) != data);
}

}  // namespace
}  // namespace strata
