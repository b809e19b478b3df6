// Value: building, reading, writing and comparing. Recursion goes as deep as the value nests, at most kDepthMax levels
// for what was parsed.
#include "wirecall/value.hpp"

#include <algorithm>
#include <cmath>

#include "codec/base64.hpp"
#include "codec/codec_number.hpp"
#include "codec/extensions.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall {

constexpr std::size_t kCertainDigits = 15;  // every decimal of so many digits survives a double

/// What is left of one value of two that are compared by name: the last member of each name, sorted by name.
std::vector<const Value::Member*> effective_members(const Value::Object& members) {
  std::vector<const Value::Member*> sorted;
  sorted.reserve(members.size());
  for (const Value::Member& member : members) sorted.push_back(&member);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    const int order = a->first.compare(b->first);
    return order != 0 ? order < 0 : a < b;  // neighbours in one vector, so the later one is at the higher address
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i + 1 < sorted.size() && sorted[i]->first == sorted[i + 1]->first) continue;
    sorted[kept++] = sorted[i];
  }
  sorted.resize(kept);
  return sorted;
}

static const Value& null_value() noexcept {
  static const Value null;
  return null;
}

Value::Value() noexcept = default;
Value::Value(std::nullptr_t) noexcept {}
Value::Value(bool value) noexcept : content_(value) {}
Value::Value(double value) noexcept : content_(value) {}
Value::Value(const char* utf8) : content_(std::string{utf8}) {}
Value::Value(std::string_view utf8) : content_(std::string{utf8}) {}
Value::Value(std::string utf8) noexcept : content_(std::move(utf8)) {}
Value::Value(Bytes bytes) noexcept : content_(std::move(bytes)) {}
Value::Value(Extension extension) noexcept : content_(std::move(extension)) {}
Value::Value(Array elements) noexcept : content_(std::move(elements)) {}
Value::Value(Object members) noexcept : content_(std::move(members)) {}
Value::Value(std::initializer_list<Member> members) : content_(Object(members)) {}
Value Value::array(std::initializer_list<Value> elements) { return Value{Array(elements)}; }

Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

void Value::set(std::int64_t value) noexcept { content_ = value; }

void Value::set(std::uint64_t value) noexcept {
  if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    content_ = static_cast<std::int64_t>(value);
  } else {
    content_ = value;
  }
}

Value Value::number(std::string_view text) {
  Value out;
  if (text.find_first_of(".eE") == std::string_view::npos && text != "-0") {
    std::int64_t integer = 0;
    std::uint64_t unsigned_integer = 0;
    if (codec::parse_integer(text, integer) == codec::Integrality::exact) {
      out.set(integer);
    } else if (codec::parse_integer(text, unsigned_integer) == codec::Integrality::exact) {
      out.set(unsigned_integer);
    } else {
      out.content_ = NumberText{std::string{text}};
    }
    return out;
  }
  const bool is_short = text.size() <= kCertainDigits && text.find_first_of("eE") == std::string_view::npos;
  double real = 0;
  if (codec::parse_double(text, real) && (is_short || codec::same_digits(text, real))) {
    out.content_ = real;
  } else {
    out.content_ = NumberText{std::string{text}};
  }
  return out;
}

std::expected<Value, Error> Value::parse(std::string_view json, std::uint32_t depth_max) {
  return from_json<Value>(json, depth_max);
}

std::string Value::dump() const { return to_json(*this); }

ValueKind Value::kind() const noexcept {
  constexpr ValueKind kKinds[] = {ValueKind::null,   ValueKind::boolean, ValueKind::number,   ValueKind::number,
                                  ValueKind::number, ValueKind::number,  ValueKind::string,   ValueKind::bytes,
                                  ValueKind::array,  ValueKind::object,  ValueKind::extension};
  return kKinds[content_.index()];
}

Value::NumberKind Value::number_kind() const noexcept {
  constexpr std::size_t kFirst = 2;  // std::int64_t in Content
  const std::size_t index = content_.index();
  return kind() == ValueKind::number ? static_cast<NumberKind>(index - kFirst + 1) : NumberKind::none;
}

void Value::refuse(std::string_view expected) const {
  // A reader over the value's own text words the failure as a decode would.
  Buffer text;
  const std::unique_ptr<Writer> writer = json_codec().writer();
  writer->reset(text);
  write(*writer, *this);
  const std::unique_ptr<Reader> reader = json_codec().reader();
  reader->reset(text.padded());
  reader->fail(expected);
  throw LocalError{decode_error(*reader)};
}

bool Value::as_bool() const {
  if (const bool* value = std::get_if<bool>(&content_)) return *value;
  refuse("boolean");
}

