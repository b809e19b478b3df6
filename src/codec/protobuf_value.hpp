// Values of JSON as the message Value of docs/wirecall.proto, by the one table of docs/wire.md, "Values beyond JSON":
// both directions. Nothing recurses; the time is linear in what is read and written, and parts that protobuf would
// merge are joined in at most so many bytes as the JSON may have. Both keep their memory for the next value.
// One owner, one thread each.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "codec/codec_arena.hpp"
#include "codec/json_counts.hpp"
#include "codec/json_reader.hpp"
#include "codec/json_writer.hpp"
#include "codec/protobuf_wire.hpp"
#include "codec/transcode.hpp"

namespace wirecall::codec {

/// The fields of a Value, of which the last on the wire counts.
enum class ProtobufKind : std::uint8_t {
  none,  ///< which stands for null as well
  null,
  boolean,
  integer,
  unsigned_integer,
  number,
  text,
  binary,
  list,
  map,
  digits,
  npy,
  image,
  packed,
  message,
};

[[nodiscard]] constexpr std::uint32_t field_of(ProtobufKind kind) noexcept { return static_cast<std::uint32_t>(kind); }

// Of List and Map, and of Member.
inline constexpr std::uint32_t kElementField = 1;
inline constexpr std::uint32_t kNameField = 1;
inline constexpr std::uint32_t kValueField = 2;

/// The fields that hold extensions.
struct ExtensionField {
  ProtobufKind kind;
  std::int8_t type;
};
inline constexpr std::array kExtensionFields{
    ExtensionField{ProtobufKind::npy, kNpyExtension}, ExtensionField{ProtobufKind::image, kImageExtension},
    ExtensionField{ProtobufKind::packed, kPackedExtension}, ExtensionField{ProtobufKind::message, kMessageExtension}};

[[nodiscard]] constexpr bool is_extension(ProtobufKind kind) noexcept {
  return std::ranges::find(kExtensionFields, kind, &ExtensionField::kind) != kExtensionFields.end();
}
/// Of one that is.
[[nodiscard]] constexpr std::int8_t extension_of(ProtobufKind kind) noexcept {
  return std::ranges::find(kExtensionFields, kind, &ExtensionField::kind)->type;
}
/// `none` for one that has no field.
[[nodiscard]] constexpr ProtobufKind kind_of_extension(std::int8_t type) noexcept {
  const auto* const found = std::ranges::find(kExtensionFields, type, &ExtensionField::type);
  return found == kExtensionFields.end() ? ProtobufKind::none : found->kind;
}
/// Bytes and extensions: in JSON they would be objects.
[[nodiscard]] constexpr bool is_opaque(ProtobufKind kind) noexcept {
  return kind == ProtobufKind::binary || is_extension(kind);
}

class ProtobufToJson {
 public:
  enum class Status : std::uint8_t {
    done,
    no_form,    ///< only that; all else is valid
    malformed,  ///< not of the wire format, no UTF-8, or digits that are no number
    too_deep,
    too_large,
  };
  struct Limits {
    std::uint32_t depth_max;
    std::size_t bytes_max;  ///< of the JSON
  };

  /// What `join` returned is free again.
  void begin_message(std::size_t joined_bytes_max) {
    arena_.rewind();
    joinable_bytes_ = joined_bytes_max;
  }
  /// The content of an embedded message: of the fields of that number in `message` that are one, as protobuf merges
  /// them. `first` is the first of them, `from` where it begins. Nothing where that is too much.
  [[nodiscard]] std::optional<std::string_view> join(std::string_view from, std::uint32_t number,
                                                     std::string_view first);
  /// What a value is, whose fields have not been checked.
  [[nodiscard]] static ProtobufKind kind_of(std::string_view value) noexcept;
  /// Appends the JSON text of one value to `out`. What was appended in vain stays for the caller to cut off.
  Status operator()(std::string_view value, Buffer& out, const Limits& limits, Names names = Names::data);

  /// What the first member of that name holds in a map that has been converted; nothing where there is none.
  [[nodiscard]] std::optional<std::string_view> find_member(std::string_view map_value, std::string_view wanted);

 private:
  enum class Closing : std::uint8_t { array, map, wrapped_map };
  struct Level {
    protobuf_wire::FieldReader fields;
    Closing closing;
  };
  struct Found {
    ProtobufKind kind = ProtobufKind::none;
    protobuf_wire::Field field = {};  ///< the first of those that are merged, else the last
    const char* end = nullptr;
    bool malformed = false;
  };
  struct Member {
    std::string_view name;
    std::string_view value;
  };

  static Found find(std::string_view value) noexcept;
  Status value(std::string_view value, bool is_data);
  Status scalar(const Found& found);
  Status begin_map(std::string_view map, bool is_data);
  Status read_member(std::string_view member, Member& out);

  json::JsonWriter writer_;
  std::vector<Level> levels_;
  Arena arena_;
  std::size_t joinable_bytes_ = 0;
  std::uint32_t depth_max_ = 0;
  bool no_form_ = false;
};

class JsonToProtobuf {
 public:
  /// Writes what one valid JSON text, with padding behind it, is as the Value in that field of the message that `out`
  /// is in. Everything has a form.
  void operator()(std::string_view json, std::uint32_t field, protobuf_wire::MessageWriter& out,
                  Names names = Names::data);

 private:
  enum class Open : std::uint8_t { array, object };
  struct Level {
    Open open;
    bool in_member = false;  ///< of the map a member has begun
    bool at_value = false;   ///< whose value comes next
    bool wrapped = false;    ///< the end of its wrapper follows its own
  };

  bool next(protobuf_wire::MessageWriter& out);
  void begin_member(std::string_view name, protobuf_wire::MessageWriter& out);
  void end(protobuf_wire::MessageWriter& out);
  void write_value(std::uint32_t field, protobuf_wire::MessageWriter& out, bool is_data);
  void begin(ProtobufKind kind, std::uint32_t field, protobuf_wire::MessageWriter& out, const Level& level);
  void write_object(std::uint32_t field, protobuf_wire::MessageWriter& out, bool is_data);
  bool unwrap(std::string_view& name);
  bool write_base64(std::string_view name, const char* start, std::uint32_t field, protobuf_wire::MessageWriter& out);

  json::JsonReader reader_;
  JsonCounts counts_;
  std::vector<Level> levels_;
};

}  // namespace wirecall::codec
