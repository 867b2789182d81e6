#include "worker/data/files/file_list.h"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/runtime/files/folders.h"
#include "proto/runtime/files/path_policy.h"

namespace strata {
namespace {

// Names of a folder.
constexpr size_t kMostFiles = 1'000'000;

bool HasWildcard(absl::string_view text) { return text.find_first_of("*?[") != text.npos; }

bool Hidden(absl::string_view name) { return name[0] == '.' || name[0] == '_'; }

std::string Join(const std::string& folder, absl::string_view name) {
  return absl::StrCat(folder, folder.empty() || folder.back() == '/' ? "" : "/", name);
}

// The folder of a path, and its name there.
std::pair<std::string, std::string> Parts(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  if (slash == path.npos) return {".", path};
  return {path.substr(0, std::max<size_t>(1, slash)), path.substr(slash + 1)};
}

// Those of `files`, and those that will be written, as if they were there.
class FilesToCome : public FileSystem {
 public:
  FilesToCome(const std::vector<WrittenFile>& written, FileSystem& files) : files_(files) {
    for (const WrittenFile& file : written) {
      const auto [folder, name] = Parts(AbsolutePath(file.path));
      FileInfo info;
      if (files_.Look(folder, info) == 0) to_come_.push_back({&file, name, info});
    }
  }

  int Look(const std::string& path, FileInfo& out) override {
    const int looked = files_.Look(path, out);
    if (looked != -ENOENT || Written(path) == nullptr) return looked;
    out = FileInfo();
    out.kind = FileKind::kFile;
    return 0;
  }
  int LookAtLink(const std::string& path, FileInfo& out) override {
    return files_.LookAtLink(path, out);
  }
  int List(const std::string& path, std::vector<std::string>& names) override {
    const int listed = files_.List(path, names);
    FileInfo info;
    if (listed < 0 || to_come_.empty() || files_.Look(path, info) < 0) return listed;
    for (const ToCome& file : to_come_) {
      if (!Same(info, file.folder)) continue;
      if (std::find(names.begin(), names.end(), file.name) == names.end()) {
        names.push_back(file.name);
      }
    }
    return listed;
  }

  // The one that lies there; null: none does.
  const WrittenFile* Written(const std::string& path) const {
    const auto [folder, name] = Parts(path);
    for (const ToCome& file : to_come_) {
      FileInfo info;
      if (file.name != name || files_.Look(folder, info) < 0) continue;
      if (Same(info, file.folder)) return file.file;
    }
    return nullptr;
  }

 private:
  struct ToCome {
    const WrittenFile* file;
    std::string name;
    FileInfo folder;
  };
  static bool Same(const FileInfo& a, const FileInfo& b) {
    return a.device == b.device && a.inode == b.inode;
  }

  FileSystem& files_;
  std::vector<ToCome> to_come_;
};

class Lister {
 public:
  Lister(const MayRead& may_read, FileSystem& files) : may_read_(may_read), files_(files) {}

  enum class Kind { kNothing, kFile, kFolder, kOther };
  // What cannot be looked at is an error: a job must not leave out what a disk does not show.
  absl::StatusOr<Kind> Look(const std::string& path) const {
    FileInfo info;
    if (const int result = files_.Look(path, info); result < 0) {
      const bool gone = result == -ENOENT || result == -ENOTDIR;
      if (gone && files_.LookAtLink(path, info) < 0) return Kind::kNothing;
      return ErrnoStatus(-result, gone ? "follow the link" : "look at", path);
    }
    if (info.kind == FileKind::kFolder) return Kind::kFolder;
    return info.kind == FileKind::kFile ? Kind::kFile : Kind::kOther;
  }