std::int64_t Value::as_int() const {
  if (const auto* value = std::get_if<std::int64_t>(&content_)) return *value;
  const auto* text = std::get_if<NumberText>(&content_);
  std::int64_t out = 0;
  if (text != nullptr && codec::parse_integer(text->text, out) == codec::Integrality::exact) return out;
  // Both bounds are exact as doubles, and every double between them fits.
  if (const auto* real = std::get_if<double>(&content_);
      real != nullptr && *real == std::trunc(*real) && *real >= -0x1p63 && *real < 0x1p63) {
    return static_cast<std::int64_t>(*real);
  }
  refuse("integer from -9223372036854775808 to 9223372036854775807");
}

std::uint64_t Value::as_uint() const {
  if (const auto* value = std::get_if<std::uint64_t>(&content_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&content_); value != nullptr && *value >= 0) {
    return static_cast<std::uint64_t>(*value);
  }
  const auto* text = std::get_if<NumberText>(&content_);
  std::uint64_t out = 0;
  if (text != nullptr && codec::parse_integer(text->text, out) == codec::Integrality::exact) return out;
  if (const auto* real = std::get_if<double>(&content_);
      real != nullptr && *real == std::trunc(*real) && *real >= 0 && *real < 0x1p64) {
    return static_cast<std::uint64_t>(*real);
  }
  refuse("integer from 0 to 18446744073709551615");
}

double Value::as_double() const {
  if (const auto* value = std::get_if<double>(&content_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&content_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&content_)) return static_cast<double>(*value);
  double out = 0;
  const auto* text = std::get_if<NumberText>(&content_);
  if (text != nullptr && codec::parse_double(text->text, out)) return out;
  refuse("number from -1.7976931348623157e308 to 1.7976931348623157e308");
}

const std::string& Value::as_string() const {
  if (const auto* value = std::get_if<std::string>(&content_)) return *value;
  refuse("string");
}

Value::Bytes Value::as_bytes() const {
  if (const auto* value = std::get_if<Bytes>(&content_)) return *value;
  std::string_view name;
  if (auto bytes = base64_member(name); bytes && name == "$bytes") return *std::move(bytes);
  refuse(R"({"$bytes":"<base64>"})");
}

Extension Value::as_extension() const {
  if (const auto* value = std::get_if<Extension>(&content_)) return *value;
  std::string_view name;
  if (auto bytes = base64_member(name)) {
    if (const std::optional<std::int8_t> type = codec::extension_named(name)) return {*type, *std::move(bytes)};
  }
  refuse(R"({"$npy":"<base64>"} or {"$image":"<base64>"})");
}

std::optional<Value::Bytes> Value::base64_member(std::string_view& name) const {
  const auto* members = std::get_if<Object>(&content_);
  if (members == nullptr || members->size() != 1) return std::nullopt;
  const auto* text = std::get_if<std::string>(&members->front().second.content_);
  if (text == nullptr) return std::nullopt;
  Bytes bytes(text->size() / 4 * 3);
  const std::size_t size = codec::base64_decode(*text, bytes.data());
  if (size == codec::kNotBase64) return std::nullopt;
  bytes.resize(size);
  name = members->front().first;
  return bytes;
}

const Value::Array& Value::as_array() const {
  if (const auto* value = std::get_if<Array>(&content_)) return *value;
  refuse("array");
}

Value::Array& Value::as_array() { return const_cast<Array&>(std::as_const(*this).as_array()); }

const Value::Object& Value::as_object() const {
  if (const auto* value = std::get_if<Object>(&content_)) return *value;
  refuse("object");
}

Value::Object& Value::as_object() { return const_cast<Object&>(std::as_const(*this).as_object()); }

std::size_t Value::size() const noexcept {
  if (const auto* elements = std::get_if<Array>(&content_)) return elements->size();
  if (const auto* members = std::get_if<Object>(&content_)) return members->size();
  return 0;
}

const Value* Value::find(std::string_view name) const noexcept {
  const auto* members = std::get_if<Object>(&content_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->rbegin(), members->rend(), [&](const auto& m) { return m.first == name; });
  return found == members->rend() ? nullptr : &found->second;
}

Value* Value::find(std::string_view name) noexcept { return const_cast<Value*>(std::as_const(*this).find(name)); }

const Value& Value::at(std::string_view name) const {
  if (const Value* value = find(name)) return *value;
  refuse("object with the member " + std::string{name});
}

const Value& Value::at(std::size_t position) const {
  const auto* elements = std::get_if<Array>(&content_);
  if (elements != nullptr && position < elements->size()) return (*elements)[position];
  refuse("array of at least " + std::to_string(position + 1) + " elements");
}

Value& Value::operator[](std::string_view name) {
  if (is_null()) content_ = Object{};
  if (Value* value = find(name)) return *value;
  return as_object().emplace_back(std::string{name}, Value{}).second;
}

const Value& Value::operator[](std::string_view name) const noexcept {
  const Value* value = find(name);
  return value == nullptr ? null_value() : *value;
}

