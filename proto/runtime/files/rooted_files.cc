#include "proto/runtime/files/rooted_files.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "proto/runtime/files/folders.h"

namespace strata {
namespace {

// Relative paths are the process's own: jobs have none where there are roots.
std::string Absolute(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).string();
  return error ? path : absolute;
}

}  // namespace

int RootedFiles::Refuse(const std::string& path) {
  if (path.find('\0') != std::string::npos) return -EINVAL;
  const absl::Status s = allowed_.CheckPath(Absolute(path), *this);
  return absl::IsPermissionDenied(s) ? -kOutsideRoots : 0;  // other errors: as the call meets them
}

int RootedFiles::RefuseName(const std::string& path) {
  const std::filesystem::path absolute = Absolute(path);
  return Refuse(absolute.has_relative_path() ? absolute.parent_path().string() : path);
}

int RootedFiles::Open(const std::string& path, int flags) {
  const int refused = Refuse(path);
  return refused < 0 ? refused : FileSystem::Open(path, flags);
}

int RootedFiles::Rename(const std::string& from, const std::string& to) {
  int refused = RefuseName(from);
  if (refused == 0) refused = RefuseName(to);
  return refused < 0 ? refused : FileSystem::Rename(from, to);
}

int RootedFiles::Link(const std::string& from, const std::string& to) {
  int refused = RefuseName(from);
  if (refused == 0) refused = RefuseName(to);
  return refused < 0 ? refused : FileSystem::Link(from, to);
}

int RootedFiles::Remove(const std::string& path) {
  const int refused = RefuseName(path);
  return refused < 0 ? refused : FileSystem::Remove(path);
}

int RootedFiles::Look(const std::string& path, FileInfo& out) {
  const int refused = Refuse(path);
  return refused < 0 ? refused : FileSystem::Look(path, out);
}

int RootedFiles::LookAtLink(const std::string& path, FileInfo& out) {
  const int refused = RefuseName(path);
  return refused < 0 ? refused : FileSystem::LookAtLink(path, out);
}

int RootedFiles::MayChange(const std::string& folder) {
  const int refused = Refuse(folder);
  return refused < 0 ? refused : FileSystem::MayChange(folder);
}

int RootedFiles::MakeFolder(const std::string& path) {
  const int refused = Refuse(path);
  return refused < 0 ? refused : FileSystem::MakeFolder(path);
}

int RootedFiles::RemoveFolder(const std::string& path) {
  const int refused = RefuseName(path);
  return refused < 0 ? refused : FileSystem::RemoveFolder(path);
}

int RootedFiles::List(const std::string& path, std::vector<std::string>& names) {
  const int refused = Refuse(path);
  return refused < 0 ? refused : FileSystem::List(path, names);
}

std::string RootedFiles::WhyOutside(absl::string_view path) {
  const absl::Status s = allowed_.CheckPath(Absolute(std::string(path)), *this);
  return s.ok() ? FileSystem::WhyOutside(path) : std::string(s.message());
}

absl::Status RestrictFiles(const PathPolicy& policy, const std::vector<std::string>& own) {
  if (!policy.restricts()) return absl::OkStatus();
  std::vector<std::string> allowed = policy.roots();
  for (const std::string& folder : own) {
    if (absl::Status s = MakeDurableFolders(folder); !s.ok()) return s;
    allowed.push_back(folder);
  }
  const char* const named = std::getenv("TMPDIR");
  const std::string temporary = named != nullptr && *named != '\0' ? named : "/tmp";
  if (auto there = IsThere(temporary); there.ok() && *there) allowed.push_back(temporary);
  auto all = PathPolicy::Make(allowed);
  if (!all.ok()) return all.status();
  static RootedFiles* files = nullptr;
  files = new RootedFiles(*std::move(all));  // for good: whoever opened a file holds on to it
  FileSystem::ReplaceKernel(files);
  return absl::OkStatus();
}

}  // namespace strata
