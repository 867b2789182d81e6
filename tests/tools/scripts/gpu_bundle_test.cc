// tools/gpu_bundle with a compiler in Bazel's place: programs, libraries and linker are real.
#include <catch2/catch.hpp>
#include <string>

#include "tests/tools/scripts/script.h"

namespace strata::testing {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Its "bazel" links program.cc for every label, with the flags of linking that it is given.
class Builder {
 public:
  Builder() : c({"gpu_bundle"}) {
    c.UseSystems({"as",      "awk",  "basename", "bash", "cat",  "chmod", "cp",     "dirname",
                  "g++",     "grep", "gzip",     "ld",   "ldd",  "mkdir", "mktemp", "mv",
                  "readelf", "rm",   "sed",      "sort", "stat", "strip", "tar",    "tr"});
    c.Stub("nvcc", "");
    c.Write(
        "program.cc",
        "#include <cstring>\n#include <iostream>\n"
        "int main(int n, char** a) {\n"
        "  if (n > 1 && !std::strcmp(a[1], \"--list-tests\"))\n"
        "    std::cout << \"//tests/ops/cuda/rows:pool_test\\n//tests/ops/cuda/nn:fm_test\\n\";\n"
        "  else\n    std::cout << \"it runs\\n\";\n}\n");
    // absl_status needs libraries of its own.
    Bazel("\"${flags[@]}\"");
  }
  void Bazel(const std::string& flags) {
    c.Stub("bazel",
           "if [[ $1 == info ]]; then echo \"$PWD/outputs\"; exit; fi\n"
           "flags=() labels=()\n"
           "for a in \"$@\"; do\n"
           "  case \"$a\" in --linkopt=*) flags+=(\"${a#--linkopt=}\");; //*) labels+=(\"$a\");; "
           "esac\n"
           "done\n"
           "echo \"$@\" >>builds\n"
           "[[ -e program.o ]] || g++ -c program.cc || exit 1\n"
           "for l in \"${labels[@]}\"; do\n"
           "  l=${l#//}; mkdir -p \"outputs/${l%%:*}\"\n"
           "  g++ program.o -o \"outputs/${l/://}\" -Wl,--no-as-needed -labsl_status " +
               flags +
               " || exit 1\n"
               "done\n");
  }
  Checkout c;
};

TEST_CASE("a bundle holds programs and libraries, and runs from anywhere", "[scripts]") {
  Builder b;
  ScriptResult r = b.c.Run("bash tools/gpu_bundle --output my.tar.gz");
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  CHECK(Has(b.c.Read("builds"), "--config=cuda //tools/gpu:gpu_check"));
  CHECK(Has(r.err, "gpu_bundle: my.tar.gz: "));
  CHECK(Has(r.err, "3 programs"));

  r = b.c.Run("mkdir elsewhere && tar -C elsewhere -xf my.tar.gz && tar -tf my.tar.gz");
  REQUIRE(r.exit_code == 0);
  for (const char* file : {"strata-gpu/gpu_check\n", "strata-gpu/pool_test\n",
                           "strata-gpu/fm_test\n", "strata-gpu/lib/libstdc++.so.6\n",
                           "strata-gpu/lib/libabsl_status.so", "strata-gpu/lib/libabsl_cord.so"}) {
    INFO(file);
    CHECK(Has(r.out, file));
  }
  CHECK_FALSE(Has(r.out, "libc.so"));
  CHECK_FALSE(Has(r.out, "ld-linux"));

  r = b.c.Run("ldd elsewhere/strata-gpu/pool_test");
  CHECK(Has(r.out, "elsewhere/strata-gpu/lib/libabsl_cord.so"));
  CHECK(Has(r.out, "elsewhere/strata-gpu/lib/libstdc++.so.6"));
  CHECK_FALSE(Has(r.out, "=> /lib/x86_64-linux-gnu/libabsl"));
  r = b.c.Run("elsewhere/strata-gpu/pool_test");
  CHECK(r.out == "it runs\n");
  r = b.c.Run("readelf -d elsewhere/strata-gpu/fm_test");
  CHECK(Has(r.out, "(RUNPATH)"));
  CHECK(Has(r.out, "[$ORIGIN/lib]"));
  r = b.c.Run("readelf -S elsewhere/strata-gpu/fm_test");
  CHECK_FALSE(Has(r.out, ".symtab"));

  // The same archive again.
  r = b.c.Run("bash tools/gpu_bundle --output=again.tar.gz");
  REQUIRE(r.exit_code == 0);
  CHECK(b.c.Read("again.tar.gz") == b.c.Read("my.tar.gz"));
}

TEST_CASE("a bundle that would not run elsewhere is refused", "[scripts]") {
  Builder b;
  b.Bazel("");  // links as it likes
  ScriptResult r = b.c.Run("bash tools/gpu_bundle");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "gpu_check has no RUNPATH $ORIGIN/lib"));
  CHECK_FALSE(b.c.Exists("strata-gpu.tar.gz"));

  // Libraries of libraries are looked for where this machine has them.
  b.Bazel("'-Wl,-rpath,$ORIGIN/lib'");
  r = b.c.Run("bash tools/gpu_bundle");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "gpu_check would load libabsl_"));

  // A machine with a driver alone has no such library.
  REQUIRE(b.c.Run("echo 'int x;' >rt.cc && g++ -shared -fPIC -o libcudart.so.13 rt.cc").exit_code ==
          0);
  b.Bazel("\"${flags[@]}\" libcudart.so.13");
  r = b.c.Run("LD_LIBRARY_PATH=. bash tools/gpu_bundle");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "gpu_check is linked to libcudart.so.13"));

  b.Bazel("\"${flags[@]}\"");
  b.c.Write("big.cc", "asm(\".section .rodata\\n.incbin \\\"big\\\"\");\n");
  b.c.Write("bin/bazel",
            b.c.Read("bin/bazel")
                .replace(b.c.Read("bin/bazel").find("g++ program.o"), 13, "g++ program.o big.cc"));
  b.c.UseSystems({"head"});
  REQUIRE(b.c.Run("head -c 44000000 /dev/urandom >big").exit_code == 0);
  r = b.c.Run("bash tools/gpu_bundle");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "at most 41943040 are allowed"));
  CHECK_FALSE(b.c.Exists("strata-gpu.tar.gz"));
}

