// See cache_key.hpp.
#include "rpc/cache_key.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "wirecall/registry.hpp"

namespace wirecall::rpc {

namespace {

// Each value begins with one of these.
enum class Tag : char {
  null,
  no,
  yes,
  integer,
  unsigned_integer,
  real,
  number_text,
  string,
  bytes,
  extension,
  array,
  object
};

void put_tag(Buffer& out, Tag tag) { out.push_back(static_cast<char>(tag)); }

template <class T>
void put_fixed(Buffer& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append({bytes, sizeof bytes});
}

void put_sized(Buffer& out, std::string_view bytes) {
  put_fixed(out, std::uint64_t{bytes.size()});
  out.append(bytes);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A double that is an integer is written as that where `alike`; -0.0 is none, since a function can tell it from 0.
void put_real(Buffer& out, double value, Numbers numbers) {
  constexpr double kEnd = 18446744073709551616.0;  // 2^64
  if (numbers == Numbers::as_decoded || std::trunc(value) != value || value < -kEnd / 2 || value >= kEnd ||
      (value == 0 && std::signbit(value))) {
    put_tag(out, Tag::real);
    return put_fixed(out, value);
  }
  if (value < kEnd / 2) {
    put_tag(out, Tag::integer);
    put_fixed(out, static_cast<std::int64_t>(value));
  } else {
    put_tag(out, Tag::unsigned_integer);
    put_fixed(out, static_cast<std::uint64_t>(value));
  }
}

void put_number(Buffer& out, const Value& value, Numbers numbers) {
  switch (value.number_kind()) {
    case Value::NumberKind::integer: put_tag(out, Tag::integer); return put_fixed(out, value.as_int());
    case Value::NumberKind::unsigned_integer:
      put_tag(out, Tag::unsigned_integer);
      return put_fixed(out, value.as_uint());
    case Value::NumberKind::real: return put_real(out, value.as_double(), numbers);
    default: put_tag(out, Tag::number_text); return put_sized(out, value.dump());
  }
}

void put_object(Buffer& out, const Value::Object& members, Numbers numbers) {
  std::vector<const Value::Member*> sorted;
  sorted.reserve(members.size());
  for (const Value::Member& member : members) sorted.push_back(&member);
  // Of members of one name the last counts, so their order does.
  std::ranges::sort(sorted, [](const Value::Member* a, const Value::Member* b) {
    const int order = a->first.compare(b->first);
    return order != 0 ? order < 0 : a < b;
  });
  put_tag(out, Tag::object);
  put_fixed(out, std::uint64_t{sorted.size()});
  for (const Value::Member* member : sorted) {
    put_sized(out, member->first);
    append_canonical(out, member->second, numbers);
  }
}

// Whether there is an object that may stand for something else in JSON, as {"$bytes":"..."} does, and not in other
// encodings.
bool holds_mark(const Value& value) {
  if (value.is_array()) return std::ranges::any_of(value.as_array(), holds_mark);
  if (!value.is_object()) return false;
  const Value::Object& members = value.as_object();
  return (!members.empty() && members.front().first.starts_with('$')) ||
         std::ranges::any_of(members, [](const Value::Member& member) { return holds_mark(member.second); });
}

// Whether the type is of that kind, of any type or known by a schema alone, or has parts that are.
bool is_or_holds(const TypeInfo& type, TypeKind kind, std::set<const TypeInfo*>& seen) {
  if (!seen.insert(&type).second) return false;
  if (type.kind == TypeKind::any || type.kind == kind || type.schema != nullptr || !type.definitions.empty())
    return true;
  return std::ranges::any_of(type.types, [&](const TypeInfo* part) { return is_or_holds(*part, kind, seen); }) ||
         std::ranges::any_of(type.members, [&](const MemberInfo& part) { return is_or_holds(*part.type, kind, seen); });
}

bool is_or_holds(const TypeInfo& type, TypeKind kind) {
  std::set<const TypeInfo*> seen;
  return is_or_holds(type, kind, seen);
}

// What an untyped parameter was given: one value, or for one that gathers all of them, with their names if any.
struct Given {
  std::vector<Value> values;
  std::vector<Value::Member> others;
};

bool decode_given(Reader& reader, void* argument) {
  Value value;
  if (!decode(reader, value)) return false;
  static_cast<Given*>(argument)->values.push_back(std::move(value));
  return true;
}

bool decode_other(Reader& reader, void* argument, std::string_view name) {
  std::string kept{name};
  Value value;
  if (!decode(reader, value)) return false;
  static_cast<Given*>(argument)->others.emplace_back(std::move(kept), std::move(value));
  return true;
}

bool accepts_any(Reader& reader) {
  static_cast<void>(reader.skip());
  return true;
}

// The types of untyped parameters: of those for which 1 and 1.0 are the same, and of the others.
constexpr TypeInfo kAlike;
constexpr TypeInfo kAsDecoded;

// Whether a function can tell 1 from 1.0 in a value of the type: where it may be an integer or a double.
bool tells_reals(const TypeInfo& type) { return is_or_holds(type, TypeKind::one_of); }

}  // namespace

bool is_ambiguous(const TypeInfo& type) { return is_or_holds(type, TypeKind::map); }

std::vector<detail::ArgumentType> untyped(std::span<const detail::ArgumentType> arguments) {
  std::vector<detail::ArgumentType> made{arguments.begin(), arguments.end()};
  for (detail::ArgumentType& argument : made) {
    argument.decode = &decode_given;
    argument.accepts = &accepts_any;
    argument.type = tells_reals(*argument.type) ? &kAsDecoded : &kAlike;
    argument.integer_bytes = 0;
    if (argument.decode_other != nullptr) argument.decode_other = &decode_other;
  }
  return made;
}

void append_canonical(Buffer& out, const Value& value, Numbers numbers) {
  switch (value.kind()) {
    case ValueKind::null: return put_tag(out, Tag::null);
    case ValueKind::boolean: return put_tag(out, value.as_bool() ? Tag::yes : Tag::no);
    case ValueKind::number: return put_number(out, value, numbers);
    case ValueKind::string: put_tag(out, Tag::string); return put_sized(out, value.as_string());
    case ValueKind::bytes: put_tag(out, Tag::bytes); return put_sized(out, text_of(value.as_bytes()));
    case ValueKind::extension: {
      const Extension extension = value.as_extension();
      put_tag(out, Tag::extension);
      out.push_back(static_cast<char>(extension.type));
      return put_sized(out, text_of(extension.data));
    }
    case ValueKind::array:
      put_tag(out, Tag::array);
      put_fixed(out, std::uint64_t{value.size()});
      for (const Value& element : value.as_array()) append_canonical(out, element, numbers);
      return;
    case ValueKind::object: return put_object(out, value.as_object(), numbers);
  }
}

CacheKeyWriter::CacheKeyWriter() : writer_(msgpack_codec().writer()), reader_(msgpack_codec().reader()) {}

std::string_view CacheKeyWriter::write(Call& call, detail::WriteCacheKey write, bool sorted) {
  encoded_.clear();
  writer_->reset(encoded_);
  writer_->use_own_form(nullptr);  // of protobuf messages all is looked at, fields that nobody knows as well
  // An array of all but the count of its elements, so that a method without parameters has a key, too.
  encoded_.push_back('\xDC');
  if (!write(call, *writer_)) return {};
  if (!sorted) return encoded_.view();
  canonical_.clear();
  canonical_.push_back('\xDC');
  std::string_view rest = encoded_.padded().substr(1);
  while (!rest.empty()) {
    reader_->reset(rest);
    const std::size_t bytes = reader_->skip().size();
    reader_->reset(rest.substr(0, bytes));
    Value value;
    if (!decode(*reader_, value)) return {};
    append_canonical(canonical_, value, Numbers::as_decoded);
    rest.remove_prefix(bytes);
  }
  return canonical_.view();
}

std::string_view CacheKeyWriter::write_untyped(Call& call, const Method& untyped) {
  if (call.params().size() >= detail::kLongParams) return {};
  std::vector<Given> given(untyped.signature().arguments.size());
  std::vector<void*> pointers;
  pointers.reserve(given.size() + 1);
  for (Given& argument : given) pointers.push_back(&argument);
  pointers.push_back(nullptr);
  if (!detail::decode_params(call.params(), untyped, call.param_readers(), pointers.data())) return {};
  canonical_.clear();
  canonical_.push_back('\xDC');
  bool marked = false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Numbers numbers = untyped.signature().arguments[i].type == &kAlike ? Numbers::alike : Numbers::as_decoded;
    const auto append = [&](const Value& part) {
      append_canonical(canonical_, part, numbers);
      marked = marked || holds_mark(part);
    };
    append(Value{std::move(given[i].values)});
    append(Value{Value::Object{std::move(given[i].others)}});
  }
  if (marked) canonical_.push_back(call.message().is_json() ? 'j' : 'b');
  return canonical_.view();
}

}  // namespace wirecall::rpc
