// Transcoding between JSON text and MessagePack or CBOR by the one table of docs/wire.md, "Values beyond JSON":
//
//   bytes                                {"$bytes":"<base64>"}
//   extension 78, the bytes of a .npy    {"$npy":"<base64>"}
//   extension 73, a PNG or JPEG          {"$image":"<base64>"}
//   extension 77, a protobuf message     {"$message":"<base64>"}
//   extension 80, a packed value         {"$packed":"<base64>"}
//   a timestamp                          a string of RFC 3339; it stays one on the way back
//   a map of one member whose name       {"$":{...}} around the same object
//   begins with $
//   floats                               numbers with a point or an exponent, and the other way round; so 3.0 stays 3.0
//   other values                         the same in both
//
// What the other side cannot hold is an error that says so: NaN, infinities, keys that are no strings and other
// extensions in JSON; integers beyond 64 bits and numbers beyond a double in the others. Nothing recurses, and the time
// is linear in what is read and written. Both are made for each Format, that of msgpack_format.hpp and that of
// cbor_format.hpp, and keep their memory for the next value. One owner, one thread each.
#pragma once

#include <limits>

#include "codec/codec_arena.hpp"
#include "codec/json_counts.hpp"
#include "codec/json_reader.hpp"
#include "codec/json_writer.hpp"
#include "wirecall/bytes.hpp"

namespace wirecall::msgpack {
struct Format;
}
namespace wirecall::cbor {
struct Format;
}

namespace wirecall::codec {

struct Head;

enum class TranscodeStatus : std::uint8_t {
  done,
  no_form,    ///< the target has no form for a value; `why` says which
  too_large,  ///< the result is larger than allowed
};

struct Transcoded {
  TranscodeStatus status = TranscodeStatus::done;
  std::string_view why = {};  ///< a constant sentence without its full stop
  /// Of what is made JSON the value that has no form, or the key.
  const char* at = nullptr;

  [[nodiscard]] bool done() const noexcept { return status == TranscodeStatus::done; }
};

/// What the names of an object at the top are. In data, one that begins with `$` may mean something, or need wrapping.
enum class Names : std::uint8_t { data, members };

// The name by which JSON holds bytes; those of extensions are in codec/extensions.hpp.
inline constexpr std::string_view kBytes = "$bytes";
/// Whether the only name of an object of user data wants wrapping.
[[nodiscard]] constexpr bool is_user_name(std::string_view name) noexcept { return name.starts_with('$'); }
/// Why a real number has no form.
inline constexpr std::string_view kNotFinite = "a number is NaN or infinite, which JSON cannot express";
/// One that is finite, always as a number that is no integer's text.
void write_real(json::JsonWriter& writer, double value);

inline constexpr std::size_t kNoSizeMax = std::numeric_limits<std::size_t>::max();

/// Why a timestamp has no form.
inline constexpr std::string_view kNoTimestamp =
    "a timestamp is malformed, or outside the years 0 to 9999, which RFC 3339 cannot express";

template <class Format>
class ToJson {
 public:
  /// Appends the JSON text of one validated value to `out`, which has grown by little more than `bytes_max` when that
  /// is found to be too much. What was appended in vain stays there for the caller to cut off.
  Transcoded operator()(std::string_view encoded, Buffer& out, std::size_t bytes_max = kNoSizeMax,
                        Names names = Names::data);
  /// Something to read for whatever the value is, for messages to people: of a long one the beginning, of at least
  /// `bytes_max` bytes.
  void describe(const char* encoded, Buffer& out, std::size_t bytes_max);

 private:
  enum class Closing : std::uint8_t { array, map, wrapped_map, perhaps_wrapped_map };
  struct Level {
    std::uint64_t left;
    Closing closing;
    std::uint64_t members = 0;  ///< so far, of one that is wrapped if it has no more than one
    std::size_t begin = 0;      ///< of such a one in the buffer
  };

  Transcoded convert(const char* encoded, Buffer& out, std::size_t bytes_max, Names names);
  /// The reason why there is no JSON form; empty when it was written.
  std::string_view scalar(const char* p, const Head& head);
  const char* small_values(const char* p);
  const char* begin_map(const char* p, const Head& head, bool is_data, const Buffer& out);
  void end(const Level& level, Buffer& out);
  std::string_view extension(std::int8_t type, std::span<const std::byte> data);
  std::string_view key(const char* p);

  json::JsonWriter writer_;
  std::vector<Level> levels_;
  Arena arena_;
  bool lenient_ = false;
  std::size_t shown_max_ = kNoSizeMax;  ///< of a string or bytes, when lenient
};

template <class Format>
class FromJson {
 public:
  /// Appends what one valid JSON text, with padding behind it, is in the encoding. What was appended in vain stays.
  Transcoded operator()(std::string_view json, Buffer& out, Names names = Names::data);

 private:
  enum class Open : std::uint8_t { array, object, wrapper };

  /// The name of an object's only member has been read, and its value is next: takes both as bytes if they are that.
  bool base64(std::string_view name, Buffer& out);
  /// The value of `$` is next, an object of one member: goes on within it, at its name, if that is what `$` is for.
  void unwrap(std::string_view& name);

  json::JsonReader reader_;
  JsonCounts counts_;
  std::vector<Open> levels_;
};

/// Appends a string.
template <class Format>
void append_string(Buffer& out, std::string_view utf8);
/// Appends the shortest form of a number's JSON text; otherwise why it has none.
template <class Format>
[[nodiscard]] std::string_view append_number(Buffer& out, std::string_view text);

using MsgpackToJson = ToJson<msgpack::Format>;
using JsonToMsgpack = FromJson<msgpack::Format>;
using CborToJson = ToJson<cbor::Format>;
using JsonToCbor = FromJson<cbor::Format>;

extern template class ToJson<msgpack::Format>;
extern template class ToJson<cbor::Format>;
extern template class FromJson<msgpack::Format>;
extern template class FromJson<cbor::Format>;

}  // namespace wirecall::codec