TEST_CASE("gpu_bundle tells wrong usage and failed builds", "[scripts]") {
  Builder b;
  CHECK(b.c.Run("bash tools/gpu_bundle --output").exit_code == 2);
  CHECK(b.c.Run("bash tools/gpu_bundle there").exit_code == 2);
  CHECK(Has(b.c.Run("bash tools/gpu_bundle --help").out, "tools/gpu_bundle [--output FILE]"));
  // Before anything is built.
  ScriptResult r = b.c.Run("bash tools/gpu_bundle --output none/my.tar.gz");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "cannot write none/my.tar.gz: there is no folder none that"));
  r = b.c.Run("bash tools/gpu_bundle --output /proc/my.tar.gz");  // where root's rights end as well
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "cannot write /proc/my.tar.gz: there is no folder /proc that"));
  REQUIRE(b.c.Run("mkdir there").exit_code == 0);
  r = b.c.Run("bash tools/gpu_bundle --output there");
  CHECK(r.exit_code == 2);
  CHECK(Has(r.err, "--output there is a folder; name a file"));
  CHECK_FALSE(b.c.Exists("builds"));
  b.Bazel("--no-such-flag");
  r = b.c.Run("bash tools/gpu_bundle");
  CHECK(r.exit_code == 1);
  CHECK(Has(r.err, "gpu_bundle: the build failed"));
}

}  // namespace
}  // namespace strata::testing
