// Codec: reads typed values from bytes and writes them, whatever the encoding. Reader and Writer are the pull and push
// cursors that reflect.hpp calls; a Codec makes them. There are four codecs, JSON, MessagePack, CBOR and Protocol
// Buffers; others implement the same three interfaces.
//
// A Reader reads bytes that have been validated as a whole before: it reports wrong types, never wrong syntax.
// One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/bytes.hpp"
#include "wirecall/limits.hpp"

namespace wirecall {

struct TypeInfo;
namespace detail {
struct ResultPacking;
}

/// The number of an encoding. Encodings that a program adds (message/message_codec.hpp) have the numbers after these.
enum class Encoding : std::uint8_t {
  json,
  msgpack,   ///< with a length prefix; by HTTP as application/msgpack (docs/wire.md, "MessagePack")
  cbor,      ///< likewise, by HTTP as application/cbor (docs/wire.md, "CBOR")
  protobuf,  ///< likewise, by HTTP as application/protobuf (docs/wire.md, "Protobuf")
};

enum class ValueKind : std::uint8_t { null, boolean, number, string, array, object, bytes, extension };

// The extension types of MessagePack that mean something here, and what they are in CBOR (docs/wire.md, "Values beyond
// JSON").
inline constexpr std::int8_t kTimestampExtension = -1;  ///< its own; in JSON a string of RFC 3339
inline constexpr std::int8_t kImageExtension = 73;      ///< a PNG or JPEG; in JSON {"$image":"<base64>"}
inline constexpr std::int8_t kNpyExtension = 78;        ///< the bytes of a .npy file; in JSON {"$npy":"<base64>"}
inline constexpr std::int8_t kMessageExtension = 77;    ///< a protobuf message's own bytes; {"$message":"<base64>"}
inline constexpr std::int8_t kPackedExtension = 80;     ///< a packed value (packed.hpp); in JSON {"$packed":"<base64>"}

/// Why a value could not be decoded: what was expected, what was there (as JSON text, shortened), and its path.
struct DecodeFailure {
  using Step = std::variant<std::string, std::size_t>;  ///< a member's name or an element's position, from 0
  std::string expected;
  std::string got;
  std::vector<Step> path;                ///< innermost first
  std::string meant;                     ///< for an unknown name: the most similar known one; empty for none
  std::vector<DecodeFailure> also = {};  ///< further values that do not fit; their `also` is empty
  std::string layout = {};               ///< that is expected, where bytes are packed in another; all else is empty
};

class Codec;

/// A pull cursor over one encoded value. A read that fails records why, consumes nothing and returns false.
class Reader {
 public:
  virtual ~Reader() = default;

  /// The codec whose encoding it reads.
  [[nodiscard]] virtual const Codec& codec() const noexcept = 0;
  /// Starts on `value`: one whole validated value that outlives the reading, kPaddingBytes readable behind it.
  virtual void reset(std::string_view value) = 0;
  /// The kind of the value that comes next.
  [[nodiscard]] virtual ValueKind kind() const = 0;
  /// Consumes the next value if it is null; never records a failure.
  virtual bool read_null() = 0;
  virtual bool read_bool(bool& out) = 0;
  /// Integers are exact over all 64 bits; 1.0 and 1e3 are integers, 1.5 is not.
  virtual bool read_int(std::int64_t min, std::int64_t max, std::int64_t& out) = 0;
  virtual bool read_uint(std::uint64_t max, std::uint64_t& out) = 0;
  virtual bool read_double(double& out) = 0;
  /// Whether the next number has the form of a float, in an encoding that has integers and floats. False in JSON, where
  /// the text of the number tells.
  [[nodiscard]] virtual bool next_is_float() const { return false; }
  /// A number as its own text, for values that no arithmetic type holds.
  virtual bool read_number_text(std::string_view& out) = 0;
  /// Unescaped UTF-8. The view lasts until the next reset.
  virtual bool read_string(std::string_view& out) = 0;
  /// Binary data: in JSON {"$bytes":"<base64>"}. The view lasts until the next reset.
  virtual bool read_bytes(std::span<const std::byte>& out) = 0;
  /// Bytes with a type: an extension of MessagePack, in JSON {"$npy":...} and {"$image":...}. The view lasts until the
  /// next reset.
  virtual bool read_extension(std::int8_t& type, std::span<const std::byte>& data);
  virtual bool begin_array() = 0;
  /// How many elements the innermost array still has, where the encoding says so before them; else 0.
  [[nodiscard]] virtual std::size_t elements_left() const { return 0; }
  /// True when an element follows; false consumes the end of the array.
  virtual bool next_element() = 0;
  virtual bool begin_object() = 0;
  /// True when a member follows, its unescaped name in `name`, which lasts until the next reset; false consumes the
  /// end of the object. Keys of MessagePack and CBOR that are no strings are given as JSON texts: 1 as "1".
  virtual bool next_member(std::string_view& name) = 0;
  /// Skips the next value and returns its encoded bytes.
  virtual std::string_view skip() = 0;
  /// Consumes the next value and gives it as JSON text, which lasts until the next reset. Fails where it has none.
  virtual bool read_json(std::string_view& out);
  /// The next value as JSON text, for error messages and untyped copies, of a long one only the first `bytes_max`
  /// bytes; consumes nothing.
  virtual std::string json(std::size_t bytes_max = std::numeric_limits<std::size_t>::max()) = 0;
  /// The cursor's position, at a value, for `rewind`. Valid until the next reset.
  [[nodiscard]] virtual const char* mark() const noexcept = 0;
  virtual void rewind(const char* mark) noexcept = 0;