  // Names in a folder, ascending.
  absl::StatusOr<std::vector<std::string>> Names(const std::string& folder) const {
    if (may_read_) {
      if (absl::Status s = may_read_(folder); !s.ok()) return s;
    }
    auto names = ListFolder(folder, files_);
    if (!names.ok()) return names.status();
    if (names->size() > kMostFiles) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder, " has ", names->size(), " files; at most ", kMostFiles, " are listed"));
    }
    return names;
  }

  absl::Status AddFolder(const std::string& folder, std::vector<std::string>* out) const {
    const auto names = Names(folder);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (Hidden(name)) continue;
      std::string path = Join(folder, name);
      const auto kind = Look(path);
      if (!kind.ok()) return kind.status();
      if (*kind == Kind::kOther) return NoFile(path);
      if (*kind == Kind::kFolder) {
        return absl::InvalidArgumentError(
            absl::StrCat("the folder ", path, " lies among the files of ", folder,
                         ", and what is in it would be left out; name ", Join(folder, "*"),
                         " for its files too, a glob that does not match it, or each file"));
      }
      if (*kind == Kind::kFile) out->push_back(std::move(path));
    }
    return absl::OkStatus();
  }

  // What matches `pattern` below `folder`: files, and the files of folders.
  absl::Status AddMatches(const std::string& folder, absl::string_view pattern,
                          std::vector<std::string>* out) const {
    const size_t end = std::min(pattern.find('/'), pattern.size());
    const std::string part(pattern.substr(0, end));
    absl::string_view rest = pattern.substr(end);
    while (!rest.empty() && rest[0] == '/') rest.remove_prefix(1);
    if (part.empty()) return AddPath(folder, out);
    const std::string as_written = Join(folder, part);
    bool literal = !HasWildcard(part);
    if (!literal) {  // such a name is rare, but the folder of the job may have it
      const auto there = Look(as_written);
      literal = there.ok() && *there != Kind::kNothing;
    }
    if (!literal && part == "**") {
      return absl::InvalidArgumentError(
          "** is no pattern for folders of any depth; write one * for each, as in a/*/*/part-*");
    }
    if (literal) return rest.empty() ? AddPath(as_written, out) : AddMatches(as_written, rest, out);
    const auto kind = Look(folder);
    if (!kind.ok()) return kind.status();
    if (*kind != Kind::kFolder) return absl::OkStatus();
    const auto names = Names(folder);
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      if (Hidden(name) && name[0] != part[0]) continue;
      if (fnmatch(part.c_str(), name.c_str(), FNM_NOESCAPE) != 0) continue;
      const std::string path = Join(folder, name);
      absl::Status s = rest.empty() ? AddPath(path, out) : AddMatches(path, rest, out);
      if (!s.ok()) return s;
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status NoFile(const std::string& path) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is not a regular file; write the data to one, or move it away"));
  }

  absl::Status AddPath(const std::string& path, std::vector<std::string>* out) const {
    const auto kind = Look(path);
    if (!kind.ok()) return kind.status();
    switch (*kind) {
      case Kind::kFolder:
        return AddFolder(path, out);
      case Kind::kFile:
        out->push_back(path);
        return absl::OkStatus();
      case Kind::kOther:
        return NoFile(path);
      case Kind::kNothing:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const MayRead& may_read_;
  FileSystem& files_;
};

// `where`: the folder or glob `path` that gives it.
absl::Status GivesWritten(const std::string& where, const std::string& path,
                          const WrittenFile& file) {
  return absl::InvalidArgumentError(absl::StrCat(
      file.field, absl::StartsWith(file.field, "-") ? " " : ": ", file.path,
      " would be one of the files that ", where, ", ", path,
      ", stands for, and be read as one, at once or the next time; write to another folder",
      HasWildcard(path) ? ", or to a name that the glob does not match" : ""));
}

// The files of one path; `plain`: it names the file itself.
absl::StatusOr<std::vector<std::string>> ListOne(const std::string& where, const std::string& path,
                                                 const Lister& lister, bool* plain) {
  *plain = true;
  std::vector<std::string> found;
  if (path == "-") return std::vector<std::string>{path};
  // Of a path that cannot be looked at, who opens it tells.
  const auto looked = lister.Look(path);
  const Lister::Kind kind = looked.ok() ? *looked : Lister::Kind::kNothing;
  if (kind == Lister::Kind::kFile) return std::vector<std::string>{path};
  absl::Status status;
  if (kind == Lister::Kind::kFolder) {
    status = lister.AddFolder(path, &found);
  } else if (HasWildcard(path)) {
    const bool absolute = path[0] == '/';
    status = lister.AddMatches(absolute ? "/" : ".",
                               absl::string_view(path).substr(absolute ? 1 : 0), &found);
  } else {
    return std::vector<std::string>{path};
  }
  *plain = false;
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat(where, ": ", path, ": ", status.message()));
  }
  if (found.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        where, ": ", path,
        kind == Lister::Kind::kFolder
            ? ": the folder has no file (names that begin with . or _ do not count); name another"
            : ": the glob matches no file; mend it, or wait for the files"));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListFiles(absl::string_view field,
                                                   const std::vector<std::string>& paths,
                                                   const FileListOptions& options,
                                                   FileSystem& files) {
  FilesToCome with_written(options.written, files);
  const Lister lister(options.may_read, with_written);
  std::vector<std::string> all;
  std::map<std::string, std::pair<size_t, bool>> given;  // by file: the path that gave it, if plain
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string where = absl::StrCat(field, "[", i, "]");
    bool plain = true;
    auto found = ListOne(where, paths[i], lister, &plain);
    if (!found.ok()) return found.status();
    for (std::string& file : *found) {
      const WrittenFile* written = plain ? nullptr : with_written.Written(file);
      if (written != nullptr) return GivesWritten(where, paths[i], *written);
      const auto [before, fresh] = given.try_emplace(file, i, plain);
      if (!fresh && !(plain && before->second.second)) {
        return absl::InvalidArgumentError(
            absl::StrCat(where, ": ", paths[i], ": ", file, " is given by ", field, "[",
                         before->second.first, "] too; name each file once"));
      }
      all.push_back(std::move(file));
    }
  }
  return all;
}

}  // namespace strata
