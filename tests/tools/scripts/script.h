// A folder like a checkout, with the scripts of tools/ and an environment of the test's making.
#ifndef STRATA_TESTS_TOOLS_SCRIPTS_SCRIPT_H_
#define STRATA_TESTS_TOOLS_SCRIPTS_SCRIPT_H_

#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace strata::testing {

struct ScriptResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

// `root` is the checkout; `bin` is all of PATH. One thread.
class Checkout {
 public:
  // With tools/common.sh and these scripts of tools/.
  explicit Checkout(const std::vector<std::string>& scripts);

  const std::string& root() const { return folder_.path(); }
  std::string bin() const { return root() + "/bin"; }

  // A file below the root, with its folders.
  void Write(const std::string& name, const std::string& text);
  std::string Read(const std::string& name) const;
  bool Exists(const std::string& name) const;
  // A program in `bin`: a shell script; or the system's program of that name.
  void Stub(const std::string& name, const std::string& script);
  void UseSystems(const std::vector<std::string>& names);
  void Remove(const std::string& name);

  // In the root, with HOME and PATH of this checkout and nothing else in the environment.
  ScriptResult Run(const std::string& command);

 private:
  const TempFolder folder_;
};

}  // namespace strata::testing

#endif  // STRATA_TESTS_TOOLS_SCRIPTS_SCRIPT_H_
