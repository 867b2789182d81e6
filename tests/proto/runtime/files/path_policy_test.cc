#include "proto/runtime/files/path_policy.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/temp_folder.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

// in/{there/, file, out -> ../out, here -> there, chain -> here, up -> .., none -> ../out/none,
// loop -> loop}, out/{f}
class Tree {
 public:
  Tree() : base_(fs::canonical(folder_.path()).string()) {
    fs::create_directories(base_ + "/in/there");
    fs::create_directories(base_ + "/out");
    std::ofstream(base_ + "/in/file") << "x";
    std::ofstream(base_ + "/out/f") << "x";
    const auto link = [&](const std::string& to, const std::string& name) {
      fs::create_symlink(to, base_ + "/in/" + name);
    };
    link("../out", "out");
    link("there", "here");
    link("here/.", "chain");
    link("..", "up");
    link("../out/none", "none");
    link("loop", "loop");
    link(base_ + "/in/there", "absolute");
    fs::create_directory_symlink(base_ + "/in", base_ + "/top");
  }
  const std::string& base() const { return base_; }

 private:
  const TempFolder folder_;
  const std::string base_;
};

TEST_CASE("a path leads where the kernel would go, also where nothing is yet", "[path_policy]") {
  const Tree tree;
  const std::string in = tree.base() + "/in", out = tree.base() + "/out";
  const struct {
    std::string path, leads;  // "": an error
  } cases[] = {{in + "/there", in + "/there"},
               {in + "//there///", in + "/there"},
               {in + "/./there/../file", in + "/file"},
               {in + "/here/new/er", in + "/there/new/er"},
               {in + "/chain/x", in + "/there/x"},
               {in + "/absolute/x", in + "/there/x"},
               {in + "/out/f", out + "/f"},
               {in + "/out/new", out + "/new"},
               {in + "/here/../../out", out},  // .. of where the link led
               {in + "/up/out/f", out + "/f"},
               {in + "/none", out + "/none"},
               {in + "/none/x", out + "/none/x"},
               {"/", "/"},
               {"/../..", "/"},
               {in + "/file/below", ""},
               {in + "/loop", ""},
               {in + "/loop/x", ""},
               {in + "/new/../x", ""},
               {in + "/" + std::string(300, 'x'), ""},
               {"in/there", ""},
               {"", ""}};
  for (const auto& c : cases) {
    INFO(c.path);
    const auto resolved = ResolvePath(c.path, FileSystem::Kernel());
    INFO(resolved.status());
    CHECK(resolved.ok() == !c.leads.empty());
    if (resolved.ok()) CHECK(*resolved == c.leads);
    if (resolved.ok() && fs::exists(c.path)) CHECK(*resolved == fs::canonical(c.path).string());
    if (!resolved.ok()) {
      CHECK(absl::IsFailedPrecondition(resolved.status()));
      CHECK(resolved.status().message().find(c.path) != absl::string_view::npos);
    }
  }
}

TEST_CASE("without roots everything is allowed", "[path_policy]") {
  CHECK(PathPolicy().Check("f", "/anywhere").ok());
  CHECK(PathPolicy().Check("f", "relative").ok());
  const auto none = PathPolicy::Make({});
  REQUIRE(none.ok());
  CHECK_FALSE(none->restricts());
}

TEST_CASE("what leads out of the roots is refused by field, path, place and roots",
          "[path_policy]") {
  const Tree tree;
  const std::string in = tree.base() + "/in", out = tree.base() + "/out";
  // A root may be a link, relative, and end in a slash.
  const std::string before = fs::current_path();
  REQUIRE(chdir(tree.base().c_str()) == 0);
  const auto policy = PathPolicy::Make({"top/", in + "/there"});
  REQUIRE(chdir(before.c_str()) == 0);
  INFO(policy.status());
  REQUIRE(policy.ok());
  CHECK(policy->roots() == std::vector<std::string>{in, in + "/there"});
  for (const std::string& good : {in, in + "/there", in + "/new/er", tree.base() + "/top/x",
                                  out + "/../in/x", in + "/chain/x", std::string()}) {
    INFO(good);
    CHECK(policy->Check("f", good).ok());
  }
  for (const std::string& bad :
       {out, out + "/f", in + "/out", in + "/out/new", in + "/none", in + "/up/out", in + "er",
        std::string("/"), std::string("/proc/self/root/etc"), in + "/../out/f"}) {
    INFO(bad);
    CHECK(absl::IsPermissionDenied(policy->Check("f", bad)));
  }
  CHECK(policy->Check("spec.x", in + "/out/new").message() ==
        "spec.x: " + in + "/out/new leads to " + out +
            "/new, which lies outside of where jobs may read and write here: " + in + ", " + in +
            "/there (--data-root)");
  CHECK(policy->Check("spec.x", out).message() ==
        "spec.x: " + out + " lies outside of where jobs may read and write here: " + in + ", " +
            in + "/there (--data-root)");
  CHECK(policy->Check("spec.x", "relative").message() ==
        "spec.x: cannot resolve relative: it is not absolute");
  CHECK(absl::IsFailedPrecondition(policy->Check("spec.x", in + "/loop")));
}

TEST_CASE("all is below the root of all", "[path_policy]") {
  const auto policy = PathPolicy::Make({"/"});
  REQUIRE(policy.ok());
  CHECK(policy->Check("f", "/proc/x").ok());
  CHECK(policy->Check("f", "/").ok());
}

TEST_CASE("a root that is no folder is an error by name", "[path_policy]") {
  const Tree tree;
  for (const std::string& bad :
       {tree.base() + "/in/file", tree.base() + "/none", tree.base() + "/in/loop",
        tree.base() + "/" + std::string(300, 'x')}) {
    const auto policy = PathPolicy::Make({tree.base(), bad});
    CHECK(absl::IsInvalidArgument(policy.status()));
    CHECK(policy.status().message() ==
          "--data-root " + bad + " is no folder that is there; make it, or name another");
  }
  CHECK(PathPolicy::Make({""}).status().message() ==
        "--data-root \"\" is no folder that is there; make it, or name another");
}

}  // namespace
}  // namespace strata
