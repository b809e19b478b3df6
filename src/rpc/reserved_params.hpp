// The params of methods under reserved names, by name or by position, each a value as it was sent. They are read
// without the typed edge, since names that a newer peer may add are passed over.
#pragma once

#include <algorithm>
#include <array>

#include "rpc/reserved.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::rpc {

/// A value as it was sent.
struct RawValue {
  std::string_view text;
  ValueKind kind = ValueKind::null;
};

[[nodiscard]] inline RawValue take_raw(Reader& reader) {
  const ValueKind kind = reader.kind();
  return {reader.skip(), kind};
}

namespace detail {

// Refuses what the reader has failed at; `location` is a name or position.
template <class Location>
[[noreturn]] void throw_failure(Reader& reader, Location location) {
  static_cast<void>(reader.failed_at(location));
  Error error = decode_error(reader);
  reader.clear_failure();
  throw error;
}

}  // namespace detail

/// Refuses the value at which the reader stands: throws -32602.
template <class Location>
[[noreturn]] void refuse_here(Reader& reader, Location location, std::string_view expected) {
  static_cast<void>(reader.fail(expected));
  detail::throw_failure(reader, location);
}

/// The same without a word of the value, which may be a secret.
template <class Location>
[[noreturn]] void refuse_unshown(Location location, std::string_view expected) {
  throw Error::with_data(ErrorCode::invalid_params,
                         R"({"loc":[)" + to_json(location) + R"(],"expected":)" + to_json(expected) + "}");
}

/// Refuses what was given for `name`, or that nothing was: throws -32602.
[[noreturn]] inline void refuse_param(Reader& reader, std::string_view name, const std::optional<RawValue>& sent,
                                      std::string_view expected) {
  if (sent) {
    reader.reset(sent->text);
    refuse_here(reader, name, expected);
  }
  static_cast<void>(reader.fail_missing(expected));
  detail::throw_failure(reader, name);
}

/// Whether an error quotes the value that it refuses (`data.got`).
enum class Quotes : bool { yes, no };

/// Positions are in the order of `names`. Throws Error -32602.
template <std::size_t N>
class ReservedParams {
 public:
  ReservedParams(const ReservedCall& call, const std::array<std::string_view, N>& names, Quotes quotes = Quotes::yes)
      : ReservedParams(call.reader(), call.message.params(), names, quotes) {}
  /// Of such params, padded; empty for none.
  ReservedParams(Reader& reader, std::string_view params, const std::array<std::string_view, N>& names,
                 Quotes quotes = Quotes::yes)
      : reader_(reader), names_(&names), quotes_(quotes) {
    if (params.empty()) return;
    reader_.reset(params);
    if (reader_.kind() == ValueKind::array) {
      static_cast<void>(reader_.begin_array());
      for (std::size_t position = 0; reader_.next_element(); ++position) {
        if (position >= N) refuse_value(position, "nothing");
        given_[position] = take_raw(reader_);
      }
    } else if (reader_.kind() == ValueKind::object) {
      static_cast<void>(reader_.begin_object());
      for (std::string_view name; reader_.next_member(name);) {
        const auto found = std::ranges::find(names, name);
        if (found == names.end()) {
          static_cast<void>(reader_.skip());  // peers may be newer
          continue;
        }
        std::optional<RawValue>& given = given_[static_cast<std::size_t>(found - names.begin())];
        if (given) refuse_value(*found, "one value");
        given = take_raw(reader_);
      }
    }
  }

  [[nodiscard]] const std::optional<RawValue>& find(std::size_t index) const noexcept { return given_[index]; }
  /// The same, null as nothing.
  [[nodiscard]] const RawValue* value(std::size_t index) const noexcept {
    const std::optional<RawValue>& sent = given_[index];
    return sent && sent->kind != ValueKind::null ? &*sent : nullptr;
  }
  /// The param as a T; nothing where it was not given, or null. Throws -32602 where it is no T.
  template <class T>
  [[nodiscard]] std::optional<T> as(std::size_t index) const {
    const RawValue* const sent = value(index);
    if (sent == nullptr) return std::nullopt;
    reader_.reset(sent->text);
    std::optional<T> result{std::in_place};
    if (!decode(reader_, *result)) detail::throw_failure(reader_, (*names_)[index]);
    return result;
  }
  /// The same, but nothing as well where it is no T.
  template <class T>
  [[nodiscard]] std::optional<T> as_or_nothing(std::size_t index) const {
    const RawValue* const sent = value(index);
    if (sent == nullptr) return std::nullopt;
    reader_.reset(sent->text);
    std::optional<T> result{std::in_place};
    if (decode(reader_, *result)) return result;
    reader_.clear_failure();
    return std::nullopt;
  }
  [[noreturn]] void refuse(std::string_view name, const std::optional<RawValue>& sent,
                           std::string_view expected) const {
    if (quotes_ == Quotes::no) refuse_unshown(name, expected);
    refuse_param(reader_, name, sent, expected);
  }

 private:
  template <class Location>
  [[noreturn]] void refuse_value(Location location, std::string_view expected) {
    if (quotes_ == Quotes::no) refuse_unshown(location, expected);
    refuse_here(reader_, location, expected);
  }

  Reader& reader_;
  const std::array<std::string_view, N>* names_;
  Quotes quotes_;
  std::array<std::optional<RawValue>, N> given_;
};

}  // namespace wirecall::rpc
