// Value: any JSON value, for data whose type is not known at compile time. Raw: a value that is passed on unparsed.
// Rest: the remaining positional parameters of a call. All three decode and encode as any type (reflect.hpp).
//
// Copies are deep, and comparison is by content. An object keeps its members in order, repeated names too, so that a
// received object can be sent unchanged; a look-up finds the last member of a name. A number is exact: integers of 64
// bits, and text for a number that neither an integer nor a double holds with all its digits (1e400, thirty digits).
// Binary data is bytes in MessagePack; in JSON the object {"$bytes":"<base64>"} stays an object, so that it is relayed
// unchanged, and as_bytes reads both. The same holds for extensions and {"$npy":...}. Not thread-safe, like any
// container.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

/// Bytes with a type: an extension of MessagePack. In JSON it is {"$npy":"<base64>"} or {"$image":"<base64>"}, and a
/// timestamp a string of RFC 3339; other types have no form there.
struct Extension {
  std::int8_t type = 0;  ///< kNpyExtension, kImageExtension, kTimestampExtension or another
  std::vector<std::byte> data;

  bool operator==(const Extension&) const = default;
};

class Value {
 public:
  using Array = std::vector<Value>;
  using Member = std::pair<std::string, Value>;
  using Object = std::vector<Member>;
  using Bytes = std::vector<std::byte>;

  /// What a number is held as.
  enum class NumberKind : std::uint8_t {
    none,              ///< no number
    integer,           ///< std::int64_t
    unsigned_integer,  ///< std::uint64_t, only above std::int64_t's range
    real,              ///< double
    text,              ///< its own text, which none of the others holds
  };

  Value() noexcept;  ///< null
  Value(std::nullptr_t) noexcept;
  Value(bool value) noexcept;
  template <std::integral T>
    requires(!std::same_as<T, bool> && !std::same_as<T, char>)
  Value(T value) noexcept : Value(std::in_place_type<T>, value) {}
  Value(double value) noexcept;
  Value(const char* utf8);
  Value(std::string_view utf8);
  Value(std::string utf8) noexcept;
  Value(Bytes bytes) noexcept;
  Value(Extension extension) noexcept;
  Value(Array elements) noexcept;
  Value(Object members) noexcept;
  /// An object: Value{{"name", "Ada"}, {"born", 1815}}.
  Value(std::initializer_list<Member> members);
  /// An array: Value::array({1, "two", nullptr}).
  [[nodiscard]] static Value array(std::initializer_list<Value> elements);
  /// A number by its JSON text, held in the narrowest way that keeps it. The text is trusted.
  [[nodiscard]] static Value number(std::string_view text);

  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  /// A whole JSON text: -32700 when it is not one.
  [[nodiscard]] static std::expected<Value, Error> parse(std::string_view json,
                                                         std::uint32_t depth_max = Limits{}.depth);
  /// Compact JSON text. Throws LocalError -32603 where to_json does.
  [[nodiscard]] std::string dump() const;

  [[nodiscard]] ValueKind kind() const noexcept;
  [[nodiscard]] NumberKind number_kind() const noexcept;
  [[nodiscard]] bool is_null() const noexcept { return kind() == ValueKind::null; }
  [[nodiscard]] bool is_bool() const noexcept { return kind() == ValueKind::boolean; }
  [[nodiscard]] bool is_number() const noexcept { return kind() == ValueKind::number; }
  [[nodiscard]] bool is_string() const noexcept { return kind() == ValueKind::string; }
  [[nodiscard]] bool is_bytes() const noexcept { return kind() == ValueKind::bytes; }
  [[nodiscard]] bool is_extension() const noexcept { return kind() == ValueKind::extension; }
  [[nodiscard]] bool is_array() const noexcept { return kind() == ValueKind::array; }
  [[nodiscard]] bool is_object() const noexcept { return kind() == ValueKind::object; }