  /// Records that the next value is not what was expected, in place of an earlier failure. Always false.
  bool fail(std::string_view expected);
  /// Records a failure where no value is (it got "nothing"). Always false.
  bool fail_missing(std::string_view expected);
  /// Adds one outer step to the failure's path. Always false.
  bool failed_at(std::string_view member);
  bool failed_at(std::size_t position);
  [[nodiscard]] bool failed() const noexcept { return failure_ != nullptr; }
  /// Only after a failure.
  [[nodiscard]] const DecodeFailure& failure() const noexcept { return *failure_; }
  void clear_failure() noexcept { failure_.reset(); }
  /// Only after a failure, which is forgotten.
  [[nodiscard]] DecodeFailure take_failure() {
    DecodeFailure failure = std::move(*failure_);
    failure_.reset();
    return failure;
  }
  /// Records a failure that was taken. Always false.
  bool fail(DecodeFailure failure);
  /// Whether `bytes` of a failed alternative of a variant may be read again as the next alternative. False once, since
  /// the last reset, 16 times the text and 64 KiB have been read again: nested variants would take exponential time.
  bool may_reread(std::size_t bytes) noexcept {
    if (bytes > reread_left_) return false;
    reread_left_ -= bytes;
    return true;
  }
  /// Consumes the next value if it is an extension of that type, the form of a value that its type alone explains:
  /// packed (packed.hpp), or a protobuf message's own bytes. Else false, without a failure. The view lasts until the
  /// next reset.
  bool read_own_form(std::int8_t type, std::span<const std::byte>& data);
  /// Reads `value`, of which holds what reset says, if it is an array of one element that has that form. The reader has
  /// to be reset afterwards, whatever is returned.
  virtual bool read_array_of_own_form(std::string_view value, std::int8_t type, std::span<const std::byte>& data);
  /// Whether it has since this was asked last, so that the answer is to have such a form, too.
  [[nodiscard]] bool take_own_form() noexcept { return std::exchange(own_form_, false); }
  /// Whether this is the JsonReader, which dispatch calls directly.
  [[nodiscard]] bool is_json() const noexcept { return json_; }

 protected:
  explicit Reader(bool json = false) noexcept : json_(json) {}
  /// For reset: `bytes` is the size of the encoded value.
  void allow_rereading(std::size_t bytes) noexcept { reread_left_ = bytes * 16 + 65'536; }
  /// A value has been read that has the form of its own. Always true.
  bool took_own_form() noexcept { return own_form_ = true; }

 private:
  bool json_;
  bool own_form_ = false;
  std::size_t reread_left_ = 0;
  std::unique_ptr<DecodeFailure> failure_;
};

/// A push cursor that appends one encoded value to a Buffer. What the encoding cannot hold (NaN in JSON, integers
/// beyond 64 bits in others, strings that are not UTF-8) is remembered in `failed`, and the caller throws the
/// output away.
class Writer {
 public:
  static constexpr std::size_t kUnknownSize = std::numeric_limits<std::size_t>::max();

  virtual ~Writer() = default;

