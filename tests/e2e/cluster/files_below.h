// Files of folders that programs write to meanwhile.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace strata::testing {

// Paths of what is no folder anywhere below `folder`, in no order; none where it is not there. What
// goes while one looks ends the look: it begins again.
inline std::vector<std::string> FilesBelow(const std::string& folder) {
  namespace fs = std::filesystem;
  while (true) {
    std::vector<std::string> files;
    std::error_code error;
    for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
      if (!at->is_directory(error) && !error) files.push_back(at->path().string());
      if (error) break;
    }
    if (!error) return files;
    if (!fs::exists(folder)) return {};
  }
}

}  // namespace strata::testing