void Value::push_back(Value element) {
  if (is_null()) content_ = Array{};
  as_array().push_back(std::move(element));
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case ValueKind::null: return true;
    case ValueKind::number: {
      if (a.content_.index() == b.content_.index() && !std::holds_alternative<Value::NumberText>(a.content_)) break;
      // Different forms: compare what their texts mean. NaN and infinity have none and equal nothing of another form.
      const auto has_text = [](const Value& value) {
        const auto* real = std::get_if<double>(&value.content_);
        return real == nullptr || std::isfinite(*real);
      };
      return has_text(a) && has_text(b) && codec::same_number(a.dump(), b.dump());
    }
    case ValueKind::object: {
      const auto members_a = effective_members(std::get<Value::Object>(a.content_));
      const auto members_b = effective_members(std::get<Value::Object>(b.content_));
      return std::equal(members_a.begin(), members_a.end(), members_b.begin(), members_b.end(),
                        [](const auto* x, const auto* y) { return *x == *y; });
    }
    default: break;
  }
  return std::visit(
      [&]<class T>(const T& content) {
        if constexpr (std::is_same_v<T, Value::NumberText> || std::is_same_v<T, Value::Object>) {
          return false;  // answered above
        } else {
          return content == std::get<T>(b.content_);
        }
      },
      a.content_);
}

bool Value::read(Reader& reader, Value& out) {
  switch (reader.kind()) {
    case ValueKind::null: out.content_ = std::monostate{}; return reader.read_null();
    case ValueKind::boolean: return reader.read_bool(out.content_.emplace<bool>());
    case ValueKind::number: {
      std::string_view text;
      if (reader.read_number_text(text)) {
        out = number(text);
        return true;
      }
      // NaN and infinities, which only binary encodings have, are numbers without a text.
      reader.clear_failure();
      return reader.read_double(out.content_.emplace<double>());
    }
    case ValueKind::string: {
      std::string_view text;
      if (!reader.read_string(text)) return false;
      out.content_.emplace<std::string>(text);
      return true;
    }
    case ValueKind::bytes: {
      std::span<const std::byte> bytes;
      if (!reader.read_bytes(bytes)) return false;
      out.content_.emplace<Bytes>(bytes.begin(), bytes.end());
      return true;
    }
    case ValueKind::extension: return Adapt<Extension>::decode(reader, out.content_.emplace<Extension>());
    case ValueKind::array: {
      Array& elements = out.content_.emplace<Array>();
      if (!reader.begin_array()) return false;
      while (reader.next_element()) {
        if (!read(reader, elements.emplace_back())) return false;
      }
      return true;
    }
    case ValueKind::object: {
      Object& members = out.content_.emplace<Object>();
      if (!reader.begin_object()) return false;
      std::string_view name;
      while (reader.next_member(name)) {
        if (!read(reader, members.emplace_back(std::string{name}, Value{}).second)) return false;
      }
      return true;
    }
  }
  return false;
}

void Value::write(Writer& writer, const Value& value) {
  struct {
    void operator()(std::monostate) const { to.null(); }
    void operator()(bool content) const { to.boolean(content); }
    void operator()(std::int64_t content) const { to.integer(content); }
    void operator()(std::uint64_t content) const { to.unsigned_integer(content); }
    void operator()(double content) const { to.number(content); }
    void operator()(const NumberText& content) const { to.number_text(content.text); }
    void operator()(const std::string& content) const { to.string(content); }
    void operator()(const Bytes& content) const { to.bytes(content); }
    void operator()(const Extension& content) const { Adapt<Extension>::encode(to, content); }
    void operator()(const Array& elements) const {
      to.begin_array(elements.size());
      for (const Value& element : elements) write(to, element);
      to.end_array();
    }
    void operator()(const Object& members) const {
      to.begin_object(members.size());
      for (const auto& [name, member] : members) {
        to.key(name);
        write(to, member);
      }
      to.end_object();
    }
    Writer& to;
  } const content{writer};
  std::visit(content, value.content_);
}

bool Adapt<Value>::decode(Reader& reader, Value& out) { return Value::read(reader, out); }
void Adapt<Value>::encode(Writer& writer, const Value& value) { Value::write(writer, value); }
std::string Adapt<Value>::schema() { return "{}"; }

bool Adapt<Extension>::decode(Reader& reader, Extension& out) {
  std::span<const std::byte> data;
  if (!reader.read_extension(out.type, data)) return false;
  out.data.assign(data.begin(), data.end());
  return true;
}
void Adapt<Extension>::encode(Writer& writer, const Extension& value) { writer.extension(value.type, value.data); }
std::string Adapt<Extension>::schema() {
  return R"({"type":"object","minProperties":1,"maxProperties":1,"additionalProperties":false,"properties":)"
         R"({"$npy":{"type":"string","contentEncoding":"base64"},"$image":{"type":"string","contentEncoding":"base64"}}})";
}

bool Adapt<Raw>::decode(Reader& reader, Raw& out) {
  if (!reader.is_json()) return reader.read_json(out.text);
  out.text = reader.skip();
  return true;
}
void Adapt<Raw>::encode(Writer& writer, const Raw& value) { writer.json(value.text); }
std::string Adapt<Raw>::schema() { return "{}"; }

}  // namespace wirecall