  /// Starts writing at the end of `out`, which outlives the writing.
  virtual void reset(Buffer& out) = 0;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  virtual void integer(std::int64_t value) = 0;
  virtual void unsigned_integer(std::uint64_t value) = 0;
  virtual void number(double value) = 0;
  /// The shortest text that reads back as the same float.
  virtual void number(float value) = 0;
  /// A number that is already valid JSON number text.
  virtual void number_text(std::string_view text) = 0;
  virtual void string(std::string_view utf8) = 0;
  virtual void bytes(std::span<const std::byte> data) = 0;
  /// Bytes with a type, as Reader::read_extension; JSON has a few of the types only.
  virtual void extension(std::int8_t type, std::span<const std::byte> data);
  /// The same for data in two parts, one behind the other.
  virtual void extension_in_parts(std::int8_t type, std::span<const std::byte> first,
                                  std::span<const std::byte> second);
  /// `size` elements follow, or kUnknownSize.
  virtual void begin_array(std::size_t size) = 0;
  virtual void end_array() = 0;
  virtual void begin_object(std::size_t size) = 0;
  virtual void key(std::string_view utf8) = 0;
  virtual void end_object() = 0;
  /// One value that is already valid JSON text; other codecs transcode it.
  virtual void json(std::string_view text) = 0;
  /// One value that a writer of this codec has written before; nothing is checked.
  virtual void encoded(std::string_view value) { json(value); }

  /// Until the next reset values go in the form that their type alone explains (Reader::read_own_form): protobuf
  /// messages as their own bytes, and the next value packed (packed.hpp) where `packs` is asked and it is of the type
  /// that `packing` is for; null for none.
  void use_own_form(const detail::ResultPacking* packing) noexcept {
    own_form_ = true;
    packing_ = packing;
  }
  [[nodiscard]] bool uses_own_form() const noexcept { return own_form_; }
  /// Writes `value`, which is of that type, as a packed one where that has been asked for; else false. Throws as
  /// append_packed.
  bool packs(const void* value, const TypeInfo& type) { return packing_ != nullptr && write_packed(value, type); }
  /// The same of an integer, of a width that the packing knows.
  bool packs_integer(std::int64_t value);

  /// Memory for the bytes of a value that are made before they are written; what it holds may be overwritten.
  [[nodiscard]] Buffer& scratch() noexcept { return scratch_; }

  /// Whether this is the JsonWriter.
  [[nodiscard]] virtual bool is_json() const noexcept { return false; }
  [[nodiscard]] bool failed() const noexcept { return !failure_.empty(); }
  /// Why the value cannot be encoded; empty when it can.
  [[nodiscard]] const std::string& failure() const noexcept { return failure_; }
  /// Records that what is being written cannot be encoded; the first reason is kept.
  void fail(std::string_view why) {
    if (failure_.empty()) failure_ = why;
  }

 protected:
  /// For reset.
  void forget() noexcept {
    packing_ = nullptr;
    own_form_ = false;
    if (failed()) [[unlikely]]
      failure_.clear();
  }

 private:
  bool write_packed(const void* value, const TypeInfo& type);

  std::string failure_;
  const detail::ResultPacking* packing_ = nullptr;
  bool own_form_ = false;
  Buffer scratch_;
};

/// How one value of an encoding ended.
enum class ScanStatus : std::uint8_t {
  complete,    ///< the value ends `offset` bytes from the start
  incomplete,  ///< the text so far is the beginning of a value
  malformed,   ///< the byte at `offset` cannot be part of a value
  too_deep,    ///< the bracket at `offset` nests deeper than allowed
};

struct Scan {
  ScanStatus status = ScanStatus::incomplete;
  std::size_t offset = 0;
};

/// An encoding of values. Stateless and shared; its readers and writers belong to one thread each.
class Codec {
 public:
  virtual ~Codec() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Validates the first value in `text`, behind which kPaddingBytes are readable, the first of them zero.
  [[nodiscard]] virtual Scan scan(std::string_view text, std::uint32_t depth_max) const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<Reader> reader() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Writer> writer() const = 0;
};

/// JSON text (RFC 8259).
[[nodiscard]] const Codec& json_codec() noexcept;
/// MessagePack, in the shortest form of everything. Its scan needs no padding.
[[nodiscard]] const Codec& msgpack_codec() noexcept;
/// CBOR (RFC 8949), in its preferred serialization. Its scan needs no padding.
[[nodiscard]] const Codec& cbor_codec() noexcept;
/// Protocol Buffers: the message Value of docs/wirecall.proto with its length in front. Only what is written as usual
/// scans: each field once and in the order of the numbers, and no number that is but text. Its scan needs no padding.
[[nodiscard]] const Codec& protobuf_codec() noexcept;

}  // namespace wirecall
