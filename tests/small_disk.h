// A file system of a few pages, to run out of space on.
#ifndef STRATA_TESTS_SMALL_DISK_H_
#define STRATA_TESTS_SMALL_DISK_H_

#include <sys/mount.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace strata {

// A tmpfs mounted at `path` while this lives. Needs the right to mount; else mounted() is false and
// reason() says why.
class SmallDisk {
 public:
  SmallDisk(std::string path, size_t bytes) : path_(std::move(path)) {
    std::error_code ignored;
    std::filesystem::create_directories(path_, ignored);
    const std::string options = "size=" + std::to_string(bytes);
    mounted_ = mount("tmpfs", path_.c_str(), "tmpfs", 0, options.c_str()) == 0;
    if (!mounted_) reason_ = std::string("cannot mount a tmpfs: ") + std::strerror(errno);
  }
  ~SmallDisk() {
    if (mounted_) umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  const std::string& reason() const { return reason_; }
  const std::string& path() const { return path_; }

  // Takes all room that is left but `leave` bytes, until Free. May be called again.
  void Fill(size_t leave = 0) {
    const std::string filler = path_ + "/filler";
    std::ofstream out(filler, std::ios::binary | std::ios::app);
    const std::vector<char> block(4096, 'x');
    while (out.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
    const size_t size = std::filesystem::file_size(filler);
    std::filesystem::resize_file(filler, size > leave ? size - leave : 0);
  }
  void Free() { std::remove((path_ + "/filler").c_str()); }

 private:
  std::string path_;
  std::string reason_;
  bool mounted_ = false;
};

}  // namespace strata

#endif  // STRATA_TESTS_SMALL_DISK_H_
