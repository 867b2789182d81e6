#include "scheduler/job/input_listing.h"

#include <catch2/catch.hpp>
#include <initializer_list>

#include "proto/strata/control.pb.h"
#include "proto/strata/job.pb.h"
#include "scheduler/state/state.pb.h"

namespace strata::scheduler {
namespace {

InputIndex IndexOf(std::initializer_list<const char*> paths) {
  InputIndex index;
  for (const char* path : paths) {
    InputFile& file = *index.add_files();
    file.set_path(path);
    file.set_bytes(100);
  }
  return index;
}

TEST_CASE("files that a folder or a glob stands for are listed, named ones are not",
          "[scheduler]") {
  DataSpec data;
  data.add_train("/d/part-*");
  data.add_train("/e");
  data.add_eval("/eval");
  JobIndexRecord index;
  *index.mutable_train() = IndexOf({"/d/part-0", "/d/part-1", "/e"});
  *index.mutable_eval() = IndexOf({"/eval"});
  const JobIndexRecord listings = ListingsOf(data, index);
  CHECK(listings.train_input().files() == 3);
  CHECK(listings.train_input().bytes() == 300);
  CHECK(listings.train_input().first() == "/d/part-0");
  CHECK(listings.train_input().last() == "/e");
  CHECK_FALSE(listings.has_eval_input());
  CHECK_FALSE(listings.has_train());

  // A glob may stand for as many files as there are paths.
  *index.mutable_train() = IndexOf({"/d/part-0", "/e"});
  *index.mutable_eval() = IndexOf({"/eval/a"});
  CHECK(ListingsOf(data, index).train_input().files() == 2);
  CHECK(ListingsOf(data, index).eval_input().last() == "/eval/a");
  CHECK_FALSE(ListingsOf(data, {}).has_train_input());
}

}  // namespace
}  // namespace strata::scheduler
