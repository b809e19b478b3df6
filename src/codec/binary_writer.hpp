// BinaryWriter: the Writer of MessagePack or CBOR, everything in its shortest form; of a double or float that is the
// one that its Format has. Arrays and maps whose sizes are not known when they begin get their heads when they end.
// Strings that are not UTF-8, sizes beyond what a head holds, and JSON texts without a form in the encoding fail the
// writer. Owned by one thread; the Buffer is the caller's.
#pragma once

#include "codec/transcode.hpp"
#include "wirecall/codec.hpp"

namespace wirecall::codec {

template <class Format>
class BinaryWriter final : public Writer {
 public:
  void reset(Buffer& out) override;
  void null() override;
  void boolean(bool value) override;
  void integer(std::int64_t value) override;
  void unsigned_integer(std::uint64_t value) override;
  void number(double value) override;
  void number(float value) override;
  void number_text(std::string_view text) override;
  void string(std::string_view utf8) override;
  void bytes(std::span<const std::byte> data) override;
  void extension(std::int8_t type, std::span<const std::byte> data) override;
  void extension_in_parts(std::int8_t type, std::span<const std::byte> first,
                          std::span<const std::byte> second) override;
  void begin_array(std::size_t size) override;
  void end_array() override;
  void begin_object(std::size_t size) override;
  void key(std::string_view utf8) override;
  void end_object() override;
  void json(std::string_view text) override;
  void encoded(std::string_view value) override;

 private:
  struct Level {
    std::size_t begin;     ///< where its head is in the buffer
    std::size_t expected;  ///< elements or members, or kUnknownSize
    std::size_t count;     ///< so far
    bool map;
  };

  /// Room for `bytes` of the next value.
  char* open(std::size_t bytes);
  void close(const char* end) noexcept { out_->set_end(end); }
  void append(std::string_view utf8);
  void append_data(std::span<const std::byte> data);
  void timestamp(std::span<const std::byte> first, std::span<const std::byte> second);
  void begin(std::size_t size, bool map);
  void end();
  static char* write_size(char* to, std::size_t size, bool map) noexcept {
    return map ? Format::write_map_head(to, size) : Format::write_array_head(to, size);
  }
  /// Whether `size` fits a head; fails the writer otherwise.
  bool fits(std::size_t size);

  Buffer* out_ = nullptr;
  std::vector<Level> levels_;
  std::unique_ptr<FromJson<Format>> from_json_;  ///< made when JSON text is first written
};

extern template class BinaryWriter<msgpack::Format>;
extern template class BinaryWriter<cbor::Format>;

}  // namespace wirecall::codec

namespace wirecall::msgpack {
using MsgpackWriter = codec::BinaryWriter<Format>;
}
namespace wirecall::cbor {
using CborWriter = codec::BinaryWriter<Format>;
}
