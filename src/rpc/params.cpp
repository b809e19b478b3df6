// Positional and named params, defaults filled in: the untyped half of the typed edge (detail/bind.hpp).
#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/edit_distance.hpp"
#include "base/short_names.hpp"
#include "codec/json_reader.hpp"
#include "wirecall/detail/bind.hpp"
#include "wirecall/detail/spares.hpp"
#include "wirecall/packing.hpp"
#include "wirecall/registry.hpp"

namespace wirecall::detail {

// One parameter that nobody gave: an optional one stays empty, a default is decoded, anything else is missing.
static bool fill(const Method& method, ParamReaders& readers, void* argument, std::size_t i) {
  const ArgumentType& type = method.signature().arguments[i];
  const std::string_view json = method.params()[i].default_json();
  if (!json.empty()) {
    Reader& defaults = readers.of_default(i);
    defaults.reset(json);
    if (type.decode(defaults, argument)) return true;
    defaults.clear_failure();
  } else if (type.optional) {
    return true;
  }
  readers.reader->fail_missing(describe(*type.type));
  return readers.reader->failed_at(method.params()[i].name());
}

static bool fill_missing(const Method& method, ParamReaders& readers, void* const* arguments, std::uint64_t given) {
  const auto types = method.signature().arguments;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if ((given >> i) & 1 || types[i].gathers()) continue;
    if (!fill(method, readers, arguments[i], i)) return false;
  }
  return true;
}

// For any codec; below, for JSON, whose reader is known and of which a signed integer needs no call.
static inline bool decode_one(Reader& reader, const ArgumentType& type, void* argument) {
  return type.decode(reader, argument);
}

[[gnu::always_inline]] static inline bool decode_one(json::JsonReader& reader, const ArgumentType& type,
                                                     void* argument) {
  if (type.integer_bytes == 0) return type.decode(reader, argument);
  std::int64_t value;
  if (!reader.read_int(type.type->minimum, static_cast<std::int64_t>(type.type->maximum), value)) return false;
  switch (type.integer_bytes) {
    case 8: std::memcpy(argument, &value, 8); break;
    case 4: {
      const auto narrow = static_cast<std::int32_t>(value);
      std::memcpy(argument, &narrow, 4);
      break;
    }
    case 2: {
      const auto narrow = static_cast<std::int16_t>(value);
      std::memcpy(argument, &narrow, 2);
      break;
    }
    default: {
      const auto narrow = static_cast<std::int8_t>(value);
      std::memcpy(argument, &narrow, 1);
    }
  }
  return true;
}

// What is given, and which parameters that were: bit i for the one at i, but for a Rest.
template <class R>
static bool decode_positional(const Method& method, R& reader, void* const* arguments, std::uint64_t& given) {
  const auto types = method.signature().arguments;
  static_cast<void>(reader.begin_array());
  std::size_t i = 0;
  std::size_t count = 0;
  for (std::size_t position = 0; reader.next_element(); ++position) {
    while (i != types.size() && types[i].named_only) ++i;
    if (i == types.size() || types[i].decode_other != nullptr) [[unlikely]] {
      reader.fail("nothing");
      return reader.failed_at(position);
    }
    if (!decode_one(reader, types[i], arguments[i])) [[unlikely]] {
      if (types[i].rest) return reader.failed_at(position);
      return reader.failed_at(method.params()[i].name());
    }
    if (!types[i].rest) count = ++i;
  }
  given = (std::uint64_t{1} << count) - 1;
  return true;
}

// Which of `params` that is; their number for none. Callers mostly keep the order, so `expected` is tried first.
[[gnu::always_inline]] static inline std::size_t find_param(std::span<const Param> params, std::size_t expected,
                                                            std::string_view name) noexcept {
  if (expected < params.size() && same_name(params[expected].name(), name)) [[likely]]
    return expected;
  std::size_t i = 0;
  while (i != params.size() && !same_name(params[i].name(), name)) ++i;
  return i;
}

template <class R>
static bool decode_named(const Method& method, R& reader, void* const* arguments, std::uint64_t& given) {
  const auto types = method.signature().arguments;
  const std::span<const Param> params = method.params();
  const std::size_t count = params.size();
  static_cast<void>(reader.begin_object());
  std::size_t expected = 0;
  std::string_view name;
  while (reader.next_member(name)) {
    const std::size_t i = find_param(params, expected, name);
    if (i == count || (given >> i) & 1) {
      if (i == count && method.signature().stream && name == kProgressToken) {
        static_cast<void>(reader.skip());
        continue;
      }
      const std::string unknown{name};
      if (i == count && types.size() > count && types.back().decode_other != nullptr) {
        if (!types.back().decode_other(reader, arguments[types.size() - 1], unknown)) return reader.failed_at(unknown);
        continue;
      }
      reader.fail(i == count ? "nothing" : "one value");
      return reader.failed_at(unknown);
    }
    if (!decode_one(reader, types[i], arguments[i])) [[unlikely]]
      return reader.failed_at(method.params()[i].name());
    given |= std::uint64_t{1} << i;
    expected = i + 1;
  }
  return true;
}