  /// Returns the content. A Value of another kind throws LocalError -32602, whose data says what was expected and what
  /// was there; as_int and as_uint also take doubles and texts that are exactly integral and in range, as decoding
  /// does; as_bytes also takes {"$bytes":"<base64>"}, as_extension {"$npy":"<base64>"} and {"$image":"<base64>"}.
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_int() const;
  [[nodiscard]] std::uint64_t as_uint() const;
  [[nodiscard]] double as_double() const;
  [[nodiscard]] const std::string& as_string() const;
  [[nodiscard]] Bytes as_bytes() const;
  [[nodiscard]] Extension as_extension() const;
  [[nodiscard]] const Array& as_array() const;
  [[nodiscard]] Array& as_array();
  [[nodiscard]] const Object& as_object() const;
  [[nodiscard]] Object& as_object();

  /// The number of elements or members; 0 for other kinds.
  [[nodiscard]] std::size_t size() const noexcept;
  /// The last member of that name, or null when there is none or this is no object.
  [[nodiscard]] const Value* find(std::string_view name) const noexcept;
  [[nodiscard]] Value* find(std::string_view name) noexcept;
  /// As find, but a missing member throws LocalError -32602.
  [[nodiscard]] const Value& at(std::string_view name) const;
  /// The element at a position; one past the end throws LocalError -32602.
  [[nodiscard]] const Value& at(std::size_t position) const;
  /// The member of that name, added as null when there is none. A null Value becomes an object; one of another kind
  /// throws LocalError -32602.
  Value& operator[](std::string_view name);
  /// As find, but a missing member reads as null.
  const Value& operator[](std::string_view name) const noexcept;
  /// Appends an element. A null Value becomes an array; one of another kind throws LocalError -32602.
  void push_back(Value element);

  /// Numbers are equal when their values are, objects when the same names have equal values in whatever order.
  friend bool operator==(const Value& a, const Value& b);

 private:
  struct NumberText {
    std::string text;
  };
  using Content = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, NumberText, std::string,
                               Bytes, Array, Object, Extension>;

  template <class T>
  Value(std::in_place_type_t<T>, T value) noexcept {
    if constexpr (std::is_signed_v<T>) {
      set(static_cast<std::int64_t>(value));
    } else {
      set(static_cast<std::uint64_t>(value));
    }
  }
  void set(std::int64_t value) noexcept;
  void set(std::uint64_t value) noexcept;
  [[noreturn]] void refuse(std::string_view expected) const;
  static bool read(Reader& reader, Value& out);
  static void write(Writer& writer, const Value& value);
  /// The base64 of an object whose only member it is, its name in `name`.
  [[nodiscard]] std::optional<Bytes> base64_member(std::string_view& name) const;

  friend struct Adapt<Value>;

  Content content_;
};

/// A value as unparsed JSON text. Decoding it from JSON copies nothing; encoding it writes its bytes without the white
/// space between tokens. MessagePack is converted in both directions. It refers to the message that it was decoded
/// from, and is valid as long as that. `text` has to be one valid JSON value; that is not checked.
struct Raw {
  std::string_view text = "null";
};

/// The last parameter of a handler: all positional params from there on. Up to 8 of them need no heap memory.
template <class T>
class Rest {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  Rest() {}  // NOLINT(modernize-use-equals-default): `= default` would let {} clear all of it first

  void push_back(T value) {
    if (size_ < kInline) {
      few_[size_] = std::move(value);
    } else {
      if (size_ == kInline) many_.assign(std::make_move_iterator(few_), std::make_move_iterator(few_ + kInline));
      many_.push_back(std::move(value));
    }
    ++size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* data() noexcept { return size_ <= kInline ? few_ : many_.data(); }
  [[nodiscard]] const T* data() const noexcept { return size_ <= kInline ? few_ : many_.data(); }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data()[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + size_; }

 private:
  static constexpr std::size_t kInline = 8;

  std::size_t size_ = 0;
  T few_[kInline]{};
  std::vector<T> many_;  ///< all of them, once there are more than kInline
};

template <>
struct Adapt<Value> {
  static bool decode(Reader& reader, Value& out);
  static void encode(Writer& writer, const Value& value);
  static std::string schema();
};

template <>
struct Adapt<Extension> {
  static bool decode(Reader& reader, Extension& out);
  static void encode(Writer& writer, const Extension& value);
  static constexpr std::string_view name = "an extension";
  static std::string schema();
};

template <>
struct Adapt<Raw> {
  static constexpr bool borrows = true;
  static bool decode(Reader& reader, Raw& out);
  static void encode(Writer& writer, const Raw& value);
  static std::string schema();
};

}  // namespace wirecall
