// See zlib_deflate.hpp.
#include "http/zlib_deflate.hpp"

#include <algorithm>
#include <new>
#include <zlib.h>

#include "base/assert.hpp"

namespace wirecall::net {

// What a payload leaves away: the end of an empty block (RFC 7692 section 7.2.1).
constexpr std::string_view kTail{"\0\0\xFF\xFF", 4};
constexpr std::size_t kOutputStep = 16 * 1024;

static Bytef* bytes_of(std::string_view text) noexcept {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads them
}

void ZlibDeflate::EndInflate::operator()(z_stream_s* stream) const noexcept {
  inflateEnd(stream);
  delete stream;
}
void ZlibDeflate::EndDeflate::operator()(z_stream_s* stream) const noexcept {
  deflateEnd(stream);
  delete stream;
}

ZlibDeflate::ZlibDeflate() = default;
ZlibDeflate::~ZlibDeflate() = default;

z_stream_s& ZlibDeflate::inflating() {
  if (inflate_ == nullptr) {
    auto made = std::make_unique<z_stream>();
    if (inflateInit2(made.get(), -kWindowBitsMax) != Z_OK) throw std::bad_alloc{};
    inflate_.reset(made.release());
  }
  inflateReset(inflate_.get());
  return *inflate_;
}

z_stream_s& ZlibDeflate::deflating(int window_bits) {
  WIRECALL_ASSERT(window_bits >= kWindowBitsMin && window_bits <= kWindowBitsMax);
  Deflate& of = deflate_[static_cast<std::size_t>(window_bits - kWindowBitsMin)];
  if (of == nullptr) {
    constexpr int kMemoryLevel = 8;  // zlib's own
    auto made = std::make_unique<z_stream>();
    // The fastest: what a network saves by the others costs a server more.
    if (deflateInit2(made.get(), Z_BEST_SPEED, Z_DEFLATED, -window_bits, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc{};
    of.reset(made.release());
  }
  deflateReset(of.get());
  return *of;
}

framing::MessageDeflate::Outcome ZlibDeflate::inflate(std::string_view packed, std::size_t bytes_max, Buffer& out) {
  z_stream& stream = inflating();
  for (const std::string_view part : {packed, kTail}) {
    stream.next_in = bytes_of(part);
    stream.avail_in = static_cast<uInt>(part.size());
    for (bool full = true; full || stream.avail_in != 0;) {
      if (out.size() > bytes_max) return Outcome::too_large;
      // One byte more than may be, so that what is too large is told from what just fits.
      const std::size_t room = std::min(kOutputStep, bytes_max + 1 - out.size());
      stream.next_out = reinterpret_cast<Bytef*>(out.reserve(room));
      stream.avail_out = static_cast<uInt>(room);
      const int status = ::inflate(&stream, Z_SYNC_FLUSH);
      out.grow(room - stream.avail_out);
      full = stream.avail_out == 0;
      if (status == Z_STREAM_END) {
        inflateReset(&stream);  // another block may follow the last one
        if (stream.avail_in == 0) break;
        continue;
      }
      if (status == Z_MEM_ERROR) throw std::bad_alloc{};
      if (status == Z_BUF_ERROR) break;  // nothing is left to be done
      if (status != Z_OK) return Outcome::malformed;
    }
  }
  if (out.size() > bytes_max) return Outcome::too_large;
  // It has to end between two blocks, which the tail is the last of.
  constexpr int kBetweenBlocks = 128;
  return stream.total_in == 0 || (stream.data_type & kBetweenBlocks) != 0 ? Outcome::done : Outcome::malformed;
}

void ZlibDeflate::deflate(std::string_view text, int window_bits, Buffer& out) {
  z_stream& stream = deflating(window_bits);
  stream.next_in = bytes_of(text);
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(out.reserve(kOutputStep));
    stream.avail_out = static_cast<uInt>(kOutputStep);
    const int status = ::deflate(&stream, Z_SYNC_FLUSH);
    WIRECALL_ASSERT(status == Z_OK || status == Z_BUF_ERROR);
    out.grow(kOutputStep - stream.avail_out);
  } while (stream.avail_out == 0);
  WIRECALL_ASSERT(out.view().ends_with(kTail));
  out.truncate(out.size() - kTail.size());
}

}  // namespace wirecall::net