static bool decode_given(std::string_view params, const Method& method, Reader& reader, void* const* arguments,
                         std::uint64_t& given) {
  if (reader.is_json()) [[likely]] {
    auto& json = static_cast<json::JsonReader&>(reader);
    json.reset(params);
    if (params.front() == '[') return decode_positional(method, json, arguments, given);
    if (params.front() == '{') return decode_named(method, json, arguments, given);
  } else {
    reader.reset(params);
    const ValueKind kind = reader.kind();
    if (kind == ValueKind::array) return decode_positional(method, reader, arguments, given);
    if (kind == ValueKind::object) return decode_named(method, reader, arguments, given);
  }
  return true;
}

/// Reads params that do not fit once more, to tell all that is wrong with them and not the first thing alone. Where a
/// value fails for a reason that the reader does not know, nothing further is told.
class FailureList {
 public:
  FailureList(std::string_view params, const Method& method, ParamReaders& readers, void* const* arguments)
      : params_(params), method_(&method), readers_(&readers), reader_(readers.reader.get()), arguments_(arguments) {}

  /// The reader has failed; it has failed with all of them then.
  void collect() {
    // What gathers all further names has some of them by now, and would find them given twice.
    const auto types = method_->signature().arguments;
    if (!reader_->failed() || (!types.empty() && types.back().decode_other != nullptr)) return;
    first_ = reader_->take_failure();
    if (!params_.empty()) reader_->reset(params_);
    const ValueKind kind = params_.empty() ? ValueKind::null : reader_->kind();
    bool goes_on = true;
    if (kind == ValueKind::array) goes_on = positional();
    if (kind == ValueKind::object) goes_on = named();
    if (goes_on) missing();
    if (!known_ || all_.empty()) {
      reader_->fail(std::move(first_));
      return;
    }
    DecodeFailure first = std::move(all_.front());
    first.also.assign(std::move_iterator{all_.begin() + 1}, std::move_iterator{all_.end()});
    reader_->fail(std::move(first));
  }

 private:
  // A peer that sends much that is wrong is not told of all of it.
  static constexpr std::size_t kFailuresMax = 8;

  // Takes what the reader has failed with, at a value that it stands at again after `mark`. False to stop.
  template <class Step>
  bool take(const Step& step, const char* mark, std::string_view meant = {}) {
    if (reader_->failed()) {
      reader_->failed_at(step);
      all_.push_back(reader_->take_failure());
      all_.back().meant = meant;
    } else {
      // One that is not read twice: what was wrong with it is known.
      if (std::exchange(took_first_, true)) return known_ = false;
      all_.push_back(first_);
    }
    if (mark != nullptr) {
      reader_->rewind(mark);
      static_cast<void>(reader_->skip());
    }
    return all_.size() < kFailuresMax;
  }

  bool positional() {
    const auto types = method_->signature().arguments;
    static_cast<void>(reader_->begin_array());
    std::size_t i = 0;
    for (std::size_t position = 0; reader_->next_element(); ++position) {
      while (i != types.size() && types[i].named_only) ++i;
      const char* const mark = reader_->mark();
      if (i == types.size() || types[i].decode_other != nullptr) {
        reader_->fail("nothing");
        if (!take(position, mark)) return false;
        continue;
      }
      const bool fits = types[i].decode(*reader_, arguments_[i]);
      if (!fits && !(types[i].rest ? take(position, mark) : take(name_of(i), mark))) return false;
      if (!types[i].rest) given_ |= std::uint64_t{1} << i++;
    }
    return true;
  }

  bool named() {
    const auto types = method_->signature().arguments;
    const std::size_t count = method_->params().size();
    static_cast<void>(reader_->begin_object());
    std::string_view name;
    while (reader_->next_member(name)) {
      const std::string own{name};
      const char* const mark = reader_->mark();
      const std::size_t i = find_param(method_->params(), count, own);
      if (i != count && ((given_ >> i) & 1) == 0) {
        given_ |= std::uint64_t{1} << i;
        if (!types[i].decode(*reader_, arguments_[i]) && !take(std::string_view{own}, mark)) return false;
        continue;
      }
      if (i == count && method_->signature().stream && own == kProgressToken) {
        static_cast<void>(reader_->skip());
        continue;
      }
      if (i == count && types.size() > count && types.back().decode_other != nullptr) {
        const bool fits = types.back().decode_other(*reader_, arguments_[types.size() - 1], own);
        if (!fits && !take(std::string_view{own}, mark)) return false;
        continue;
      }
      reader_->fail(i == count ? "nothing" : "one value");
      if (!take(std::string_view{own}, mark, i == count ? meant_by(own) : std::string_view{})) return false;
    }
    return true;
  }

