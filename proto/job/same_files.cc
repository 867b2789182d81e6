#include "proto/job/same_files.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace strata {
namespace {

using Content = std::pair<uint64_t, uint64_t>;  // size, fingerprint
using FirstPaths = std::map<Content, const std::string*>;

Content ContentOf(const InputFile& file) { return {file.bytes(), file.fingerprint()}; }

// The first path of each content; paths of one that come behind it to `found`.
FirstPaths PathsOf(const char* field, const InputIndex& index, std::vector<std::string>* found) {
  FirstPaths first;
  for (const InputFile& file : index.files()) {
    if (file.bytes() == 0) continue;
    const auto [before, is_new] = first.try_emplace(ContentOf(file), &file.path());
    if (is_new) continue;
    found->push_back(
        *before->second == file.path()
            ? absl::StrCat(field, ": ", file.path(), " is in the list twice, and read twice")
            : absl::StrCat(field, ": ", file.path(), " and ", *before->second,
                           " seem to have the same content, which is read twice"));
  }
  return first;
}

}  // namespace

std::string SameFiles(const InputIndex& train, const InputIndex& eval) {
  std::vector<std::string> found;
  std::vector<std::string> twice;
  const FirstPaths trained = PathsOf("spec.data.train", train, &twice);
  PathsOf("spec.data.eval", eval, &twice);
  for (const InputFile& file : eval.files()) {
    const auto it = trained.find(ContentOf(file));
    if (it == trained.end()) continue;
    found.push_back(absl::StrCat(
        "spec.data.eval: ", file.path(),
        *it->second == file.path()
            ? std::string(" is in spec.data.train too")
            : absl::StrCat(" seems to have the content of ", *it->second, " of spec.data.train"),
        ", so its quality is that of lines that were trained on"));
  }
  found.insert(found.end(), twice.begin(), twice.end());
  if (found.empty()) return "";
  const size_t more = found.size() - 1;
  return absl::StrCat(found[0], more > 0 ? absl::StrCat(" (and ", more, " more such files)") : "",
                      "; name each file once");
}

}  // namespace strata
