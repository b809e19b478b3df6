// What a client says to a broker, and learns there, of methods that clients provide: ProvideOptions is how a method is
// to be called, ProviderOutcome what one of several providers has answered to Client::call_all; PublishOptions belongs
// to events. Values. See docs/client.md, "At a broker".
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "wirecall/codec.hpp"
#include "wirecall/error.hpp"
#include "wirecall/reflect.hpp"
#include "wirecall/registry.hpp"
#include "wirecall/schema.hpp"

namespace wirecall {

/// How a broker is to call a method that a client provides. What is left out, the broker decides.
struct ProvideOptions {
  /// Calls that are at this client at once, from 1; further ones wait at the broker.
  std::optional<std::uint32_t> concurrency = {};
  /// How many wait there for this client at most; beyond that a call is answered -32005.
  std::optional<std::uint32_t> queue = {};
  /// Which of several providers is asked: "least_inflight", "round_robin", "hash:<param>", "exclusive", "random",
  /// "first" or "last"; all have to name the same.
  std::string policy = {};
  /// A call may be made again at another provider where this one is lost.
  bool idempotent = false;
  /// It changes nothing.
  bool safe = false;
  std::string summary = {};
  /// The parameters' names, as of Registry::method.
  std::vector<Param> params = {};
};

struct PublishOptions {
  /// The broker keeps the value for those who subscribe later with `last`.
  bool retain = false;
};

/// What one provider has answered.
template <class T = void>
struct ProviderOutcome {
  std::string client;  ///< the provider's name; empty where it has none, or the broker does not tell
  std::expected<T, Error> outcome;
};

namespace detail {

/// The error object at which the reader stands; of what is none, that it is none.
[[nodiscard]] Error take_error(Reader& reader);

}  // namespace detail

/// An object with `result` or `error`, and `client`. A result that is no T is that provider's outcome, not the end of
/// all: LocalError -32603.
template <class T>
struct Adapt<ProviderOutcome<T>> {
  static bool decode(Reader& reader, ProviderOutcome<T>& out) {
    if (!reader.begin_object()) return false;
    bool ended = false;
    for (std::string_view name; reader.next_member(name);) {
      if (name == "result") {
        read_result(reader, out);
        ended = true;
      } else if (name == "error") {
        out.outcome = std::unexpected{detail::take_error(reader)};
        ended = true;
      } else if (name == "client" && reader.kind() == ValueKind::string) {
        if (!wirecall::decode(reader, out.client)) return false;
      } else {
        reader.skip();
      }
    }
    return ended || reader.fail_missing("result or error");
  }
  static constexpr std::string_view name = "a provider's outcome";

 private:
  static void read_result(Reader& reader, ProviderOutcome<T>& out) {
    if constexpr (std::is_void_v<T>) {
      reader.skip();
    } else {
      const char* const mark = reader.mark();
      out.outcome.emplace();
      if (wirecall::decode(reader, *out.outcome)) return;
      const Error why = decode_error(reader);
      reader.clear_failure();
      reader.rewind(mark);
      reader.skip();
      out.outcome = std::unexpected{
          Error{ErrorCode::internal_error, "the result is not what was asked for: " + type_name<T>(), why.data()}};
    }
  }
};

}  // namespace wirecall
