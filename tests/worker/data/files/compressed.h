// Compressed files, made in memory.
#ifndef STRATA_TESTS_WORKER_DATA_FILES_COMPRESSED_H_
#define STRATA_TESTS_WORKER_DATA_FILES_COMPRESSED_H_

#include <zlib.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <string>

namespace strata {

// One gzip member.
inline std::string Gzip(const std::string& text) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One zstd frame with a checksum.
inline std::string Zstd(const std::string& text) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress2(context, out.data(), out.size(), text.data(), text.size());
  REQUIRE(!ZSTD_isError(size));
  ZSTD_freeCCtx(context);
  out.resize(size);
  return out;
}

}  // namespace strata

#endif  // STRATA_TESTS_WORKER_DATA_FILES_COMPRESSED_H_
