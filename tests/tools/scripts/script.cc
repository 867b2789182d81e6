#include "tests/tools/scripts/script.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace strata::testing {

namespace fs = std::filesystem;

Checkout::Checkout(const std::vector<std::string>& scripts) {
  fs::create_directories(bin());
  fs::create_directories(root() + "/tools");
  const std::string source = std::string(std::getenv("TEST_SRCDIR")) + "/strata/tools/";
  for (const char* name : {"common.sh"}) fs::copy_file(source + name, root() + "/tools/" + name);
  for (const std::string& name : scripts) fs::copy_file(source + name, root() + "/tools/" + name);
}

void Checkout::Write(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(root()) / name;
  fs::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

std::string Checkout::Read(const std::string& name) const {
  std::ifstream in(root() + "/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

bool Checkout::Exists(const std::string& name) const { return fs::exists(root() + "/" + name); }

void Checkout::Stub(const std::string& name, const std::string& script) {
  Write("bin/" + name, "#!/bin/bash\n" + script);
  chmod((bin() + "/" + name).c_str(), 0755);
}

void Checkout::UseSystems(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::string found;
    for (const char* folder : {"/usr/bin/", "/bin/", "/usr/local/bin/"}) {
      if (found.empty() && fs::exists(folder + name)) found = folder + name;
    }
    if (found.empty()) throw std::runtime_error("this system has no " + name);
    fs::create_symlink(found, bin() + "/" + name);
  }
}

void Checkout::Remove(const std::string& name) { fs::remove_all(root() + "/" + name); }

ScriptResult Checkout::Run(const std::string& command) {
  const std::string line = "cd '" + root() + "' && exec env -i HOME='" + root() + "/home' PATH='" +
                           bin() + "' /bin/bash -c \"" + command +
                           "\" >said.out 2>said.err </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 1000, Read("said.out"), Read("said.err")};
}

}  // namespace strata::testing