  void missing() {
    const auto types = method_->signature().arguments;
    for (std::size_t i = 0; i < types.size() && all_.size() < kFailuresMax; ++i) {
      if ((given_ >> i) & 1 || types[i].gathers() || fill(*method_, *readers_, arguments_[i], i)) continue;
      all_.push_back(reader_->take_failure());
    }
  }

  [[nodiscard]] std::string_view name_of(std::size_t i) const { return method_->params()[i].name(); }
  [[nodiscard]] std::string_view meant_by(std::string_view name) const {
    NearestName nearest{name};
    for (const Param& param : method_->params()) {
      if (nearest.may_be_near(Spelling{param.name()})) nearest.consider(param.name());
    }
    return nearest.found();
  }

  std::string_view params_;
  const Method* method_;
  ParamReaders* readers_;
  Reader* reader_;
  void* const* arguments_;
  DecodeFailure first_;
  std::vector<DecodeFailure> all_;
  std::uint64_t given_ = 0;
  bool known_ = true;
  bool took_first_ = false;
};

// Out of line: a call that goes well has nothing of it.
[[gnu::noinline, gnu::cold]] bool refuse_params(std::string_view params, const Method& method, ParamReaders& readers,
                                                void* const* arguments) {
  FailureList{params, method, readers, arguments}.collect();
  return false;
}

[[gnu::always_inline]] static inline bool unpack_whole(PackedInput& input, const Method& method,
                                                       void* const* arguments) {
  const Packing& packing = *method.packing();
  std::size_t position = 0;
  if (!input.begin(packing.params())) return false;
  if (packing.unpack(input, arguments, position)) return input.finish();
  if (position < method.params().size()) input.failed_at(method.params()[position].name());
  return false;
}

bool has_packing(const Method& method) noexcept { return method.packing() != nullptr; }

bool unpack_params(Call& call, void* const* arguments) {
  const Received::Span& packed = call.message().packed;
  PackedInput input{std::as_bytes(std::span{packed.data, packed.size}), Limits{}.depth};
  if (!unpack_whole(input, call.method(), arguments)) [[unlikely]] {
    call.error(packed_error(input.take_failure()));
    return false;
  }
  call.use_own_form();
  return true;
}

bool decode_params(std::string_view params, const Method& method, ParamReaders& readers, void* const* arguments) {
  Reader& reader = *readers.reader;
  if (reader.failed()) reader.clear_failure();
  static_cast<void>(reader.take_own_form());
  if (method.packing() != nullptr) [[unlikely]] {
    std::span<const std::byte> bytes;
    if (!params.empty() && reader.read_array_of_own_form(params, kPackedExtension, bytes)) {
      PackedInput input{bytes, Limits{}.depth};
      return unpack_whole(input, method, arguments) || reader.fail(input.take_failure());
    }
  }
  std::uint64_t given = 0;
  if (!params.empty() && !decode_given(params, method, reader, arguments, given)) [[unlikely]]
    return refuse_params(params, method, readers, arguments);
  const std::uint64_t all = (std::uint64_t{1} << method.signature().arguments.size()) - 1;
  return given == all || fill_missing(method, readers, arguments, given) ||
         refuse_params(params, method, readers, arguments);
}

bool order_by_name(const Received& message, const Method& method, std::uint32_t* values) noexcept {
  // As many as are given.
  const std::span<const Param> params{method.params().data(), message.integer_count};
  const std::size_t count = params.size();
  std::uint32_t given = 0;
  for (std::size_t member = 0; member < count; ++member) {
    const std::string_view name{message.integer_names[member].data, message.integer_names[member].size};
    const std::size_t i = find_param(params, member, name);
    if (i == count || (given >> i & 1) != 0) return false;
    given |= std::uint32_t{1} << i;
    values[i] = message.integers[member];
  }
  return true;
}

void write_out(Writer& writer, const Method& method, const void* const* arguments) {
  const auto types = method.signature().arguments;
  writer.key("out");
  writer.begin_object(static_cast<std::size_t>(
      std::ranges::count_if(types, [](const ArgumentType& type) { return type.give_back != nullptr; })));
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].give_back == nullptr) continue;
    writer.key(method.params()[i].name());
    types[i].give_back(writer, arguments[i]);
  }
  writer.end_object();
}

OwnedParams::OwnedParams(std::string_view params, const Codec& codec)
    : readers{.reader = take_reader(codec), .defaults = {}}, text(take_buffer()) {
  text.append(params);
  static_cast<void>(text.padded());
}

OwnedParams::~OwnedParams() {
  keep_spare(std::move(readers.reader), text.size());
  keep_spare(std::move(text));
}

}  // namespace wirecall::detail
